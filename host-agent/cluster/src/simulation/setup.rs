//! Input of a simulation of round times: a network, the job's members on it, and processor times.

use std::collections::BTreeMap;

use aggregation::job::{JobConfig, JobError, JobId, TreePosition, WorkerId};
use aggregation::rto::Retransmission;
use aggregation::server::{Mode, Part, PartsError};

use crate::Rate;

/// An Ethernet address as a 48-bit number; its first byte is the most significant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

impl Address {
    /// Multicast address of the SUMs of UPDATEs that have this address; a switch that sums replaces one by the other.
    pub(super) fn of_sums(self) -> Self {
        Self(self.0 & 0x00FF_FFFF_FFFF | 0x0100_0000_0000)
    }
}

/// Port of a node, numbered from 1 in the order of its links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub usize);

/// Input of a simulation: a network, and the training or all-reduce that runs on it.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Seed of every random decision in the simulation.
    pub seed: u64,
    /// Hosts and switches; other fields refer to them by index.
    pub nodes: Vec<NodeSpec>,
    /// Links between the nodes, each given by the indices of two nodes.
    pub links: Vec<LinkSpec>,
    /// Settings of the job: number of workers or ranks, slots, values per round.
    pub job: JobConfig,
    /// Retransmission timeouts of the server, workers or ranks.
    pub retransmission: Retransmission,
    /// Number of rounds of a training, or of operations of an all-reduce.
    pub rounds: u64,
    /// Whether the nodes run a training or an all-reduce, and which hosts take part.
    pub work: Work,
    /// Durations of the steps of hosts and switches, and number of processors.
    pub costs: Costs,
    /// Virtual time in nanoseconds at which an unfinished simulation is given up.
    pub limit_ns: u64,
}

/// A node of the simulated network: a host or a switch.
#[derive(Debug, Clone)]
pub enum NodeSpec {
    /// A host, which has exactly one link.
    Host {
        /// Ethernet address of the host.
        address: Address,
    },
    /// A switch, with any number of links.
    Switch(SwitchSpec),
}

/// Configuration of a simulated switch.
#[derive(Debug, Clone, Default)]
pub struct SwitchSpec {
    /// Output ports for each destination address.
    pub forwarding: BTreeMap<Address, Vec<PortId>>,
    /// Jobs, or parts of jobs, that the switch sums.
    pub sums: Vec<Summing>,
    /// Random losses of frames at the switch.
    pub losses: Vec<Loss>,
}

/// A job, or a part of a job, that a switch sums.
#[derive(Debug, Clone)]
pub struct Summing {
    /// Job number in the frames to be summed.
    pub number: JobId,
    /// Input port of each child (a rank, or a switch below), in order of the child's number.
    pub children: Vec<PortId>,
    /// Port to the switch above, and this switch's number there; `None` at the topmost switch.
    pub up: Option<(PortId, WorkerId)>,
}

/// A random loss at a switch: which frames, and how many of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// Kind of the frames that may be lost; `None` for any kind.
    pub kind: Option<wire::Kind>,
    /// Host that sent the frames (for a SUM, the sender of the UPDATE that completed it); `None` for any host.
    pub from: Option<Address>,
    /// Destination address of the frames; `None` for any address.
    pub to: Option<Address>,
    /// Share of the matching frames that are lost, 0 to 1.
    pub share: f64,
    /// Where frames are lost: before the switch sums or forwards them, or after it, then each copy independently.
    pub at: Half,
}

/// Half of a switch's pipeline in which frames are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Ingress: frames are lost when they are received, before they are summed or forwarded.
    Ingress,
    /// Egress: frames are lost when they are sent.
    Egress,
}

/// A full-duplex link between two nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkSpec {
    /// Indices of the two nodes that the link connects.
    pub ends: [usize; 2],
    /// Rate of the link, and limits of its queue, in each direction.
    pub rate: Rate,
    /// Size of the link's token bucket in bytes: the burst that leaves at once after a pause.
    pub burst_bytes: u64,
    /// Delay in each direction, in nanoseconds.
    pub delay_ns: u64,
    /// Share of frames that are lost at random in each direction, 0 to 1.
    pub loss: f64,
    /// Queue length in frames from which a switch marks frames as congested; `None`: switches do not mark.
    pub mark_at: Option<usize>,
}

/// Work that the simulation performs, and its hosts.
#[derive(Debug, Clone)]
pub enum Work {
    /// A training: workers with a parameter server.
    Training {
        /// Index of the server's node.
        server: usize,
        /// Workers of the training, in order of rank.
        workers: Vec<WorkerAt>,
        /// Whether a switch or the server sums; only used if `parts` is empty.
        mode: Mode,
        /// Parts of the job: groups of workers, each of which a switch sums; empty if the job is not divided.
        parts: Vec<Part>,
        /// Multicast address of the server's answers to all workers.
        everybody: Address,
    },
    /// An all-reduce: ranks without a parameter server.
    AllReduce {
        /// Ranks of the all-reduce, in order of their numbers.
        ranks: Vec<RankAt>,
        /// Address of the ranks' UPDATEs.
        sum: Address,
        /// Address of the ranks' probes to the switch.
        question: Address,
    },
}

/// A worker of a simulated training, and where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerAt {
    /// Index of the node of the worker's host.
    pub host: usize,
    /// Address of the worker's UPDATEs.
    pub to: Address,
    /// Job number of the part that has the worker, and the worker's number in it; `None` if the job is not divided.
    pub part: Option<(JobId, WorkerId)>,
}

/// A rank of a simulated all-reduce, and where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankAt {
    /// Index of the node of the rank's host.
    pub host: usize,
    /// Position of the rank in the tree of switches.
    pub place: TreePosition,
}

/// Processor times of the simulated nodes in nanoseconds, and the number of processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Costs {
    /// Time that a worker computes a gradient, or a rank computes between two operations.
    pub compute_ns: u64,
    /// Time of a server's evaluation of the model after each round.
    pub evaluate_ns: u64,
    /// Time in which a server applies the sums of one chunk.
    pub apply_ns: u64,
    /// Time in which a host receives one frame.
    pub receive_ns: u64,
    /// Time in which a host sends one frame.
    pub send_ns: u64,
    /// Time in which a switch processes one frame.
    pub switch_ns: u64,
    /// Time that a sleeping host or switch takes to wake up.
    pub wake_ns: u64,
    /// Number of processors that all nodes share, as in a testbed on one machine; `None`: each node has its own. A host keeps
    /// its processor until it has finished; a switch does not wait, but takes time from a host.
    pub processors: Option<usize>,
    /// Bytes of kernel memory that queued frames may take before a host's socket blocks its thread; `None`: never blocks.
    pub socket_bytes: Option<u64>,
}

/// Reason why the input of a simulation is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The settings of the job are invalid.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The division of the job into parts is invalid.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// A link ends at no node, or a port has no link; the text says which.
    #[error("the network has no {0}")]
    Missing(String),
}
