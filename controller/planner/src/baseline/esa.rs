//! ESA (Wang et al., "Efficient Data-Plane Memory Scheduling for In-Network Aggregation", 2022): as ATP, but jobs of higher
//! priority take a switch's memory from other jobs, whose partial sums go to the server.
//!
//! A single job is as fast as with ATP. ESA's gain, memory that is not held during waits, shows only with workers out of step.

use std::collections::BTreeMap;

use super::nearest::{fastest, racks, spare_sums_bps};
use crate::gradient::{Job, JobError, Plan};
use crate::network::{Network, NodeId};

/// Plans all jobs by ESA, highest priority first, at the greatest common rate of all their workers.
///
/// # Errors
///
/// Errors of [`Job::check`], and [`JobError::NoWay`].
pub fn plan(network: &Network, jobs: &[Job]) -> Result<Vec<Plan>, JobError> {
    let racks = racks(network, jobs)?;
    fastest(network, jobs, &racks, |rate_bps| {
        let mut left: BTreeMap<NodeId, f64> = BTreeMap::new();
        // Racks are sorted by job.
        let summed = racks.iter().map(|rack| {
            let Some(at) = rack.at else { return 0.0 };
            let left = left
                .entry(at)
                .or_insert_with(|| spare_sums_bps(network, at));
            let comes_bps = rate_bps * rack.demand();
            let summed_bps = comes_bps.min(*left);
            *left -= summed_bps;
            summed_bps / comes_bps
        });
        summed.collect()
    })
}
