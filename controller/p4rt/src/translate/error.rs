//! Errors of translations between the program's names and the protocol.

use crate::bytes::BytesError;
use crate::p4info::Object;
use crate::rpc::Code;
use crate::status::UpdateError;

/// Why an item of weir and a P4Runtime entity cannot be translated into each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// The program has no object of this kind and name.
    #[error("the program has no {kind} `{name}`")]
    UnknownName {
        /// Kind of the object: `table`, `action`, …
        kind: &'static str,
        /// Name in the request.
        name: String,
    },
    /// The program has no object of this kind and id.
    #[error("the program has no {kind} with id {id:#010x}")]
    UnknownId {
        /// Kind of the object: `table`, `action`, …
        kind: &'static str,
        /// The id that was sent.
        id: u32,
    },
    /// The program declares no key field, action parameter or metadata field of this name or id.
    #[error("{owner} has no {kind} {field}")]
    UnknownField {
        /// Name of the table, action or header that would have the field.
        owner: String,
        /// Kind of field: `key field`, `parameter`, `field`.
        kind: &'static str,
        /// The field's name in backquotes, or `with id` and its number.
        field: String,
    },
    /// The request gives a field twice.
    #[error("{owner}: {kind} `{field}` is given twice")]
    Twice {
        /// Name of the table, action or header that has the field.
        owner: String,
        /// Kind of field: `key field`, `parameter`, `field`.
        kind: &'static str,
        /// Name of the field.
        field: String,
    },
    /// The request lacks a required field.
    #[error("{owner}: {kind} `{field}` is missing")]
    Missing {
        /// Name of the table, action or header that has the field.
        owner: String,
        /// Kind of field: `key field`, `parameter`, `field`.
        kind: &'static str,
        /// Name of the field.
        field: String,
    },
    /// A value does not fit the width of its field.
    #[error("{}: {source}", value_of(field))]
    Value {
        /// Name of the field; may be empty in a value set, whose only field has no name.
        field: String,
        /// Why the value does not fit.
        source: BytesError,
    },
    /// The request matches a key field with another match kind than the program declares.
    #[error("{table}: {} is matched {declared}, not {given}", key_field(field))]
    MatchKind {
        /// Name of the table or value set.
        table: String,
        /// Name of the key field; may be empty, as in [`Value`](Self::Value).
        field: String,
        /// Match kind that the program declares.
        declared: &'static str,
        /// Match kind in the request.
        given: &'static str,
    },
    /// An invalid match of a key field: an explicit don't-care, set bits outside the mask, or an empty range.
    #[error("{table}: {}: {reason}", key_field(field))]
    Match {
        /// Name of the table or value set.
        table: String,
        /// Name of the key field; may be empty, as in [`Value`](Self::Value).
        field: String,
        /// Reason why the match is refused.
        reason: String,
    },
    /// A table entry has a priority where the table allows none, or lacks a required one.
    #[error("{table}: priority {priority}: {reason}")]
    Priority {
        /// Name of the table.
        table: String,
        /// Priority in the request.
        priority: i32,
        /// Reason why the priority is refused.
        reason: &'static str,
    },
    /// The table does not offer the action at all.
    #[error("{table} does not offer action {action}")]
    ActionNotOffered {
        /// Name of the table.
        table: String,
        /// Name of the action.
        action: String,
    },
    /// The request uses an action as the default action that the table offers only in entries, or the reverse.
    #[error("{table} offers action {action} only {allowed}")]
    ActionScope {
        /// Name of the table.
        table: String,
        /// Name of the action.
        action: String,
        /// Use for which the table offers the action: `as default action` or `in entries`.
        allowed: &'static str,
    },
    /// A required field of a protobuf message is not set.
    #[error("{what} is not set")]
    Unset {
        /// Name of the field that is not set.
        what: &'static str,
    },
    /// The message contradicts itself or the program; the text says how.
    #[error("{0}")]
    Malformed(String),
    /// The index of a cell is outside of the register or counter.
    #[error("{name} has {size} cells: index {index} is out of range")]
    IndexOutOfRange {
        /// Name of the register or counter.
        name: String,
        /// The index that was sent, from 0.
        index: u64,
        /// Number of cells of the register or counter.
        size: i64,
    },
    /// A value of a translated type cannot be translated: its string has no number, or its number no string.
    #[error("{}", .0.message)]
    Name(UpdateError),
    /// A feature of the protocol that this implementation does not support.
    #[error("{what}: not supported yet")]
    Unsupported {
        /// Description of the unsupported feature.
        what: String,
    },
}

impl TranslateError {
    /// The gRPC error code that the P4Runtime specification requires for this error.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownName { .. } | Self::UnknownId { .. } => Code::NotFound,
            Self::Unsupported { .. } => Code::Unimplemented,
            Self::Value { .. } | Self::IndexOutOfRange { .. } => Code::OutOfRange,
            Self::ActionScope { .. } => Code::PermissionDenied,
            Self::Name(error) => error.code,
            _ => Code::InvalidArgument,
        }
    }

    /// The error for a name that the program does not have, of an object of kind `T`.
    #[must_use]
    pub fn unknown_name<T: Object>(name: &str) -> Self {
        Self::UnknownName {
            kind: T::KIND,
            name: name.to_owned(),
        }
    }

    /// The error for an id that the program does not have, of an object of kind `T`.
    #[must_use]
    pub fn unknown_id<T: Object>(id: u32) -> Self {
        Self::UnknownId { kind: T::KIND, id }
    }
}

/// Text in error messages for the field of a value set with plain values: this field has no name.
const MEMBER: &str = "the member's value";

fn value_of(field: &str) -> String {
    match field {
        "" => MEMBER.to_owned(),
        field => format!("`{field}`"),
    }
}

/// Text in error messages for a key field, which may be the nameless field of a value set with plain values.
#[must_use]
pub fn key_field(field: &str) -> String {
    match field {
        "" => MEMBER.to_owned(),
        field => format!("key field `{field}`"),
    }
}

impl From<TranslateError> for UpdateError {
    fn from(error: TranslateError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
