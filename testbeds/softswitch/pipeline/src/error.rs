//! Errors, one small enum per operation.

use crate::limits::{GENERATOR_BATCHES, GENERATOR_BUFFER};
use crate::port_numbers::{PIPES, PortError};
use p4lang::runtime::MatchKind;
use p4lang::source::Span;
use thiserror::Error;

/// The reason why a program cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The architecture is not supported.
    #[error("architecture {0} is not supported; use psa, v1model, tna or t2na")]
    Architecture(String),
    /// The package lacks a block, or a block lacks a parameter that the architecture requires.
    #[error("the program does not match the architecture: {0}")]
    Shape(String),
    /// The program uses the language or an extern in a way that is not supported.
    #[error("not supported yet: {what}")]
    Unsupported {
        /// The unsupported construct.
        what: String,
        /// Position in the source, as far as it is known.
        span: Span,
    },
    /// The program exceeds one of [`crate::LIMITS`].
    #[error("too large: {what}")]
    TooLarge {
        /// The resource and its limit.
        what: String,
        /// Position in the source where the limit is exceeded.
        span: Span,
    },
    /// An entry written in the source does not fit its table.
    #[error("table {table}: {error}")]
    Entry {
        /// The table's name.
        table: String,
        /// The error of the entry.
        error: TableError,
        /// Position of the entry in the source.
        span: Span,
    },
}

impl LoadError {
    /// Position in the source, if the error has a single one.
    pub fn span(&self) -> Option<Span> {
        match self {
            LoadError::Unsupported { span, .. }
            | LoadError::TooLarge { span, .. }
            | LoadError::Entry { span, .. } => Some(*span),
            LoadError::Architecture(_) | LoadError::Shape(_) => None,
        }
    }
}

/// The names as a list, or "none".
fn listed(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// The reason why a table refuses a write or read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// No table has this name.
    #[error("no such table")]
    NoSuchTable,
    /// No key field has this name; the list contains the existing ones.
    #[error("no such key field: {0} (the key has {list})", list = listed(.1))]
    NoSuchField(String, Vec<String>),
    /// A key field is given twice.
    #[error("key field {0} is given twice")]
    FieldTwice(String),
    /// An exact field is left out.
    #[error("missing key field: {0}")]
    MissingField(String),
    /// The match has another kind than the key field.
    #[error("wrong match kind: key field {0} is matched `{kind}`", kind = .1.name())]
    WrongMatchKind(String, MatchKind),
    /// The value exceeds the width of the field or parameter, in bits.
    #[error("value too wide: {0} has {1} bits")]
    ValueTooWide(String, u32),
    /// The match is invalid: value bits outside mask or prefix, an empty range, or a prefix longer than the field.
    #[error("key field {0}: {1}")]
    BadMatch(String, &'static str),
    /// The priority must be > 0 if entries may overlap, else 0.
    #[error("priority {0}; use more than 0 if a key field is ternary, range or optional, else 0")]
    BadPriority(i32),
    /// The table does not offer this action (or only as default, or only in entries); the list contains the offered ones.
    #[error("the table does not offer action {0} here (it offers {list})", list = listed(.1))]
    NoSuchAction(String, Vec<String>),
    /// The action has no parameter of this name; the list contains the existing ones.
    #[error("no such action parameter: {0} (the action has {list})", list = listed(.1))]
    NoSuchParam(String, Vec<String>),
    /// A parameter of the action is left out.
    #[error("missing action parameter: {0}")]
    MissingParam(String),
    /// An entry with this key and priority exists.
    #[error("duplicate entry")]
    DuplicateEntry,
    /// No entry with this key and priority exists.
    #[error("no such entry")]
    NotFound,
    /// The table has reached its size.
    #[error("the table is full ({0} entries)")]
    Full(u64),
    /// The entries or the default action are constant.
    #[error("the table's entries or its default action are constant")]
    ConstTable,
    /// The entry has an idle timeout, but the table does not support them.
    #[error("the table does not support idle timeouts")]
    NoIdleTimeouts,
    /// A counter value or meter configuration is given for an action that does not call the direct object.
    #[error("action {action} does not use the table's direct {what}")]
    NotExecuted {
        /// Name of the action, or "none".
        action: String,
        /// `counter` or `meter`
        what: &'static str,
    },
}

/// The reason why the replication engine refuses a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplicationError {
    /// Ids start at 1.
    #[error("id 0 is reserved")]
    ZeroId,
    /// The id exceeds the width of ids in the program.
    #[error("{what} {id}; the program's ids have {width} bits")]
    Id {
        /// Kind of the object: a multicast group or clone session.
        what: &'static str,
        /// The id.
        id: u32,
        /// Width of the program's ids, in bits.
        width: u32,
    },
    /// No group or session with this id exists.
    #[error("no such group or session")]
    NotFound,
    /// Number of replicas, and its limit.
    #[error("{0} replicas; the maximum is {1}")]
    TooMany(usize, usize),
    /// A replica is given twice.
    #[error("port {port}, instance {instance} is given twice")]
    Twice {
        /// Port of the replica.
        port: u32,
        /// Instance of the replica.
        instance: u16,
    },
    /// The port does not exist.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The class of service exceeds its type.
    #[error("class of service {0}; use 0 to {max}", max = u8::MAX)]
    Class(u32),
    /// The limit of groups or sessions is reached.
    #[error("the limit of groups or sessions is reached")]
    Full,
}

