//! One run: what `weir run` does once and `weir demo` three times.

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

/// What a run showed.
pub struct Run {
    /// The scenario's name.
    pub scenario: String,
    /// Its seed.
    pub seed: u64,
    /// How long the workload took.
    pub wall: Duration,
    /// In declared order.
    pub faults: Vec<FaultResult>,
    /// Those of programs and switches, in declared order.
    pub disruptions: Vec<DisruptionResult>,
    /// Each time that a training's gradients were planned again.
    pub repairs: Vec<Repair>,
    /// What their triggers did.
    pub triggers: Vec<TriggerResult>,
    /// Each time that a step of the timeline was due.
    pub steps: Vec<StepResult>,
    /// How many frames each injection of the plan has looked at.
    pub met: Vec<u64>,
    /// By name of the flow.
    pub flows: BTreeMap<String, FlowCount>,
    /// What declared flows carried over time.
    pub throughput: Vec<(String, Throughput)>,
    /// What the workload measured over time.
    pub timed: Vec<Timed>,
    /// Frames that are not in the evidence: nothing is proved without them.
    pub losses: Vec<Loss>,
    /// When faults hit frames.
    pub marks: Vec<Mark>,
    /// How RDMA connections came back from what faults took from them.
    pub recoveries: Vec<Recovery>,
    /// Everything measured.
    pub metrics: Metrics,
    /// Of a training.
    pub training: Option<Trained>,
    /// Of commands.
    pub commands: Vec<CommandResult>,
    /// In declared order.
    pub probes: Vec<ProbeResult>,
    /// Why it was broken off, if it was. What ran until then is proved all the same; the workload has measured nothing.
    pub aborted: Option<Aborted>,
    /// What of the workload itself failed, and was not expected to.
    pub failures: Vec<String>,
    /// What the workload says of its figures.
    pub remarks: Vec<String>,
    /// How busy the machine was.
    pub strain: Strain,
    /// What its faults are proved by.
    pub evidence: Evidence,
}

/// What a training showed.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The fraction of held-out samples that the final weights recognise.
    pub accuracy: f64,
    /// The SHA-256 of the server's final weights.
    pub weights_sha256: String,
    /// Ranks of workers that hold other weights than the server.
    pub disagreeing_workers: Vec<u16>,
    /// Frame bytes without FCS on the server's link, both directions.
    pub server_link_bytes: u64,
    /// Of those, bytes that went over it again because somebody had sent them again.
    pub server_link_repeated_bytes: u64,
    /// Frame bytes that the workers and the server sent.
    pub sent_bytes: u64,
    /// Of those, bytes that were sent again.
    pub retransmitted_bytes: u64,
    /// Iterations.
    pub iterations: u32,
    /// After each iteration.
    pub rounds: Vec<RoundReport>,
}

/// Between two looks while a workload gets ready.
const LOOK: Duration = Duration::from_millis(1);

/// Carries a scenario out.
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
    // Nobody listens from here on, and nobody waits for it.
    let told = connections.map_or_else(Vec::new, |connections| connections.remarks().to_vec());

    let carried = disruptor.finish(&mut *probing.load);
    let repairs = repairer.map_or_else(Vec::new, |repairer| repairer.finish(&*probing.load));
    // Answers may be long in coming, and services in ending: until then packets still meet the faults.
    let (load, probes) = probing.finish()?;
    let measured = match aborted {
        Some(_) => {
            // Its processes end here.
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

/// What the judge has seen of faults so far.
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

/// Says from when on no frame is kept, if that is so.
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
        // What comes to the server again although no worker sent it again is nobody's retransmission.
        server_link_repeated_bytes: by_server + server.repeated_bytes.min(by_workers),
        sent_bytes,
        retransmitted_bytes: by_server + by_workers,
        iterations,
        rounds,
    }
}

/// What the captures say, under the names of expectations.
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
