//! Reduce-scatter algorithms: each rank gets its part of the sum. A [`Part`] says where the contribution of each rank lies
//! (`from`), and where the part's owner gets the sum (`at`); the two must not overlap.

use super::Part;
use crate::builder::Builder;
use crate::schedule::Span;

/// The sum of each part moves once around the ring, from the successor of the part's owner to the owner: n − 1 steps.
pub fn ring(builder: &mut Builder, group: &[usize], parts: &[Part]) {
    let n = group.len();
    if n == 1 {
        builder.copy(group[0], parts[0].from, parts[0].at);
    }
    let mut sums: Vec<Span> = parts.iter().map(|part| part.from).collect();
    for hop in 1..n {
        for (owner, part) in parts.iter().enumerate() {
            let (from, to) = (group[(owner + hop) % n], group[(owner + hop + 1) % n]);
            let arrives = if hop == n - 1 {
                part.at
            } else {
                builder.scratch(to, part.at.len)
            };
            builder.send(from, sums[owner], to, arrives);
            builder.reduce(to, part.from, arrives);
            sums[owner] = arrives;
        }
    }
}

/// Every rank sends each owner its contribution to the owner's part, and the owner adds the contributions up: one step.
pub fn direct(builder: &mut Builder, group: &[usize], parts: &[Part]) {
    let n = group.len();
    if n == 1 {
        builder.copy(group[0], parts[0].from, parts[0].at);
    }
    let mut arrivals: Vec<Vec<Span>> = vec![Vec::new(); n];
    for distance in 1..n {
        for i in 0..n {
            let owner = (i + distance) % n;
            let part = parts[owner];
            let arrives = if distance == 1 {
                part.at
            } else {
                builder.scratch(group[owner], part.at.len)
            };
            builder.send(group[i], part.from, group[owner], arrives);
            arrivals[owner].push(arrives);
        }
    }
    for (owner, part) in parts.iter().enumerate() {
        for (place, arrived) in arrivals[owner].iter().enumerate() {
            let summand = if place == 0 { part.from } else { *arrived };
            builder.reduce(group[owner], summand, part.at);
        }
    }
}

/// Recursive halving: partners at shrinking distances exchange halves of the parts that they still sum, in log₂ n steps; each
/// sends (n − 1)/n of the vector. If n is not a power of two, 2^⌊log₂ n⌋ ranks do this. Each other rank first gives its values
/// to one of them, and finally gets its part of the sum.
pub fn halving(builder: &mut Builder, group: &[usize], parts: &[Part]) {
    let n = group.len();
    let Some(core) = super::core(n) else { return };
    if n == 1 {
        builder.copy(group[0], parts[0].from, parts[0].at);
    }
    // Position of the sum so far, by member of the core and part.
    let from: Vec<Span> = parts.iter().map(|part| part.from).collect();
    let mut sums = vec![from.clone(); core];
    for extra in core..n {
        let v = extra - core;
        let arrive = arrivals(builder, group[v], parts, 0..n);
        builder.send_all(group[extra], group[v], pairs(&from, &arrive, 0..n));
        builder.reduce_all(group[v], pairs(&from, &arrive, 0..n));
        sums[v] = arrive;
    }
    let mut distance = core / 2;
    while distance > 0 {
        let before = sums.clone();
        for (v, held) in sums.iter_mut().enumerate() {
            let partner = v ^ distance;
            let first = v & !(distance - 1);
            let kept = (first..first + distance).chain(first + core..first + distance + core);
            let kept: Vec<usize> = kept.filter(|part| *part < n).collect();
            let is_sum = |part: usize| distance == 1 && part == v;
            let rest = kept.iter().copied().filter(|part| !is_sum(*part));
            let mut arrive = arrivals(builder, group[v], parts, rest);
            if is_sum(v) {
                arrive[v] = parts[v].at;
            }
            let kept = || kept.iter().copied();
            builder.send_all(
                group[partner],
                group[v],
                pairs(&before[partner], &arrive, kept()),
            );
            builder.reduce_all(group[v], pairs(&before[v], &arrive, kept()));
            *held = arrive;
        }
        distance /= 2;
    }
    for extra in core..n {
        let sum = sums[extra - core][extra];
        builder.send(group[extra - core], sum, group[extra], parts[extra].at);
    }
}

/// Allocates a range in the scratch buffer for each part in `which`, and returns the ranges by part. Entries of other parts
/// must not be used.
fn arrivals(
    builder: &mut Builder,
    rank: usize,
    parts: &[Part],
    which: impl Iterator<Item = usize>,
) -> Vec<Span> {
    let mut arrivals: Vec<Span> = parts.iter().map(|part| part.from).collect();
    for part in which {
        arrivals[part] = builder.scratch(rank, parts[part].from.len);
    }
    arrivals
}

fn pairs(
    from: &[Span],
    to: &[Span],
    which: impl Iterator<Item = usize>,
) -> impl Iterator<Item = (Span, Span)> {
    which.map(|part| (from[part], to[part]))
}
