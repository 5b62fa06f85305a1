//! The objects that a control plane writes into a loaded program, addressed by name.
//!
//! All components share these types for table entries: `parser-gen` and `scenario` create them, `p4rt` translates them to
//! numeric ids for the protocol, `pipeline` executes them. Names are fully qualified P4 names (`Ingress.forward`); field names
//! are those of P4Info.

mod match_kind;
mod value;

pub use match_kind::MatchKind;
pub use value::Value;

/// How a table entry matches one key field. A key field that the entry omits is a don't-care.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Match {
    /// Exact match: the field equals the value.
    Exact(Value),
    /// Longest prefix match: the first `prefix_len` bits are equal.
    Lpm {
        /// The value whose prefix is compared; bits beyond the prefix are 0.
        value: Value,
        /// Number of leading bits that are compared.
        prefix_len: u32,
    },
    /// Ternary match: the bits that are set in `mask` are equal.
    Ternary {
        /// The value that is compared; bits outside the mask are 0.
        value: Value,
        /// Mask: only the bits set in it are compared.
        mask: Value,
    },
    /// Range match: the field is in `low ..= high`.
    Range {
        /// Lower bound of the range, inclusive.
        low: Value,
        /// Upper bound of the range, inclusive.
        high: Value,
    },
    /// Match of an `optional` key field: the field equals the value.
    Optional(Value),
}

impl Match {
    /// The match kind that a key field must have to accept this match.
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

    /// Creates an exact match of a key field with the value.
    #[must_use]
    pub fn exact(value: impl Into<Value>) -> Match {
        Match::Exact(value.into())
    }

    /// Creates a longest prefix match on the first `prefix_len` bits; sets the other bits of `value` to 0.
    #[must_use]
    pub fn lpm(value: impl Into<Value>, prefix_len: u32) -> Match {
        Match::Lpm {
            value: value.into(),
            prefix_len,
        }
    }

    /// Creates a ternary match on the bits set in `mask`; sets the other bits of `value` to 0.
    #[must_use]
    pub fn ternary(value: impl Into<Value>, mask: impl Into<Value>) -> Match {
        Match::Ternary {
            value: value.into(),
            mask: mask.into(),
        }
    }

    /// Creates a range match of a key field with `low ..= high`.
    #[must_use]
    pub fn range(low: impl Into<Value>, high: impl Into<Value>) -> Match {
        Match::Range {
            low: low.into(),
            high: high.into(),
        }
    }

    /// Creates a match of an `optional` key field with the value.
    #[must_use]
    pub fn optional(value: impl Into<Value>) -> Match {
        Match::Optional(value.into())
    }
}

/// A key field of a table entry and its match.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldMatch {
    /// The key field's name in P4Info.
    pub field: String,
    /// Match of the key field.
    pub value: Match,
}

/// An action with the values of its run-time parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionCall {
    /// Fully qualified name of the action.
    pub name: String,
    /// Run-time parameters: (name, value), in any order.
    pub params: Vec<(String, Value)>,
}

/// An entry of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableEntry {
    /// Fully qualified name of the table.
    pub table: String,
    /// Matches of the key fields; omitted key fields are don't-cares.
    pub key: Vec<FieldMatch>,
    /// Priority of the entry, above 0: the largest wins. Always 0 in a table without a ternary, range or optional key field.
    pub priority: i32,
    /// Action that runs for a packet that matches the entry.
    pub action: ActionCall,
}

/// One copy that a multicast group or clone session makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replica {
    /// Egress port of the copy.
    pub port: u32,
    /// Value of the metadata field `instance` of the copy in the egress pipeline.
    pub instance: u16,
}

/// A multicast group: the copies that the switch makes of a multicast packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MulticastGroup {
    /// Id of the multicast group, greater than 0.
    pub id: u32,
    /// Copies of the packet, in this order.
    pub replicas: Vec<Replica>,
}

/// A clone session: the copies that the switch makes of a cloned packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloneSession {
    /// Id of the clone session, greater than 0.
    pub id: u32,
    /// Copies of the packet, in this order.
    pub replicas: Vec<Replica>,
    /// PSA class of service of the copies.
    pub class_of_service: u32,
    /// Length to which copies are truncated, in bytes; 0 = no truncation.
    pub packet_length_bytes: u32,
}

/// Creates a table entry from key fields and action parameters given as pairs of name and value.
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
