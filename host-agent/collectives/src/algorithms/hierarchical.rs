//! Hierarchical algorithms: inside nodes, then across nodes, so that slow links carry as little as possible.
//!
//! *Rails* are the first k members of a node, which communicate with other nodes: rail j with rail j of each other node.
//! Nodes may differ in size; each has at least k members. In an all-gather, each remote shard enters a node once, at one
//! rail, and fans out inside.

use super::{Flat, Hierarchy, Part, all_gather, all_to_all, broadcast, reduce, reduce_scatter};
use crate::builder::Builder;
use crate::schedule::{Buffer, Span};

impl Flat {
    fn all_gather(self, builder: &mut Builder, group: &[usize], parts: &[Part]) {
        match self {
            Self::Ring => all_gather::ring(builder, group, parts),
            Self::Direct => all_gather::direct(builder, group, parts),
        }
    }

    fn reduce_scatter(self, builder: &mut Builder, group: &[usize], parts: &[Part]) {
        match self {
            Self::Ring => reduce_scatter::ring(builder, group, parts),
            Self::Direct => reduce_scatter::direct(builder, group, parts),
        }
    }
}

/// Algorithms of the two levels of a hierarchical collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Levels {
    /// Algorithm between ranks of one node.
    pub inside: Flat,
    /// Algorithm between nodes.
    pub across: Flat,
}

/// All-gather in two levels: every rank gets the shards `parts[rank]` of all ranks. Each rank has stored its own shard before.
pub fn all_gather(builder: &mut Builder, nodes: &Hierarchy, levels: Levels, parts: &[Part]) {
    let at = |span: Span| Part {
        from: span,
        at: span,
    };
    for members in &nodes.nodes {
        let own: Vec<Part> = members.iter().map(|rank| parts[*rank]).collect();
        levels.inside.all_gather(builder, members, &own);
    }
    // In the first layer the rails have their shards from the input; those of other members arrive from inside the node.
    let count = nodes.nodes.len();
    for layer in 0..nodes.layers() {
        for rail in 0..nodes.rails {
            let shards = (0..count).map(|node| nodes.part(parts, node, rail, layer));
            let shards = shards.map(|shard| if layer == 0 { shard } else { at(shard.at) });
            let shards: Vec<Part> = shards.collect();
            levels
                .across
                .all_gather(builder, &nodes.rail(rail), &shards);
        }
    }
    for (here, members) in nodes.nodes.iter().enumerate() {
        for node in (0..count).filter(|node| *node != here) {
            for layer in 0..nodes.layers() {
                let mut arrived: Vec<Part> = (0..nodes.rails)
                    .map(|rail| at(nodes.part(parts, node, rail, layer).at))
                    .collect();
                arrived.resize(members.len(), Part::EMPTY);
                levels.inside.all_gather(builder, members, &arrived);
            }
        }
    }
}

/// Reduce-scatter in two levels: rank r gets the part `parts[r]` of the sum.
pub fn reduce_scatter(builder: &mut Builder, nodes: &Hierarchy, levels: Levels, parts: &[Part]) {
    let count = nodes.nodes.len();
    for layer in 0..nodes.layers() {
        // The sum of a node's contributions to a part, by the node that has it, by the node that it is for, by rail.
        let mut sums: Vec<Vec<Vec<Span>>> = vec![vec![Vec::new(); count]; count];
        for (here, members) in nodes.nodes.iter().enumerate() {
            for (node, sums) in sums[here].iter_mut().enumerate() {
                let mut inside = Vec::new();
                for (rail, rank) in members.iter().enumerate().take(nodes.rails) {
                    let from = nodes.part(parts, node, rail, layer).from;
                    let at = builder.scratch(*rank, from.len);
                    inside.push(Part { from, at });
                }
                sums.extend(inside.iter().map(|part| part.at));
                inside.resize(members.len(), Part::EMPTY);
                levels.inside.reduce_scatter(builder, members, &inside);
            }
        }
        for rail in 0..nodes.rails {
            let group = nodes.rail(rail);
            let mut across = Vec::new();
            for (node, member) in group.iter().enumerate() {
                // The position is equal at all rails, since their scratch before it has equal length.
                let from = aligned(builder, &group, node, rail, &mut sums);
                let is_own = nodes.rank(node, rail, layer) == Some(*member);
                let at = if is_own {
                    parts[*member].at
                } else {
                    builder.scratch(*member, from.len)
                };
                across.push(Part { from, at });
            }
            levels.across.reduce_scatter(builder, &group, &across);
            for (node, part) in across.iter().enumerate() {
                if let Some(owner) = nodes.rank(node, rail, layer).filter(|_| layer > 0) {
                    builder.send(group[node], part.at, owner, parts[owner].at);
                }
            }
        }
    }
}

/// Returns a position for a node's sums that is the same at all ranks of a rail. If the sums are at different positions, each
/// rank copies them behind the end of the longest scratch buffer.
fn aligned(
    builder: &mut Builder,
    group: &[usize],
    node: usize,
    rail: usize,
    sums: &mut [Vec<Vec<Span>>],
) -> Span {
    let first = sums[0][node][rail];
    if sums.iter().all(|of| of[node][rail] == first) {
        return first;
    }
    let ends = group.iter().map(|rank| builder.scratch(*rank, 0).start);
    let start = ends.max().unwrap_or(0);
    let wanted = Buffer::Scratch.span(start, first.len);
    for (sums, rank) in sums.iter_mut().zip(group) {
        let has = builder.scratch(*rank, 0).start;
        builder.scratch(*rank, start - has + first.len);
        builder.copy(*rank, sums[node][rail], wanted);
        sums[node][rail] = wanted;
    }
    wanted
}

