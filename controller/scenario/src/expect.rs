//! Expectations: comparisons of metrics, checked for names and dimensions before the run, evaluated after it.
//!
//! `fault.drop-gets.fired == fault.drop-gets.observed`, `client.a.set.p50 >= 20ms`, `flow.b.lost == 0`.

mod catalogue;
mod parse;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::diagnostic::{Code, Diagnostic, Sink, Span};
use crate::model::Scenario;
use crate::units;

pub(crate) use parse::parse;

/// Metric name to value: counts and ratios as they are, durations in ns, sizes in bytes, rates in bit/s.
pub type Metrics = BTreeMap<String, f64>;

/// What a value measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// A count or a ratio.
    Number,
    /// Nanoseconds.
    Duration,
    /// Bytes.
    Size,
    /// Bits per second.
    Rate,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "number",
            Self::Duration => "duration",
            Self::Size => "size",
            Self::Rate => "rate",
        })
    }
}

/// One line of `expect`.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// As written.
    pub text: String,
    /// Where.
    pub span: Span,
    left: Term,
    comparison: Comparison,
    right: Term,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Term {
    Constant {
        value: f64,
        measure: Measure,
    },
    Metric {
        name: String,
        measure: Measure,
        span: Span,
    },
    Binary {
        operator: Operator,
        left: Box<Term>,
        right: Box<Term>,
        measure: Measure,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// How an expectation ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// As written.
    pub text: String,
    /// Whether it held.
    pub passed: bool,
    /// Both sides with their values.
    pub message: String,
    /// Where and why it failed.
    pub diagnostic: Option<Diagnostic>,
}

/// Judges every expectation of a scenario, in declared order.
#[must_use]
pub fn evaluate(scenario: &Scenario, metrics: &Metrics) -> Vec<Outcome> {
    scenario
        .expectations
        .iter()
        .map(|expectation| expectation.evaluate(scenario, metrics))
        .collect()
}

impl Expectation {
    fn evaluate(&self, scenario: &Scenario, metrics: &Metrics) -> Outcome {
        let mut sink = Sink::new(scenario.source());
        let sides = (
            self.left.value(&mut sink, metrics),
            self.right.value(&mut sink, metrics),
        );
        let (passed, message) = match sides {
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
                    sink.error(
                        Code::Unmet,
                        self.span,
                        format!("expectation not met: {message}"),
                    );
                }
                (passed, message)
            }
            _ => (false, "a metric is missing".to_owned()),
        };
        let diagnostic = sink.into_diagnostics().0.into_iter().next();
        Outcome {
            text: self.text.clone(),
            passed,
            message,
            diagnostic,
        }
    }
}

impl Comparison {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            // Metrics are counts or come from clocks as integers; only an exact match is equal.
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl Term {
    fn measure(&self) -> Measure {
        match self {
            Self::Constant { measure, .. }
            | Self::Metric { measure, .. }
            | Self::Binary { measure, .. } => *measure,
        }
    }

    fn value(&self, sink: &mut Sink<'_>, metrics: &Metrics) -> Option<f64> {
        match self {
            Self::Constant { value, .. } => Some(*value),
            Self::Metric { name, span, .. } => {
                let found = lookup(metrics, name).filter(|value| value.is_finite());
                if found.is_none() {
                    sink.error(
                        Code::MissingMetric,
                        *span,
                        format!("the run delivered no metric `{name}`"),
                    );
                }
                found
            }
            Self::Binary {
                operator,
                left,
                right,
                ..
            } => {
                let (left, right) = (left.value(sink, metrics)?, right.value(sink, metrics)?);
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

/// A metric, or the sum over the flows that a declared flow was expanded to (`flow.updates.lost`).
fn lookup(metrics: &Metrics, name: &str) -> Option<f64> {
    metrics.get(name).copied().or_else(|| {
        let (stem, counter) = name.strip_prefix("flow.")?.rsplit_once('.')?;
        let (prefix, suffix) = (format!("flow.{stem}."), format!(".{counter}"));
        let parts: Vec<f64> = metrics
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix) && key.ends_with(&suffix))
            .map(|(_, value)| *value)
            .collect();
        (!parts.is_empty()).then(|| parts.iter().sum())
    })
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant { value, measure } => f.write_str(&show(*value, *measure)),
            Self::Metric { name, .. } => f.write_str(name),
            Self::Binary {
                operator,
                left,
                right,
                ..
            } => {
                let sign = match operator {
                    Operator::Add => '+',
                    Operator::Subtract => '-',
                    Operator::Multiply => '*',
                    Operator::Divide => '/',
                };
                let side = |term: &Term| match term {
                    Self::Binary { .. } => format!("({term})"),
                    _ => term.to_string(),
                };
                write!(f, "{} {sign} {}", side(left), side(right))
            }
        }
    }
}

fn show(value: f64, measure: Measure) -> String {
    let whole = value >= 0.0 && value.fract() == 0.0 && value < 1e18;
    match measure {
        Measure::Duration if (0.0..1e18).contains(&value) => {
            units::show_duration(value.round() as u64)
        }
        Measure::Rate if whole => units::show_rate(value as u64),
        Measure::Size => format!("{value}B"),
        _ => format!("{value}"),
    }
}
