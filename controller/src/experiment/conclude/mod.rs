//! Fourth phase of a run: disarms the faults, compares the switches' counts with the judged frames, and gathers the results.

mod conclusion;
pub mod disruptions;
pub mod evidence;
mod faults;
mod metrics;
mod run_result;
pub mod steps;
mod switch_counts;
mod triggers;

use std::time::{Duration, Instant};

use scenario::model::expect::metric::{Metric, RunMetric};

use super::carry_out::disruption::DisruptionExecution;
use super::carry_out::{CarriedOut, ExperimentError, Observer};
use super::observe::hit_log::EVENTS;
use super::observe::judging::{JudgedRun, Judging, SwitchCounts};
use super::observe::machine::{Before, MachineLoad};
use super::prepare::Testbed;
use evidence::Evidence;

pub use conclusion::Conclusion;
pub use disruptions::DisruptionResult;
pub use faults::FaultResult;
pub use metrics::add_metrics;
pub use run_result::RunResult;
pub use triggers::TriggerResult;

/// How long to wait for frames in flight when the workload has ended, in addition to the delays of faults and links.
const DRAINING: Duration = Duration::from_millis(250);

/// Disarms all faults, waits for frames in flight, ends the captures, and judges the run. `disruptions`: executions of faults
/// of programs and switches. `before`: processor times of the machine before the run.
pub fn conclude(
    mut testbed: Testbed<'_>,
    judging: Judging,
    mut carried_out: CarriedOut,
    disruptions: Vec<DisruptionExecution>,
    before: &Before,
    observer: &mut dyn Observer,
) -> Result<RunResult, ExperimentError> {
    let planned = testbed.planned;
    let scenario = &planned.scenario;
    let metrics = &mut carried_out.measured.metrics;
    let priorities = testbed.fleet.priorities();
    let writes = testbed.fleet.epoch_writes();
    let steps = steps::steps(&planned.plan.timeline, writes, carried_out.wall);
    let skew_ns = steps::longest_skew_ns(writes);
    metrics.insert(Metric::Run(RunMetric::Skew), skew_ns as f64);
    testbed.fleet.disarm()?;
    // A held packet leaves at its deadline, and belongs to the captures. The delays that hit one packet add up, and a frame may
    // cross all links.
    let holds = scenario.faults.iter();
    let holds = holds.map(|fault| fault.effect.longest_stay_ns());
    let links = scenario.topology.links.iter();
    let in_flight_ns = holds.chain(links.map(|link| link.latency_ns));
    let in_flight_ns = in_flight_ns.fold(0, u64::saturating_add);
    std::thread::sleep(Duration::from_nanos(in_flight_ns) + DRAINING);
    metrics.extend(switch_counts::metrics(&mut testbed)?);
    let mut fired = testbed.fleet.fired(&planned.plan)?;
    observer.counted(&mut fired);
    let keyless = testbed.fleet.keyless(&planned.plan)?;
    let triggers = testbed.fleet.triggers(planned)?;
    let losses = switch_counts::losses(&mut testbed)?;
    // The recorder hands over its remaining frames, and ends.
    testbed.bed.stop_recording()?;
    let end = Instant::now();
    let JudgedRun { proof, kept, marks } = judging.end(SwitchCounts {
        fired: fired.clone(),
        triggers: triggers.clone(),
        losses,
    });
    let verdict_after_ns = end.elapsed().as_nanos() as u64;
    let evidence = Evidence {
        kept,
        writes: testbed.fleet.epoch_writes().to_vec(),
        announcements: testbed.fleet.announcements().to_vec(),
        fired,
        keyless,
        triggers,
        // Includes the recorder's losses: a later judgment of the folder lacks the same frames.
        losses: proof.losses.clone(),
        carried: disruptions,
        shares_stamps: testbed.shares_stamps,
    };
    let conclusion = Conclusion::from_proof(planned, &evidence, proof);
    drop(testbed);
    add_metrics(metrics, &conclusion);
    carried_out.aborted = carried_out.aborted.map(|aborted| {
        let faults = conclusion.faults.iter();
        let counted = faults.filter(|fault| aborted.faults.contains(&fault.id));
        let unforwarded = counted.map(|fault| fault.unforwarded).sum();
        aborted.with_unforwarded(unforwarded)
    });
    let remarks = &mut carried_out.measured.remarks;
    remarks.extend(kept_until(&evidence));
    let ends = evidence.kept.log_ends.iter();
    remarks.extend(ends.map(|error| format!("{EVENTS} ends early: {error}")));
    Ok(RunResult {
        scenario: scenario.name.clone(),
        carried_out,
        conclusion,
        steps,
        marks: marks.into_marks(),
        machine_load: MachineLoad {
            verdict_after_ns,
            ..MachineLoad::since(before, priorities)
        },
        evidence,
    })
}

/// Remark with the time from which on the run's folder keeps no frames; `None` if it keeps frames until the end.
fn kept_until(evidence: &Evidence) -> Option<String> {
    let (at_ns, why) = evidence.kept.stopped.as_ref()?;
    let after = at_ns.saturating_sub(evidence.start_ns().unwrap_or(*at_ns));
    let after_s = Duration::from_nanos(after).as_secs_f64();
    Some(format!(
        "captures: the folder keeps no frame from {after_s:.1} s on: {why}; the verdict does not depend on it"
    ))
}

/// Formats a number with its noun: "1 frame", "2 frames".
fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
