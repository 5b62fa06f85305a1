//! All-gather algorithms: every rank gets the parts of all ranks. Each rank stores its own part with [`keep`].

use super::Part;
use crate::builder::Builder;
use crate::schedule::Span;

/// Copies each rank's own part to its position in the rank's output.
pub fn keep(builder: &mut Builder, group: &[usize], parts: &[Part]) {
    for (rank, part) in group.iter().zip(parts) {
        builder.copy(*rank, part.from, part.at);
    }
}

/// Every rank forwards the part that it got from its predecessor to its successor in the ring: n − 1 steps.
pub fn ring(builder: &mut Builder, group: &[usize], parts: &[Part]) {
    let n = group.len();
    for round in 0..n.saturating_sub(1) {
        for i in 0..n {
            let part = parts[(i + n - round) % n];
            let source = if round == 0 { part.from } else { part.at };
            builder.send(group[i], source, group[(i + 1) % n], part.at);
        }
    }
}

/// Every rank sends its part to every other rank at once: one step.
pub fn direct(builder: &mut Builder, group: &[usize], parts: &[Part]) {
    let n = group.len();
    for distance in 1..n {
        for i in 0..n {
            builder.send(
                group[i],
                parts[i].from,
                group[(i + distance) % n],
                parts[i].at,
            );
        }
    }
}

/// Recursive doubling: partners at growing distances exchange all parts that they have, in log₂ n steps. If n is not a power of
/// two, 2^⌊log₂ n⌋ ranks do this; each other rank first gives its part to one of them, and finally gets all parts from it. Call
/// [`keep`] first.
pub fn doubling(builder: &mut Builder, group: &[usize], parts: &[Part]) {
    let n = group.len();
    let Some(core) = super::core(n) else { return };
    let at = |part: usize| (parts[part].at, parts[part].at);
    for extra in core..n {
        builder.send_all(group[extra], group[extra - core], [at(extra)]);
    }
    let mut held: Vec<Vec<usize>> = (0..core)
        .map(|v| [v, v + core].into_iter().filter(|part| *part < n).collect())
        .collect();
    let mut distance = 1;
    while distance < core {
        let before = held.clone();
        for v in 0..core {
            let partner = v ^ distance;
            builder.send_all(group[v], group[partner], before[v].iter().map(|p| at(*p)));
            held[partner].extend(&before[v]);
        }
        for parts in &mut held {
            parts.sort_unstable();
        }
        distance *= 2;
    }
    for extra in core..n {
        let others = (0..n).filter(|part| *part != extra);
        builder.send_all(group[extra - core], group[extra], others.map(at));
    }
}

/// Returns parts for an all-gather of data that is already in place: at the position where every rank shall have it.
pub fn in_place(spans: &[Span]) -> Vec<Part> {
    spans
        .iter()
        .map(|span| Part {
            from: *span,
            at: *span,
        })
        .collect()
}
