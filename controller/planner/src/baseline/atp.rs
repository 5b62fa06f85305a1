//! ATP (Lao et al., "ATP: In-network Aggregation for Multi-tenant Learning", NSDI 2021): the nearest switch sums as much as it
//! has capacity for, first come, first served; the rest goes to the server raw.
//!
//! Packets of jobs reach a switch in proportion to the jobs' rates, so the same share of each job is summed. Only the first of
//! ATP's two levels is modeled, as in GRID's comparison: one node sums each part of a plan.

use std::collections::BTreeMap;

use super::nearest::{fastest, racks, spare_sums_bps};
use crate::gradient::{Job, JobError, Plan};
use crate::network::{Network, NodeId};

/// Plans all jobs by ATP, at the greatest common rate of all their workers.
///
/// # Errors
///
/// Errors of [`Job::check`], and [`JobError::NoWay`].
pub fn plan(network: &Network, jobs: &[Job]) -> Result<Vec<Plan>, JobError> {
    let racks = racks(network, jobs)?;
    let mut demand: BTreeMap<NodeId, f64> = BTreeMap::new();
    for rack in &racks {
        if let Some(at) = rack.at {
            *demand.entry(at).or_default() += rack.demand();
        }
    }
    fastest(network, jobs, &racks, |rate_bps| {
        let summed = racks.iter().map(|rack| match rack.at {
            Some(at) => (spare_sums_bps(network, at) / (rate_bps * demand[&at])).min(1.0),
            None => 0.0,
        });
        summed.collect()
    })
}
