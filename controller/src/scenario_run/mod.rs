//! Runs a scenario once for `weir run` and `weir between`, and judges the run by the scenario's expectations.

mod over_time;
mod programs;
mod report;
#[cfg(test)]
mod tests;

use scenario::Scenario;
use scenario::model::expect::metric::{FaultMetric, Metric, TrainingMetric};
use scenario::outcome::{self, Outcome};

use proof::Loss;

use crate::experiment::conclude::{FaultResult, TriggerResult};
use crate::experiment::{
    Conditions, ExperimentError, Observer, Planned, RunResult, run as carry_out,
};
use crate::reference::Reference;
use crate::report::json::Header;
use crate::report::{Check, Verdict, disruptions, faults, machine_load, triggers};

pub use report::{json, page, show};

/// The results of a run with the verdict on them.
pub struct ScenarioRun {
    /// The command that ran the scenario, when, and on which machine.
    pub header: Header,
    /// Measurements and proved results of the run.
    pub run: RunResult,
    /// The outcome of each line of `expect`; empty for an aborted run.
    pub expectations: Vec<Outcome>,
    /// Which checks of the run hold, and remarks for readers.
    pub verdict: Verdict,
}

/// Runs a scenario, compares a training's weights with the reference, and judges the run.
pub fn run(
    planned: &Planned,
    conditions: Conditions<'_>,
    observer: &mut dyn Observer,
) -> Result<ScenarioRun, ExperimentError> {
    let mut run = carry_out(planned, conditions, observer)?;
    if let (Some(job), Some(training)) = (planned.training(), &run.carried_out.training) {
        let reference = Reference::compute(planned.scenario.seed, job)?;
        let is_equal = training.weights_sha256 == reference.weights_sha256
            && training.disagreeing_workers.is_empty();
        let metric = Metric::Training(TrainingMetric::WeightsEqual);
        let metrics = &mut run.carried_out.measured.metrics;
        metrics.insert(metric, f64::from(u8::from(is_equal)));
    }
    Ok(judged(&planned.scenario, run))
}

/// Evaluates the scenario's expectations, and collects all checks of the run.
fn judged(scenario: &Scenario, run: RunResult) -> ScenarioRun {
    // An aborted workload has no measurements, so expectations on them are not evaluated.
    let expectations = match run.carried_out.aborted {
        Some(_) => Vec::new(),
        None => outcome::evaluate(scenario, run.metrics()),
    };
    let late = faults::late(&run.conclusion.faults);
    let verdict = Verdict {
        checks: checks(scenario, &run, &expectations),
        degraded: machine_load::with_machine(late, "the run", &run.machine_load),
        remarks: run.carried_out.measured.remarks.clone(),
    };
    ScenarioRun {
        header: Header::new(command(scenario)),
        run,
        expectations,
        verdict,
    }
}

/// Name of the command that runs such a scenario.
fn command(scenario: &Scenario) -> &'static str {
    match scenario.topology.wire {
        true => "weir between",
        false => "weir run",
    }
}

/// The checks that the run must pass, each once: a proved fault has none if `expect` already says that its two counts agree.
fn checks(scenario: &Scenario, run: &RunResult, expectations: &[Outcome]) -> Vec<Check> {
    let is_expected = |id: &str| {
        let counts =
            [FaultMetric::Fired, FaultMetric::Observed].map(|what| Metric::fault(id, what));
        let mut equated = scenario
            .expectations
            .iter()
            .filter_map(|line| line.equates());
        equated.any(|pair| counts.iter().all(|count| pair.contains(&count)))
    };
    let faults = run.conclusion.faults.iter();
    let faults = faults.filter(|fault| !fault.proved || !is_expected(&fault.id));
    // A run without a check on frames does not fail because frames are missing.
    let is_given_up = |fault: &FaultResult| {
        fault.unproved_from_ns.is_some()
            && !fault.erred_before
            && !scenario.asks_of_frames(Some(&fault.id))
    };
    let faults = faults.map(|fault| match is_given_up(fault) {
        true => Check::new(true, faults::check(fault).text),
        false => faults::check(fault),
    });
    let expected = expectations.iter().map(|expectation| {
        let text = match &expectation.values {
            Some(values) => format!("{}  ({values})", expectation.text),
            None => format!("{}  ({})", expectation.text, expectation.message),
        };
        Check::new(expectation.passed, text)
    });
    let disruptions = run.conclusion.disruptions.iter();
    let disruptions = disruptions.filter(|fault| !fault.proved || !is_expected(&fault.id));
    let losses = run.conclusion.losses.iter();
    let is_harmless_trigger =
        |of: &TriggerResult| of.unproved_from_ns.is_some() && !scenario.asks_of_frames(None);
    let triggers = run.conclusion.triggers.iter().filter_map(|of| {
        let check = triggers::check(of)?;
        Some(Check::new(
            check.holds || is_harmless_trigger(of),
            check.text,
        ))
    });
    let is_harmless = |loss: &Loss| loss.since_ns.is_some() && !scenario.asks_of_frames(None);
    let losses = losses.map(|loss| Check::new(is_harmless(loss), loss.to_string()));
    let failures = run.carried_out.measured.failures.iter();
    let failures = failures.map(|failure| Check::new(false, failure.as_str()));
    let aborted = run.carried_out.aborted.iter();
    aborted
        .map(|aborted| Check::new(false, aborted.to_string()))
        .chain(faults)
        .chain(disruptions.map(disruptions::check))
        .chain(triggers)
        .chain(failures)
        .chain(losses)
        .chain(expected)
        .collect()
}
