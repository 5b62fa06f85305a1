//! `weir demo`: the same training four times, and what the comparison shows.
//!
//! | run | who sums | faults |
//! |---|---|---|
//! | `aggregated` | the switch `core` | none |
//! | `server_only` | the server | none |
//! | `faulted` | the switch `core` | on the updates of the two workers behind `edge` |
//! | `reference` | nobody: one process, no network | none |

mod report;
mod tamper;

use std::path::Path;
use std::time::{Duration, Instant};

use controller::target::Kind;
use host_agent::agent::RoundReport;
use host_agent::train::{Recipe, reference_run};
use scenario::workload::Workload;
use serde::Serialize;
use testbeds::bed::Wiring;
use testbeds::host::Process;

use crate::experiment::{
    Conditions, ExperimentError, FaultResult, LinkCount, Planned, Stage, Switches, training,
};
use crate::progress::Progress;

/// The scenario that is shown: also a file of its own, for `weir run`.
const SCENARIO_FILE: &str = "training-faults.yaml";
const SCENARIO: &str = include_str!("../../../testbeds/scenarios/training-faults.yaml");

/// Above this share of repeated bytes, byte counts of two runs are not comparable.
const RETRANSMITTED_LIMIT: f64 = 0.01;
/// (n − 1)/n for eight workers, and the margin above which a figure must be a measuring error.
const REMOVED_LIMIT: f64 = 0.8751;
/// What is to be reached.
const REMOVED_GOAL: f64 = 0.865;
const ACCURACY_GOAL: f64 = 0.90;
const FIRED_GOAL: u64 = 20;

/// Which worker `kill_worker` kills, and when.
const KILLED_WORKER: usize = 3;
const KILL_AFTER_ROUNDS: u64 = 5;

/// What is asked of the demo.
#[derive(Debug, Clone)]
pub struct Settings<'a> {
    /// What links are made of.
    pub wiring: Wiring,
    /// Files that stand in for the built-in P4 text.
    pub p4src: Option<&'a Path>,
    /// Seed of the model, the batches and the faults.
    pub seed: u64,
    /// Iterations of training.
    pub iterations: u32,
    /// Change a value register of the aggregating switch in mid-run.
    pub tamper_register: bool,
    /// Falsify the count of the first fault.
    pub tamper_counter: bool,
    /// Kill a worker in mid-run.
    pub kill_worker: bool,
    /// Stop the switches before they are spoken to.
    pub stall_switch: bool,
}

/// One run.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// Its name.
    pub name: &'static str,
    /// The fraction of held-out samples that the final weights recognise.
    pub accuracy: f64,
    /// The SHA-256 of the final weights.
    pub weights_sha256: String,
    /// Frame bytes without FCS on the server's link, both directions.
    pub server_link_bytes: u64,
    /// Frame bytes that were sent again, by all workers and the server.
    pub retransmitted_bytes: u64,
    /// Iterations.
    pub iterations: u32,
    /// Chunks with values per iteration.
    pub chunks: usize,
    /// From the start signal to the last report.
    pub wall_s: f64,
    /// After each iteration.
    #[serde(skip)]
    pub rounds: Vec<RoundReport>,
    /// What the workers hold in the end, where it is not what the server holds.
    #[serde(skip)]
    pub disagreeing_workers: Vec<u8>,
    /// Bytes that the workers and the server sent.
    #[serde(skip)]
    pub sent_bytes: u64,
}

/// What the demo shows.
#[derive(Debug, Clone, Serialize)]
pub struct Demo {
    /// Number of workers.
    pub workers: usize,
    /// What links were made of.
    pub links: &'static str,
    /// Seed of everything.
    pub seed: u64,
    /// In order.
    pub runs: Vec<Run>,
    /// 1 − aggregated/server_only.
    pub server_bytes_removed: f64,
    /// In declared order.
    pub faults: Vec<FaultResult>,
    /// Of the process.
    pub wall_s: f64,
    /// Whether all checks hold.
    pub ok: bool,
    /// Each thing that must hold.
    #[serde(skip)]
    pub checks: Vec<(bool, String)>,
}

