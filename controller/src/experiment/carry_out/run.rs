//! Runs the workload; meanwhile follows the timeline, carries out faults of programs and switches, evaluates conditions.

use std::panic::resume_unwind;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use proof::Observation;
use scenario::model::expect::metric::{FaultMetric, Metric, Metrics, RunMetric};

use super::disruption::{DisruptionExecution, Disruptor, Switchboard};
use super::error::ExperimentError;
use super::guard::{Aborted, Guard, GuardVerdict};
use super::limits::TimeLimit;
use super::link_count::LinkCount;
use super::observer::{Iteration, Observer};
use super::probing::{ProbeResult, Probing};
use super::repair::{self, Repair, Repairer};
use super::timeline::{Proceed, Timeline};
use super::training::TrainingResult;
use super::workload::{self, Load, Measured};
use crate::experiment::Planned;
use crate::experiment::fleet::connections::Connections;
use crate::experiment::observe::judging::SoFar;
use crate::experiment::prepare::{Conditions, Environment, SwitchProcess, Testbed};

/// Results of the third phase: actions of the controller, and measurements of the workload and its probes.
#[derive(Default)]
pub struct CarriedOut {
    /// Wall-clock duration of the workload.
    pub wall: Duration,
    /// Each replanning of a training's gradients, in order.
    pub repairs: Vec<Repair>,
    /// Measurements of the workload, its unexpected failures, and all metrics of the run with remarks on them.
    pub measured: Measured,
    /// Results of the training, if the workload is a training.
    pub training: Option<TrainingResult>,
    /// Results of the probes, in declared order.
    pub probes: Vec<ProbeResult>,
    /// Why the run was aborted; `None` if it was not. Effects until then are proved, but the workload has no measurements.
    pub aborted: Option<Aborted>,
}

/// Interval at which announcements are polled while the workload's programs start.
const POLL: Duration = Duration::from_millis(1);

/// Runs the scenario's workload to its end, or until the run is aborted. Also returns the executions of faults of programs and
/// switches. `so_far`: the judge's counts of hits, which its thread updates during the run.
pub fn run(
    testbed: &mut Testbed<'_>,
    conditions: Conditions<'_>,
    environment: &Arc<Environment>,
    mut connections: Option<Connections>,
    so_far: &SoFar,
    observer: &mut dyn Observer,
) -> Result<(CarriedOut, Vec<DisruptionExecution>), ExperimentError> {
    let planned = testbed.planned;
    let scenario = &planned.scenario;
    let load = start_workload(testbed, conditions, environment, &mut connections)?;
    let mut probing = Probing::new(&testbed.bed, scenario, load, environment)?;
    let job = planned.training();
    let before = job.map(|job| LinkCount::take(testbed, &job.server));
    let before = before.transpose()?;
    let limit = TimeLimit::from_scenario(scenario);
    let mut guard = Guard::new(planned);
    let mut aborted = None;

    observer.begins(&scenario.name, &probing.load.position());
    let (fleet, bed) = (&mut testbed.fleet, &testbed.bed);
    let switches = &mut testbed.switches.0;
    let mut disruptor = Disruptor::new(planned);
    let mut repairer = Repairer::new(planned, conditions.switches.kind.model());
    let (mut starting, mut failures) = (Vec::new(), Vec::new());
    let timeline = Timeline::new(&planned.plan.timeline);
    let wall = timeline.follow(fleet, &mut probing, |probing, fleet, elapsed, awaited| {
        let spares = |switch: &str| repairer.as_ref().is_some_and(|plan| plan.can_miss(switch));
        for (switch, reason) in lost(switches, spares)? {
            fleet.take_down(&switch);
            failures.push(format!("switch {switch} ended: {reason}"));
        }
        if let Some(connections) = &mut connections {
            connections.poll(fleet);
        }
        let load = &mut *probing.load;
        let mut board = Switchboard {
            fleet: &mut *fleet,
            processes: switches,
            bed,
            weir: conditions.weir,
            starting: &mut starting,
        };
        disruptor.poll(board.fleet.epoch(), load, &mut board)?;
        if let Some(repairer) = &mut repairer {
            repairer.poll(fleet, load)?;
        }
        let position = load.position();
        if position.done < position.total {
            limit.check(elapsed, || position.to_string())?;
        }
        let seen = || so_far.lock().unwrap_or_else(PoisonError::into_inner);
        observer.iteration(&mut Iteration {
            elapsed,
            hits: seen().iter().map(|seen| seen.observed).sum(),
            position,
            fleet: &mut *fleet,
            load,
        })?;
        let add_recent = |metrics: &mut Metrics| {
            probing.add_recent(metrics);
            disruptor.add_metrics(metrics);
            add_seen(metrics, planned, &seen());
        };
        Ok(match guard.check(elapsed, fleet, awaited, add_recent)? {
            GuardVerdict::GoOn => Proceed::GoOn,
            GuardVerdict::Holds => Proceed::Holds,
            GuardVerdict::Aborted(why) => {
                aborted = Some(why);
                Proceed::End
            }
        })
    })?;
    tracing::info!(wall_ms = wall.as_millis() as u64, "workload ends");
    // No thread handles announcements from here on, and no program waits for an answer.
    let unannounced =
        connections.map_or_else(Vec::new, |connections| connections.remarks().to_vec());
    let disruptions = disruptor.finish(&mut *probing.load);
    let repairs = repairer.map_or_else(Vec::new, |repairer| repairer.finish(&*probing.load));
    let mut remarks = environment.remarks.clone();
    if !repairs.is_empty() && !scenario.faults.is_empty() {
        remarks.push(repair::REMARK.to_owned());
    }
    remarks.extend(unannounced);
    // Answers to probes, and the end of services, may take long: until then packets still meet the faults.
    let (load, probes) = probing.finish()?;
    let mut measured = match aborted {
        Some(_) => {
            // The workload's processes end here.
            drop(load);
            Measured::default()
        }
        None => load.finish()?,
    };
    failures.append(&mut measured.failures);
    remarks.append(&mut measured.remarks);
    remarks.extend(probes.iter().filter_map(ProbeResult::remark));
    (measured.failures, measured.remarks) = (failures, remarks);
    let metrics = &mut measured.metrics;
    probes.iter().for_each(|probe| probe.add_metrics(metrics));
    metrics.insert(Metric::Run(RunMetric::Wall), wall.as_nanos() as f64);
    let mut training = None;
    if let (Some(job), Some(before), Some(reports)) = (job, before, measured.training.take()) {
        let bytes = LinkCount::settled_bytes(testbed, &job.server, before)?;
        let result = TrainingResult::new(reports, bytes, job.iterations);
        result.add_metrics(metrics, wall);
        training = Some(result);
        if scenario.gradients.is_some() {
            repair::add_metrics(metrics, &repairs);
        }
    }
    let carried_out = CarriedOut {
        wall,
        repairs,
        measured,
        training,
        probes,
        aborted,
    };
    Ok((carried_out, disruptions))
}

