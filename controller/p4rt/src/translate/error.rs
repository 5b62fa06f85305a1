//! Why something cannot be said in the protocol, or means nothing to the program.

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
        /// As asked for.
        name: String,
    },
    /// The program has no such object.
    #[error("the program has no {kind} with id {id:#010x}")]
    UnknownId {
        /// `table`, `action`, …
        kind: &'static str,
        /// As sent.
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
    /// A field given twice.
    #[error("{owner}: {kind} `{field}` is given twice")]
    Twice {
        /// Table, action or header.
        owner: String,
        /// `key field`, `parameter`, `field`.
        kind: &'static str,
        /// Its name.
        field: String,
    },
    /// A field that must be there.
    #[error("{owner}: {kind} `{field}` is missing")]
    Missing {
        /// Table, action or header.
        owner: String,
        /// `key field`, `parameter`, `field`.
        kind: &'static str,
        /// Its name.
        field: String,
    },
    /// A value that does not fit.
    #[error("{}: {source}", value_of(field))]
    Value {
        /// The field; a member of a value set may have one without a name.
        field: String,
        /// Why.
        source: BytesError,
    },
    /// A match of another kind than the key field's.
    #[error("{table}: {} is matched {declared}, not {given}", key_field(field))]
    MatchKind {
        /// The table or value set.
        table: String,
        /// The key field, or nothing as in [`Value`](Self::Value).
        field: String,
        /// In the program.
        declared: &'static str,
        /// In the entry.
        given: &'static str,
    },
    /// A don't-care that is spelt out, masked-out bits that are set, an empty range.
    #[error("{table}: {}: {reason}", key_field(field))]
    Match {
        /// The table or value set.
        table: String,
        /// The key field, or nothing as in [`Value`](Self::Value).
        field: String,
        /// What is wrong.
        reason: String,
    },
    /// A priority where there must be none, or none where there must be one.
    #[error("{table}: priority {priority}: {reason}")]
    Priority {
        /// The table.
        table: String,
        /// As given.
        priority: i32,
        /// What is wrong.
        reason: &'static str,
    },
    /// An action that this table does not offer.
    #[error("{table} does not offer action {action}")]
    ActionNotOffered {
        /// The table.
        table: String,
        /// The action.
        action: String,
    },
    /// An action that the table offers in the other place only.
    #[error("{table} offers action {action} only {allowed}")]
    ActionScope {
        /// The table.
        table: String,
        /// The action.
        action: String,
        /// `as default action` or `in entries`.
        allowed: &'static str,
    },
    /// A part of a message that must be set.
    #[error("{what} is not set")]
    Unset {
        /// Which part.
        what: &'static str,
    },
    /// A message that contradicts itself or the program.
    #[error("{0}")]
    Malformed(String),
    /// An index outside the array.
    #[error("{name} has {size} cells; there is none with index {index}")]
    IndexOutOfRange {
        /// Register or counter.
        name: String,
        /// As sent.
        index: u64,
        /// Number of cells.
        size: i64,
    },
    /// A string that stands for no value, or the other way round.
    #[error("{}", .0.message)]
    Name(UpdateError),
    /// Something that the protocol has and this implementation does not.
    #[error("{what}: not supported yet")]
    Unsupported {
        /// What.
        what: String,
    },
}

impl TranslateError {
    /// The code that the specification asks for.
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

    /// No object of this name.
    #[must_use]
    pub fn unknown_name<T: Object>(name: &str) -> Self {
        Self::UnknownName {
            kind: T::KIND,
            name: name.to_owned(),
        }
    }

    /// No object with this id.
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