/// Carries out all runs.
pub fn run(settings: &Settings<'_>, progress: &mut Progress) -> Result<Demo, ExperimentError> {
    let start = Instant::now();
    let mut runs = Vec::new();
    let mut faults = Vec::new();
    for name in ["aggregated", "server_only", "faulted"] {
        let planned = variant(name, settings)?;
        let (run, found) = train(name, &planned, settings, progress)?;
        runs.push(run);
        faults.extend(found);
    }
    if settings.tamper_counter
        && let Some(fault) = faults.first_mut()
    {
        fault.fired += 1;
    }
    runs.push(reference(settings, progress)?);
    let workers = workers(settings)?;
    let mut demo = Demo {
        workers,
        links: match settings.wiring {
            Wiring::Veth => "veth",
            Wiring::Memory => "memory",
        },
        seed: settings.seed,
        server_bytes_removed: 1.0
            - runs[0].server_link_bytes as f64 / runs[1].server_link_bytes.max(1) as f64,
        runs,
        faults,
        wall_s: 0.0,
        ok: false,
        checks: Vec::new(),
    };
    demo.checks = checks(&demo);
    demo.ok = demo.checks.iter().all(|check| check.0);
    demo.wall_s = start.elapsed().as_secs_f64();
    Ok(demo)
}

fn workers(settings: &Settings<'_>) -> Result<usize, ExperimentError> {
    let planned = variant("aggregated", settings)?;
    Ok(planned
        .training()
        .map_or(0, |training| training.workers.len()))
}

/// The demo's scenario with the seed that was asked for.
fn scenario_text(seed: u64) -> String {
    SCENARIO.replace("seed: 7", &format!("seed: {seed}"))
}

/// The demo's scenario with what distinguishes a run.
fn variant(name: &str, settings: &Settings<'_>) -> Result<Planned, ExperimentError> {
    let refused =
        |diagnostics: scenario::Diagnostics| ExperimentError::Scenario(diagnostics.to_string());
    let text = scenario_text(settings.seed);
    let mut scenario = scenario::load(SCENARIO_FILE, &text).map_err(refused)?;
    if let Some(Workload::Training(training)) = &mut scenario.workload {
        training.iterations = settings.iterations;
        if name == "server_only" {
            training.aggregate_on = None;
        }
    }
    if name != "faulted" {
        scenario.faults.clear();
    }
    Planned::of(scenario, Kind::Embedded).map_err(refused)
}

fn train(
    name: &'static str,
    planned: &Planned,
    settings: &Settings<'_>,
    progress: &mut Progress,
) -> Result<(Run, Vec<FaultResult>), ExperimentError> {
    let Some(job) = planned.training() else {
        return Err(ExperimentError::Scenario(format!(
            "{SCENARIO_FILE} declares no training"
        )));
    };
    progress.begin(name, u64::from(job.iterations));
    let mut record: Vec<String> = planned
        .plan
        .injections
        .iter()
        .map(|injection| injection.switch.clone())
        .collect();
    record.sort();
    record.dedup();
    let embedded = Switches::default();
    let conditions = Conditions {
        switches: &embedded,
        wiring: settings.wiring,
        p4src: settings.p4src,
        stall_switch: settings.stall_switch,
    };
    let mut stage = Stage::set(planned, conditions, record)?;
    let in_first_run = name == "aggregated";
    let agent_settings = training::Settings {
        seed: settings.seed,
        time_limit: Duration::from_nanos(planned.scenario.limits.time_ns),
    };
    let agents = training::Job::start(&stage.bed, &planned.scenario, job, agent_settings)?;
    let before = LinkCount::take(&mut stage, &job.server)?;
    let mut timeline = stage.timeline();
    let mut tamper = (settings.tamper_register && in_first_run)
        .then(|| tamper::Register::new(planned.aggregator().unwrap_or_default(), job));
    timeline.advance(Duration::ZERO, &mut stage.fleet)?;
    let outcome = agents.run(|mut turn| {
        timeline.advance(turn.elapsed, &mut stage.fleet)?;
        if let Some((switch, reason)) = stage.fleet.ended() {
            return Err(ExperimentError::SwitchEnded { switch, reason }.into());
        }
        if let Some(round) = turn.round {
            progress.advance(
                round.round + 1,
                &format!("accuracy {:.1} %", round.accuracy * 100.0),
            );
        }
        if let Some(register) = &mut tamper {
            register.turn(&mut turn, &mut stage.fleet)?;
        }
        if settings.kill_worker && in_first_run && turn.rounds_done() >= KILL_AFTER_ROUNDS {
            turn.worker(KILLED_WORKER).map(Process::kill);
        }
        Ok(())
    })?;
    if tamper.is_some_and(|register| !register.is_done()) {
        return Err(ExperimentError::Scenario(
            "no sum was under way whenever a register was to be changed".to_owned(),
        ));
    }
    let server_link_bytes = LinkCount::settled_bytes(&mut stage, &job.server, before)?;
    let faults = if planned.scenario.faults.is_empty() {
        Vec::new()
    } else {
        stage.conclude()?.faults
    };
    progress.end(&format!(
        "{:.1} s, accuracy {:.1} %",
        outcome.wall.as_secs_f64(),
        outcome.server.accuracy * 100.0
    ));
    let senders = outcome
        .workers
        .iter()
        .map(|worker| worker.sent)
        .chain([outcome.server.sent]);
    let (sent, again) = senders.fold((0, 0), |(sent, again), s| {
        (sent + s.bytes, again + s.retransmitted_bytes)
    });
    let run = Run {
        name,
        accuracy: outcome.server.accuracy,
        server_link_bytes,
        retransmitted_bytes: again,
        iterations: job.iterations,
        chunks: training::chunks_per_iteration(),
        wall_s: outcome.wall.as_secs_f64(),
        disagreeing_workers: outcome
            .workers
            .iter()
            .filter(|worker| worker.weights_sha256 != outcome.server.weights_sha256)
            .map(|worker| worker.rank)
            .collect(),
        weights_sha256: outcome.server.weights_sha256,
        rounds: outcome.rounds,
        sent_bytes: sent,
    };
    Ok((run, faults))
}

