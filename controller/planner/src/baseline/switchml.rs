//! SwitchML with a parameter server beside it (Sapio et al., "Scaling Distributed Machine Learning with In-Network
//! Aggregation", NSDI 2021; the server as in GRID's comparison). Jobs have equal fixed partitions of each switch, and a switch
//! sums all of a job's rack or nothing. A rack that does not fit sends raw to the server.

use std::collections::BTreeMap;

use super::nearest::{fastest, racks, spare_sums_bps};
use crate::gradient::{Job, JobError, Plan};
use crate::network::{Network, NodeId};

/// Plans all jobs by SwitchML, at the greatest common rate of all their workers.
///
/// # Errors
///
/// Errors of [`Job::check`], and [`JobError::NoWay`].
pub fn plan(network: &Network, jobs: &[Job]) -> Result<Vec<Plan>, JobError> {
    let racks = racks(network, jobs)?;
    let mut demand: BTreeMap<(usize, NodeId), f64> = BTreeMap::new();
    for rack in &racks {
        if let Some(at) = rack.at {
            *demand.entry((rack.job, at)).or_default() += rack.demand();
        }
    }
    fastest(network, jobs, &racks, |rate_bps| {
        let fits = |job: usize, at: NodeId| {
            let part_bps = spare_sums_bps(network, at) / jobs.len() as f64;
            rate_bps * demand[&(job, at)] <= part_bps
        };
        let summed = racks.iter().map(|rack| match rack.at {
            Some(at) if fits(rack.job, at) => 1.0,
            _ => 0.0,
        });
        summed.collect()
    })
}
