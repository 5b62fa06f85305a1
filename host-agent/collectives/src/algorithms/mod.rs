//! The algorithms, one file each, and which collective they are for.
//!
//! An algorithm speaks of members of a group by place, and of [`Part`]s: where data is at who has it, and where it belongs.

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

/// The most ranks.
pub const MAX_RANKS: usize = 4096;

/// Data: where it is at who has it first, and where it belongs. Both have the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// At who has it.
    pub from: Span,
    /// At who gets it.
    pub at: Span,
}

impl Part {
    /// Without elements.
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

    /// A part of it.
    pub fn part(self, start: usize, len: usize) -> Self {
        Self {
            from: self.from.part(start, len),
            at: self.at.part(start, len),
        }
    }

    /// In so many parts that differ by one element at most.
    pub fn split(self, parts: usize) -> Vec<Self> {
        let mut start = 0;
        let next = |len: usize| {
            start += len;
            self.part(start - len, len)
        };
        even(self.from.len, parts).into_iter().map(next).collect()
    }
}

/// An algorithm that has no levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flat {
    /// To the next in the ring.
    Ring,
    /// To everybody.
    Direct,
}

/// An algorithm. In this order where two are equally fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// Everybody to everybody at once.
    Direct,
    /// Each to the next, around.
    Ring,
    /// All-gather: partners ever farther apart.
    RecursiveDoubling,
    /// Reduce-scatter: partners ever nearer.
    Halving,
    /// All-reduce: both.
    HalvingDoubling,
    /// All-to-all: one peer after the other.
    Pairwise,
    /// Binomial trees.
    Tree,
    /// Each to the next, tile by tile.
    Chain,
    /// The barrier's.
    Dissemination,
    /// Inside nodes, and across.
    Hierarchical(Levels),
}

impl Algorithm {
    /// All.
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

    /// As command lines call it: one word; of levels the inner one first.
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

    /// By its word.
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

/// How a schedule is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Bytes of an element, at least 1.
    pub element_bytes: usize,
    /// How elements are combined.
    pub op: ReduceOp,
    /// The most elements that a step moves; `None`: no limit.
    pub tile: Option<usize>,
    /// Ranks by their place in algorithms without levels; `None`: in order. See [`numbering`].
    pub order: Option<Vec<usize>>,
    /// Which ranks are on one node; the hierarchical algorithms need it.
    pub hierarchy: Option<Hierarchy>,
}

impl Default for Options {
    /// Sums of four bytes, whole messages, in order.
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

/// Why there is no such schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// There is nobody, or there are too many.
    #[error("{0} ranks; a collective has 1 to {MAX_RANKS}")]
    Ranks(usize),
    /// The root does not take part.
    #[error("rank {root} is not one of {ranks} ranks")]
    Root {
        /// Who should be it.
        root: usize,
        /// How many there are.
        ranks: usize,
    },
    /// The counts are not square.
    #[error("an all-to-all of {0} ranks needs {0} counts of each")]
    Counts(usize),
    /// Sizes add up to more than memory can address.
    #[error("the sizes add up to more than memory has addresses")]
    Sizes,
    /// The nodes' ranks are not those of the collective.
    #[error("not every rank is on exactly one node")]
    Membership,
    /// More rails than a node has ranks, or none.
    #[error("{rails} rails, where the smallest node has {smallest} ranks")]
    Rails {
        /// How many.
        rails: usize,
        /// What there could be.
        smallest: usize,
    },
    /// The order does not have each rank once.
    #[error("an order has each rank once")]
    Order,
    /// The collective has no such algorithm.
    #[error("{collective} has no algorithm `{algorithm}`")]
    NotOffered {
        /// The collective.
        collective: &'static str,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// It would be too large.
    #[error(transparent)]
    TooManySteps(#[from] TooManySteps),
}

/// The algorithms of a collective, with or without levels.
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
        // Their levels are of one kind.
        Collective::AllToAll { .. } | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
            &all[1][1..]
        }
        _ => all.as_flattened(),
    };
    [flat, levels].concat()
}

/// The largest power of two that is not above n; none for 0.
fn core(n: usize) -> Option<usize> {
    Some(1 << n.checked_ilog2()?)
}
