//! The algorithms, one file each, and which collective they are for.
//!
//! An algorithm speaks of members of a group by place, and of [`Part`]s: where data is at who has it, and where it belongs.

pub mod all_gather;
pub mod all_reduce;
pub mod all_to_all;
pub mod barrier;
pub mod broadcast;
pub mod hierarchical;
pub mod numbering;
pub mod reduce;
pub mod reduce_scatter;

use std::fmt;

use crate::builder::{Builder, TooManySteps};
use crate::collective::{Collective, even};
use crate::schedule::{Buffer, ReduceOp, Schedule, Span};
use all_to_all::Exchange;
pub use hierarchical::Levels;

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

/// Which ranks are on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// The ranks of each node. Rails are the first of them.
    pub nodes: Vec<Vec<usize>>,
    /// How many ranks of each node speak to others; at least 1, at most the ranks of the smallest node.
    pub rails: usize,
}

impl Hierarchy {
    /// With as many rails as the smallest node has ranks.
    ///
    /// # Errors
    /// As [`Hierarchy::with_rails`].
    pub fn new(nodes: Vec<Vec<usize>>) -> Result<Self, BuildError> {
        let rails = nodes.iter().map(Vec::len).min().unwrap_or(0);
        Self::with_rails(nodes, rails)
    }

    /// With so many rails.
    ///
    /// # Errors
    /// If a node has no ranks, or not so many, or not every rank of 0, 1, 2, … is in exactly one.
    pub fn with_rails(nodes: Vec<Vec<usize>>, rails: usize) -> Result<Self, BuildError> {
        let mut all = nodes.concat();
        all.sort_unstable();
        if !all.iter().copied().eq(0..all.len()) {
            return Err(BuildError::Membership);
        }
        let smallest = nodes.iter().map(Vec::len).min().unwrap_or(0);
        if rails == 0 || rails > smallest {
            return Err(BuildError::Rails { rails, smallest });
        }
        Ok(Self { nodes, rails })
    }

    /// So many nodes of so many ranks each, in the order of ranks.
    ///
    /// # Errors
    /// If one of them is 0.
    pub fn blocks(nodes: usize, ranks: usize) -> Result<Self, BuildError> {
        let node = |node: usize| (node * ranks..(node + 1) * ranks).collect();
        Self::new((0..nodes).map(node).collect())
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.nodes.iter().map(Vec::len).sum()
    }

    /// The members of a rail, by node.
    pub fn rail(&self, rail: usize) -> Vec<usize> {
        self.nodes.iter().map(|members| members[rail]).collect()
    }

    /// How often rails are gone through until each member of each node had one.
    fn layers(&self) -> usize {
        let largest = self.nodes.iter().map(Vec::len).max().unwrap_or(0);
        largest.div_ceil(self.rails)
    }

    /// The member of a node that a rail serves in a layer.
    fn rank(&self, node: usize, rail: usize, layer: usize) -> Option<usize> {
        self.nodes[node].get(rail + layer * self.rails).copied()
    }

    /// That member's part, by rank; empty, if there is none.
    fn part(&self, parts: &[Part], node: usize, rail: usize, layer: usize) -> Part {
        let rank = self.rank(node, rail, layer);
        rank.map_or(Part::EMPTY, |rank| parts[rank])
    }

    /// A rank's node, and its place there.
    fn place(&self, rank: usize) -> (usize, usize) {
        let place = |members: &Vec<usize>| members.iter().position(|member| *member == rank);
        let mut places = self.nodes.iter().map(place).enumerate();
        let found = places.find_map(|(node, place)| place.map(|place| (node, place)));
        found.unwrap_or((0, 0))
    }

