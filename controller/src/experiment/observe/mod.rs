//! Second phase of a run: records the frames at the switches' ports, and judges them while they pass.

pub mod captures;
pub mod events;
pub mod hit_log;
pub mod judging;
pub mod machine;
pub mod minute_log;
mod spool;

use std::sync::Arc;

use proof::Digest;
use scenario::model::Captures;
use testbeds::bed::BedError;
use testbeds::capture::Limits;

use super::Planned;
use super::prepare::recorded::recorded;
use super::prepare::{Conditions, Testbed};
use judging::Judging;

/// Starts the recorder of the ports that the run needs, and the judge's thread.
pub fn start(testbed: &mut Testbed<'_>, conditions: Conditions<'_>) -> Result<Judging, BedError> {
    let planned = testbed.planned;
    let ports = recorded(planned, conditions.record).into_iter();
    let ports: Vec<(String, u32)> = ports.map(|of| (of.switch, of.port)).collect();
    let digest = Digest::of_seed(planned.plan.seed);
    let of_judge = proof::Conditions {
        digest,
        shares_stamps: testbed.shares_stamps,
    };
    let log = Arc::clone(&testbed.fleet.log);
    let judging = Judging::begin(planned, &ports, of_judge, log, conditions.out)?;
    if !ports.is_empty() {
        (testbed.bed).record_into(&ports, kept_bytes(planned), digest, judging.sink())?;
    }
    Ok(judging)
}

/// Number of bytes that the recorder keeps of each frame: as many as parsers and filters can examine, or all bytes if
/// `captures: all` or if a fault changes bytes.
fn kept_bytes(planned: &Planned) -> u32 {
    /// Minimum number of bytes, with which a reader of a capture recognizes a frame.
    const LEAST: usize = 128;
    let scenario = &planned.scenario;
    let mut faults = scenario.faults.iter();
    let is_whole = scenario.captures == Captures::All || faults.any(|fault| fault.effect.changes());
    let depth = scenario.protocols.depth().filter(|_| !is_whole);
    depth.map_or(Limits::WHOLE_FRAMES.frame_bytes, |depth| {
        depth.max(LEAST) as u32
    })
}
