//! Features that are not simulated, and their positions in the file.

use scenario::diagnostic::{Code, Sink, Span};
use scenario::model::Scenario;
use scenario::model::workload::Workload;

use super::{Options, SimulateError};

const OTHER_WORKLOADS: &str = "a `training` is simulated, or with --all-reduce a job";
const OTHER_JOBS: &str = "jobs are simulated one at a time: leave it out";

/// Refuses features that cannot be simulated, with their names and positions.
pub(super) fn refuse(scenario: &Scenario, options: &Options) -> Result<(), SimulateError> {
    let at = |keys: &[&str]| scenario.span_of(keys).unwrap_or_default();
    let unknown = |span, what: String, hint: &str| Err(unknown(scenario, span, &what, hint));
    if scenario.topology.wire {
        let hint = "give the topology hosts of its own";
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
                "--all-reduce is for a job without a `training`",
            ));
        }
        _ => None,
    };
    if let Some(what) = workload {
        return unknown(at(&["workload"]), what.to_owned(), OTHER_WORKLOADS);
    }
    if let Some(disruption) = scenario.disruptions.first() {
        let what = format!("the fault `{}`", disruption.id);
        let hint = "of faults only `drop` by `probability` is simulated: leave it out";
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
            "leave it out: it changes nothing of a training",
        );
    }
    if all_reduce && let Some(other) = scenario.jobs.get(1) {
        let what = format!("the job `{}` beside another", other.name);
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

/// Reports that a feature is not simulated, with its position in the file and advice.
pub(super) fn unknown(scenario: &Scenario, span: Span, what: &str, hint: &str) -> SimulateError {
    let mut sink = Sink::new(scenario.source());
    let message = format!("{what} cannot be simulated");
    sink.error(Code::NoEffect, span, message).hint(hint);
    SimulateError::Unknown(sink.into_diagnostics())
}
