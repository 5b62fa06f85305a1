//! Results of a simulation: members (server, workers, ranks), links, and durations of rounds.

use aggregation::Sent;

/// Results of a simulation of round times.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Virtual time in nanoseconds at which the last member ended, or the simulation was given up.
    pub ended_ns: u64,
    /// Results of the members. In a training, the server is first; workers or ranks follow in their order.
    pub members: Vec<Member>,
    /// Counters of each link: of the direction from its first end to its second, and of the direction back.
    pub links: Vec<[Direction; 2]>,
    /// Frames that switches lost at random, as [`Loss`](super::Loss) configures.
    pub dropped: u64,
}

impl Outcome {
    /// Whether the server and all workers or ranks finished.
    pub fn is_whole(&self) -> bool {
        self.members
            .iter()
            .all(|member| member.end == End::Finished)
    }

    /// Virtual time in nanoseconds at which the last worker or rank finished its last round; `None` unless all finished.
    pub fn completed_ns(&self) -> Option<u64> {
        let ends = self.working().map(|member| {
            let last = member.rounds.last()?;
            (member.end == End::Finished).then_some(last.end_ns)
        });
        ends.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Virtual nanosecond at which the last worker or rank closed the job, as `training.took` in a run; `None` unless all did.
    pub fn closed_ns(&self) -> Option<u64> {
        self.completed_ns()?;
        self.working().map(|member| member.ended_ns).max()
    }

    fn working(&self) -> impl Iterator<Item = &Member> {
        let members = self.members.iter();
        members.filter(|member| member.role != Role::Server)
    }
}

/// Role of a member of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The parameter server.
    Server,
    /// The worker or rank with this number.
    Rank(u16),
}

/// How a member of the job (server, worker or rank) ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The member finished all its rounds.
    Finished,
    /// The member gave up with this error.
    Failed(String),
    /// The member was still waiting when the simulation was given up.
    Waiting,
}

/// Duration of one round of a worker or rank, as two virtual times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Nanosecond at which a worker begins to compute the gradient, or a rank's operation is submitted.
    pub start_ns: u64,
    /// Nanosecond at which the last answer or sum of the round arrives.
    pub end_ns: u64,
}

/// Results of one member of the job: the server, a worker or a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Index of the node of the member's host.
    pub host: usize,
    /// Whether the member is the server, or which worker or rank it is.
    pub role: Role,
    /// How the member ended.
    pub end: End,
    /// Virtual time at which the member ended, in nanoseconds.
    pub ended_ns: u64,
    /// Times of each round of a worker or rank; empty for a server.
    pub rounds: Vec<Span>,
    /// Frames and bytes that the member sent; bytes count from the aggregation header on.
    pub sent: Sent,
    /// Number of chunks whose answer or sum timed out.
    pub timeouts: u64,
    /// Number of chunks that were retransmitted or probed before their timeout, because later chunks were answered.
    pub early: u64,
    /// Number of received answers or sums with a congestion mark.
    pub marks: u64,
    /// Congestion window in chunks at the end of the simulation; 0 for a server.
    pub window: u32,
}

/// Counters of one direction of a simulated link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Direction {
    /// Frames that entered the link's queue.
    pub frames: u64,
    /// Bytes of the frames that entered the queue, from the Ethernet header on.
    pub bytes: u64,
    /// Frames that entered the queue and were then lost at random on the link.
    pub lost: u64,
    /// Frames dropped because the link's queue was full.
    pub overflowed: u64,
    /// Frames that the queue marked as congested.
    pub marked: u64,
    /// Maximum length that the link's queue reached, in frames.
    pub longest: u64,
}
