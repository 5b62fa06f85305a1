//! The control plane's vocabulary, by name: what may be written into a loaded program.
//!
//! One set of types for everybody who speaks of entries: `parser-gen` and `scenario` make them, `p4rt` translates them
//! to numeric ids at the edge, `pipeline` executes them. Names are fully qualified P4 names
//! (`Ingress.forward`), field names are P4Info's.

mod match_kind;
mod value;

pub use match_kind::MatchKind;
pub use value::Value;

/// How one key field matches. A field that an entry leaves out is a don't-care.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Match {
    /// Equal to the value.
    Exact(Value),
    /// The first `prefix_len` bits are equal.
    Lpm {
        /// Value; bits beyond the prefix are 0.
        value: Value,
        /// Number of leading bits compared.
        prefix_len: u32,
    },
    /// Bits set in `mask` are equal.
    Ternary {
        /// Value; bits outside the mask are 0.
        value: Value,
        /// Mask.
        mask: Value,
    },
    /// `low ..= high`.
    Range {
        /// Inclusive.
        low: Value,
        /// Inclusive.
        high: Value,
    },
    /// Equal to the value (`optional` fields).
    Optional(Value),
}

impl Match {
    /// The kind of key field that it is for.
    #[must_use]
    pub fn kind(&self) -> MatchKind {
        match self {
            Match::Exact(_) => MatchKind::Exact,
            Match::Lpm { .. } => MatchKind::Lpm,
            Match::Ternary { .. } => MatchKind::Ternary,
            Match::Range { .. } => MatchKind::Range,
            Match::Optional(_) => MatchKind::Optional,
        }
    }

    /// Equal to the value.
    #[must_use]
    pub fn exact(value: impl Into<Value>) -> Match {
        Match::Exact(value.into())
    }

    /// The first `prefix_len` bits are equal; the others of `value` are 0.
    #[must_use]
    pub fn lpm(value: impl Into<Value>, prefix_len: u32) -> Match {
        Match::Lpm {
            value: value.into(),
            prefix_len,
        }
    }

    /// Bits set in `mask` are equal; the others of `value` are 0.
    #[must_use]
    pub fn ternary(value: impl Into<Value>, mask: impl Into<Value>) -> Match {
        Match::Ternary {
            value: value.into(),
            mask: mask.into(),
        }
    }

    /// `low ..= high`.
    #[must_use]
    pub fn range(low: impl Into<Value>, high: impl Into<Value>) -> Match {
        Match::Range {
            low: low.into(),
            high: high.into(),
        }
    }

    /// Equal to the value (`optional` fields).
    #[must_use]
    pub fn optional(value: impl Into<Value>) -> Match {
        Match::Optional(value.into())
    }
}

/// A key field and how it matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldMatch {
    /// The field's name in P4Info.
    pub field: String,
    /// How it matches.
    pub value: Match,
}

/// An action with the values of its run-time parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionCall {
    /// Fully qualified name.
    pub name: String,
    /// Parameter name and value, in any order.
    pub params: Vec<(String, Value)>,
}

/// An entry of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableEntry {
    /// Fully qualified name of the table.
    pub table: String,
    /// Key; fields left out are don't-cares.
    pub key: Vec<FieldMatch>,
    /// For tables with a ternary, range or optional field: > 0, the largest wins (P4Runtime). Else 0.
    pub priority: i32,
    /// What it does.
    pub action: ActionCall,
}

/// One copy that a multicast group or clone session makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replica {
    /// Egress port.
    pub port: u32,
    /// Seen by the egress pipeline as `instance`.
    pub instance: u16,
}

/// A multicast group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MulticastGroup {
    /// Greater than 0.
    pub id: u32,
    /// Copies, in this order.
    pub replicas: Vec<Replica>,
}

/// A clone session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloneSession {
    /// Greater than 0.
    pub id: u32,
    /// Copies, in this order.
    pub replicas: Vec<Replica>,
    /// PSA class of service.
    pub class_of_service: u32,
    /// Copies are cut to this many bytes; 0 = whole.
    pub packet_length_bytes: u32,
}

/// An entry, written shortly: fields and parameters as pairs of name and value.
#[must_use]
pub fn entry(
    table: &str,
    key: &[(&str, Match)],
    priority: i32,
    action: &str,
    params: &[(&str, u128)],
) -> TableEntry {
    let field = |(field, value): &(&str, Match)| FieldMatch {
        field: (*field).to_owned(),
        value: value.clone(),
    };
    TableEntry {
        table: table.to_owned(),
        key: key.iter().map(field).collect(),
        priority,
        action: call(action, params),
    }
}

/// An action with its parameters, written shortly.
#[must_use]
pub fn call(action: &str, params: &[(&str, u128)]) -> ActionCall {
    let param = |(name, value): &(&str, u128)| ((*name).to_owned(), (*value).into());
    ActionCall {
        name: action.to_owned(),
        params: params.iter().map(param).collect(),
    }
}
