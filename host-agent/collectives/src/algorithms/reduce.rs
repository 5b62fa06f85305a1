//! Reduce algorithms: one rank gets the sum, at `at` of a [`Part`]. Each rank's contribution is at `from`.

use super::Part;
use crate::builder::Builder;
use crate::schedule::Span;

/// Binomial tree: in each of ⌈log₂ n⌉ steps, half of the ranks that still have a sum give it to another rank to add.
pub fn binomial(builder: &mut Builder, group: &[usize], root: usize, part: Part) {
    let n = group.len();
    let rank = |v: usize| group[(v + root) % n];
    if n == 1 {
        builder.copy(group[0], part.from, part.at);
    }
    let mut sums: Vec<Span> = vec![part.from; n];
    let mut distance = 1;
    while distance < n {
        for v in (0..n).step_by(2 * distance) {
            let child = v + distance;
            if child >= n {
                continue;
            }
            if sums[v] == part.from {
                // The first sum to arrive is the one that others are added to.
                let arrives = arrival(builder, rank(v), v == 0, part);
                builder.send(rank(child), sums[child], rank(v), arrives);
                builder.reduce(rank(v), part.from, arrives);
                sums[v] = arrives;
            } else {
                let arrives = builder.scratch(rank(v), part.from.len);
                builder.send(rank(child), sums[child], rank(v), arrives);
                builder.reduce(rank(v), arrives, sums[v]);
            }
        }
        distance *= 2;
    }
}

/// The sum moves from the last rank to the first, tile by tile: n − 1 steps; the vector passes each rank once.
pub fn chain(builder: &mut Builder, group: &[usize], root: usize, part: Part) {
    let n = group.len();
    let rank = |v: usize| group[(v + root) % n];
    if n == 1 {
        builder.copy(group[0], part.from, part.at);
    }
    let mut sum = part.from;
    for v in (0..n - 1).rev() {
        let arrives = arrival(builder, rank(v), v == 0, part);
        builder.send(rank(v + 1), sum, rank(v), arrives);
        builder.reduce(rank(v), part.from, arrives);
        sum = arrives;
    }
}

fn arrival(builder: &mut Builder, rank: usize, is_root: bool, part: Part) -> Span {
    if is_root {
        part.at
    } else {
        builder.scratch(rank, part.from.len)
    }
}
