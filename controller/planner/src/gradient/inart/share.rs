//! Computes the servers' shares of the model with the greatest rate for given streams.

use super::search::Search;
use crate::solve::{Cmp, Model, Sense, lp};

/// The servers' shares with the greatest rate for these streams; `None` if the linear program is unsolved.
pub(super) fn best(search: &Search<'_>) -> Option<Vec<f64>> {
    let servers = search.servers();
    let mut model = Model::new(Sense::Maximize);
    let rates: Vec<_> = (0..servers)
        .map(|_| model.variable(0.0, f64::INFINITY, 1.0))
        .collect();
    for (spare, streams) in search.rows() {
        let terms = rates.iter().zip(streams);
        let terms = terms.filter(|(_, count)| **count > 0);
        let terms = terms.map(|(rate, count)| (*rate, f64::from(*count)));
        model.constrain(terms, Cmp::Le, spare);
    }
    let answer = lp(&model).ok()?;
    let rates: Vec<f64> = rates
        .iter()
        .map(|rate| answer.value(*rate).max(0.0))
        .collect();
    let sum: f64 = rates.iter().sum();
    (sum > 0.0).then(|| rates.iter().map(|rate| rate / sum).collect())
}
