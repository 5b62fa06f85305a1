//! All-reduce: everybody gets the sum. Contributions are at `from`, sums come to `at`.

use super::{Part, all_gather, broadcast, reduce, reduce_scatter};
use crate::builder::Builder;
use crate::schedule::Span;

/// A reduce-scatter and an all-gather, both around the ring: 2(n − 1) steps, 2(n − 1)/n of the vector.
pub fn ring(builder: &mut Builder, group: &[usize], whole: Part) {
    let parts = whole.split(group.len());
    reduce_scatter::ring(builder, group, &parts);
    all_gather::ring(builder, group, &summed(&parts));
}

/// A reduce-scatter and an all-gather, each in one step.
pub fn direct(builder: &mut Builder, group: &[usize], whole: Part) {
    let parts = whole.split(group.len());
    reduce_scatter::direct(builder, group, &parts);
    all_gather::direct(builder, group, &summed(&parts));
}

/// Recursive halving, then doubling (Rabenseifner; Thakur, Rabenseifner and Gropp, IJHPCA 2005): 2 log₂ n steps. Of n that is
/// no power of two, those beyond the next lower one have no part: they give all they have first, and take all sums last.
pub fn halving_doubling(builder: &mut Builder, group: &[usize], whole: Part) {
    let n = group.len();
    let Some(core) = super::core(n) else { return };
    let mut parts = whole.split(core);
    parts.resize(n, whole.part(whole.from.len, 0));
    reduce_scatter::halving(builder, group, &parts);
    all_gather::doubling(builder, group, &summed(&parts));
}

/// Up a binomial tree to the first of the group, and down again: 2 ⌈log₂ n⌉ steps.
pub fn tree(builder: &mut Builder, group: &[usize], whole: Part) {
    reduce::binomial(builder, group, 0, whole);
    let sum = Part {
        from: whole.at,
        at: whole.at,
    };
    broadcast::binomial(builder, group, 0, sum);
}

fn summed(parts: &[Part]) -> Vec<Part> {
    let at: Vec<Span> = parts.iter().map(|part| part.at).collect();
    all_gather::in_place(&at)
}
