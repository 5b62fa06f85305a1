//! One run of a scenario: `weir run` executes one, `weir demo` three.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::PoisonError;
use std::time::Duration;

use host_agent::agent::RoundReport;
use scenario::expect::metric::{
    FaultMetric, FlowMetric, Metric, Metrics, RunMetric, TrainingMetric, TriggerMetric,
};

use super::disruption::{Disruptor, Switchboard};
use super::evidence::Evidence;

use super::grounds::Grounds;
use super::guard::{Aborted, Guard, Look};
use super::hit_log::{EVENTS, Mark};
use super::limits::TimeLimit;
use super::machine::{self, Strain, Ticks};
use super::probing::Probing;
use super::repair::{self, Repair, Repairer};
use super::steps::{self, StepResult};
use super::timeline::{Timeline, Turned};
use super::workload::{self, CommandResult, Measured, Timed, TrainingOutcome};
use super::{
    Conclusion, Conditions, DisruptionResult, ExperimentError, FaultResult, LinkCount, Observer,
    Planned, ProbeResult, Stage, TriggerResult, Turn,
};
use proof::{FlowCount, Loss, Observation, Recovery, Throughput};

/// The results of a run.
pub struct Run {
    /// The scenario's name.
    pub scenario: String,
    /// The seed of the run.
    pub seed: u64,
    /// Wall-clock duration of the workload.
    pub wall: Duration,
    /// Results of the packet faults, in declared order.
    pub faults: Vec<FaultResult>,
    /// Results of the faults of programs and switches, in declared order.
    pub disruptions: Vec<DisruptionResult>,
    /// One entry for each new plan of a training's gradients.
    pub repairs: Vec<Repair>,
    /// Results of the triggers.
    pub triggers: Vec<TriggerResult>,
    /// One entry for each time that a step of the timeline was due.
    pub steps: Vec<StepResult>,
    /// Number of frames that each injection of the plan examined.
    pub met: Vec<u64>,
    /// Frame counts by flow name.
    pub flows: BTreeMap<String, FlowCount>,
    /// Throughput of each declared flow over time.
    pub throughput: Vec<(String, Throughput)>,
    /// Values that the workload measured over time.
    pub timed: Vec<Timed>,
    /// Frames that are missing from the evidence; nothing can be proved about them.
    pub losses: Vec<Loss>,
    /// Times at which faults hit frames.
    pub marks: Vec<Mark>,
    /// How RDMA connections recovered from packets that faults took.
    pub recoveries: Vec<Recovery>,
    /// All metrics of the run.
    pub metrics: Metrics,
    /// Results of the training, if the workload is one.
    pub training: Option<Trained>,
    /// Results of the workload's commands.
    pub commands: Vec<CommandResult>,
    /// Results of the probes, in declared order.
    pub probes: Vec<ProbeResult>,
    /// Why the run was aborted, if it was. Effects up to the abort are proved nevertheless; the workload has no measurements.
    pub aborted: Option<Aborted>,
    /// Unexpected failures of the workload itself.
    pub failures: Vec<String>,
    /// Remarks of the workload on its figures.
    pub remarks: Vec<String>,
    /// Load of the machine during the run.
    pub strain: Strain,
    /// The evidence that proves the run's faults.
    pub evidence: Evidence,
}

/// The results of a training.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The fraction of held-out samples that the final weights recognise.
    pub accuracy: f64,
    /// The SHA-256 of the server's final weights.
    pub weights_sha256: String,
    /// Ranks of the workers whose final weights differ from the server's.
    pub disagreeing_workers: Vec<u16>,
    /// Frame bytes without FCS on the server's link, both directions.
    pub server_link_bytes: u64,
    /// The part of `server_link_bytes` that retransmissions caused.
    pub server_link_repeated_bytes: u64,
    /// Frame bytes that the workers and the server sent.
    pub sent_bytes: u64,
    /// The part of `sent_bytes` that was retransmitted.
    pub retransmitted_bytes: u64,
    /// Number of iterations.
    pub iterations: u32,
    /// One report for each iteration.
    pub rounds: Vec<RoundReport>,
}

/// Polling interval while a workload gets ready.
const LOOK: Duration = Duration::from_millis(1);

