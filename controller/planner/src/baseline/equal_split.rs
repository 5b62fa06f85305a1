//! ATP as InArt's example has it (WWW 2024), with the model divided equally among servers: the nearest switch sums all that
//! comes to it, and nothing goes past it, so its workers send no faster than it sums.
//!
//! GRID's reading of ATP ([`super::atp`]) lets the rest go on raw. In InArt's example that would give 8/3, above what InArt
//! itself reaches, if links leave room.

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
    fastest(network, jobs, &racks, |_| vec![1.0; racks.len()])
}
