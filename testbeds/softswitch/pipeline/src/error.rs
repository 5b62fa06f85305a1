//! Errors of the switch's operations: loading a program, writes to tables, replication, profiles, externs, packet generator.

use crate::limits::{GENERATOR_BATCHES, GENERATOR_BUFFER};
use crate::port_numbers::{PIPES, PortError};
use p4lang::runtime::MatchKind;
use p4lang::source::Span;
use thiserror::Error;

/// The reason why a program cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The program's architecture, named here, is not supported.
    #[error("architecture {0} is not supported; use psa, v1model, tna or t2na")]
    Architecture(String),
    /// The program's package lacks a block, or a block lacks a parameter that the architecture requires.
    #[error("the program does not match the architecture: {0}")]
    Shape(String),
    /// The program uses a language construct or an extern that is not supported.
    #[error("not supported yet: {what}")]
    Unsupported {
        /// Description of the unsupported construct.
        what: String,
        /// Position of the construct in the source, as far as it is known.
        span: Span,
    },
    /// The program exceeds one of [`crate::LIMITS`].
    #[error("too large: {what}")]
    TooLarge {
        /// Description of the resource and its limit.
        what: String,
        /// Position in the source where the program exceeds the limit.
        span: Span,
    },
    /// A table entry written in the source does not fit its table.
    #[error("table {table}: {error}")]
    Entry {
        /// Name of the table.
        table: String,
        /// The reason why the entry does not fit.
        error: TableError,
        /// Position of the table entry in the source.
        span: Span,
    },
}

impl LoadError {
    /// Position of the error in the source; `None` if it has no single position.
    pub fn span(&self) -> Option<Span> {
        match self {
            LoadError::Unsupported { span, .. }
            | LoadError::TooLarge { span, .. }
            | LoadError::Entry { span, .. } => Some(*span),
            LoadError::Architecture(_) | LoadError::Shape(_) => None,
        }
    }
}

/// The names, separated by commas; "none" if there are none.
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
    /// No key field has this name (the first element); the list contains the names of the table's key fields.
    #[error("no such key field: {0} (the key has {list})", list = listed(.1))]
    NoSuchField(String, Vec<String>),
    /// A table entry gives the key field of this name twice.
    #[error("key field {0} is given twice")]
    FieldTwice(String),
    /// A table entry leaves out the exact key field of this name.
    #[error("missing key field: {0}")]
    MissingField(String),
    /// A table entry's match for this key field is not of the field's match kind, which is the second element.
    #[error("wrong match kind: key field {0} is matched `{kind}`", kind = .1.name())]
    WrongMatchKind(String, MatchKind),
    /// The value of this key field or action parameter exceeds its width in bits, the second element.
    #[error("value too wide: {0} has {1} bits")]
    ValueTooWide(String, u32),
    /// The key field's match is invalid: value bits outside mask or prefix, an empty range, or a prefix longer than the field.
    #[error("key field {0}: {1}")]
    BadMatch(String, &'static str),
    /// This priority is not allowed: it must be > 0 if entries of the table may overlap, else 0.
    #[error("priority {0}; use more than 0 if a key field is ternary, range or optional, else 0")]
    BadPriority(i32),
    /// The table does not offer this action, or offers it only as default action or only in entries. The list: offered actions.
    #[error("the table does not offer action {0} here (it offers {list})", list = listed(.1))]
    NoSuchAction(String, Vec<String>),
    /// The action has no parameter of this name (the first element); the list contains the names of its parameters.
    #[error("no such action parameter: {0} (the action has {list})", list = listed(.1))]
    NoSuchParam(String, Vec<String>),
    /// The call of the action leaves out the parameter of this name.
    #[error("missing action parameter: {0}")]
    MissingParam(String),
    /// A table entry with this key and priority exists already.
    #[error("duplicate entry")]
    DuplicateEntry,
    /// No table entry with this key and priority exists.
    #[error("no such entry")]
    NotFound,
    /// The table has its maximum number of entries, given here.
    #[error("the table is full ({0} entries)")]
    Full(u64),
    /// The table's entries or its default action are constant, so they cannot be written.
    #[error("the table's entries or its default action are constant")]
    ConstTable,
    /// The entry has an idle timeout, but the table does not support idle timeouts.
    #[error("the table does not support idle timeouts")]
    NoIdleTimeouts,
    /// A table entry sets a direct counter or meter that its action does not call.
    #[error("action {action} does not use the table's direct {what}")]
    NotExecuted {
        /// Name of the entry's action, or "none".
        action: String,
        /// Kind of the direct object: `counter` or `meter`.
        what: &'static str,
    },
}