fn reference(settings: &Settings<'_>, progress: &mut Progress) -> Result<Run, ExperimentError> {
    progress.begin("reference", 1);
    let start = Instant::now();
    let recipe = Recipe {
        seed: settings.seed,
        rounds: settings.iterations.into(),
        ..Recipe::default()
    };
    let outcome = reference_run(&recipe, workers(settings)? as u8)
        .map_err(|error| ExperimentError::Scenario(error.to_string()))?;
    let wall_s = start.elapsed().as_secs_f64();
    progress.end(&format!(
        "{wall_s:.1} s, accuracy {:.1} %",
        outcome.accuracy * 100.0
    ));
    Ok(Run {
        name: "reference",
        accuracy: outcome.accuracy,
        weights_sha256: outcome.weights_sha256,
        server_link_bytes: 0,
        retransmitted_bytes: 0,
        iterations: settings.iterations,
        chunks: training::chunks_per_iteration(),
        wall_s,
        rounds: Vec::new(),
        disagreeing_workers: Vec::new(),
        sent_bytes: 0,
    })
}

/// Each thing that must hold, with what was found.
fn checks(demo: &Demo) -> Vec<(bool, String)> {
    let mut checks = Vec::new();
    let first = &demo.runs[0];
    let equal = demo
        .runs
        .iter()
        .all(|run| run.weights_sha256 == first.weights_sha256);
    checks.push((
        equal,
        "the final weights of all runs are the same bits".to_owned(),
    ));
    for run in &demo.runs {
        let holds = run.disagreeing_workers.is_empty();
        if run.name != "reference" {
            checks.push((
                holds,
                format!("{}: every worker holds the server's weights", run.name),
            ));
        }
    }
    let worst = demo.runs.iter().map(|run| run.accuracy).fold(1.0, f64::min);
    checks.push((
        worst >= ACCURACY_GOAL,
        format!("held-out accuracy is {:.1} %, at least 90 %", worst * 100.0),
    ));
    for run in &demo.runs[..2] {
        let share = run.retransmitted_bytes as f64 / run.sent_bytes.max(1) as f64;
        let text = format!(
            "{}: {:.3} % of the bytes were sent again, at most 1 %",
            run.name,
            share * 100.0
        );
        checks.push((share <= RETRANSMITTED_LIMIT, text));
    }
    let removed = demo.server_bytes_removed;
    checks.push((
        (REMOVED_GOAL..=REMOVED_LIMIT).contains(&removed),
        format!(
            "{:.2} % of the server's bytes are gone; at least 86.5 %, and the limit is 87.5 %",
            removed * 100.0
        ),
    ));
    for fault in &demo.faults {
        let proved = format!(
            "{}: the switch fired {} times, captures saw {}",
            fault.id, fault.fired, fault.observed
        );
        checks.push((fault.is_proved(), proved));
        let often = format!("{}: fired at least {FIRED_GOAL} times", fault.id);
        checks.push((fault.fired >= FIRED_GOAL, often));
    }
    checks
}

pub use report::{page, show};
