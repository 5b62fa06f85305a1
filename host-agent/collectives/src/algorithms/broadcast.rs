//! Broadcast algorithms: all other ranks get the root's values, which are at `from` of a [`Part`] and go to `at`.

use super::Part;
use crate::builder::Builder;

/// Binomial tree: each rank that has the values sends them to ranks that do not have them, one after another, beginning with
/// the rank that has the largest subtree: ⌈log₂ n⌉ steps.
pub fn binomial(builder: &mut Builder, group: &[usize], root: usize, part: Part) {
    let n = group.len();
    let rank = |v: usize| group[(v + root) % n];
    let mut last: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut distance = n.next_power_of_two() / 2;
    while distance > 0 {
        for v in (0..n).step_by(2 * distance) {
            if v + distance < n {
                let source = if v == 0 { part.from } else { part.at };
                let child = rank(v + distance);
                let sent = builder.send_after(rank(v), source, child, part.at, &last[v]);
                last[v] = sent.puts;
            }
        }
        distance /= 2;
    }
}

/// Each rank forwards the values to the next rank, tile by tile: n − 1 steps; the vector passes each rank once.
pub fn chain(builder: &mut Builder, group: &[usize], root: usize, part: Part) {
    let n = group.len();
    let rank = |v: usize| group[(v + root) % n];
    for v in 1..n {
        let source = if v == 1 { part.from } else { part.at };
        builder.send(rank(v - 1), source, rank(v), part.at);
    }
}
