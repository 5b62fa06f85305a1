//! Results of a simulation.

use aggregation::Sent;

/// Results of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Time at which the last member ended, or the simulation was given up.
    pub ended_ns: u64,
    /// Members: in a training the server first, then the others by rank.
    pub members: Vec<Member>,
    /// Counters by link: from its first end to its second, and back.
    pub links: Vec<[Direction; 2]>,
    /// Frames that switches lost at random.
    pub dropped: u64,
}

impl Outcome {
    /// Whether all members finished.
    pub fn is_whole(&self) -> bool {
        self.members
            .iter()
            .all(|member| member.end == End::Finished)
    }

    /// Time at which the last worker or rank finished its last round; `None` unless all of them finished.
    pub fn completed_ns(&self) -> Option<u64> {
        let ends = self.working().map(|member| {
            let last = member.rounds.last()?;
            (member.end == End::Finished).then_some(last.end_ns)
        });
        ends.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Time at which the last of them closed the job, if all did: a run's `training.took`, apart from its start.
    pub fn closed_ns(&self) -> Option<u64> {
        self.completed_ns()?;
        self.working().map(|member| member.ended_ns).max()
    }

    fn working(&self) -> impl Iterator<Item = &Member> {
        let members = self.members.iter();
        members.filter(|member| member.role != Role::Server)
    }
}

/// Role of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A parameter server.
    Server,
    /// A worker or rank, with its number.
    Rank(u16),
}

/// End of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The member finished all its rounds.
    Finished,
    /// The member gave up with this error.
    Failed(String),
    /// The member was still waiting when the simulation was given up.
    Waiting,
}

/// A period of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Beginning of the gradient; for a rank, submission of the operation.
    pub start_ns: u64,
    /// Arrival of the last answer or sum.
    pub end_ns: u64,
}

/// Result of a member.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Node of its host.
    pub host: usize,
    /// Role of the member.
    pub role: Role,
    /// How the member ended.
    pub end: End,
    /// Time at which the member ended.
    pub ended_ns: u64,
    /// Rounds of a worker or rank.
    pub rounds: Vec<Span>,
    /// Frames sent; bytes count from the aggregation header on.
    pub sent: Sent,
    /// Chunks that timed out.
    pub timeouts: u64,
    /// Chunks that were retransmitted or probed because later ones were answered.
    pub early: u64,
    /// Answers that a queue marked.
    pub marks: u64,
    /// Final congestion window in chunks; 0 for a server.
    pub window: u32,
}

/// Counters of one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Direction {
    /// Frames that entered the queue.
    pub frames: u64,
    /// Their bytes, from the Ethernet header on.
    pub bytes: u64,
    /// Frames that entered the queue and were lost on the link.
    pub lost: u64,
    /// Frames dropped because the queue was full.
    pub overflowed: u64,
    /// Frames that the queue marked.
    pub marked: u64,
    /// Maximum queue length in frames.
    pub longest: u64,
}
