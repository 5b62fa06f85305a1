//! The algorithms of collectives, one file for each collective, and the list of algorithms for each.
//!
//! Algorithms name the ranks of a group by position. A [`Part`] describes data: its range at the source, and at the
//! destination.

pub mod all_gather;
pub mod all_reduce;
pub mod all_to_all;
pub mod barrier;
pub mod broadcast;
mod build;
pub mod hierarchical;
mod hierarchy;
pub mod numbering;
pub mod reduce;
pub mod reduce_scatter;

use std::fmt;

use crate::builder::TooManySteps;
use crate::collective::{Collective, even};
use crate::schedule::{Buffer, ReduceOp, Span};

pub use build::build;
pub use hierarchical::Levels;
pub use hierarchy::Hierarchy;

/// Maximum number of ranks of a collective.
pub const MAX_RANKS: usize = 4096;

/// Data that an algorithm moves: its location at the source, and at the destination. Both ranges have the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Range of the data at the source rank.
    pub from: Span,
    /// Range of the data at the destination rank.
    pub at: Span,
}

impl Part {
    /// A part of the data that has no elements.
    pub const EMPTY: Self = Self {
        from: Span {
            buffer: Buffer::Output,
            start: 0,
            len: 0,
        },
        at: Span {
            buffer: Buffer::Output,
            start: 0,
            len: 0,
        },
    };

    /// The elements `start..start + len` of this part, at the source and at the destination.
    pub fn part(self, start: usize, len: usize) -> Self {
        Self {
            from: self.from.part(start, len),
            at: self.at.part(start, len),
        }
    }

    /// Splits the part into `parts` pieces whose lengths differ by at most one element.
    pub fn split(self, parts: usize) -> Vec<Self> {
        let mut start = 0;
        let next = |len: usize| {
            start += len;
            self.part(start - len, len)
        };
        even(self.from.len, parts).into_iter().map(next).collect()
    }
}

/// An algorithm for one level of a hierarchy: inside nodes, or across nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flat {
    /// Each rank sends to the next rank in a ring.
    Ring,
    /// Each rank sends to every other rank at once.
    Direct,
}

/// An algorithm for a collective. If two are equally fast, the earlier variant is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// Every rank sends to every other rank at once.
    Direct,
    /// Every rank sends to the next rank in a ring.
    Ring,
    /// All-gather between partners at growing distances, whose data doubles in each step.
    RecursiveDoubling,
    /// Reduce-scatter between partners at shrinking distances, whose data halves in each step.
    Halving,
    /// All-reduce as a halving reduce-scatter, then a doubling all-gather.
    HalvingDoubling,
    /// All-to-all in which a rank sends to one peer at a time.
    Pairwise,
    /// Binomial tree of ranks, for broadcast, reduce and all-reduce.
    Tree,
    /// Every rank forwards to the next rank in a chain, tile by tile.
    Chain,
    /// Barrier with signals at growing distances.
    Dissemination,
    /// One algorithm inside nodes, and one across nodes.
    Hierarchical(Levels),
}

impl Algorithm {
    /// All algorithms, in the order of the enum.
    pub const ALL: [Self; 13] = {
        use Flat::{Direct, Ring};
        const fn levels(inside: Flat, across: Flat) -> Algorithm {
            Algorithm::Hierarchical(Levels { inside, across })
        }
        [
            Self::Direct,
            Self::Ring,
            Self::RecursiveDoubling,
            Self::Halving,
            Self::HalvingDoubling,
            Self::Pairwise,
            Self::Tree,
            Self::Chain,
            Self::Dissemination,
            levels(Ring, Ring),
            levels(Ring, Direct),
            levels(Direct, Ring),
            levels(Direct, Direct),
        ]
    };

    /// Name of the algorithm on the command line, one word; a hierarchical one names the level inside nodes first.
    pub fn word(self) -> &'static str {
        use Flat::{Direct, Ring};
        match self {
            Self::Direct => "direct",
            Self::Ring => "ring",
            Self::RecursiveDoubling => "recursive-doubling",
            Self::Halving => "halving",
            Self::HalvingDoubling => "halving-doubling",
            Self::Pairwise => "pairwise",
            Self::Tree => "tree",
            Self::Chain => "chain",
            Self::Dissemination => "dissemination",
            Self::Hierarchical(levels) => match (levels.inside, levels.across) {
                (Ring, Ring) => "hierarchical-ring-ring",
                (Ring, Direct) => "hierarchical-ring-direct",
                (Direct, Ring) => "hierarchical-direct-ring",
                (Direct, Direct) => "hierarchical-direct-direct",
            },
        }
    }

    /// The algorithm with this name on the command line; `None` if there is none.
    pub fn of_word(word: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|algorithm| algorithm.word() == word)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flat = |flat: Flat| match flat {
            Flat::Ring => "ring",
            Flat::Direct => "direct",
        };
        let name = match self {
            Self::Direct => "direct",
            Self::Ring => "ring",
            Self::RecursiveDoubling => "recursive doubling",
            Self::Halving => "halving",
            Self::HalvingDoubling => "halving-doubling",
            Self::Pairwise => "pairwise",
            Self::Tree => "tree",
            Self::Chain => "chain",
            Self::Dissemination => "dissemination",
            Self::Hierarchical(levels) => {
                let (inside, across) = (flat(levels.inside), flat(levels.across));
                return write!(f, "hierarchical ({inside} inside, {across} across)");
            }
        };
        f.write_str(name)
    }
}

