//! The request of `weir collectives plan`.

use clap::ValueEnum;
use collectives::collective::even;
use collectives::cost::choose::Numbering;
use collectives::machine::{Inside, Machine};
use collectives::{Algorithm, Collective};

/// A collective, by the names of [`Collective::name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum CollectiveKind {
    /// Each rank has a shard; all ranks get all shards.
    AllGather,
    /// Each rank has a part for each other rank.
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
    /// The collective of `ranks` ranks and `len` elements: of the vector, of all shards, or of a rank's data for all others. The
    /// sizes of parts differ by one element at most.
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

    /// Whether it has a root.
    pub fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce)
    }
}

/// The interconnect of the ranks of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsideBy {
    /// NVLink of an H100, GPUs and NICs at PCIe 5.0.
    NvLink,
    /// PCIe 4.0 alone.
    Pcie,
    /// Shared memory, in which processes copy 80 Gbit/s in total: an assumption.
    Memory,
}

/// Copy rate of [`InsideBy::Memory`].
const MEMORY_BPS: u64 = 80_000_000_000;

/// The interior of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inner {
    /// Number of ranks per host.
    pub gpus: usize,
    /// Number of NICs per host.
    pub nics: usize,
    /// The interconnect of the ranks.
    pub by: InsideBy,
}

impl Inner {
    /// The host's interior for the cost model. The rates of NICs are those of their links, which the network has.
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

/// The complete request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The collective.
    pub kind: CollectiveKind,
    /// Size in bytes: of the vector, of all shards, or of a rank's data for all others.
    pub bytes: u64,
    /// Root of a broadcast or a reduce.
    pub root: usize,
    /// Interior of each host; `None` if a host is a rank.
    pub inner: Option<Inner>,
    /// Minimum time from one message of a rank to its next, in nanoseconds.
    pub message_ns: u64,
    /// The only algorithms to try; empty for all.
    pub algorithms: Vec<Algorithm>,
    /// The only numbering to try; `None` for all.
    pub numbering: Option<Numbering>,
}

/// The algorithms that a word names: one, or all hierarchical ones.
pub fn algorithms(word: &str) -> Vec<Algorithm> {
    let all = Algorithm::ALL.into_iter();
    let levels = |algorithm: &Algorithm| matches!(algorithm, Algorithm::Hierarchical(_));
    all.filter(|algorithm| algorithm.word() == word || word == HIERARCHICAL && levels(algorithm))
        .collect()
}

/// The word for all hierarchical algorithms.
const HIERARCHICAL: &str = "hierarchical";

/// The words that [`algorithms`] accepts.
pub fn words() -> impl Iterator<Item = &'static str> {
    let one = Algorithm::ALL.into_iter().map(Algorithm::word);
    one.chain([HIERARCHICAL])
}

/// Numberings by word.
pub const NUMBERINGS: [(&str, Numbering); 3] = [
    ("plain", Numbering::Plain),
    ("blocks", Numbering::Blocks),
    ("round-robin", Numbering::RoundRobin),
];

/// A numbering's word.
pub fn word(numbering: Numbering) -> &'static str {
    let mut all = NUMBERINGS.into_iter();
    let found = all.find(|(_, of)| *of == numbering);
    found.map_or("plain", |(word, _)| word)
}
