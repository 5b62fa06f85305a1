//! What came of a simulation.

use aggregation::Sent;

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// When the last member had ended, or the simulation was given up.
    pub ended_ns: u64,
    /// A training's server first, then by rank.
    pub members: Vec<Member>,
    /// By link: from its first end to its second, and back.
    pub links: Vec<[Direction; 2]>,
    /// Frames that switches have lost by chance.
    pub dropped: u64,
}

impl Outcome {
    /// Whether all members came to their end.
    pub fn is_whole(&self) -> bool {
        self.members
            .iter()
            .all(|member| member.end == End::Finished)
    }

    /// When the last of the workers or ranks had done the last round, if all came to their end.
    pub fn completed_ns(&self) -> Option<u64> {
        let ends = self.working().map(|member| {
            let last = member.rounds.last()?;
            (member.end == End::Finished).then_some(last.end_ns)
        });
        ends.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// When the last of them had closed the job, if all did: a run's `training.took`, but for how it begins.
    pub fn closed_ns(&self) -> Option<u64> {
        self.completed_ns()?;
        self.working().map(|member| member.ended_ns).max()
    }

    fn working(&self) -> impl Iterator<Item = &Member> {
        let members = self.members.iter();
        members.filter(|member| member.role != Role::Server)
    }
}

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A parameter server.
    Server,
    /// Which worker, or rank.
    Rank(u16),
}

/// How a member ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// With all its rounds.
    Finished,
    /// It gave up, and said why.
    Failed(String),
    /// It was still waiting when the simulation was given up.
    Waiting,
}

/// From when to when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The gradient is begun; of a rank, the operation is given.
    pub start_ns: u64,
    /// All answers, or sums, are there.
    pub end_ns: u64,
}

/// A member's part.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its host.
    pub host: usize,
    /// What it is.
    pub role: Role,
    /// How it ended.
    pub end: End,
    /// When.
    pub ended_ns: u64,
    /// Of a worker or rank.
    pub rounds: Vec<Span>,
    /// What it sent, from the aggregation header on.
    pub sent: Sent,
    /// Chunks that timed out.
    pub timeouts: u64,
    /// Chunks sent or asked for again because later ones were answered.
    pub early: u64,
    /// Answers that a queue has marked.
    pub marks: u64,
    /// Chunks that may be under way in the end; of a server, none.
    pub window: u32,
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Direction {
    /// Frames that its queue took.
    pub frames: u64,
    /// Their bytes, from the Ethernet header on.
    pub bytes: u64,
    /// Of those frames, the ones lost on the way.
    pub lost: u64,
    /// Frames for which its queue had no room.
    pub overflowed: u64,
    /// Frames that its queue has marked.
    pub marked: u64,
    /// The most frames that waited at once.
    pub longest: u64,
}
