//! Broadcast: everybody gets what one has at `from`; the root itself does not copy it.

use super::Part;
use crate::builder::Builder;

/// Who has it gives it to one half of those that have not: ⌈log₂ n⌉ steps.
pub fn binomial(builder: &mut Builder, group: &[usize], root: usize, part: Part) {
    let n = group.len();
    let rank = |v: usize| group[(v + root) % n];
    let mut distance = n.next_power_of_two() / 2;
    while distance > 0 {
        for v in (0..n).step_by(2 * distance) {
            if v + distance < n {
                let source = if v == 0 { part.from } else { part.at };
                builder.send(rank(v), source, rank(v + distance), part.at);
            }
        }
        distance /= 2;
    }
}

/// Each gives it to the next, tile by tile: n − 1 steps, the vector once through each rank.
pub fn chain(builder: &mut Builder, group: &[usize], root: usize, part: Part) {
    let n = group.len();
    let rank = |v: usize| group[(v + root) % n];
    for v in 1..n {
        let source = if v == 1 { part.from } else { part.at };
        builder.send(rank(v - 1), source, rank(v), part.at);
    }
}
