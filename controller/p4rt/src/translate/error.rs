//! Errors of translations between the program's names and the protocol.

use crate::bytes::BytesError;
use crate::p4info::Object;
use crate::rpc::Code;
use crate::status::UpdateError;

/// Why an item and an entity do not correspond.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// The program has no such object.
    #[error("the program has no {kind} `{name}`")]
    UnknownName {
        /// `table`, `action`, …
        kind: &'static str,
        /// The requested name.
        name: String,
    },
    /// The program has no such object.
    #[error("the program has no {kind} with id {id:#010x}")]
    UnknownId {
        /// `table`, `action`, …
        kind: &'static str,
        /// The id that was sent.
        id: u32,
    },
    /// A key field, parameter or metadata field that its owner does not have.
    #[error("{owner} has no {kind} {field}")]
    UnknownField {
        /// Table, action or header.
        owner: String,
        /// `key field`, `parameter`, `field`.
        kind: &'static str,
        /// Its name in backquotes, or `with id` and the number.
        field: String,
    },
    /// A field is given twice.
    #[error("{owner}: {kind} `{field}` is given twice")]
    Twice {
        /// Table, action or header.
        owner: String,
        /// `key field`, `parameter`, `field`.
        kind: &'static str,
        /// Its name.
        field: String,
    },
    /// A required field is missing.
    #[error("{owner}: {kind} `{field}` is missing")]
    Missing {
        /// Table, action or header.
        owner: String,
        /// `key field`, `parameter`, `field`.
        kind: &'static str,
        /// Its name.
        field: String,
    },
    /// A value does not fit its field.
    #[error("{}: {source}", value_of(field))]
    Value {
        /// The field; a member of a value set may have one without a name.
        field: String,
        /// Why the value does not fit.
        source: BytesError,
    },
    /// The match has another kind than the key field.
    #[error("{table}: {} is matched {declared}, not {given}", key_field(field))]
    MatchKind {
        /// The table or value set.
        table: String,
        /// The key field, or nothing as in [`Value`](Self::Value).
        field: String,
        /// Match kind in the program.
        declared: &'static str,
        /// Match kind in the entry.
        given: &'static str,
    },
    /// An invalid match: an explicit don't-care, set bits outside the mask, or an empty range.
    #[error("{table}: {}: {reason}", key_field(field))]
    Match {
        /// The table or value set.
        table: String,
        /// The key field, or nothing as in [`Value`](Self::Value).
        field: String,
        /// The defect in the match.
        reason: String,
    },
    /// A priority where none is allowed, or none where one is required.
    #[error("{table}: priority {priority}: {reason}")]
    Priority {
        /// The table.
        table: String,
        /// The given priority.
        priority: i32,
        /// The defect in the priority.
        reason: &'static str,
    },
    /// The table does not offer the action.
    #[error("{table} does not offer action {action}")]
    ActionNotOffered {
        /// The table.
        table: String,
        /// The action.
        action: String,
    },
    /// The table offers the action only in the other position.
    #[error("{table} offers action {action} only {allowed}")]
    ActionScope {
        /// The table.
        table: String,
        /// The action.
        action: String,
        /// `as default action` or `in entries`.
        allowed: &'static str,
    },
    /// A required part of a message is not set.
    #[error("{what} is not set")]
    Unset {
        /// Name of the part.
        what: &'static str,
    },
    /// The message contradicts itself or the program.
    #[error("{0}")]
    Malformed(String),
    /// The index is outside the array.
    #[error("{name} has {size} cells: index {index} is out of range")]
    IndexOutOfRange {
        /// Register or counter.
        name: String,
        /// The index that was sent.
        index: u64,
        /// Number of cells.
        size: i64,
    },
    /// A string without a value, or a value without a string.
    #[error("{}", .0.message)]
    Name(UpdateError),
    /// A feature of the protocol that this implementation does not support.
    #[error("{what}: not supported yet")]
    Unsupported {
        /// Name of the feature.
        what: String,
    },
}

impl TranslateError {
    /// The error code that the specification requires.
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

    /// The error for a name that the program does not have.
    #[must_use]
    pub fn unknown_name<T: Object>(name: &str) -> Self {
        Self::UnknownName {
            kind: T::KIND,
            name: name.to_owned(),
        }
    }

    /// The error for an id that the program does not have.
    #[must_use]
    pub fn unknown_id<T: Object>(id: u32) -> Self {
        Self::UnknownId { kind: T::KIND, id }
    }
}

/// Only the field of a value set of numbers has no name.
const MEMBER: &str = "the member's value";

fn value_of(field: &str) -> String {
    match field {
        "" => MEMBER.to_owned(),
        field => format!("`{field}`"),
    }
}

/// A key field for a message, by its name if it has one.
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
