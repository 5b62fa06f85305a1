//! All-reduce algorithms: every rank gets the sum. A rank's contribution is at `from` of a [`Part`], and the sum goes to `at`.

use super::{Part, all_gather, broadcast, reduce, reduce_scatter};
use crate::builder::Builder;
use crate::schedule::Span;

/// A ring reduce-scatter, then a ring all-gather: 2(n − 1) steps; each rank sends 2(n − 1)/n of the vector.
pub fn ring(builder: &mut Builder, group: &[usize], whole: Part) {
    let parts = whole.split(group.len());
    reduce_scatter::ring(builder, group, &parts);
    all_gather::ring(builder, group, &summed(&parts));
}

/// A direct reduce-scatter, then a direct all-gather, in which every rank sends to all others at once: two steps.
pub fn direct(builder: &mut Builder, group: &[usize], whole: Part) {
    let parts = whole.split(group.len());
    reduce_scatter::direct(builder, group, &parts);
    all_gather::direct(builder, group, &summed(&parts));
}

/// Recursive halving, then doubling (Rabenseifner; Thakur, Rabenseifner and Gropp, IJHPCA 2005): 2 log₂ n steps. If n is not a
/// power of two, 2^⌊log₂ n⌋ ranks do this. Each other rank first gives its values to one of them, and finally gets the sums
/// from it.
pub fn halving_doubling(builder: &mut Builder, group: &[usize], whole: Part) {
    let n = group.len();
    let Some(core) = super::core(n) else { return };
    let mut parts = whole.split(core);
    parts.resize(n, whole.part(whole.from.len, 0));
    reduce_scatter::halving(builder, group, &parts);
    all_gather::doubling(builder, group, &summed(&parts));
}

/// Sums up a binomial tree to the first rank of the group, then broadcasts the sum down the tree: 2 ⌈log₂ n⌉ steps.
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
