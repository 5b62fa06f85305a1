//! Expectations: comparisons of metrics of a run, checked for names and units before the run, evaluated after it.
//!
//! `fault.drop-gets.fired == fault.drop-gets.observed`, `client.a.set.p50 >= 20ms`, `flow.b.lost == 0`.

pub mod metric;

use std::fmt;

use serde::Serialize;

use crate::diagnostic::Span;
use crate::units::{self, Dimension};

pub use metric::{Metric, Metrics};

/// The kind of quantity that a metric measures, which determines its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// A plain number: a count or a ratio.
    Number,
    /// A duration, in nanoseconds.
    Duration,
    /// A size, in bytes.
    Size,
    /// A rate, in bits per second.
    Rate,
}

impl Measure {
    /// The dimension of the unit; `None` for a plain number.
    pub(crate) fn dimension(self) -> Option<Dimension> {
        Some(match self {
            Self::Number => return None,
            Self::Duration => Dimension::Duration,
            Self::Size => Dimension::Size,
            Self::Rate => Dimension::Rate,
        })
    }
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

/// An expectation: one line of `expect`, which compares two terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// The expectation as written in the file.
    pub text: String,
    /// Position of the expectation in the file.
    pub span: Span,
    pub(crate) left: Term,
    pub(crate) comparison: Comparison,
    pub(crate) right: Term,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Term {
    Constant {
        value: f64,
        measure: Measure,
        /// Whether the file writes the constant as a share: `1%`.
        is_share: bool,
    },
    Metric {
        metric: Metric,
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
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
        })
    }
}

impl Expectation {
    /// The two metrics, if the expectation is `METRIC == METRIC`; otherwise `None`.
    #[must_use]
    pub fn equates(&self) -> Option<[&Metric; 2]> {
        match (&self.left, self.comparison, &self.right) {
            (
                Term::Metric { metric: left, .. },
                Comparison::Equal,
                Term::Metric { metric: right, .. },
            ) => Some([left, right]),
            _ => None,
        }
    }

    /// Whether the metric occurs in the expectation.
    #[must_use]
    pub fn names(&self, metric: &Metric) -> bool {
        self.left.names(metric) || self.right.names(metric)
    }

    /// Whether the expectation is `METRIC == 0`, in either order.
    pub(crate) fn is_zero(&self, metric: &Metric) -> bool {
        let is_metric =
            |term: &Term| matches!(term, Term::Metric { metric: other, .. } if other == metric);
        let is_zero = |term: &Term| matches!(term, Term::Constant { value, .. } if *value == 0.0);
        self.comparison == Comparison::Equal
            && (is_metric(&self.left) && is_zero(&self.right)
                || is_zero(&self.left) && is_metric(&self.right))
    }

    /// Whether the expectation holds, if the answer is the same for every run; `None` if it depends on the run.
    ///
    /// Also `None` for a metric that a run may lack, or whose naming has an effect: naming a command's failures permits them.
    pub(crate) fn foregone(&self) -> Option<bool> {
        let is_plain = self.metrics().all(|(metric, _)| metric.is_a_given_count());
        let (left, right) = (self.left.bounds()?, self.right.bounds()?);
        let holds = match self.comparison {
            Comparison::Less => left.1 < right.0,
            Comparison::LessOrEqual => left.1 <= right.0,
            Comparison::Greater => left.0 > right.1,
            Comparison::GreaterOrEqual => left.0 >= right.1,
            Comparison::Equal => left.0 == left.1 && left == right,
            Comparison::NotEqual => left.1 < right.0 || right.1 < left.0,
        };
        let fails = match self.comparison {
            Comparison::Less => left.0 >= right.1,
            Comparison::LessOrEqual => left.0 > right.1,
            Comparison::Greater => left.1 <= right.0,
            Comparison::GreaterOrEqual => left.1 < right.0,
            Comparison::Equal => left.1 < right.0 || right.1 < left.0,
            Comparison::NotEqual => left.0 == left.1 && left == right,
        };
        (is_plain && (holds || fails)).then_some(holds)
    }

