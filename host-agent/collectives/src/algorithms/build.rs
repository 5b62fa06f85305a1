//! Builds the schedule of a collective, with a given algorithm and options.

use super::all_to_all::{self, Exchange};
use super::{
    Algorithm, BuildError, Hierarchy, Levels, MAX_RANKS, Options, Part, all_gather, all_reduce,
    barrier, broadcast, hierarchical, offered, reduce, reduce_scatter,
};
use crate::builder::Builder;
use crate::collective::Collective;
use crate::schedule::{Buffer, Schedule};

/// Builds the schedule of a collective with an algorithm, or returns why the collective, algorithm and options do not fit.
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

/// Checks the sizes of the collective, and the order in the options. Returns the rank at each position in the algorithm.
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

/// Whether the size in bytes of all ranks' buffers, including scratch buffers, fits into `usize`.
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
    // No algorithm needs more scratch at a rank than one whole vector per other rank.
    let all = sum.and_then(|sum| sum.checked_mul(MAX_RANKS)?.checked_mul(MAX_RANKS));
    let bytes = all.and_then(|all| all.checked_mul(element_bytes));
    element_bytes > 0 && bytes.is_some()
}

fn whole(len: usize) -> Part {
    Part {
        from: Buffer::Input.span(0, len),
        at: Buffer::Output.span(0, len),
    }
}

/// For each rank, the part that it contributes to an all-gather: from its input to its position in every rank's output.
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

/// For each rank, the part that it gets from a reduce-scatter: from its position in every rank's input to the rank's output.
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