/// All-reduce in two levels: reduce-scatter inside the nodes, all-reduce along each rail, all-gather inside the nodes.
pub fn all_reduce(builder: &mut Builder, nodes: &Hierarchy, levels: Levels, whole: Part) {
    let parts = whole.split(nodes.rails);
    // All members of all rails use one position, so the longest part determines the length.
    let sums = parts.iter().map(|part| part.from.len).max().unwrap_or(0);
    let sums: Vec<Span> = (0..nodes.rails)
        .map(|rail| {
            let of_rail = nodes.rail(rail);
            let span = of_rail.iter().map(|rank| builder.scratch(*rank, sums));
            let span = span.last().unwrap_or(Buffer::Scratch.span(0, 0));
            span.part(0, parts[rail].from.len)
        })
        .collect();
    for members in &nodes.nodes {
        let inside = parts.iter().zip(&sums);
        let inside = inside.map(|(part, at)| Part {
            from: part.from,
            at: *at,
        });
        let mut inside: Vec<Part> = inside.collect();
        inside.resize(members.len(), Part::EMPTY);
        levels.inside.reduce_scatter(builder, members, &inside);
    }
    for (rail, part) in parts.iter().enumerate() {
        let whole = Part {
            from: sums[rail],
            at: part.at,
        };
        let pieces = whole.split(nodes.nodes.len());
        let group = nodes.rail(rail);
        levels.across.reduce_scatter(builder, &group, &pieces);
        let at: Vec<Span> = pieces.iter().map(|piece| piece.at).collect();
        levels
            .across
            .all_gather(builder, &group, &all_gather::in_place(&at));
    }
    for members in &nodes.nodes {
        let at: Vec<Span> = parts.iter().map(|part| part.at).collect();
        let mut parts = all_gather::in_place(&at);
        parts.resize(members.len(), Part::EMPTY);
        levels.inside.all_gather(builder, members, &parts);
    }
}

/// Broadcast from the root to one rank of each node, then inside the nodes.
pub fn broadcast(builder: &mut Builder, nodes: &Hierarchy, root: usize, part: Part) {
    let heads = nodes.heads(root);
    let (home, _) = nodes.place(root);
    broadcast::binomial(builder, &heads, home, part);
    for (node, members) in nodes.nodes.iter().enumerate() {
        let head = members.iter().position(|rank| *rank == heads[node]);
        let from = if node == home { part.from } else { part.at };
        broadcast::binomial(
            builder,
            members,
            head.unwrap_or(0),
            Part { from, at: part.at },
        );
    }
}

/// Reduce in two levels: inside each node to one rank, then across nodes to the root.
pub fn reduce(builder: &mut Builder, nodes: &Hierarchy, root: usize, part: Part) {
    let heads = nodes.heads(root);
    let (home, _) = nodes.place(root);
    let ends = heads.iter().map(|rank| builder.scratch(*rank, 0).start);
    let at = Buffer::Scratch.span(ends.max().unwrap_or(0), part.from.len);
    for rank in &heads {
        builder.scratch(*rank, at.len);
    }
    for (node, members) in nodes.nodes.iter().enumerate() {
        let head = members.iter().position(|rank| *rank == heads[node]);
        let inside = Part {
            from: part.from,
            at,
        };
        reduce::binomial(builder, members, head.unwrap_or(0), inside);
    }
    let across = Part {
        from: at,
        at: part.at,
    };
    reduce::binomial(builder, &heads, home, across);
}

/// All-to-all in two levels. Data for a rank of another node goes through one rail of each node: the rail that serves this
/// rank. The data of all members of the sending node travels in one message. This gives fewer and larger messages between
/// nodes, and up to two more transfers inside nodes.
pub fn all_to_all(builder: &mut Builder, nodes: &Hierarchy, exchange: &all_to_all::Exchange) {
    for (here, members) in nodes.nodes.iter().enumerate() {
        all_to_all::direct(builder, members, exchange);
        for distance in 1..nodes.nodes.len() {
            let there = &nodes.nodes[(here + distance) % nodes.nodes.len()];
            for (place, to) in there.iter().enumerate() {
                let rails = [members, there].map(|node| node[place % nodes.rails]);
                relay(builder, members, rails, *to, exchange);
            }
        }
    }
}

/// Sends the data of all members of a node for one rank of another node, through one rail of each node.
fn relay(
    builder: &mut Builder,
    members: &[usize],
    [rail, remote]: [usize; 2],
    to: usize,
    exchange: &all_to_all::Exchange,
) {
    let mut across = Vec::new();
    for rank in members {
        let (source, target) = exchange.pair(*rank, to);
        if members.len() == 1 {
            across.push((source, target));
            continue;
        }
        let waits = builder.scratch(rail, source.len);
        if *rank == rail {
            builder.copy(rail, source, waits);
        } else {
            builder.send(*rank, source, rail, waits);
        }
        across.push((waits, target));
    }
    if remote == to {
        builder.send_all(rail, to, across);
        return;
    }
    let arrives = across.iter().map(|(source, target)| {
        let waits = builder.scratch(remote, source.len);
        (*source, waits, *target)
    });
    let arrives: Vec<(Span, Span, Span)> = arrives.collect();
    let first = arrives.iter().map(|(source, waits, _)| (*source, *waits));
    builder.send_all(rail, remote, first);
    let last = arrives.iter().map(|(_, waits, target)| (*waits, *target));
    builder.send_all(remote, to, last);
}
