//! A parameter server alone: nothing is summed on the way, and streams take shortest ways.

use super::nearest::{fastest, racks};
use crate::gradient::{Job, JobError, Plan};
use crate::network::Network;

/// The greatest rate that all workers of all jobs can have, at once.
///
/// # Errors
///
/// What [`Job::check`] refuses, and [`JobError::NoWay`].
pub fn plan(network: &Network, jobs: &[Job]) -> Result<Vec<Plan>, JobError> {
    let racks = racks(network, jobs)?;
    fastest(network, jobs, &racks, |_| vec![0.0; racks.len()])
}
