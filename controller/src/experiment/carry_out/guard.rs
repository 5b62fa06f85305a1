//! Evaluates the conditions that abort a run (`abort_if`, `limits.hits`) or begin a step (`on`), while the workload runs.

use std::time::{Duration, Instant};

use scenario::model::expect::Expectation;
use scenario::model::expect::metric::{FaultMetric, Metric, Metrics, RunMetric, TriggerMetric};
use scenario::plan::LOOK_EVERY_NS;
use serde::Serialize;

use crate::experiment::Planned;
use crate::experiment::fleet::{Fleet, FleetError};

/// Interval between two evaluations of the conditions; each evaluation reads the counters of all switches.
const LOOK_EVERY: Duration = Duration::from_nanos(LOOK_EVERY_NS);

/// The reason and time of an aborted run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Aborted {
    /// The condition that aborted the run, with the values that fulfilled it.
    pub reason: String,
    /// When the condition held, in nanoseconds since the workload began.
    pub at_ns: u64,
    /// Time from `at_ns` until the last switch confirmed that all faults are off (disarmed), in nanoseconds.
    pub disarmed_ns: u64,
    /// Names of the faults whose hits the condition counts.
    #[serde(skip)]
    pub faults: Vec<String>,
}

impl Aborted {
    /// Adds to the reason how many of the hit packets the switch could not forward. The switch counts a hit before it
    /// determines where the packet leaves.
    #[must_use]
    pub fn with_unforwarded(mut self, unforwarded: u64) -> Aborted {
        if unforwarded > 0 {
            self.reason.push_str(&format!(
                "; {unforwarded} of the packets hit in this run had no route out of the switch"
            ));
        }
        self
    }
}

impl std::fmt::Display for Aborted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "aborted after {:.3} s: {}; all faults were disarmed {:.1} ms later",
            self.at_ns as f64 / 1e9,
            self.reason,
            self.disarmed_ns as f64 / 1e6
        )
    }
}

/// Result of one evaluation of the conditions.
#[derive(Debug)]
pub enum GuardVerdict {
    /// No condition holds, or the next evaluation is not due yet.
    GoOn,
    /// The condition of the next step of the timeline holds, so the step begins.
    Holds,
    /// A condition of `abort_if` or `limits.hits` holds: the run has to end, and the faults have been disarmed.
    Aborted(Aborted),
}

/// Evaluates the conditions that abort a run, and the condition of the next step.
pub struct Guard<'p> {
    planned: &'p Planned,
    checked: Option<Duration>,
}

impl<'p> Guard<'p> {
    /// Creates the guard of a run, before the first evaluation.
    pub fn new(planned: &'p Planned) -> Guard<'p> {
        Guard {
            planned,
            checked: None,
        }
    }

    /// Evaluates the conditions if that is due, and disarms all faults if the run has to be aborted. `elapsed`: time since the
    /// workload began. `awaited`: index (from 0) of the condition that the next step waits for; `None` if it waits for none.
    /// `more` adds metrics of probes and of faults of programs and switches.
    pub fn check(
        &mut self,
        elapsed: Duration,
        fleet: &mut Fleet,
        awaited: Option<usize>,
        more: impl FnOnce(&mut Metrics),
    ) -> Result<GuardVerdict, FleetError> {
        let scenario = &self.planned.scenario;
        let awaited = awaited.and_then(|number| scenario.awaited.get(number));
        let wanted = || {
            let conditions = scenario.abort_if.iter().chain(awaited);
            conditions
                .flat_map(Expectation::metrics)
                .map(|(metric, _)| metric)
        };
        let limit = scenario.limits.hits.map(|hits| hits.value);
        let is_idle = wanted().next().is_none() && limit.is_none();
        let is_early = |checked: Duration| elapsed < checked + LOOK_EVERY;
        if is_idle || self.checked.is_some_and(is_early) {
            return Ok(GuardVerdict::GoOn);
        }
        self.checked = Some(elapsed);
        let mut metrics = Metrics::new();
        let wall = Metric::Run(RunMetric::Wall);
        metrics.insert(wall, elapsed.as_nanos() as f64);
        let is_fired = |metric: &Metric| matches!(metric, Metric::Fault { .. });
        let mut hits = 0;
        if limit.is_some() || wanted().any(is_fired) {
            let fired = fleet.fired(&self.planned.plan)?;
            hits = fired.iter().sum();
            for (injection, fired) in self.planned.plan.injections.iter().zip(fired) {
                let metric = Metric::fault(&injection.fault, FaultMetric::Fired);
                *metrics.entry(metric).or_default() += fired as f64;
            }
        }
        if wanted().any(|metric| matches!(metric, Metric::Trigger { .. })) {
            let counts = fleet.triggers(self.planned)?;
            for (trigger, count) in scenario.triggers.iter().zip(counts) {
                let metric = Metric::trigger(&trigger.name, TriggerMetric::On);
                metrics.insert(metric, count.on as f64);
            }
        }
        if wanted().any(|metric| matches!(metric, Metric::Probe { .. } | Metric::Fault { .. })) {
            more(&mut metrics);
        }
        let outcomes = scenario.abort_if.iter();
        let mut outcomes = outcomes.map(|line| (line, line.evaluate(scenario, &metrics)));
        let held = outcomes.find(|(_, outcome)| outcome.passed);
        let held = held.map(|(line, outcome)| {
            let values = outcome.values.unwrap_or_default();
            let faults = line.metrics().filter_map(|(metric, _)| match metric {
                Metric::Fault { id, .. } => Some(id.to_string()),
                _ => None,
            });
            (format!("{}  ({values})", outcome.text), faults.collect())
        });
        let beyond = limit.filter(|limit| hits > *limit).map(|limit| {
            let all = scenario.faults.iter().map(|fault| fault.id.clone());
            let reason = format!("{hits} packets were hit, but `limits.hits` is {limit}");
            (reason, all.collect())
        });
        let Some((reason, faults)) = held.or(beyond) else {
            let holds = awaited.is_some_and(|on| on.evaluate(scenario, &metrics).passed);
            return Ok(if holds {
                GuardVerdict::Holds
            } else {
                GuardVerdict::GoOn
            });
        };
        let found = Instant::now();
        fleet.set_epoch(0)?;
        tracing::warn!(reason, "the run is aborted");
        Ok(GuardVerdict::Aborted(Aborted {
            reason,
            at_ns: elapsed.as_nanos() as u64,
            disarmed_ns: found.elapsed().as_nanos() as u64,
            faults,
        }))
    }
}
