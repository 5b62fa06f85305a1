//! `weir run`: a scenario carried out once, and judged by its own expectations.

mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use host_agent::train::{Recipe, reference_run};
use scenario::Scenario;
use scenario::expect::{self, Metrics, Outcome};
use scenario::workload::{Redis, Training, Workload};
use serde::Serialize;

use crate::experiment::{
    Conclusion, Conditions, ExperimentError, FaultResult, LinkCount, Planned, Stage, redis,
    training,
};
use crate::progress::Progress;

pub use report::{page, show};

/// What a run showed.
#[derive(Debug, Serialize)]
pub struct ScenarioRun {
    /// The scenario's name.
    pub scenario: String,
    /// Its seed.
    pub seed: u64,
    /// In declared order.
    pub faults: Vec<FaultResult>,
    /// Everything measured: durations in nanoseconds, sizes in bytes.
    pub metrics: Metrics,
    /// Each line of `expect`.
    pub expectations: Vec<Outcome>,
    /// Of the workload.
    pub wall_s: f64,
    /// Whether every expectation holds, and every fault's two counts agree.
    pub ok: bool,
}

/// Carries a scenario out.
pub fn run(
    planned: &Planned,
    conditions: Conditions<'_>,
    progress: &mut Progress,
) -> Result<ScenarioRun, ExperimentError> {
    let scenario = &planned.scenario;
    progress.begin(&scenario.name, 1);
    let start = Instant::now();
    let record = scenario.topology.switches.clone();
    let mut stage = Stage::set(planned, conditions, record)?;
    let mut metrics = Metrics::new();
    let begun = Instant::now();
    match &scenario.workload {
        Some(Workload::Redis(redis)) => run_redis(&mut stage, redis, &mut metrics)?,
        Some(Workload::Training(job)) => run_training(&mut stage, job, progress, &mut metrics)?,
        Some(Workload::Idle { for_ns }) => idle(&mut stage, Duration::from_nanos(*for_ns))?,
        None => idle(&mut stage, Duration::ZERO)?,
    }
    let wall = begun.elapsed();
    metrics.insert("run.wall".to_owned(), wall.as_nanos() as f64);
    switch_metrics(&mut stage, &mut metrics)?;
    let conclusion = stage.conclude()?;
    drop(stage);
    progress.end(&format!("{:.1} s", start.elapsed().as_secs_f64()));
    Ok(judged(scenario, conclusion, metrics, wall))
}

/// What the captures say joins what was measured before; all of it is held against what is expected.
fn judged(
    scenario: &Scenario,
    conclusion: Conclusion,
    mut metrics: Metrics,
    wall: Duration,
) -> ScenarioRun {
    add_metrics(&mut metrics, &conclusion);
    let expectations = expect::evaluate(scenario, &metrics);
    let proved = conclusion.faults.iter().all(FaultResult::is_proved);
    ScenarioRun {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        ok: proved && expectations.iter().all(|expectation| expectation.passed),
        faults: conclusion.faults,
        metrics,
        expectations,
        wall_s: wall.as_secs_f64(),
    }
}

fn watch(stage_fleet: &mut crate::experiment::fleet::Fleet) -> Result<(), ExperimentError> {
    match stage_fleet.ended() {
        Some((switch, reason)) => Err(ExperimentError::SwitchEnded { switch, reason }),
        None => Ok(()),
    }
}

fn run_redis(
    stage: &mut Stage<'_>,
    redis: &Redis,
    metrics: &mut Metrics,
) -> Result<(), ExperimentError> {
    let mut timeline = stage.timeline();
    let Stage {
        fleet,
        bed,
        planned,
    } = stage;
    let reports = redis::run(bed, &planned.scenario, redis, |elapsed| {
        timeline.advance(elapsed, fleet)?;
        Ok(watch(fleet)?)
    })?;
    for report in &reports {
        redis::add_metrics(metrics, report);
    }
    Ok(())
}

