//! The request of `weir collectives plan`: which collective, of which size, on which hosts, with which algorithms.

use clap::ValueEnum;
use collectives::collective::even;
use collectives::cost::choose::Numbering;
use collectives::machine::{Inside, Machine};
use collectives::{Algorithm, Collective};

/// The kinds of collectives; [`Collective::name`] gives their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum CollectiveKind {
    /// Each rank has a shard; all ranks get all shards.
    AllGather,
    /// Each rank sends a different piece of its data to each other rank.
    AllToAll,
    /// Each rank gets its shard of the sum of all vectors.
    ReduceScatter,
    /// All ranks get the sum of all vectors.
    AllReduce,
    /// All ranks get the root's vector.
    Broadcast,
    /// The root gets the sum of all vectors.
    Reduce,
    /// No rank continues before all ranks have arrived.
    Barrier,
}

impl CollectiveKind {
    /// Builds the collective of this kind. `len` counts elements: of the vector, of all shards together, or of one rank's data
    /// for all others. The sizes of the pieces differ by one element at most.
    pub fn collective(self, ranks: usize, len: usize, root: usize) -> Collective {
        match self {
            Self::AllGather => Collective::AllGather {
                shards: even(len, ranks),
            },
            Self::AllToAll => Collective::AllToAll {
                counts: vec![even(len, ranks); ranks],
            },
            Self::ReduceScatter => Collective::reduce_scatter(ranks, len),
            Self::AllReduce => Collective::AllReduce { ranks, len },
            Self::Broadcast => Collective::Broadcast { ranks, root, len },
            Self::Reduce => Collective::Reduce { ranks, root, len },
            Self::Barrier => Collective::Barrier { ranks },
        }
    }

    /// Whether this kind of collective has a root.
    pub fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce)
    }
}

/// How the ranks of one host are connected with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsideBy {
    /// NVLink as in an H100 machine; GPUs and NICs use PCIe 5.0.
    NvLink,
    /// PCIe 4.0, without NVLink.
    Pcie,
    /// Shared memory, in which all processes together copy 80 Gbit/s (an assumed rate).
    Memory,
}

/// Copy rate of [`InsideBy::Memory`] per host, in bits per second.
const MEMORY_BPS: u64 = 80_000_000_000;

/// GPUs and NICs inside each host, and their interconnect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inner {
    /// Number of GPUs, which are the ranks, per host.
    pub gpus: usize,
    /// Number of NICs per host.
    pub nics: usize,
    /// How the GPUs of a host are connected.
    pub by: InsideBy,
}

impl Inner {
    /// Describes the host for the cost model. The rate of a NIC is that of its link in the network.
    pub(super) fn machine(self) -> Machine {
        let base = match self.by {
            InsideBy::NvLink | InsideBy::Memory => Machine::nvlink(self.nics),
            InsideBy::Pcie => Machine::pcie(self.nics),
        };
        let inside = match self.by {
            InsideBy::Memory => Inside::Memory {
                copy_bps: MEMORY_BPS,
            },
            _ => base.inside,
        };
        Machine {
            gpus: self.gpus,
            // As in a machine with eight GPUs, two GPUs share a switch.
            switches: self.gpus.div_ceil(2),
            inside,
            ..base
        }
    }
}

/// All options of a prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Kind of the collective.
    pub kind: CollectiveKind,
    /// Size in bytes: of the vector, of all shards together, or of one rank's data for all others.
    pub bytes: u64,
    /// Rank of the root, for a broadcast or a reduce.
    pub root: usize,
    /// GPUs and NICs inside each host; `None` if each host is a single rank.
    pub inner: Option<Inner>,
    /// Minimum time between the starts of two messages of a rank, in nanoseconds.
    pub message_ns: u64,
    /// The algorithms to compare; empty for all.
    pub algorithms: Vec<Algorithm>,
    /// The order in which algorithms number the ranks; `None` to compare all orders.
    pub numbering: Option<Numbering>,
}

/// The algorithms that a word of the command line names: one, all hierarchical ones, or none if the word is unknown.
pub fn algorithms(word: &str) -> Vec<Algorithm> {
    let all = Algorithm::ALL.into_iter();
    let levels = |algorithm: &Algorithm| matches!(algorithm, Algorithm::Hierarchical(_));
    all.filter(|algorithm| algorithm.word() == word || word == HIERARCHICAL && levels(algorithm))
        .collect()
}

/// The word of the command line that names all hierarchical algorithms.
const HIERARCHICAL: &str = "hierarchical";

/// The words that [`algorithms`] accepts.
pub fn words() -> impl Iterator<Item = &'static str> {
    let one = Algorithm::ALL.into_iter().map(Algorithm::word);
    one.chain([HIERARCHICAL])
}

/// Orders in which algorithms number the ranks, by their names on the command line.
pub const NUMBERINGS: [(&str, Numbering); 3] = [
    ("plain", Numbering::Plain),
    ("blocks", Numbering::Blocks),
    ("round-robin", Numbering::RoundRobin),
];

/// Name of a numbering of ranks on the command line.
pub fn word(numbering: Numbering) -> &'static str {
    let mut all = NUMBERINGS.into_iter();
    let found = all.find(|(_, of)| *of == numbering);
    found.map_or("plain", |(word, _)| word)
}
