//! What `weir collectives plan` is asked for.

use clap::ValueEnum;
use collectives::collective::even;
use collectives::cost::choose::Numbering;
use collectives::machine::{Inside, Machine};
use collectives::{Algorithm, Collective};

/// A collective, by the names of [`Collective::name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Kind {
    /// Each rank has a shard, and all get all of them.
    AllGather,
    /// Each rank has a part for each other.
    AllToAll,
    /// Each rank gets its shard of the vectors' sum.
    ReduceScatter,
    /// All get the sum of all vectors.
    AllReduce,
    /// All get the root's vector.
    Broadcast,
    /// The root gets the sum of all vectors.
    Reduce,
    /// Nobody goes on before all are there.
    Barrier,
}

impl Kind {
    /// The collective of so many ranks and elements: of the vector, of all shards, or of what a rank has for all others. Parts
    /// differ by one element at most.
    #[must_use]
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
    #[must_use]
    pub fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce)
    }
}

/// What joins the ranks of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsideBy {
    /// NVLink of an H100, GPUs and NICs at PCIe 5.0.
    NvLink,
    /// PCIe 4.0 alone.
    Pcie,
    /// One memory, by which processes copy 80 Gbit/s altogether: an assumption.
    Memory,
}

/// What [`InsideBy::Memory`] copies.
const MEMORY_BPS: u64 = 80_000_000_000;

/// What is on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inner {
    /// Ranks of each.
    pub gpus: usize,
    /// NICs of each.
    pub nics: usize,
    /// What joins its ranks.
    pub by: InsideBy,
}

impl Inner {
    /// The same for the cost model. Rates of NICs are their links', which the network has.
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
            // As in a machine of eight: two GPUs at each.
            switches: self.gpus.div_ceil(2),
            inside,
            ..base
        }
    }
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Which collective.
    pub kind: Kind,
    /// Of the vector, of all shards, or of what a rank has for all others.
    pub bytes: u64,
    /// Of a broadcast or a reduce.
    pub root: usize,
    /// Of each host; `None`: a host is a rank.
    pub inner: Option<Inner>,
    /// From one message of a rank to its next, at least.
    pub message_ns: u64,
    /// These algorithms alone; none: all.
    pub algorithms: Vec<Algorithm>,
    /// This numbering alone.
    pub numbering: Option<Numbering>,
}

/// Algorithms of a word: one, or all with levels.
#[must_use]
pub fn algorithms(word: &str) -> Vec<Algorithm> {
    let all = Algorithm::ALL.into_iter();
    let levels = |algorithm: &Algorithm| matches!(algorithm, Algorithm::Hierarchical(_));
    all.filter(|algorithm| algorithm.word() == word || word == HIERARCHICAL && levels(algorithm))
        .collect()
}

/// All algorithms with levels.
const HIERARCHICAL: &str = "hierarchical";

/// What [`algorithms`] knows.
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
#[must_use]
pub fn word(numbering: Numbering) -> &'static str {
    let mut all = NUMBERINGS.into_iter();
    let found = all.find(|(_, of)| *of == numbering);
    found.map_or("plain", |(word, _)| word)
}