/// Options with which a schedule is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Length of an element in bytes, at least 1.
    pub element_bytes: usize,
    /// Operation that combines elements, such as a sum.
    pub op: ReduceOp,
    /// Maximum number of elements per step of the schedule; `None`: no limit.
    pub tile: Option<usize>,
    /// Rank at each position in the algorithm; `None`: in rank order. Hierarchical algorithms ignore it. See [`numbering`].
    pub order: Option<Vec<usize>>,
    /// Division of the ranks into nodes, which the hierarchical algorithms need.
    pub hierarchy: Option<Hierarchy>,
}

impl Default for Options {
    /// Options for sums of four-byte elements, without a limit per step, in rank order, without nodes.
    fn default() -> Self {
        Self {
            element_bytes: 4,
            op: ReduceOp::Sum,
            tile: None,
            order: None,
            hierarchy: None,
        }
    }
}

/// Reason why a schedule cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The collective has this number of ranks: 0, or too many.
    #[error("{0} ranks: a collective has 1 to {MAX_RANKS}")]
    Ranks(usize),
    /// The collective's root is not one of its ranks.
    #[error("rank {root} is not one of {ranks} ranks")]
    Root {
        /// The rank that the collective names as root.
        root: usize,
        /// Number of ranks of the collective.
        ranks: usize,
    },
    /// The matrix of an all-to-all's counts is not square; the value is its number of rows.
    #[error("an all-to-all of {0} ranks needs {0} counts per rank")]
    Counts(usize),
    /// The buffers together have more bytes than memory has addresses.
    #[error("the total size exceeds the address space")]
    Sizes,
    /// The nodes do not contain each rank of the collective exactly once.
    #[error("each rank must be on exactly one node")]
    Membership,
    /// The number of rails (ranks per node that communicate with other nodes) is 0, or above the size of the smallest node.
    #[error("{rails} rails: the smallest node has {smallest} ranks, which is the maximum")]
    Rails {
        /// The requested number of rails per node.
        rails: usize,
        /// Number of ranks of the smallest node, which is the maximum number of rails.
        smallest: usize,
    },
    /// The order in the options does not contain each rank exactly once.
    #[error("an order must have each rank once")]
    Order,
    /// The collective cannot be built with this algorithm.
    #[error("{collective} has no algorithm `{algorithm}`")]
    NotOffered {
        /// Name of the collective.
        collective: &'static str,
        /// The requested algorithm.
        algorithm: Algorithm,
    },
    /// The schedule would have too many steps.
    #[error(transparent)]
    TooManySteps(#[from] TooManySteps),
}

/// The algorithms that can build a collective; `levels` says whether hierarchical algorithms are included.
pub fn offered(collective: &Collective, levels: bool) -> Vec<Algorithm> {
    use Algorithm::{
        Chain, Direct, Dissemination, Halving, HalvingDoubling, Hierarchical, Pairwise,
        RecursiveDoubling, Ring, Tree,
    };
    let flat: &[Algorithm] = match collective {
        Collective::AllGather { .. } => &[Direct, Ring, RecursiveDoubling],
        Collective::AllToAll { .. } => &[Direct, Pairwise],
        Collective::ReduceScatter { .. } => &[Direct, Ring, Halving],
        Collective::AllReduce { .. } => &[Direct, Ring, HalvingDoubling, Tree],
        Collective::Broadcast { .. } | Collective::Reduce { .. } => &[Tree, Chain],
        Collective::Barrier { .. } => &[Dissemination],
    };
    let both = [Flat::Ring, Flat::Direct];
    let all = both.map(|inside| both.map(|across| Hierarchical(Levels { inside, across })));
    let levels: &[Algorithm] = match collective {
        _ if !levels => &[],
        Collective::Barrier { .. } => &[],
        // These have one kind of level only.
        Collective::AllToAll { .. } | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
            &all[1][1..]
        }
        _ => all.as_flattened(),
    };
    [flat, levels].concat()
}

/// The largest power of two that is not above `n`; `None` for 0.
fn core(n: usize) -> Option<usize> {
    Some(1 << n.checked_ilog2()?)
}
