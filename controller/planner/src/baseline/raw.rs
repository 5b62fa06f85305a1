//! Plain parameter server: no switch sums, and all streams take shortest paths to the servers.

use super::nearest::{fastest, racks};
use crate::gradient::{Job, JobError, Plan};
use crate::network::Network;

/// Plans all jobs without sums in switches, at the greatest common rate of all their workers.
///
/// # Errors
///
/// Errors of [`Job::check`], and [`JobError::NoWay`].
pub fn plan(network: &Network, jobs: &[Job]) -> Result<Vec<Plan>, JobError> {
    let racks = racks(network, jobs)?;
    fastest(network, jobs, &racks, |_| vec![0.0; racks.len()])
}
