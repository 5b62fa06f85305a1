//! What is simulated.

use std::collections::BTreeMap;

use aggregation::job::{JobConfig, JobError, JobId, Place, WorkerId};
use aggregation::rto::Retransmission;
use aggregation::server::{Mode, Part, PartsError};

use crate::Rate;

/// An Ethernet address as a number, most significant byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

impl Address {
    /// That of the sums of what is sent to a job's sum: a switch that sums puts it in place of the other.
    pub(super) fn of_sums(self) -> Self {
        Self(self.0 & 0x00FF_FFFF_FFFF | 0x0100_0000_0000)
    }
}

/// A node's port, from 1 in the order of its links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub usize);

/// A network, and what runs on it.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Everything random follows from it.
    pub seed: u64,
    /// Hosts and switches.
    pub nodes: Vec<NodeSpec>,
    /// Between nodes, by their places.
    pub links: Vec<LinkSpec>,
    /// The job.
    pub job: JobConfig,
    /// When its members send again.
    pub retransmission: Retransmission,
    /// Rounds of a training, operations of an all-reduce.
    pub rounds: u64,
    /// Who does what.
    pub work: Work,
    /// What processors take.
    pub costs: Costs,
    /// What is not over by then is given up.
    pub limit_ns: u64,
}

/// A host or a switch.
#[derive(Debug, Clone)]
pub enum NodeSpec {
    /// A host, with one link.
    Host {
        /// Its own.
        address: Address,
    },
    /// A switch.
    Switch(SwitchSpec),
}

/// What a switch is told.
#[derive(Debug, Clone, Default)]
pub struct SwitchSpec {
    /// By which ports frames leave for an address.
    pub forwarding: BTreeMap<Address, Vec<PortId>>,
    /// What it sums.
    pub sums: Vec<Summing>,
    /// Of what it loses a share.
    pub losses: Vec<Loss>,
}

/// A job, or a part of one, that a switch sums.
#[derive(Debug, Clone)]
pub struct Summing {
    /// Its number on the wire.
    pub number: JobId,
    /// By which port each child's updates come, by the child's number.
    pub children: Vec<PortId>,
    /// The port of the switch above, and what that knows this one by; `None` at the topmost.
    pub up: Option<(PortId, WorkerId)>,
}

/// Frames that a switch loses by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// Of this kind; `None`: of any.
    pub kind: Option<wire::Kind>,
    /// From this host, which of a sum is who sent its last update; `None`: from any.
    pub from: Option<Address>,
    /// For this address; `None`: for any.
    pub to: Option<Address>,
    /// The share of them.
    pub share: f64,
    /// Before they are summed or forwarded, or after, each copy by itself.
    pub at: Half,
}

/// Which half of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// What comes.
    Ingress,
    /// What leaves.
    Egress,
}

/// A full-duplex link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkSpec {
    /// The nodes' places.
    pub ends: [usize; 2],
    /// In each direction.
    pub rate: Rate,
    /// What leaves at once after a pause.
    pub burst_bytes: u64,
    /// One way.
    pub delay_ns: u64,
    /// The share of frames that are lost, in each direction.
    pub loss: f64,
    /// Switches mark what finds so many frames waiting for it; `None`: they do not.
    pub mark_at: Option<usize>,
}

/// Who does what.
#[derive(Debug, Clone)]
pub enum Work {
    /// Workers with a server.
    Training {
        /// The server's host.
        server: usize,
        /// By rank.
        workers: Vec<WorkerAt>,
        /// Who sums, where no parts are.
        mode: Mode,
        /// What switches sum a part each of.
        parts: Vec<Part>,
        /// Where answers to all go.
        everybody: Address,
    },
    /// Ranks without one.
    AllReduce {
        /// By rank.
        ranks: Vec<RankAt>,
        /// Where updates go.
        sum: Address,
        /// Where questions to the switch go.
        question: Address,
    },
}

/// A worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerAt {
    /// Its host.
    pub host: usize,
    /// Where its updates go.
    pub to: Address,
    /// The part that it is in, and its number there.
    pub part: Option<(JobId, WorkerId)>,
}

/// A rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankAt {
    /// Its host.
    pub host: usize,
    /// Where it stands among the switches.
    pub place: Place,
}

/// What processors take, in nanoseconds, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Costs {
    /// A worker, for its gradient; a rank, between two operations.
    pub compute_ns: u64,
    /// A server, after each round: it looks at what came of it.
    pub evaluate_ns: u64,
    /// A server, for each chunk that it applies.
    pub apply_ns: u64,
    /// A host, to take a frame.
    pub receive_ns: u64,
    /// A host, to send one.
    pub send_ns: u64,
    /// A switch, for each frame.
    pub switch_ns: u64,
    /// Whoever has slept, to be woken.
    pub wake_ns: u64,
    /// Processors that all share, as in a testbed on one machine; `None`: each has its own. Who comes first has one until it is done,
    /// but a switch, which waits for none: it takes its time from a host.
    pub processors: Option<usize>,
    /// A host's socket takes frames while what waits of them takes no more of the kernel's memory than this; its thread then waits.
    /// `None`: it takes all.
    pub socket_bytes: Option<u64>,
}

/// Why nothing is simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The job.
    #[error(transparent)]
    Job(#[from] JobError),
    /// Its parts.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// A link leads nowhere, or a port has no link.
    #[error("the network has no {0}")]
    Missing(String),
}