    /// One rank of each node, among them this one.
    fn heads(&self, root: usize) -> Vec<usize> {
        let mut heads = self.rail(0);
        heads[self.place(root).0] = root;
        heads
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

/// Makes a schedule.
pub fn build(
    collective: &Collective,
    algorithm: Algorithm,
    options: &Options,
) -> Result<Schedule, BuildError> {
    let group = group(collective, options)?;
    if !offered(collective, true).contains(&algorithm) {
        return Err(BuildError::NotOffered {
            collective: collective.name(),
            algorithm,
        });
    }
    let lens =
        (0..group.len()).map(|rank| (collective.input_len(rank), collective.output_len(rank)));
    let lens: Vec<(usize, usize)> = lens.collect();
    let mut builder = Builder::new(&lens, options.element_bytes, options.op, options.tile);
    match algorithm {
        Algorithm::Hierarchical(levels) => {
            let nodes = options.hierarchy.as_ref();
            let nodes = nodes.filter(|nodes| nodes.ranks() == group.len());
            let nodes = nodes.ok_or(BuildError::Membership)?;
            with_levels(&mut builder, collective, nodes, levels);
        }
        flat => without_levels(&mut builder, collective, &group, flat),
    }
    Ok(builder.finish()?)
}

fn without_levels(
    builder: &mut Builder,
    collective: &Collective,
    group: &[usize],
    algorithm: Algorithm,
) {
    let place = |rank: usize| group.iter().position(|other| *other == rank).unwrap_or(0);
    let by_place = |parts: Vec<Part>| -> Vec<Part> { group.iter().map(|r| parts[*r]).collect() };
    match collective {
        Collective::AllGather { shards } => {
            let parts = by_place(gathered(shards));
            all_gather::keep(builder, group, &parts);
            match algorithm {
                Algorithm::Ring => all_gather::ring(builder, group, &parts),
                Algorithm::Direct => all_gather::direct(builder, group, &parts),
                _ => all_gather::doubling(builder, group, &parts),
            }
        }
        Collective::AllToAll { counts } => {
            let exchange = Exchange::new(counts);
            all_to_all::keep(builder, group, &exchange);
            match algorithm {
                Algorithm::Direct => all_to_all::direct(builder, group, &exchange),
                _ => all_to_all::pairwise(builder, group, &exchange),
            }
        }
        Collective::ReduceScatter { shards } => {
            let parts = by_place(scattered(shards));
            match algorithm {
                Algorithm::Ring => reduce_scatter::ring(builder, group, &parts),
                Algorithm::Direct => reduce_scatter::direct(builder, group, &parts),
                _ => reduce_scatter::halving(builder, group, &parts),
            }
        }
        Collective::AllReduce { len, .. } => {
            let whole = whole(*len);
            match algorithm {
                Algorithm::Ring => all_reduce::ring(builder, group, whole),
                Algorithm::Direct => all_reduce::direct(builder, group, whole),
                Algorithm::Tree => all_reduce::tree(builder, group, whole),
                _ => all_reduce::halving_doubling(builder, group, whole),
            }
        }
        Collective::Broadcast { root, len, .. } => {
            let whole = whole(*len);
            builder.copy(*root, whole.from, whole.at);
            match algorithm {
                Algorithm::Tree => broadcast::binomial(builder, group, place(*root), whole),
                _ => broadcast::chain(builder, group, place(*root), whole),
            }
        }
        Collective::Reduce { root, len, .. } => match algorithm {
            Algorithm::Tree => reduce::binomial(builder, group, place(*root), whole(*len)),
            _ => reduce::chain(builder, group, place(*root), whole(*len)),
        },
        Collective::Barrier { .. } => barrier::dissemination(builder, group),
    }
}

fn with_levels(builder: &mut Builder, collective: &Collective, nodes: &Hierarchy, levels: Levels) {
    let ranks: Vec<usize> = (0..nodes.ranks()).collect();
    match collective {
        Collective::AllGather { shards } => {
            let parts = gathered(shards);
            all_gather::keep(builder, &ranks, &parts);
            hierarchical::all_gather(builder, nodes, levels, &parts);
        }
        Collective::AllToAll { counts } => {
            let exchange = Exchange::new(counts);
            all_to_all::keep(builder, &ranks, &exchange);
            hierarchical::all_to_all(builder, nodes, &exchange);
        }
        Collective::ReduceScatter { shards } => {
            hierarchical::reduce_scatter(builder, nodes, levels, &scattered(shards));
        }
        Collective::AllReduce { len, .. } => {
            hierarchical::all_reduce(builder, nodes, levels, whole(*len));
        }
        Collective::Broadcast { root, len, .. } => {
            let whole = whole(*len);
            builder.copy(*root, whole.from, whole.at);
            hierarchical::broadcast(builder, nodes, *root, whole);
        }
        Collective::Reduce { root, len, .. } => {
            hierarchical::reduce(builder, nodes, *root, whole(*len));
        }
        Collective::Barrier { .. } => barrier::dissemination(builder, &ranks),
    }
}

/// Who takes which place, if the collective can be.
fn group(collective: &Collective, options: &Options) -> Result<Vec<usize>, BuildError> {
    let ranks = collective.ranks();
    if !(1..=MAX_RANKS).contains(&ranks) {
        return Err(BuildError::Ranks(ranks));
    }
    match collective {
        Collective::AllToAll { counts } if counts.iter().any(|to| to.len() != ranks) => {
            return Err(BuildError::Counts(ranks));
        }
        Collective::Broadcast { root, .. } | Collective::Reduce { root, .. } if *root >= ranks => {
            return Err(BuildError::Root { root: *root, ranks });
        }
        _ => {}
    }
    if !fits(collective, options.element_bytes) {
        return Err(BuildError::Sizes);
    }
    let group = options.order.clone().unwrap_or((0..ranks).collect());
    let mut sorted = group.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..ranks) {
        return Err(BuildError::Order);
    }
    Ok(group)
}

/// Whether all ranks' buffers together, scratch among them, can be counted in bytes.
fn fits(collective: &Collective, element_bytes: usize) -> bool {
    let sizes: Vec<usize> = match collective {
        Collective::AllGather { shards } | Collective::ReduceScatter { shards } => shards.clone(),
        Collective::AllToAll { counts } => counts.concat(),
        Collective::AllReduce { len, .. }
        | Collective::Broadcast { len, .. }
        | Collective::Reduce { len, .. } => vec![*len],
        Collective::Barrier { .. } => Vec::new(),
    };
    let mut sizes = sizes.into_iter();
    let sum = sizes.try_fold(0_usize, usize::checked_add);
    // No algorithm has more scratch at a rank than the whole from each other rank.
    let all = sum.and_then(|sum| sum.checked_mul(MAX_RANKS)?.checked_mul(MAX_RANKS));
    let bytes = all.and_then(|all| all.checked_mul(element_bytes));
    element_bytes > 0 && bytes.is_some()
}

/// The largest power of two that is not above n; none for 0.
fn core(n: usize) -> Option<usize> {
    Some(1 << n.checked_ilog2()?)
}

fn whole(len: usize) -> Part {
    Part {
        from: Buffer::Input.span(0, len),
        at: Buffer::Output.span(0, len),
    }
}

/// By rank: from the beginning of its input to its place in everybody's output.
fn gathered(shards: &[usize]) -> Vec<Part> {
    let mut start = 0;
    let part = |len: &usize| {
        start += len;
        Part {
            from: Buffer::Input.span(0, *len),
            at: Buffer::Output.span(start - len, *len),
        }
    };
    shards.iter().map(part).collect()
}

/// By rank: from its place in everybody's input to its output.
fn scattered(shards: &[usize]) -> Vec<Part> {
    let mut start = 0;
    let part = |len: &usize| {
        start += len;
        Part {
            from: Buffer::Input.span(start - len, *len),
            at: Buffer::Output.span(0, *len),
        }
    };
    shards.iter().map(part).collect()
}
