//! Broadcast: everybody gets what one has at `from`; the root itself does not copy it.

use super::Part;
use crate::builder::Builder;

/// Who has it gives it to one of those that have not, one after another, the one with the most others behind it first: ⌈log₂ n⌉
/// steps.
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

/// Each gives it to the next, tile by tile: n − 1 steps, the vector once through each rank.
pub fn chain(builder: &mut Builder, group: &[usize], root: usize, part: Part) {
    let n = group.len();
    let rank = |v: usize| group[(v + root) % n];
    for v in 1..n {
        let source = if v == 1 { part.from } else { part.at };
        builder.send(rank(v - 1), source, rank(v), part.at);
    }
}
