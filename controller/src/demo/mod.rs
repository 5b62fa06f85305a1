//! `weir demo`: runs the same training four times, and compares the results.
//!
//! | run | sums | faults |
//! |---|---|---|
//! | `aggregated` | the switch `core` | none |
//! | `server_only` | the server | none |
//! | `faulted` | the switch `core` | on the updates of the two workers behind `edge` |
//! | `reference` | one process, without a network | none |
//!
//! The first three are scenarios derived from the shipped training-faults.yaml; they run as in `weir run`.

mod judge;
mod report;

use std::path::Path;
use std::time::{Duration, Instant};

use scenario::Scenario;
use scenario::model::workload::{Training, Workload};
use testbeds::bed::Wiring;

use crate::experiment::prepare::Record;
use crate::experiment::{
    Conditions, ExperimentError, Observer, Planned, RunResult, Switches, run as carry_out,
};
use crate::reference::Reference;
use crate::report::Verdict;
use crate::report::json::Header;
use crate::target::Kind;

pub use report::{json, page, show};

/// Name of the demo's scenario file, which `weir run` can also run.
const SCENARIO_FILE: &str = "training-faults.yaml";
const SCENARIO: &str = include_str!("../../../testbeds/scenarios/training-faults.yaml");

/// Iterations that the demo's goals need: 90 % accuracy, and 20 hits of a fault that hits 1 % of 550 packets per iteration.
pub const MIN_ITERATIONS: u32 = 15;

/// Options of `weir demo`.
#[derive(Debug, Clone)]
pub struct Settings<'a> {
    /// How links are implemented: as veth pairs, or as sockets.
    pub wiring: Wiring,
    /// Folder with files that replace the built-in P4 text; `None` to use the built-in text.
    pub p4src: Option<&'a Path>,
    /// Seed of the initial weights, the batches and the faults.
    pub seed: u64,
    /// Number of training iterations, at least [`MIN_ITERATIONS`].
    pub iterations: u32,
    /// Path of the `weir` program that runs agents and switches.
    pub weir: &'a Path,
}

/// The results of the demo.
pub struct Demo {
    /// The command that ran, when, and on which machine.
    pub header: Header,
    /// How links were implemented: as veth pairs, or as sockets.
    pub wiring: Wiring,
    /// The runs `aggregated`, `server_only` and `faulted`, in this order.
    pub runs: [RunResult; 3],
    /// The scenario of the run `faulted`, with its plan.
    pub faulted: Planned,
    /// Result of the same training in one process, without a network.
    pub reference: Reference,
    /// Number of workers of the training.
    pub workers: usize,
    /// Share of the bytes on the server's link (without retransmissions) that `aggregated` saves, compared with `server_only`.
    pub server_bytes_removed: f64,
    /// Wall-clock duration of the whole demo.
    pub wall: Duration,
    /// Which checks of the demo hold, and remarks for readers.
    pub verdict: Verdict,
}

/// Runs the three scenarios and the reference training, and checks the results.
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
    let reference = Reference::compute(settings.seed, job)?;
    let server_bytes_removed = judge::removed(&runs);
    Ok(Demo {
        header: Header::new("weir demo"),
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

/// The demo's scenarios with their plans: without faults, without aggregation, and with faults.
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

    let plan = |scenario| Planned::new(scenario, Kind::Embedded).map_err(refused);
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
) -> Result<RunResult, ExperimentError> {
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
        // The seed of the file results in the decisions of the file.
        let shipped = scenario::load(SCENARIO_FILE, SCENARIO).expect("a scenario");
        let keys = |scenario: &Scenario| scenario.faults.iter().map(|f| f.key).collect::<Vec<_>>();
        assert_eq!(shipped.seed, 7);
        assert_eq!(keys(&shipped), keys(&faulted.scenario));
        let [.., other] = scenarios(&settings(8))?;
        assert_ne!(keys(&shipped), keys(&other.scenario));
        Ok(())
    }

    /// The minimum of the command line is enough: certainly for the accuracy, and for the hits by probability.
    #[test]
    fn the_least_iterations_reach_the_goal_of_accuracy() -> Result<(), ExperimentError> {
        let [.., mut faulted] = scenarios(&settings(1))?;
        training(&mut faulted.scenario)?.iterations = MIN_ITERATIONS;
        let job = faulted.training().ok_or_else(no_training)?;
        for seed in 1..=3 {
            let accuracy = Reference::compute(seed, job)?.accuracy;
            assert!(accuracy >= judge::ACCURACY_GOAL, "seed {seed}: {accuracy}");
        }
        Ok(())
    }
}
