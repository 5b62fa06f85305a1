//! Refuses scenarios with features that the simulation does not support.

use scenario::diagnostic::{Code, Sink, Span};
use scenario::model::Scenario;
use scenario::model::workload::Workload;

use super::{Options, SimulateError};

const OTHER_WORKLOADS: &str = "write a `training`, or a job to simulate with --all-reduce";
const OTHER_JOBS: &str = "leave the job out: the simulation supports one job at a time";

/// Returns an error with the name and position of the first feature that cannot be simulated.
pub(super) fn refuse(scenario: &Scenario, options: &Options) -> Result<(), SimulateError> {
    let at = |keys: &[&str]| scenario.span_of(keys).unwrap_or_default();
    let unknown = |span, what: String, hint: &str| Err(unknown(scenario, span, &what, hint));
    if scenario.topology.wire {
        let hint = "write a topology with hosts, such as a `star`";
        return unknown(at(&["topology", "wire"]), "a `wire`".to_owned(), hint);
    }
    let all_reduce = options.all_reduce.is_some();
    let workload = match &scenario.workload {
        // With an all-reduce, the job's programs are simulated.
        Some(Workload::Commands(_)) if !all_reduce => Some("a workload of `commands`"),
        Some(Workload::Redis(_)) => Some("a workload of `redis`"),
        Some(Workload::Idle { .. }) => Some("an `idle` workload"),
        Some(Workload::Training(_)) if all_reduce => {
            return Err(SimulateError::Nothing(
                "--all-reduce needs a job, in a scenario without a `training`",
            ));
        }
        _ => None,
    };
    if let Some(what) = workload {
        return unknown(at(&["workload"]), what.to_owned(), OTHER_WORKLOADS);
    }
    if let Some(disruption) = scenario.disruptions.first() {
        let what = format!("the fault `{}`", disruption.id);
        let hint = "leave the fault out: the simulation supports only `drop` with `select: {probability: …}`";
        return unknown(disruption.span, what, hint);
    }
    if let Some(probe) = scenario.probes.first() {
        let what = format!("the probe `{}`", probe.name);
        let place = match probe.file {
            Some(_) => at(&["workload"]),
            None => at(&["probes", &probe.name]),
        };
        return unknown(
            place,
            what,
            "leave the probe out: it does not affect the training",
        );
    }
    if all_reduce && let Some(other) = scenario.jobs.get(1) {
        let what = format!("a second job, `{}`,", other.name);
        return unknown(other.span, what, OTHER_JOBS);
    }
    for job in &scenario.jobs {
        let (what, place) = match (&job.deadline, &job.rate) {
            (Some(deadline), _) => ("deadline", deadline.span),
            (_, Some(rate)) => ("rate", rate.span),
            _ => continue,
        };
        let hint = format!("leave `{what}` out");
        return unknown(place, format!("the {what} of job `{}`", job.name), &hint);
    }
    Ok(())
}

/// Error that a feature cannot be simulated, with its position in the file; `hint`: advice to the user.
pub(super) fn unknown(scenario: &Scenario, span: Span, what: &str, hint: &str) -> SimulateError {
    let mut sink = Sink::new(scenario.source());
    let message = format!("{what} cannot be simulated");
    sink.error(Code::NoEffect, span, message).hint(hint);
    SimulateError::Unknown(sink.into_diagnostics())
}
