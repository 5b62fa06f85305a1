//! ESA (Wang et al., "Efficient Data-Plane Memory Scheduling for In-Network Aggregation", 2022): as ATP, but a job of higher
//! priority takes a switch from those of lower priority, whose sums so far go on to the server.
//!
//! A job alone is as fast as by ATP. What ESA gains by memory that waits for nobody shows only where workers are out of step.

use std::collections::BTreeMap;

use super::nearest::{fastest, racks, spare_sums_bps};
use crate::gradient::{Job, JobError, Plan};
use crate::network::{Network, NodeId};

/// The greatest rate that all workers of all jobs can have, at once. Jobs come by priority, the highest first.
///
/// # Errors
///
/// What [`Job::check`] refuses, and [`JobError::NoWay`].
pub fn plan(network: &Network, jobs: &[Job]) -> Result<Vec<Plan>, JobError> {
    let racks = racks(network, jobs)?;
    fastest(network, jobs, &racks, |rate_bps| {
        let mut left: BTreeMap<NodeId, f64> = BTreeMap::new();
        // Racks come by job.
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
