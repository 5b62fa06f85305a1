//! `limits` of a scenario: a run that passes one fails, and says which, and where it stands.

use std::time::Duration;

use scenario::Scenario;
use scenario::diagnostic::Span;

/// A run passed a limit of its scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {limit} is reached: {state}")]
pub struct LimitReached {
    place: String,
    limit: String,
    state: String,
}

/// `limits.time`.
#[derive(Debug, Clone)]
pub struct TimeLimit {
    /// How long a run may take.
    pub allowed: Duration,
    place: String,
}

impl TimeLimit {
    /// That of a scenario.
    pub fn of(scenario: &Scenario) -> TimeLimit {
        let limits = &scenario.limits;
        // Machines of somebody else's stay connected for as long as they are left; only a limit that is written ends that.
        let is_open = scenario.topology.wire && limits.time_span.is_none();
        TimeLimit {
            allowed: match is_open {
                true => Duration::MAX,
                false => Duration::from_nanos(limits.time_ns),
            },
            place: place(scenario, scenario.limits.time_span),
        }
    }

    /// An error once so much time has passed; `state` says how far the run has come.
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

/// Where a limit is written, as `FILE:LINE:COLUMN`; the file alone for one that it does not say.
fn place(scenario: &Scenario, span: Option<Span>) -> String {
    let file = &scenario.file;
    match span.map(|span| scenario.source().position(span.start)) {
        Some((line, column)) => format!("{file}:{line}:{column}"),
        None => format!("{file}, by default"),
    }
}
