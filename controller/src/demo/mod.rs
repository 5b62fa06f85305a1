//! `weir demo`: the same training four times, and what the comparison shows.
//!
//! | run | who sums | faults |
//! |---|---|---|
//! | `aggregated` | the switch `core` | none |
//! | `server_only` | the server | none |
//! | `faulted` | the switch `core` | on the updates of the two workers behind `edge` |
//! | `reference` | nobody: one process, no network | none |
//!
//! The first three are scenarios, made of the shipped training-faults.yaml, and are run as `weir run` runs them.

mod judge;
mod report;

use std::path::Path;
use std::time::{Duration, Instant};

use scenario::Scenario;
use scenario::workload::{Training, Workload};
use testbeds::bed::Wiring;

use crate::experiment::{
    Conditions, ExperimentError, Observer, Planned, Record, Run, Switches, run as carry_out,
};
use crate::reference::Reference;
use crate::report::Verdict;
use crate::report::json::Header;
use crate::target::Kind;

pub use report::{json, page, show};

/// The scenario that is shown: also a file of its own, for `weir run`.
const SCENARIO_FILE: &str = "training-faults.yaml";
const SCENARIO: &str = include_str!("../../../testbeds/scenarios/training-faults.yaml");

/// Fewer do not reach the goals: 90 % accuracy, and 20 hits of a fault that selects 1 % of 550 packets in an iteration.
pub const MIN_ITERATIONS: u32 = 15;

/// What is asked of the demo.
#[derive(Debug, Clone)]
pub struct Settings<'a> {
    /// What links are made of.
    pub wiring: Wiring,
    /// Files that stand in for the built-in P4 text.
    pub p4src: Option<&'a Path>,
    /// Seed of the model, the batches and the faults.
    pub seed: u64,
    /// Iterations of training, [`MIN_ITERATIONS`] at least.
    pub iterations: u32,
    /// The program that agents and switches are run with: `weir`.
    pub weir: &'a Path,
}

/// What the demo shows.
pub struct Demo {
    /// What was run, when and where.
    pub header: Header,
    /// What was asked.
    pub wiring: Wiring,
    /// `aggregated`, `server_only`, `faulted`: named by their scenarios.
    pub runs: [Run; 3],
    /// The scenario of the last of them.
    pub faulted: Planned,
    /// Without any network.
    pub reference: Reference,
    /// Number of workers.
    pub workers: usize,
    /// 1 − aggregated/server_only, of bytes that went over the server's link for the first time.
    pub server_bytes_removed: f64,
    /// Of the process.
    pub wall: Duration,
    /// What must hold.
    pub verdict: Verdict,
}

/// Carries out all runs.
pub fn run(settings: &Settings<'_>, observer: &mut dyn Observer) -> Result<Demo, ExperimentError> {
    let start = Instant::now();
    let [aggregated, server_only, faulted] = scenarios(settings)?;
    let mut trained = |planned: &Planned| train(planned, settings, observer);
    let runs = [
        trained(&aggregated)?,
        trained(&server_only)?,
        trained(&faulted)?,
    ];
    let job = faulted.training().ok_or_else(no_training)?;
    let reference = Reference::of(settings.seed, job)?;
    let server_bytes_removed = judge::removed(&runs);
    Ok(Demo {
        header: Header::of("weir demo"),
        wiring: settings.wiring,
        workers: job.workers.len(),
        server_bytes_removed,
        verdict: judge::verdict(&runs, &reference, server_bytes_removed),
        runs,
        reference,
        faulted,
        wall: start.elapsed(),
    })
}

fn no_training() -> ExperimentError {
    ExperimentError::Scenario(format!("{SCENARIO_FILE} declares no training"))
}

/// The demo's scenarios, planned: the shipped one, and what is left of it without faults, and without aggregation.
fn scenarios(settings: &Settings<'_>) -> Result<[Planned; 3], ExperimentError> {
    let refused =
        |diagnostics: scenario::Diagnostics| ExperimentError::Scenario(diagnostics.to_string());
    let shipped = scenario::load(SCENARIO_FILE, SCENARIO).map_err(refused)?;
    let mut faulted = shipped.with_seed(settings.seed);
    training(&mut faulted)?.iterations = settings.iterations;
    "faulted".clone_into(&mut faulted.name);

    let mut aggregated = faulted.clone();
    aggregated.faults.clear();
    "aggregated".clone_into(&mut aggregated.name);

    let mut server_only = aggregated.clone();
    training(&mut server_only)?.aggregate_on = None;
    server_only.jobs.clear();
    "server_only".clone_into(&mut server_only.name);

    let plan = |scenario| Planned::of(scenario, Kind::Embedded).map_err(refused);
    Ok([plan(aggregated)?, plan(server_only)?, plan(faulted)?])
}

fn training(scenario: &mut Scenario) -> Result<&mut Training, ExperimentError> {
    match &mut scenario.workload {
        Some(Workload::Training(training)) => Ok(training),
        _ => Err(no_training()),
    }
}

fn train(
    planned: &Planned,
    settings: &Settings<'_>,
    observer: &mut dyn Observer,
) -> Result<Run, ExperimentError> {
    let conditions = Conditions {
        between: None,
        switches: &Switches::default(),
        wiring: settings.wiring,
        p4src: settings.p4src,
        record: Record::Faults,
        out: None,
        weir: settings.weir,
    };
    carry_out(planned, conditions, observer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(seed: u64) -> Settings<'static> {
        Settings {
            wiring: Wiring::Memory,
            p4src: None,
            seed,
            iterations: 12,
            weir: Path::new(Conditions::ITSELF),
        }
    }

    #[test]
    fn the_demos_scenarios_are_the_shipped_one_and_less_of_it() -> Result<(), ExperimentError> {
        let [aggregated, server_only, faulted] = scenarios(&settings(7))?;
        let names = [&aggregated, &server_only, &faulted].map(|p| p.scenario.name.as_str());
        assert_eq!(names, ["aggregated", "server_only", "faulted"]);
        let sums = [&aggregated, &server_only, &faulted]
            .map(|planned| planned.scenario.jobs.first().map(|job| job.top()));
        assert_eq!(sums, [Some("core"), None, Some("core")]);
        assert!(aggregated.plan.injections.is_empty() && server_only.plan.injections.is_empty());
        assert_eq!(faulted.training().map(|job| job.iterations), Some(12));
        // The file's own seed gives the file's own decisions.
        let shipped = scenario::load(SCENARIO_FILE, SCENARIO).expect("a scenario");
        let keys = |scenario: &Scenario| scenario.faults.iter().map(|f| f.key).collect::<Vec<_>>();
        assert_eq!(shipped.seed, 7);
        assert_eq!(keys(&shipped), keys(&faulted.scenario));
        let [.., other] = scenarios(&settings(8))?;
        assert_ne!(keys(&shipped), keys(&other.scenario));
        Ok(())
    }

    /// The least number that the command line takes is enough: of accuracy for sure, of hits as far as chance goes.
    #[test]
    fn the_least_iterations_reach_the_goal_of_accuracy() -> Result<(), ExperimentError> {
        let [.., mut faulted] = scenarios(&settings(1))?;
        training(&mut faulted.scenario)?.iterations = MIN_ITERATIONS;
        let job = faulted.training().ok_or_else(no_training)?;
        for seed in 1..=3 {
            let accuracy = Reference::of(seed, job)?.accuracy;
            assert!(accuracy >= judge::ACCURACY_GOAL, "seed {seed}: {accuracy}");
        }
        Ok(())
    }
}
