//! The kinds of diagnostics: a word for each, such as `unknown-key`, on which scripts may rely.

use std::fmt;

use serde::Serialize;

/// The kind of a diagnostic; its text form never changes, so that scripts can rely on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The file is not YAML.
    Syntax,
    /// A mapping has a key that the schema does not have.
    UnknownKey,
    /// A mapping lacks a required key.
    MissingKey,
    /// A key occurs twice in a mapping, or a name twice in a section.
    Duplicate,
    /// A value of the wrong type, such as a list where a mapping is required.
    WrongType,
    /// A quantity without a unit, with an unknown unit, or with a unit of another dimension.
    Unit,
    /// A number or size outside its range.
    OutOfRange,
    /// A word that is none of the alternatives that a key accepts, such as an unknown effect.
    UnknownVariant,
    /// A flow, host, switch, step or fault that is not declared.
    UnknownName,
    /// `weir:` names a version that this program does not read.
    Version,
    /// A protocol file that cannot be used.
    Protocol,
    /// A workload file that cannot be used.
    Workload,
    /// A filter that does not parse, or that compares a field with a value of another type.
    Filter,
    /// The topology consists of several unconnected networks, or its addresses collide.
    Topology,
    /// The network has no path from a flow's sender to its receiver.
    Unreachable,
    /// No injection point sees every packet of a flow exactly once.
    Placement,
    /// An effect that the injection point cannot carry out.
    Effect,
    /// Two faults that cannot both act as the file asks.
    Contradiction,
    /// Two faults whose effects cannot be told apart in captures.
    Unprovable,
    /// A fault that may hit a protected flow.
    Protected,
    /// Faults that reach further than the file allows.
    BlastRadius,
    /// The plan needs more than the switch can hold.
    Capacity,
    /// An expectation that does not parse, or that compares values of different units.
    Expectation,
    /// An expectation that did not hold.
    Unmet,
    /// An expectation names a metric that the run did not deliver.
    MissingMetric,
    /// Part of a file that is legal, but probably a mistake.
    Suspicious,
    /// A key or section of the file that has no effect where it is.
    NoEffect,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "syntax",
            Self::UnknownKey => "unknown-key",
            Self::MissingKey => "missing-key",
            Self::Duplicate => "duplicate",
            Self::WrongType => "wrong-type",
            Self::Unit => "unit",
            Self::OutOfRange => "out-of-range",
            Self::UnknownVariant => "unknown-variant",
            Self::UnknownName => "unknown-name",
            Self::Version => "version",
            Self::Protocol => "protocol",
            Self::Workload => "workload",
            Self::Filter => "filter",
            Self::Topology => "topology",
            Self::Unreachable => "unreachable",
            Self::Placement => "placement",
            Self::Effect => "effect",
            Self::Contradiction => "contradiction",
            Self::Unprovable => "unprovable",
            Self::Protected => "protected",
            Self::BlastRadius => "blast-radius",
            Self::Capacity => "capacity",
            Self::Expectation => "expectation",
            Self::Unmet => "unmet",
            Self::MissingMetric => "missing-metric",
            Self::Suspicious => "suspicious",
            Self::NoEffect => "no-effect",
        })
    }
}