fn run_training(
    stage: &mut Stage<'_>,
    job: &Training,
    progress: &mut Progress,
    metrics: &mut Metrics,
) -> Result<(), ExperimentError> {
    let scenario = &stage.planned.scenario;
    let settings = training::Settings {
        seed: scenario.seed,
        time_limit: Duration::from_nanos(scenario.limits.time_ns),
    };
    let agents = training::Job::start(&stage.bed, scenario, job, settings)?;
    let before = LinkCount::take(stage, &job.server)?;
    let mut timeline = stage.timeline();
    timeline.advance(Duration::ZERO, &mut stage.fleet)?;
    let outcome = agents.run(|turn| {
        timeline.advance(turn.elapsed, &mut stage.fleet)?;
        watch(&mut stage.fleet)?;
        if let Some(round) = turn.round {
            progress.advance(
                round.round + 1,
                &format!("accuracy {:.1} %", round.accuracy * 100.0),
            );
        }
        Ok(())
    })?;
    let bytes = LinkCount::settled_bytes(stage, &job.server, before)?;
    let recipe = Recipe {
        seed: scenario.seed,
        rounds: job.iterations.into(),
        ..Recipe::default()
    };
    let reference = reference_run(&recipe, job.workers.len() as u8)
        .map_err(|error| ExperimentError::Scenario(error.to_string()))?;
    let mut hashes = outcome.workers.iter().map(|worker| &worker.weights_sha256);
    let equal = outcome.server.weights_sha256 == reference.weights_sha256
        && hashes.all(|hash| *hash == reference.weights_sha256);
    let again: u64 = outcome
        .workers
        .iter()
        .map(|worker| worker.sent.retransmitted_bytes)
        .sum();
    let values = [
        ("accuracy", outcome.server.accuracy),
        ("iterations", f64::from(job.iterations)),
        ("chunks", training::chunks_per_iteration() as f64),
        ("weights_equal", f64::from(u8::from(equal))),
        (
            "retransmitted_bytes",
            (again + outcome.server.sent.retransmitted_bytes) as f64,
        ),
        ("server_link_bytes", bytes as f64),
        ("wall", outcome.wall.as_nanos() as f64),
    ];
    metrics.extend(values.map(|(name, value)| (format!("training.{name}"), value)));
    Ok(())
}

/// Nothing of ours runs; the timeline does.
fn idle(stage: &mut Stage<'_>, length: Duration) -> Result<(), ExperimentError> {
    const TURN: Duration = Duration::from_millis(5);
    let mut timeline = stage.timeline();
    let start = Instant::now();
    loop {
        timeline.advance(start.elapsed(), &mut stage.fleet)?;
        watch(&mut stage.fleet)?;
        let left = length.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(TURN));
    }
}

fn switch_metrics(stage: &mut Stage<'_>, metrics: &mut Metrics) -> Result<(), ExperimentError> {
    for switch in &stage.planned.plan.switches {
        let counts = stage.fleet.port_counts(&switch.name)?;
        let received: u64 = counts.iter().map(|port| port.rx_frames).sum();
        let sent: u64 = counts.iter().map(|port| port.tx_frames).sum();
        metrics.insert(format!("switch.{}.received", switch.name), received as f64);
        metrics.insert(format!("switch.{}.sent", switch.name), sent as f64);
    }
    Ok(())
}

fn add_metrics(metrics: &mut Metrics, conclusion: &Conclusion) {
    for fault in &conclusion.faults {
        metrics.insert(format!("fault.{}.fired", fault.id), fault.fired as f64);
        metrics.insert(
            format!("fault.{}.observed", fault.id),
            fault.observed as f64,
        );
        if let Some(latest_ns) = fault.latest_ns {
            metrics.insert(format!("fault.{}.beyond", fault.id), latest_ns as f64);
        }
    }
    for (name, count) in &conclusion.flows {
        let values = [
            ("sent", count.sent),
            ("received", count.received),
            ("lost", count.lost),
            ("extra", count.extra),
            ("longest", count.longest_ns),
        ];
        metrics.extend(values.map(|(what, value)| (format!("flow.{name}.{what}"), value as f64)));
    }
    let mut unparsed: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for ((switch, note), packets) in &conclusion.notes {
        let pipelined = usize::from(note.contains("pipelined"));
        unparsed.entry(switch).or_default()[pipelined] += packets;
    }
    for (switch, [unparsed, pipelined]) in unparsed {
        metrics.insert(format!("switch.{switch}.unparsed"), unparsed as f64);
        metrics.insert(format!("switch.{switch}.pipelined"), pipelined as f64);
    }
}