/// Executes a scenario.
pub fn run(
    planned: &Planned,
    conditions: Conditions<'_>,
    observer: &mut dyn Observer,
) -> Result<Run, ExperimentError> {
    let scenario = &planned.scenario;
    let (ticks, load_before) = (Ticks::now(), machine::load());
    workload::check_installed(scenario)?;
    let mut stage = Stage::set(planned, conditions, observer)?;
    let grounds = Grounds::prepare(&stage.bed, scenario)?;
    let mut connections = grounds.take_connections();
    let (fleet, _, bed) = stage.parts();
    let load = std::thread::scope(|scope| {
        let preparing = scope.spawn(|| workload::ready(bed, planned, conditions, &grounds));
        // Services may connect before the first step.
        while !preparing.is_finished() {
            if let Some(connections) = &mut connections {
                connections.turn(fleet);
            }
            std::thread::sleep(LOOK);
        }
        preparing
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    let mut probing = Probing::new(&stage.bed, scenario, load, &grounds)?;
    let job = planned.training();
    let before = job.map(|job| LinkCount::take(&mut stage, &job.server));
    let before = before.transpose()?;
    let limit = TimeLimit::of(scenario);
    let mut guard = Guard::of(planned);
    let mut aborted = None;

    observer.begins(&scenario.name, &probing.load.position());
    let so_far = stage.so_far();
    let (fleet, switches, bed) = stage.parts();
    let mut disruptor = Disruptor::of(planned);
    let mut repairer = Repairer::of(planned, conditions.switches.kind.model());
    let (mut starting, mut lost) = (Vec::new(), Vec::new());
    let timeline = Timeline::new(&planned.plan.timeline);
    let wall = timeline.follow(fleet, &mut probing, |probing, fleet, elapsed, awaited| {
        let spares = |switch: &str| repairer.as_ref().is_some_and(|plan| plan.can_miss(switch));
        for (switch, reason) in Stage::lost(switches, spares)? {
            fleet.take_down(&switch);
            lost.push(format!("switch {switch} ended: {reason}"));
        }
        if let Some(connections) = &mut connections {
            connections.turn(fleet);
        }
        let load = &mut *probing.load;
        let mut board = Switchboard {
            fleet: &mut *fleet,
            processes: &mut *switches,
            bed,
            weir: conditions.weir,
            starting: &mut starting,
        };
        disruptor.turn(board.fleet.epoch(), load, &mut board)?;
        if let Some(repairer) = &mut repairer {
            repairer.turn(fleet, load)?;
        }
        let position = load.position();
        if position.done < position.total {
            limit.check(elapsed, || position.to_string())?;
        }
        let seen = || so_far.lock().unwrap_or_else(PoisonError::into_inner);
        observer.turn(&mut Turn {
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
        Ok(match guard.look(elapsed, fleet, awaited, add_recent)? {
            Look::GoOn => Turned::GoOn,
            Look::Holds => Turned::Holds,
            Look::Aborted(why) => {
                aborted = Some(why);
                Turned::End
            }
        })
    })?;
    tracing::info!(wall_ms = wall.as_millis() as u64, "workload ends");
    // No thread handles announcements from here on, and no program waits for an answer.
    let told = connections.map_or_else(Vec::new, |connections| connections.remarks().to_vec());

    let carried = disruptor.finish(&mut *probing.load);
    let repairs = repairer.map_or_else(Vec::new, |repairer| repairer.finish(&*probing.load));
    // Answers to probes, and the end of services, may take long: until then packets still meet the faults.
    let (load, probes) = probing.finish()?;
    let measured = match aborted {
        Some(_) => {
            // The workload's processes end here.
            drop(load);
            Measured::default()
        }
        None => load.finish()?,
    };
    let (mut metrics, mut remarks) = (measured.metrics, grounds.remarks.clone());
    if !repairs.is_empty() && !planned.scenario.faults.is_empty() {
        remarks.push(repair::REMARK.to_owned());
    }
    remarks.extend(told);
    lost.extend(measured.failures);
    remarks.extend(measured.remarks);
    remarks.extend(probes.iter().filter_map(ProbeResult::remark));
    probes
        .iter()
        .for_each(|probe| probe.add_metrics(&mut metrics));
    metrics.insert(Metric::Run(RunMetric::Wall), wall.as_nanos() as f64);
    let mut training = None;
    if let (Some(job), Some(before), Some(outcome)) = (job, before, measured.training) {
        let bytes = LinkCount::settled_bytes(&mut stage, &job.server, before)?;
        let values = [
            (TrainingMetric::ServerLinkBytes, bytes as f64),
            (TrainingMetric::Wall, wall.as_nanos() as f64),
        ];
        metrics.extend(values.map(|(what, value)| (Metric::Training(what), value)));
        if planned.scenario.gradients.is_some() {
            repair::add_metrics(&mut metrics, &repairs);
        }
        training = Some(trained(outcome, bytes, job.iterations));
    }
    let priorities = stage.fleet.priorities();
    let writes = stage.fleet.epoch_writes();
    let steps = steps::steps(&planned.plan.timeline, writes, wall);
    let skew_ns = steps::longest_skew_ns(writes);
    metrics.insert(Metric::Run(RunMetric::Skew), skew_ns as f64);
    let (conclusion, evidence, counted, marks) = stage.conclude(carried, observer)?;
    metrics.extend(counted);
    let verdict_after_ns = stage.verdict_after.as_nanos() as u64;
    drop(stage);
    add_metrics(&mut metrics, &conclusion);
    let aborted = aborted.map(|aborted| {
        let faults = conclusion.faults.iter();
        let counted = faults.filter(|fault| aborted.faults.contains(&fault.id));
        let unforwarded = counted.map(|fault| fault.unforwarded).sum();
        aborted.with_unforwarded(unforwarded)
    });
    remarks.extend(kept_until(&evidence));
    let ends = evidence.kept.log_ends.iter();
    remarks.extend(ends.map(|error| format!("{EVENTS} ends early: {error}")));
    let run = Run {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        wall,
        faults: conclusion.faults,
        disruptions: conclusion.disruptions,
        repairs,
        triggers: conclusion.triggers,
        steps,
        met: conclusion.met,
        flows: conclusion.flows,
        throughput: conclusion.throughput,
        timed: measured.timed,
        losses: conclusion.losses,
        marks: marks.into_marks(),
        recoveries: conclusion.recoveries,
        metrics,
        training,
        commands: measured.commands,
        probes,
        aborted,
        failures: lost,
        remarks,
        strain: Strain {
            verdict_after_ns,
            ..Strain::since(ticks, load_before, priorities)
        },
        evidence,
    };
    observer.ends(&run);
    Ok(run)
}

/// Adds the judge's observations of each fault so far.
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

/// Reports the time from which on the folder keeps no frames, if there is one.
fn kept_until(evidence: &Evidence) -> Option<String> {
    let (at_ns, why) = evidence.kept.stopped.as_ref()?;
    let after = at_ns.saturating_sub(evidence.start_ns().unwrap_or(*at_ns));
    let after_s = Duration::from_nanos(after).as_secs_f64();
    Some(format!(
        "captures: no frame is kept from {after_s:.1} s on: {why}; the verdict does not depend on it"
    ))
}

fn trained(outcome: TrainingOutcome, server_link_bytes: u64, iterations: u32) -> Trained {
    let TrainingOutcome {
        server,
        workers,
        rounds,
    } = outcome;
    let (sent_bytes, by_workers) =
        workers
            .iter()
            .fold((server.sent.bytes, 0), |(sent, again), worker| {
                let of = worker.sent;
                (sent + of.bytes, again + of.retransmitted_bytes)
            });
    let by_server = server.sent.retransmitted_bytes;
    let disagreeing = workers
        .iter()
        .filter(|worker| worker.weights_sha256 != server.weights_sha256);
    Trained {
        accuracy: server.accuracy,
        disagreeing_workers: disagreeing.map(|worker| worker.rank).collect(),
        weights_sha256: server.weights_sha256,
        server_link_bytes,
        // Frames that arrive at the server twice although no worker retransmitted them are not counted as retransmissions.
        server_link_repeated_bytes: by_server + server.repeated_bytes.min(by_workers),
        sent_bytes,
        retransmitted_bytes: by_server + by_workers,
        iterations,
        rounds,
    }
}

/// Adds the results of the captures, under the metric names that expectations use.
pub(crate) fn add_metrics(metrics: &mut Metrics, conclusion: &Conclusion) {
    for fault in &conclusion.faults {
        let values = [
            (FaultMetric::Fired, Some(fault.fired)),
            (FaultMetric::Observed, Some(fault.observed)),
            (FaultMetric::Overridden, Some(fault.overridden)),
            (FaultMetric::Unforwarded, Some(fault.unforwarded)),
            (FaultMetric::Keyless, fault.keyless),
            (FaultMetric::Missed, Some(fault.missed)),
            (FaultMetric::Collateral, Some(fault.collateral)),
            (FaultMetric::Boundary, Some(fault.boundary)),
            (FaultMetric::Slow, Some(fault.slow)),
            (FaultMetric::Beyond, fault.latest_ns),
            (FaultMetric::Recovered, fault.recovered),
            (FaultMetric::Recovery, fault.recovery_ns),
        ];
        let known = values.into_iter().filter_map(|(what, value)| {
            let metric = Metric::fault(&fault.id, what);
            value.map(|value| (metric, value as f64))
        });
        metrics.extend(known);
    }
    for disruption in &conclusion.disruptions {
        let values = [
            (FaultMetric::Fired, Some(disruption.fired)),
            (FaultMetric::Observed, Some(disruption.observed)),
            (FaultMetric::Missed, Some(disruption.missed)),
            (FaultMetric::Collateral, disruption.collateral),
        ];
        let known = values.into_iter().filter_map(|(what, value)| {
            let metric = Metric::fault(&disruption.id, what);
            value.map(|value| (metric, value as f64))
        });
        metrics.extend(known);
    }
    for trigger in &conclusion.triggers {
        let values = [
            (TriggerMetric::On, trigger.on),
            (TriggerMetric::Keyless, trigger.keyless),
        ];
        let known = values.into_iter().filter_map(|(what, value)| {
            let metric = Metric::trigger(&trigger.name, what);
            value.map(|value| (metric, value as f64))
        });
        metrics.extend(known);
    }
    for (name, count) in &conclusion.flows {
        let values = [
            (FlowMetric::Sent, count.sent),
            (FlowMetric::Received, count.received),
            (FlowMetric::Lost, count.lost),
            (FlowMetric::Extra, count.extra),
            (FlowMetric::Longest, count.longest_ns),
        ];
        metrics.extend(values.map(|(what, value)| (Metric::flow(name, what), value as f64)));
    }
}