    /// The metrics that occur in the expectation, with their positions in the file.
    pub fn metrics(&self) -> impl Iterator<Item = (&Metric, Span)> {
        let mut all = Vec::new();
        self.left.collect(&mut all);
        self.right.collect(&mut all);
        all.into_iter()
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
    pub(crate) fn measure(&self) -> Measure {
        match self {
            Self::Constant { measure, .. } | Self::Binary { measure, .. } => *measure,
            Self::Metric { metric, .. } => metric.measure(),
        }
    }

    /// Whether the term is only a constant share: `1%`, `0.01`.
    pub(crate) fn is_share(&self) -> bool {
        match self {
            Self::Constant {
                value,
                measure,
                is_share,
            } => *is_share || *measure == Measure::Number && *value > 0.0 && *value < 1.0,
            _ => false,
        }
    }

    /// Whether the term is a count of things. A count cannot be compared with a share.
    pub(crate) fn is_count(&self) -> bool {
        match self {
            Self::Constant { .. } => false,
            Self::Metric { metric, .. } => {
                metric.measure() == Measure::Number && !metric.is_ratio()
            }
            Self::Binary {
                operator,
                left,
                right,
                ..
            } => match operator {
                Operator::Add | Operator::Subtract => left.is_count() || right.is_count(),
                Operator::Multiply | Operator::Divide => false,
            },
        }
    }

    pub(crate) fn names(&self, wanted: &Metric) -> bool {
        match self {
            Self::Constant { .. } => false,
            Self::Metric { metric, .. } => metric == wanted,
            Self::Binary { left, right, .. } => left.names(wanted) || right.names(wanted),
        }
    }

    /// Lower and upper bound of the term's value in any run; `None` if the value may be undefined.
    fn bounds(&self) -> Option<(f64, f64)> {
        match self {
            Self::Constant { value, .. } => Some((*value, *value)),
            // No metric is negative.
            Self::Metric { .. } => Some((0.0, f64::INFINITY)),
            Self::Binary {
                operator,
                left,
                right,
                ..
            } => {
                let (a, b) = (left.bounds()?, right.bounds()?);
                let is_positive = |of: (f64, f64)| of.0 >= 0.0 && of.1.is_finite();
                match operator {
                    Operator::Add => Some((a.0 + b.0, a.1 + b.1)),
                    Operator::Subtract => Some((a.0 - b.1, a.1 - b.0)),
                    Operator::Multiply if is_positive(a) && is_positive(b) => {
                        Some((a.0 * b.0, a.1 * b.1))
                    }
                    Operator::Divide if is_positive(a) && is_positive(b) && b.0 > 0.0 => {
                        Some((a.0 / b.1, a.1 / b.0))
                    }
                    _ => None,
                }
            }
        }
    }

    fn collect<'t>(&'t self, all: &mut Vec<(&'t Metric, Span)>) {
        match self {
            Self::Constant { .. } => {}
            Self::Metric { metric, span } => all.push((metric, *span)),
            Self::Binary { left, right, .. } => {
                left.collect(all);
                right.collect(all);
            }
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant { value, measure, .. } => f.write_str(&show(*value, *measure)),
            Self::Metric { metric, .. } => metric.fmt(f),
            Self::Binary {
                operator,
                left,
                right,
                ..
            } => {
                let side = |term: &Term| match term {
                    Self::Binary { .. } => format!("({term})"),
                    _ => term.to_string(),
                };
                write!(f, "{} {operator} {}", side(left), side(right))
            }
        }
    }
}

pub(crate) fn show(value: f64, measure: Measure) -> String {
    match measure {
        Measure::Duration if (0.0..1e18).contains(&value) => {
            units::show_duration(value.round() as u64)
        }
        Measure::Rate if (0.0..1e18).contains(&value) => units::show_rate(value.round() as u64),
        Measure::Size => format!("{value}B"),
        _ => format!("{value}"),
    }
}
