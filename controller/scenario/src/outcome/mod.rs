//! Evaluates a scenario's expectations after the run: whether each held, and why a fault hit nothing.

pub mod vacuous;

use serde::Serialize;

use crate::diagnostic::{Code, Diagnostic, Sink};
use crate::model::Scenario;
use crate::model::expect::metric::{CommandMetric, FlowMetric, Metric, Metrics};
use crate::model::expect::{Comparison, Expectation, Operator, Term, show};

/// The hint for a series of numbers whose regular expression or JSON pointer finds texts that are no numbers.
const TEXT_GROUP: &str = "the first group or the pointer of a metric must match numbers; to count lines, let the command print their number (`grep -c`)";

/// The hint for a series that has no numbers.
fn numbers_hint(metric: &Metric, metrics: &Metrics) -> String {
    if let Metric::Series { command, .. } = metric {
        let failures = Metric::command(command.as_str(), CommandMetric::Failures);
        if metrics
            .get(&failures)
            .is_some_and(|failures| *failures > 0.0)
        {
            return format!("command `{command}` failed: its output, in the report, says why");
        }
    }
    TEXT_GROUP.to_owned()
}

/// The result of one expectation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The expectation as written in the file.
    pub text: String,
    /// Whether the expectation held.
    pub passed: bool,
    /// Text for users: both sides of the expectation with their values.
    pub message: String,
    /// The values of both sides only, `24 >= 20`; `None` if a metric is missing.
    pub values: Option<String>,
    /// The failure with its position and reason; `None` if the expectation held.
    pub diagnostic: Option<Diagnostic>,
}

/// Evaluates every expectation of a scenario, in declared order.
#[must_use]
pub fn evaluate(scenario: &Scenario, metrics: &Metrics) -> Vec<Outcome> {
    scenario
        .expectations
        .iter()
        .map(|expectation| expectation.evaluate(scenario, metrics))
        .collect()
}

impl Expectation {
    /// Evaluates the expectation with the measured metrics.
    #[must_use]
    pub fn evaluate(&self, scenario: &Scenario, metrics: &Metrics) -> Outcome {
        let mut sink = Sink::new(scenario.source());
        let sides = (
            self.left.value(&mut sink, scenario, metrics),
            self.right.value(&mut sink, scenario, metrics),
        );
        let (passed, message, values) = match sides {
            (Some(left), Some(right)) => {
                let passed = self.comparison.holds(left, right);
                let shown = |value, term: &Term| show(value, term.measure());
                let message = format!(
                    "{} is {}, {}",
                    self.left,
                    shown(left, &self.left),
                    match &self.right {
                        Term::Constant { .. } =>
                            format!("expected {} {}", self.comparison, shown(right, &self.right)),
                        other => format!(
                            "expected {} {other}, which is {}",
                            self.comparison,
                            shown(right, other)
                        ),
                    }
                );
                if !passed {
                    let told = format!("expectation not met: {message}");
                    let diagnostic = sink.error(Code::Unmet, self.span, told);
                    let mut named = self.metrics().map(|(metric, _)| metric);
                    let empty = named
                        .find(|metric| metric.is_of_numbers() && metrics.get(metric) == Some(&0.0));
                    if let Some(metric) = empty {
                        diagnostic.hint(numbers_hint(metric, metrics));
                    }
                }
                let (left, right) = (shown(left, &self.left), shown(right, &self.right));
                let values = format!("{left} {} {right}", self.comparison);
                (passed, message, Some(values))
            }
            _ => (false, "a metric is missing".to_owned(), None),
        };
        let diagnostic = sink.into_diagnostics().0.into_iter().next();
        Outcome {
            text: self.text.clone(),
            passed,
            message,
            values,
            diagnostic,
        }
    }
}

impl Comparison {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            // Metrics are counts, or integers from clocks, so equality is exact.
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

impl Term {
    fn value(&self, sink: &mut Sink<'_>, scenario: &Scenario, metrics: &Metrics) -> Option<f64> {
        match self {
            Self::Constant { value, .. } => Some(*value),
            Self::Metric { metric, span } => {
                let found = lookup(scenario, metrics, metric).filter(|value| value.is_finite());
                if found.is_none() {
                    let message = format!("the run has no value for metric `{metric}`");
                    let diagnostic = sink.error(Code::MissingMetric, *span, message);
                    if metric.is_of_numbers() {
                        diagnostic.hint(numbers_hint(metric, metrics));
                    }
                }
                found
            }
            Self::Binary {
                operator,
                left,
                right,
                ..
            } => {
                let left = left.value(sink, scenario, metrics)?;
                let right = right.value(sink, scenario, metrics)?;
                Some(match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                })
            }
        }
    }
}

/// The value of a metric; `None` if the run did not deliver it. If a declared flow was expanded to several flows, the value is
/// the sum of theirs; for `longest` the maximum.
fn lookup(scenario: &Scenario, metrics: &Metrics, metric: &Metric) -> Option<f64> {
    metrics.get(metric).copied().or_else(|| {
        let Metric::Flow { name, what } = metric else {
            return None;
        };
        let flows = scenario.flows.iter();
        let parts = flows
            .filter(|flow| flow.declared == name.as_str())
            .filter_map(|flow| metrics.get(&Metric::flow(&flow.name, *what)).copied());
        match what {
            FlowMetric::P50 | FlowMetric::P99 => None,
            FlowMetric::Longest => parts.reduce(f64::max),
            FlowMetric::Sent | FlowMetric::Received | FlowMetric::Lost | FlowMetric::Extra => {
                parts.reduce(|sum, part| sum + part)
            }
        }
    })
}
