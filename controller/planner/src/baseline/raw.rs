//! Parameter server only: no switch sums, and streams take shortest paths.

use super::nearest::{fastest, racks};
use crate::gradient::{Job, JobError, Plan};
use crate::network::Network;

/// Plans all jobs at the greatest common rate of all their workers.
///
/// # Errors
///
/// Errors of [`Job::check`], and [`JobError::NoWay`].
pub fn plan(network: &Network, jobs: &[Job]) -> Result<Vec<Plan>, JobError> {
    let racks = racks(network, jobs)?;
    fastest(network, jobs, &racks, |_| vec![0.0; racks.len()])
}
