//! ATP (Lao et al., "ATP: In-network Aggregation for Multi-tenant Learning", NSDI 2021): the nearest switch sums as much as
//! it can, whoever comes first; what finds no room goes on raw to the server.
//!
//! Jobs' packets come to a switch in proportion to what they send, so each has the same share of what it sends summed. Of
//! ATP's two levels only the first is here, as in GRID's comparison: a plan's part has one node that sums it.

use std::collections::BTreeMap;

use super::nearest::{fastest, racks, spare_sums_bps};
use crate::gradient::{Job, JobError, Plan};
use crate::network::{Network, NodeId};

/// The greatest rate that all workers of all jobs can have, at once.
///
/// # Errors
///
/// What [`Job::check`] refuses, and [`JobError::NoWay`].
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
