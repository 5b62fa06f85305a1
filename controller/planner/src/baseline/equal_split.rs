//! ATP as in InArt's example (WWW 2024): each server holds an equal share of the model, and the nearest switch sums all
//! traffic. No traffic bypasses the switch, so its workers send no faster than it sums.
//!
//! GRID's reading of ATP ([`super::atp`]) sends the rest raw. In InArt's example that would give 8/3, more than InArt itself
//! reaches, if links have the capacity.

use super::nearest::{fastest, racks};
use crate::gradient::{Job, JobError, Plan};
use crate::network::Network;

/// Plans all jobs by this reading of ATP, at the greatest common rate of all their workers.
///
/// # Errors
///
/// Errors of [`Job::check`], and [`JobError::NoWay`].
pub fn plan(network: &Network, jobs: &[Job]) -> Result<Vec<Plan>, JobError> {
    let racks = racks(network, jobs)?;
    fastest(network, jobs, &racks, |_| vec![1.0; racks.len()])
}
