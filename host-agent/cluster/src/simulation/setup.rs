//! Input of a simulation.

use std::collections::BTreeMap;

use aggregation::job::{JobConfig, JobError, JobId, TreePosition, WorkerId};
use aggregation::rto::Retransmission;
use aggregation::server::{Mode, Part, PartsError};

use crate::Rate;

/// An Ethernet address as a number, most significant byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

impl Address {
    /// The address of SUMs for UPDATEs with this address; a summing switch replaces one by the other.
    pub(super) fn of_sums(self) -> Self {
        Self(self.0 & 0x00FF_FFFF_FFFF | 0x0100_0000_0000)
    }
}

/// Port of a node, numbered from 1 in the order of its links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub usize);

/// A network, and the work on it.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Seed of every random decision.
    pub seed: u64,
    /// Hosts and switches.
    pub nodes: Vec<NodeSpec>,
    /// Links between nodes, given by index.
    pub links: Vec<LinkSpec>,
    /// The job.
    pub job: JobConfig,
    /// Timeouts of the members.
    pub retransmission: Retransmission,
    /// Number of a training's rounds, or of an all-reduce's operations.
    pub rounds: u64,
    /// Kind of the work, and the members.
    pub work: Work,
    /// Processor times.
    pub costs: Costs,
    /// Time at which an unfinished simulation is given up.
    pub limit_ns: u64,
}

/// A host or a switch.
#[derive(Debug, Clone)]
pub enum NodeSpec {
    /// A host, with one link.
    Host {
        /// Ethernet address of the host.
        address: Address,
    },
    /// A switch.
    Switch(SwitchSpec),
}

/// Configuration of a switch.
#[derive(Debug, Clone, Default)]
pub struct SwitchSpec {
    /// Output ports of each address.
    pub forwarding: BTreeMap<Address, Vec<PortId>>,
    /// Jobs and parts that the switch sums.
    pub sums: Vec<Summing>,
    /// Random losses at the switch.
    pub losses: Vec<Loss>,
}

/// A job, or a part of one, that a switch sums.
#[derive(Debug, Clone)]
pub struct Summing {
    /// Job number on the wire.
    pub number: JobId,
    /// Input port of each child's updates, by the child's number.
    pub children: Vec<PortId>,
    /// Port of the switch above, and its number for this switch; `None` at the topmost switch.
    pub up: Option<(PortId, WorkerId)>,
}

/// Frames that a switch loses at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// Kind of the frames; `None`: any.
    pub kind: Option<wire::Kind>,
    /// Sending host, which for a SUM is the sender of its last UPDATE; `None`: any.
    pub from: Option<Address>,
    /// Destination address; `None`: any.
    pub to: Option<Address>,
    /// Share of matching frames that are lost.
    pub share: f64,
    /// Whether frames are lost before they are summed or forwarded, or after it, each copy independently.
    pub at: Half,
}

/// Pipeline half of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Received frames.
    Ingress,
    /// Sent frames.
    Egress,
}

/// A full-duplex link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkSpec {
    /// Indices of its nodes.
    pub ends: [usize; 2],
    /// Rate and queue in each direction.
    pub rate: Rate,
    /// Burst of the token bucket in bytes.
    pub burst_bytes: u64,
    /// Delay in one direction.
    pub delay_ns: u64,
    /// Share of frames that are lost, in each direction.
    pub loss: f64,
    /// Queue length in frames from which switches mark; `None`: they do not mark.
    pub mark_at: Option<usize>,
}

/// Work of the members.
#[derive(Debug, Clone)]
pub enum Work {
    /// A training: workers with a server.
    Training {
        /// Node of the server.
        server: usize,
        /// Workers by rank.
        workers: Vec<WorkerAt>,
        /// Whether a switch or the server sums, if there are no parts.
        mode: Mode,
        /// Parts of the job, each summed by a switch.
        parts: Vec<Part>,
        /// Address of answers to all workers.
        everybody: Address,
    },
    /// An all-reduce: ranks without a server.
    AllReduce {
        /// Ranks by number.
        ranks: Vec<RankAt>,
        /// Address of updates.
        sum: Address,
        /// Address of probes to the switch.
        question: Address,
    },
}

/// A worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerAt {
    /// Node of its host.
    pub host: usize,
    /// Address of its updates.
    pub to: Address,
    /// The part that the worker is in, and its number there.
    pub part: Option<(JobId, WorkerId)>,
}

/// A rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankAt {
    /// Node of its host.
    pub host: usize,
    /// Position of the rank among the switches.
    pub place: TreePosition,
}

/// Processor times in nanoseconds, and the number of processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Costs {
    /// Computation of a worker's gradient, or of a rank between two operations.
    pub compute_ns: u64,
    /// Evaluation by a server after each round.
    pub evaluate_ns: u64,
    /// Application of a chunk by a server.
    pub apply_ns: u64,
    /// Reception of a frame by a host.
    pub receive_ns: u64,
    /// Transmission of a frame by a host.
    pub send_ns: u64,
    /// Processing of a frame by a switch.
    pub switch_ns: u64,
    /// Wake-up of a sleeping host or switch.
    pub wake_ns: u64,
    /// Number of processors that all nodes share, as in a testbed on one machine; `None`: each node has its own. A host keeps
    /// its processor until it has finished; a switch does not wait, but takes time from a host.
    pub processors: Option<usize>,
    /// Kernel memory in bytes above which a host's socket blocks its thread, as counted for waiting frames; `None`: the
    /// socket never blocks.
    pub socket_bytes: Option<u64>,
}

/// Reason why a setup is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The job's settings are invalid.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The division into parts is invalid.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// A link ends at no node, or a port has no link.
    #[error("the network has no {0}")]
    Missing(String),
}