/// Starts the workload's programs in a separate thread, as services may announce RDMA connections before the first step.
fn start_workload(
    testbed: &mut Testbed<'_>,
    conditions: Conditions<'_>,
    environment: &Arc<Environment>,
    connections: &mut Option<Connections>,
) -> Result<Box<dyn Load>, ExperimentError> {
    let planned = testbed.planned;
    let (fleet, bed) = (&mut testbed.fleet, &testbed.bed);
    Ok(std::thread::scope(|scope| {
        let starting = scope.spawn(|| workload::start(bed, planned, conditions, environment));
        while !starting.is_finished() {
            if let Some(connections) = connections {
                connections.poll(fleet);
            }
            std::thread::sleep(POLL);
        }
        starting.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?)
}

/// Names of the switches whose processes have ended by themselves since the last call, each with its last line of standard
/// error. Returns an error if `spares` returns false for one of them: the run cannot do without this switch.
fn lost(
    switches: &mut [SwitchProcess],
    spares: impl Fn(&str) -> bool,
) -> Result<Vec<(String, String)>, ExperimentError> {
    let mut lost = Vec::new();
    for process in switches {
        if let Some((switch, reason)) = process.ended() {
            if !spares(&switch) {
                return Err(ExperimentError::SwitchEnded { switch, reason });
            }
            process.give_up();
            lost.push((switch, reason));
        }
    }
    Ok(lost)
}

/// Adds metrics of the hits that the judge has found so far, by fault.
fn add_seen(metrics: &mut Metrics, planned: &Planned, seen: &[Observation]) {
    for (injection, seen) in planned.plan.injections.iter().zip(seen) {
        let values = [
            (FaultMetric::Observed, seen.observed),
            (FaultMetric::Missed, seen.missed),
            (FaultMetric::Collateral, seen.collateral),
        ];
        for (what, value) in values {
            let metric = Metric::fault(&injection.fault, what);
            *metrics.entry(metric).or_default() += value as f64;
        }
    }
}
