//! Lower bound of the traffic's cost, and the share to which each switch (site) is open in the relaxation.
//!
//! Sub-models differ only in size. In any optimum of the relaxation, replace the openings of all sub-models by their mean,
//! weighted by bytes: cost and memory are linear in it and stay unchanged. So there is an optimum in which all sub-models are
//! alike, and one stands for all. Only sub-models that fit into different switches are kept apart.

use std::collections::BTreeMap;

use super::instance::GoatProblem;
use super::program::{Class, Program};
use crate::solve::lp;

/// Maximum number of pairs of a worker group and a switch, over all classes of sub-models, in a relaxation that is solved.
const MOST_WAYS: usize = 60_000;

pub(super) struct Relaxed {
    /// Class of each sub-model, as an index.
    pub class: Vec<usize>,
    /// For each class of sub-models, the share to which each switch sums it; `None` if the relaxation is too large or unsolved.
    pub open: Option<Vec<Vec<f64>>>,
    /// Lower bound of the cost of any plan.
    pub bound: f64,
}

pub(super) fn relax(instance: &GoatProblem) -> Relaxed {
    let mut classes: Vec<Class> = Vec::new();
    let mut numbers: BTreeMap<Vec<bool>, usize> = BTreeMap::new();
    let mut class = Vec::new();
    for bytes in &instance.bytes {
        let fits = instance.fits(*bytes);
        let number = *numbers.entry(fits.clone()).or_insert_with(|| {
            classes.push(Class { bytes: 0, fits });
            classes.len() - 1
        });
        classes[number].bytes += bytes;
        class.push(number);
    }
    let mut relaxed = Relaxed {
        class,
        open: None,
        bound: nearest(instance),
    };
    if classes.len() * instance.groups.len() * instance.sites.len() <= MOST_WAYS {
        let program = Program::new(instance, &classes, false);
        if let Ok(answer) = lp(&program.model) {
            let sites = program.open.iter();
            let open = sites.map(|sites| sites.iter().map(|open| answer.value(*open)).collect());
            relaxed.open = Some(open.collect());
            relaxed.bound = relaxed.bound.max(program.cost(answer.bound));
        }
    }
    relaxed
}

/// Lower bound of the cost, as if all switches summed, and their sums went to the server at no cost.
fn nearest(instance: &GoatProblem) -> f64 {
    let groups = instance.groups.iter().map(|group| {
        let to = group.to.iter().copied().min().unwrap_or(u64::MAX);
        group.count() * to.min(group.direct)
    });
    groups.sum::<u64>() as f64 * instance.bytes.iter().sum::<u64>() as f64
}
