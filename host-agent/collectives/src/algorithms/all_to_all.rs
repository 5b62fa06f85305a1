//! All-to-all algorithms: every rank sends a different part, of any size, to every rank.

use crate::builder::Builder;
use crate::schedule::{Buffer, Span};

/// Ranges of the data for each pair of ranks: in the sender's input, and in the receiver's output.
#[derive(Debug, Clone)]
pub struct Exchange {
    pairs: Vec<Vec<(Span, Span)>>,
}

impl Exchange {
    /// Computes the ranges for `counts[from][to]` elements per pair of ranks; inputs and outputs are in rank order.
    pub fn new(counts: &[Vec<usize>]) -> Self {
        let mut received = vec![0; counts.len()];
        let row = |to: &Vec<usize>| {
            let mut sent = 0;
            let pair = |(received, len): (&mut usize, &usize)| {
                let pair = (
                    Buffer::Input.span(sent, *len),
                    Buffer::Output.span(*received, *len),
                );
                sent += len;
                *received += len;
                pair
            };
            received.iter_mut().zip(to).map(pair).collect()
        };
        Self {
            pairs: counts.iter().map(row).collect(),
        }
    }

    /// Range in the input of rank `from`, and range in the output of rank `to`, of the data that `from` sends to `to`.
    pub fn pair(&self, from: usize, to: usize) -> (Span, Span) {
        self.pairs[from][to]
    }
}

/// Copies the data that each rank of the group keeps for itself from its input to its output.
pub fn keep(builder: &mut Builder, group: &[usize], exchange: &Exchange) {
    for rank in group {
        let (source, target) = exchange.pair(*rank, *rank);
        builder.copy(*rank, source, target);
    }
}

/// Every rank sends its data to all other ranks at once.
pub fn direct(builder: &mut Builder, group: &[usize], exchange: &Exchange) {
    let n = group.len();
    for distance in 1..n {
        for i in 0..n {
            let (from, to) = (group[i], group[(i + distance) % n]);
            let (source, target) = exchange.pair(from, to);
            builder.send(from, source, to, target);
        }
    }
}

/// Sends in n − 1 steps. In each step, a rank sends to one peer and receives from one peer, so that no rank receives from two
/// at once. A rank without data to send or receive in a step does not wait in this step.
pub fn pairwise(builder: &mut Builder, group: &[usize], exchange: &Exchange) {
    let n = group.len();
    let mut last: Vec<Vec<usize>> = vec![Vec::new(); n];
    for distance in 1..n {
        let before = last.clone();
        for i in 0..n {
            let j = (i + distance) % n;
            let (source, target) = exchange.pair(group[i], group[j]);
            let sent = builder.send_after(group[i], source, group[j], target, &before[i]);
            replace(&mut last[i], &before[i], sent.puts);
            replace(&mut last[j], &before[j], sent.waits);
        }
    }
}

/// Replaces the steps `before` in `last` by `steps`, for which later steps then wait; changes nothing if `steps` is empty.
fn replace(last: &mut Vec<usize>, before: &[usize], steps: Vec<usize>) {
    if !steps.is_empty() {
        last.retain(|step| !before.contains(step));
        last.extend(steps);
    }
}
