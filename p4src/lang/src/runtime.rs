//! The objects that a control plane writes into a loaded program, addressed by name.
//!
//! All components share these types for table entries: `parser-gen` and `scenario` create them, `p4rt` translates them to
//! numeric ids for the protocol, `pipeline` executes them. Names are fully qualified P4 names (`Ingress.forward`); field names
//! are those of P4Info.

mod match_kind;
mod value;

pub use match_kind::MatchKind;
pub use value::Value;

/// The match of one key field. A field that an entry omits is a don't-care.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Match {
    /// The field equals the value.
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
    /// The field is in `low ..= high`.
    Range {
        /// Lower bound, inclusive.
        low: Value,
        /// Upper bound, inclusive.
        high: Value,
    },
    /// The field equals the value (`optional` fields).
    Optional(Value),
}

impl Match {
    /// The match kind of the key field that accepts this match.
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

    /// Matches a field that equals the value.
    #[must_use]
    pub fn exact(value: impl Into<Value>) -> Match {
        Match::Exact(value.into())
    }

    /// Matches if the first `prefix_len` bits are equal; sets the other bits of `value` to 0.
    #[must_use]
    pub fn lpm(value: impl Into<Value>, prefix_len: u32) -> Match {
        Match::Lpm {
            value: value.into(),
            prefix_len,
        }
    }

    /// Matches if the bits set in `mask` are equal; sets the other bits of `value` to 0.
    #[must_use]
    pub fn ternary(value: impl Into<Value>, mask: impl Into<Value>) -> Match {
        Match::Ternary {
            value: value.into(),
            mask: mask.into(),
        }
    }

    /// Matches a field in `low ..= high`.
    #[must_use]
    pub fn range(low: impl Into<Value>, high: impl Into<Value>) -> Match {
        Match::Range {
            low: low.into(),
            high: high.into(),
        }
    }

    /// Matches a field that equals the value (`optional` fields).
    #[must_use]
    pub fn optional(value: impl Into<Value>) -> Match {
        Match::Optional(value.into())
    }
}

/// A key field and its match.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldMatch {
    /// The field's name in P4Info.
    pub field: String,
    /// Match of the field.
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
    /// Matches of the key fields; omitted fields are don't-cares.
    pub key: Vec<FieldMatch>,
    /// For tables with a ternary, range or optional field: > 0, the largest wins (P4Runtime). Else 0.
    pub priority: i32,
    /// Action that runs on a match.
    pub action: ActionCall,
}

/// One copy that a multicast group or clone session makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replica {
    /// Egress port.
    pub port: u32,
    /// Value of `instance` in the egress pipeline.
    pub instance: u16,
}

/// A multicast group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MulticastGroup {
    /// Id, greater than 0.
    pub id: u32,
    /// Copies, in this order.
    pub replicas: Vec<Replica>,
}

/// A clone session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloneSession {
    /// Id, greater than 0.
    pub id: u32,
    /// Copies, in this order.
    pub replicas: Vec<Replica>,
    /// PSA class of service.
    pub class_of_service: u32,
    /// Length to which copies are truncated, in bytes; 0 = no truncation.
    pub packet_length_bytes: u32,
}

/// Creates an entry from fields and parameters given as pairs of name and value.
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

/// Creates an action call from parameters given as pairs of name and value.
#[must_use]
pub fn call(action: &str, params: &[(&str, u128)]) -> ActionCall {
    let param = |(name, value): &(&str, u128)| ((*name).to_owned(), (*value).into());
    ActionCall {
        name: action.to_owned(),
        params: params.iter().map(param).collect(),
    }
}
