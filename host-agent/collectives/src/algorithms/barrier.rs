//! Barrier algorithm: no rank finishes before all ranks have begun.

use crate::builder::Builder;

/// Dissemination barrier: signals at growing distances around the group (Hensgen, Finkel and Manber, 1988), ⌈log₂ n⌉ steps.
pub fn dissemination(builder: &mut Builder, group: &[usize]) {
    let n = group.len();
    let mut heard: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut distance = 1;
    while distance < n {
        let before = heard.clone();
        for i in 0..n {
            let to = (i + distance) % n;
            let (_, wait) = builder.signal(group[i], group[to], &before[i]);
            heard[to] = vec![wait];
            heard[to].extend(&before[to]);
        }
        distance *= 2;
    }
}