/// The reason why an action profile or selector refuses a read or write.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// No profile has this name, or the table has no profile.
    #[error("no such action profile")]
    NoSuchProfile,
    /// No member or group with this number exists.
    #[error("no such member or group")]
    NotFound,
    /// A member or group with this number exists already.
    #[error("a member or group with this number exists")]
    Duplicate,
    /// A group names a member twice.
    #[error("member {0} is given twice")]
    MemberTwice(u32),
    /// A group's maximum size can only be set on creation.
    #[error("a group's max_size cannot be changed")]
    MaxSize,
    /// Entries with one-shot action sets exclude members and groups, and vice versa.
    #[error("a selector has either members and groups or one-shot entries")]
    Mixed,
    /// A group or an entry refers to the member or group.
    #[error("a group or an entry refers to it")]
    InUse,
    /// The limit of members, or of weights, is reached.
    #[error("the profile is full ({0})")]
    Full(u64),
    /// The table's entries refer to members or groups.
    #[error(
        "the table has an action profile; its entries refer to members or groups, not to actions"
    )]
    Direct,
    /// A profile without a selector has no groups.
    #[error("the profile has no selector")]
    NoSelector,
    /// A weight is 0; the minimum is 1.
    #[error("the weight is 0; use 1 or more")]
    BadWeight,
    /// A member watches a port that does not exist.
    #[error("the port to watch, {0}, does not exist")]
    NoSuchPort(u32),
    /// The entry's table does not offer the member's action.
    #[error("the table does not offer the member's action")]
    ActionNotOffered,
    /// No table of the profile offers the action.
    #[error(transparent)]
    Action(TableError),
    /// The entry does not fit its table.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// The reason why an extern object refuses a read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ExternError {
    /// No object of this kind has this name.
    #[error("no such object")]
    NotFound,
    /// The index exceeds the size.
    #[error("index out of range")]
    OutOfRange,
    /// The number of fields is wrong.
    #[error("wrong number of fields")]
    WrongShape,
    /// The value exceeds its width.
    #[error("value too wide")]
    ValueTooWide,
    /// The limit of elements is reached.
    #[error("the limit of elements is reached")]
    Full,
    /// The element exists already.
    #[error("the element exists")]
    Duplicate,
}

/// The reason why the packet generator of a Tofino refuses a setting. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GeneratorError {
    /// The pipe does not exist.
    #[error("pipe {0} does not exist; there are {count}, from 0", count = PIPES)]
    Pipe(u32),
    /// The application does not exist; the second number is how many a pipe has.
    #[error("application {0} does not exist; a pipe has {1}, from 0")]
    App(u32, u32),
    /// The application to stop has not been set in this pipe.
    #[error("pipe {0}: application {1} is not set")]
    NotSet(u32, u32),
    /// Offset and length of a part that exceeds the buffer.
    #[error("{1} bytes at offset {0}; the buffer has {size}", size = GENERATOR_BUFFER)]
    Buffer(usize, usize),
    /// Too many batches, or packets per batch.
    #[error("{0} batches or packets; the maximum is {most}", most = GENERATOR_BATCHES)]
    TooMany(u32),
    /// The packets' port has more than 7 bits.
    #[error("port {0}; use 0 to 127 within a pipe")]
    Port(u32),
    /// The port to watch does not belong to the generator's pipe.
    #[error("port {0} does not belong to pipe {1}")]
    OtherPipe(u32, u32),
    /// The period is 0.
    #[error("the period is 0 ns; use 1 or more")]
    NoPeriod,
    /// A Tofino 1 has no deparser trigger.
    #[error("deparsers start applications on a Tofino 2 only")]
    Deparser,
}
