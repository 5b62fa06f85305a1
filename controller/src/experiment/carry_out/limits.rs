//! The time limit of a scenario: a run that exceeds it fails, and reports how far it has come.

use std::time::Duration;

use scenario::Scenario;
use scenario::diagnostic::Span;

/// Error of a run that exceeded a limit of its scenario: names the limit, where the file declares it, and the run's progress.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {limit} is reached: {state}")]
pub struct LimitReached {
    place: String,
    limit: String,
    state: String,
}

/// The limit `limits.time` of a scenario.
#[derive(Debug, Clone)]
pub struct TimeLimit {
    /// Maximum duration of the workload.
    pub allowed: Duration,
    place: String,
}

impl TimeLimit {
    /// The time limit of a scenario; a wire has none unless the file declares it.
    pub fn from_scenario(scenario: &Scenario) -> TimeLimit {
        let limits = &scenario.limits;
        // Machines that weir did not start stay connected until they are stopped; only an explicit limit ends that.
        let is_open = scenario.topology.wire && limits.time_span.is_none();
        TimeLimit {
            allowed: match is_open {
                true => Duration::MAX,
                false => Duration::from_nanos(limits.time_ns),
            },
            place: place(scenario, scenario.limits.time_span),
        }
    }

    /// Returns an error if `elapsed` (since the workload began) exceeds the limit; `state` says how far the run has come.
    pub fn check(
        &self,
        elapsed: Duration,
        state: impl FnOnce() -> String,
    ) -> Result<(), LimitReached> {
        if elapsed <= self.allowed {
            return Ok(());
        }
        Err(LimitReached {
            place: self.place.clone(),
            limit: format!("limits.time ({:?})", self.allowed),
            state: state(),
        })
    }
}

/// Position at which a limit is declared, as `FILE:LINE:COLUMN`; `FILE, by default` if the file does not declare the limit.
fn place(scenario: &Scenario, span: Option<Span>) -> String {
    let file = &scenario.file;
    match span.map(|span| scenario.source().position(span.start)) {
        Some((line, column)) => format!("{file}:{line}:{column}"),
        None => format!("{file}, by default"),
    }
}
