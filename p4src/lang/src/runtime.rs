//! The control plane's vocabulary, by name: what may be written into a loaded program.
//!
//! One set of types for everybody who speaks of entries: `parser-gen` and `scenario` make them, `p4rt` translates them
//! to numeric ids at the edge, `pipeline` executes them. Names are fully qualified P4 names
//! (`Ingress.forward`), field names are P4Info's.

/// How one key field matches. A field that an entry leaves out is a don't-care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Match {
    /// Equal to the value.
    Exact(u128),
    /// The first `prefix_len` bits are equal.
    Lpm {
        /// Value; bits beyond the prefix are 0.
        value: u128,
        /// Number of leading bits compared.
        prefix_len: u32,
    },
    /// Bits set in `mask` are equal.
    Ternary {
        /// Value; bits outside the mask are 0.
        value: u128,
        /// Mask.
        mask: u128,
    },
    /// `low ..= high`.
    Range {
        /// Inclusive.
        low: u128,
        /// Inclusive.
        high: u128,
    },
    /// Equal to the value (`optional` fields).
    Optional(u128),
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
    pub params: Vec<(String, u128)>,
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
        value: *value,
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
    let param = |(name, value): &(&str, u128)| ((*name).to_owned(), *value);
    ActionCall {
        name: action.to_owned(),
        params: params.iter().map(param).collect(),
    }
}
