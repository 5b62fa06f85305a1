//! What can go wrong, one small enum per operation.

use crate::limits::{GENERATOR_BATCHES, GENERATOR_BUFFER};
use crate::port_numbers::{PIPES, PortError};
use p4lang::runtime::MatchKind;
use p4lang::source::Span;
use thiserror::Error;

/// A program cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The architecture has no executor here.
    #[error("not executed yet: architecture {0}")]
    Architecture(String),
    /// The package lacks a block, or a block lacks a parameter that the architecture wants.
    #[error("the program does not fit the architecture: {0}")]
    Shape(String),
    /// The language or an extern is used in a way that is not executed.
    #[error("not supported yet: {what}")]
    Unsupported {
        /// What it is.
        what: String,
        /// Where, as far as it is known.
        span: Span,
    },
    /// One of [`crate::LIMITS`].
    #[error("too large: {what}")]
    TooLarge {
        /// What there is too much of, and how much there may be.
        what: String,
        /// Where it became too much.
        span: Span,
    },
    /// An entry written in the source does not fit its table.
    #[error("table {table}: {error}")]
    Entry {
        /// The table.
        table: String,
        /// What is wrong.
        error: TableError,
        /// The entry.
        span: Span,
    },
}

impl LoadError {
    /// Where in the source, if one place can be named.
    pub fn span(&self) -> Option<Span> {
        match self {
            LoadError::Unsupported { span, .. }
            | LoadError::TooLarge { span, .. }
            | LoadError::Entry { span, .. } => Some(*span),
            LoadError::Architecture(_) | LoadError::Shape(_) => None,
        }
    }
}

/// Names, or that there are none.
fn listed(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// A table refuses a write or read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// No table of that name.
    #[error("no such table")]
    NoSuchTable,
    /// No key field of that name; there are those.
    #[error("no such key field: {0} (the key has {list})", list = listed(.1))]
    NoSuchField(String, Vec<String>),
    /// A key field is given twice.
    #[error("key field given twice: {0}")]
    FieldTwice(String),
    /// An exact field is left out.
    #[error("missing key field: {0}")]
    MissingField(String),
    /// The kind of match differs from the field's.
    #[error("wrong kind of match: key field {0} is matched `{kind}`", kind = .1.name())]
    WrongMatchKind(String, MatchKind),
    /// The value does not fit the field or parameter, which has so many bits.
    #[error("value too wide: {0} has {1} bits")]
    ValueTooWide(String, u32),
    /// The match of a field is none, for that reason: value bits outside mask or prefix, an empty range, a prefix longer than
    /// the field.
    #[error("key field {0}: {1}")]
    BadMatch(String, &'static str),
    /// Priority must be > 0 where entries may overlap, else 0.
    #[error(
        "bad priority {0}: where a key field is ternary, range or optional it is above 0, elsewhere 0"
    )]
    BadPriority(i32),
    /// The table does not offer that action (or only as default, or only in entries); it offers those.
    #[error("the table does not offer action {0} here (it offers {list})", list = listed(.1))]
    NoSuchAction(String, Vec<String>),
    /// The action has no such parameter, but those.
    #[error("no such action parameter: {0} (the action has {list})", list = listed(.1))]
    NoSuchParam(String, Vec<String>),
    /// A parameter of the action is left out.
    #[error("missing action parameter: {0}")]
    MissingParam(String),
    /// There is an entry with this key and priority.
    #[error("duplicate entry")]
    DuplicateEntry,
    /// There is no entry with this key and priority.
    #[error("no such entry")]
    NotFound,
    /// The table holds as many entries as its size allows.
    #[error("the table is full ({0} entries)")]
    Full(u64),
    /// Entries or default action are constant.
    #[error("the table is constant")]
    ConstTable,
    /// An entry with an idle timeout in a table without.
    #[error("the table has no idle timeouts")]
    NoIdleTimeouts,
    /// A counter's value or a meter's configuration for an action that does not call it.
    #[error("action {action} does not use the table's direct {what}")]
    NotExecuted {
        /// Which, or none.
        action: String,
        /// `counter` or `meter`
        what: &'static str,
    },
}