/// The reason why the replication engine refuses a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplicationError {
    /// The id of a multicast group or clone session is 0; ids start at 1.
    #[error("id 0 is reserved")]
    ZeroId,
    /// The id of a multicast group or clone session exceeds the width of ids in the program.
    #[error("{what} {id}; the program's ids have {width} bits")]
    Id {
        /// Kind of the object: a multicast group or clone session.
        what: &'static str,
        /// The id that is too large.
        id: u32,
        /// Width of the program's ids, in bits.
        width: u32,
    },
    /// No multicast group or clone session with this id exists.
    #[error("no such group or session")]
    NotFound,
    /// Number of replicas in a multicast group or clone session, and the maximum number.
    #[error("{0} replicas; the maximum is {1}")]
    TooMany(usize, usize),
    /// A multicast group or clone session contains a replica twice.
    #[error("port {port}, instance {instance} is given twice")]
    Twice {
        /// Port of the replica.
        port: u32,
        /// Instance of the replica.
        instance: u16,
    },
    /// The port of a replica does not exist.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The class of service of a clone session, given here, exceeds its maximum, 255.
    #[error("class of service {0}; use 0 to {max}", max = u8::MAX)]
    Class(u32),
    /// The maximum number of multicast groups or clone sessions exists already.
    #[error("the limit of groups or sessions is reached")]
    Full,
}

/// The reason why an action profile or selector refuses a read or write.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// No action profile has this name, or the table has no action profile.
    #[error("no such action profile")]
    NoSuchProfile,
    /// No member or group with this number exists in the action profile.
    #[error("no such member or group")]
    NotFound,
    /// A member or group with this number exists in the action profile already.
    #[error("a member or group with this number exists")]
    Duplicate,
    /// A group names the member with this number twice.
    #[error("member {0} is given twice")]
    MemberTwice(u32),
    /// The write changes a group's maximum size, which can only be set on creation.
    #[error("a group's max_size cannot be changed")]
    MaxSize,
    /// A selector has either members and groups, or entries with actions of their own (one-shot); the write would mix these.
    #[error("a selector has either members and groups or one-shot entries")]
    Mixed,
    /// The member or group cannot be deleted: a group or a table entry refers to it.
    #[error("it cannot be deleted: a group or a table entry refers to it")]
    InUse,
    /// The profile has its maximum number of members, or its groups their maximum sum of weights, given here.
    #[error("the profile is full ({0})")]
    Full(u64),
    /// The write gives an entry an action, but the table's entries must refer to members or groups.
    #[error(
        "the table has an action profile; its entries refer to members or groups, not to actions"
    )]
    Direct,
    /// The write concerns a group, but the profile has no selector, and so no groups.
    #[error("the profile has no selector")]
    NoSelector,
    /// The weight of a member is 0; the minimum is 1.
    #[error("the weight is 0; use 1 or more")]
    BadWeight,
    /// A member of a group watches this port, which does not exist.
    #[error("the port to watch, {0}, does not exist")]
    NoSuchPort(u32),
    /// The table of an entry does not offer the action of the member that the entry refers to.
    #[error("the table does not offer the member's action")]
    ActionNotOffered,
    /// No table that uses the profile offers the member's action, for this reason.
    #[error(transparent)]
    Action(TableError),
    /// The table entry does not fit its table, for this reason.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// The reason why an extern object refuses a read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ExternError {
    /// No extern object of this kind has this name.
    #[error("no such object")]
    NotFound,
    /// The index of a cell is not below the number of cells of the object.
    #[error("index out of range")]
    OutOfRange,
    /// The value has another number of fields than a register cell or value set member.
    #[error("wrong number of fields")]
    WrongShape,
    /// The value exceeds the width of its field.
    #[error("value too wide")]
    ValueTooWide,
    /// The value set has its maximum number of members.
    #[error("the limit of elements is reached")]
    Full,
    /// The value set has this member already.
    #[error("the element exists")]
    Duplicate,
}

/// The reason why a Tofino's packet generator refuses a setting; the generator is then as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GeneratorError {
    /// The pipe with this number does not exist.
    #[error("pipe {0} does not exist; there are {count}, from 0", count = PIPES)]
    Pipe(u32),
    /// The application with this number (the first element) does not exist; the second element is the number of applications.
    #[error("application {0} does not exist; a pipe has {1}, from 0")]
    App(u32, u32),
    /// The application to stop (pipe, application) has not been set.
    #[error("pipe {0}: application {1} is not set")]
    NotSet(u32, u32),
    /// The write exceeds the generator's buffer: offset and length, in bytes.
    #[error("{1} bytes at offset {0}; the buffer has {size}", size = GENERATOR_BUFFER)]
    Buffer(usize, usize),
    /// This number of batches, or of packets per batch, is too large.
    #[error("{0} batches or packets; the maximum is {most}", most = GENERATOR_BATCHES)]
    TooMany(u32),
    /// The ingress port for generated packets has more than 7 bits.
    #[error("port {0}; use 0 to 127 within a pipe")]
    Port(u32),
    /// The port to watch (the first element) does not belong to the generator's pipe (the second).
    #[error("port {0} does not belong to pipe {1}")]
    OtherPipe(u32, u32),
    /// The period of a periodic application is 0.
    #[error("the period is 0 ns; use 1 or more")]
    NoPeriod,
    /// The setting has a deparser trigger, which a Tofino 1 lacks.
    #[error("deparsers start applications on a Tofino 2 only")]
    Deparser,
}