/// The replication engine refuses a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplicationError {
    /// Ids start at 1.
    #[error("id 0 is reserved")]
    ZeroId,
    /// No packet can name it.
    #[error("{what} {id}: the program's have {width} bits")]
    Id {
        /// A multicast group or clone session.
        what: &'static str,
        /// Its id.
        id: u32,
        /// Bits of the ids that there are.
        width: u32,
    },
    /// There is none with this id.
    #[error("no such group or session")]
    NotFound,
    /// More copies than there may be.
    #[error("{0} replicas; there may be {1}")]
    TooMany(usize, usize),
    /// One copy twice.
    #[error("port {port}, instance {instance} is given twice")]
    Twice {
        /// Its port.
        port: u32,
        /// Its instance.
        instance: u16,
    },
    /// There is no such port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The type of classes does not hold it.
    #[error("class of service {0}; there are 0 to {max}", max = u8::MAX)]
    Class(u32),
    /// The limit on groups or sessions is reached.
    #[error("no room for another")]
    Full,
}

/// An action profile or selector refuses a read or write.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// No profile of that name, or the table has none.
    #[error("no such action profile")]
    NoSuchProfile,
    /// There is no member or group of this number.
    #[error("no such member or group")]
    NotFound,
    /// There is one already.
    #[error("there already")]
    Duplicate,
    /// A group names a member twice.
    #[error("member {0} is given twice")]
    MemberTwice(u32),
    /// A group's maximal size is set when it is made.
    #[error("a group's max_size cannot be changed")]
    MaxSize,
    /// Entries with actions of their own to select from exclude members and groups, and the other way round.
    #[error("a selector has either members and groups or one-shot entries")]
    Mixed,
    /// A group or an entry names it.
    #[error("in use")]
    InUse,
    /// The limit on members, or on weights, is reached.
    #[error("the profile is full ({0})")]
    Full(u64),
    /// The table's entries name members or groups.
    #[error("the table has an action profile: its entries have no actions of their own")]
    Direct,
    /// A profile without a selector has no groups.
    #[error("the profile has no selector")]
    NoSelector,
    /// Weights are at least 1.
    #[error("a weight of 0")]
    BadWeight,
    /// A member watches a port that the switch does not have.
    #[error("there is no port {0} to watch")]
    NoSuchPort(u32),
    /// The entry's table does not offer the member's action.
    #[error("the table does not offer the member's action")]
    ActionNotOffered,
    /// No table of the profile takes the action.
    #[error(transparent)]
    Action(TableError),
    /// The entry does not fit its table.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// An extern object refuses a read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ExternError {
    /// None of that name and kind.
    #[error("no such object")]
    NotFound,
    /// Index beyond the size.
    #[error("index out of range")]
    OutOfRange,
    /// Wrong number of fields.
    #[error("wrong number of fields")]
    WrongShape,
    /// The value does not fit.
    #[error("value too wide")]
    ValueTooWide,
    /// The limit on elements is reached.
    #[error("full")]
    Full,
    /// It is there already.
    #[error("already there")]
    Duplicate,
}

/// The packet generator of a Tofino refuses what it is told. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GeneratorError {
    /// There are fewer pipes.
    #[error("no pipe {0}: there are {count}", count = PIPES)]
    Pipe(u32),
    /// There are so many.
    #[error("no application {0}: a pipe has {1}")]
    App(u32, u32),
    /// The application of that pipe is to stop, and has not been set.
    #[error("pipe {0}: application {1} is not set")]
    NotSet(u32, u32),
    /// Offset and length of a piece that goes beyond the buffer.
    #[error("{1} bytes from {0} on: the buffer has {size}", size = GENERATOR_BUFFER)]
    Buffer(usize, usize),
    /// Batches, or packets of a batch.
    #[error("{0} batches or packets: there may be {most} of each", most = GENERATOR_BATCHES)]
    TooMany(u32),
    /// The packets' port has more than 7 bits.
    #[error("port {0}: within a pipe there are 0 to 127")]
    Port(u32),
    /// A port whose going down is waited for, and the generator's pipe.
    #[error("port {0} is not of pipe {1}")]
    OtherPipe(u32, u32),
    /// Again and again, at once.
    #[error("a period of 0")]
    NoPeriod,
    /// No deparser of a Tofino 1 asks for packets.
    #[error("deparsers start applications on a Tofino 2 only")]
    Deparser,
}
