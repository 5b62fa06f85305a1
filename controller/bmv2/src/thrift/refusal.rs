//! Reasons for which a BMv2 switch refuses a call: names and texts for the codes of BMv2's Thrift exceptions.

use std::fmt;

/// Family of BMv2's Thrift exceptions: those of one kind of call. One error code has another meaning in each family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Exceptions of calls about tables and action profiles.
    Table,
    /// Exceptions of calls about indirect counters.
    Counter,
    /// Exceptions of calls about registers.
    Register,
    /// Exceptions of calls about multicast groups and their nodes.
    Multicast,
    /// Exceptions of calls about clone sessions.
    Mirroring,
    /// Exceptions of calls that replace the running P4 program.
    Swap,
    /// No exceptions: the called method declares none.
    None,
}

/// Reason why a BMv2 switch refused a Thrift call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // `table!` below has a text for each.
pub enum Reason {
    TableFull,
    InvalidHandle,
    ExpiredHandle,
    CountersDisabled,
    MetersDisabled,
    AgeingDisabled,
    InvalidTableName,
    InvalidActionName,
    WrongTableType,
    InvalidMemberHandle,
    MemberStillUsed,
    MemberAlreadyInGroup,
    MemberNotInGroup,
    InvalidGroupHandle,
    GroupStillUsed,
    EmptyGroup,
    DuplicateEntry,
    BadMatchKey,
    InvalidMeterOperation,
    DefaultActionIsConst,
    DefaultEntryIsConst,
    NoDefaultEntry,
    InvalidActionProfileName,
    NoActionProfileSelection,
    ImmutableTableEntries,
    BadActionData,
    NoTableKey,
    InvalidCounterName,
    InvalidRegisterName,
    InvalidIndex,
    MulticastTableFull,
    InvalidGroupId,
    InvalidMulticastGroupHandle,
    InvalidNodeHandle,
    SessionNotFound,
    SwapDisabled,
    OngoingSwap,
    NoOngoingSwap,
    /// The exception says only that an error occurred.
    Unspecified,
    /// The exception has a code that weir does not know.
    Unknown,
}

type Row = (i32, Reason, &'static str);

const TABLE: &[Row] = &[
    (1, Reason::TableFull, "the table is full"),
    (
        2,
        Reason::InvalidHandle,
        "there is no entry with this handle",
    ),
    (
        3,
        Reason::ExpiredHandle,
        "the entry has been removed meanwhile",
    ),
    (
        4,
        Reason::CountersDisabled,
        "the table has no direct counter",
    ),
    (5, Reason::MetersDisabled, "the table has no direct meter"),
    (6, Reason::AgeingDisabled, "the table's entries do not age"),
    (
        7,
        Reason::InvalidTableName,
        "the program has no table of this name",
    ),
    (
        8,
        Reason::InvalidActionName,
        "the table has no action of this name",
    ),
    (
        9,
        Reason::WrongTableType,
        "the table takes members or groups of an action profile, or takes none",
    ),
    (
        10,
        Reason::InvalidMemberHandle,
        "the action profile has no such member",
    ),
    (11, Reason::MemberStillUsed, "the member is still used"),
    (
        12,
        Reason::MemberAlreadyInGroup,
        "the member is in the group already",
    ),
    (
        13,
        Reason::MemberNotInGroup,
        "the member is not in the group",
    ),
    (
        14,
        Reason::InvalidGroupHandle,
        "the action profile has no such group",
    ),
    (15, Reason::GroupStillUsed, "the group is still used"),
    (16, Reason::EmptyGroup, "the group has no member"),
    (
        17,
        Reason::DuplicateEntry,
        "the table has an entry with this key already",
    ),
    (
        18,
        Reason::BadMatchKey,
        "the key is not of the table's fields and widths",
    ),
    (
        19,
        Reason::InvalidMeterOperation,
        "the meter does not take this",
    ),
    (
        20,
        Reason::DefaultActionIsConst,
        "the default action is constant",
    ),
    (
        21,
        Reason::DefaultEntryIsConst,
        "the default entry is constant",
    ),
    (22, Reason::NoDefaultEntry, "the table has no default entry"),
    (
        23,
        Reason::InvalidActionProfileName,
        "the program has no action profile of this name",
    ),
    (
        24,
        Reason::NoActionProfileSelection,
        "the action profile has no selector",
    ),
    (
        25,
        Reason::ImmutableTableEntries,
        "the table's entries are constant",
    ),
    (
        26,
        Reason::BadActionData,
        "the action takes other parameters",
    ),
    (
        27,
        Reason::NoTableKey,
        "the table has no key, so it takes no entry",
    ),
    (100, Reason::Unspecified, "it gives no reason"),
];
const COUNTER: &[Row] = &[
    (
        1,
        Reason::InvalidCounterName,
        "the program has no counter of this name",
    ),
    (2, Reason::InvalidIndex, "the counter has no such cell"),
    (3, Reason::Unspecified, "it gives no reason"),
];
const REGISTER: &[Row] = &[
    (
        1,
        Reason::InvalidRegisterName,
        "the program has no register of this name",
    ),
    (2, Reason::InvalidIndex, "the register has no such cell"),
    (3, Reason::Unspecified, "it gives no reason"),
];
const MULTICAST: &[Row] = &[
    (
        1,
        Reason::MulticastTableFull,
        "there is room for no more groups or nodes",
    ),
    (2, Reason::InvalidGroupId, "a group cannot have this number"),
    (
        3,
        Reason::InvalidMulticastGroupHandle,
        "there is no such group",
    ),
    (4, Reason::InvalidNodeHandle, "there is no such node"),
    (5, Reason::Unspecified, "it gives no reason"),
];
const MIRRORING: &[Row] = &[(1, Reason::SessionNotFound, "there is no such session")];
const SWAP: &[Row] = &[
    (
        1,
        Reason::SwapDisabled,
        "it was started without `-- --enable-swap`, so its program cannot be changed",
    ),
    (2, Reason::OngoingSwap, "a program is being loaded already"),
    (
        3,
        Reason::NoOngoingSwap,
        "no program waits to be put in force",
    ),
];

impl Family {
    fn rows(self) -> &'static [Row] {
        match self {
            Family::Table => TABLE,
            Family::Counter => COUNTER,
            Family::Register => REGISTER,
            Family::Multicast => MULTICAST,
            Family::Mirroring => MIRRORING,
            Family::Swap => SWAP,
            Family::None => &[],
        }
    }
}

/// A refusal of a call, as the switch reports it: a Thrift exception with a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Family of the exception, which gives the code its meaning.
    pub family: Family,
    /// Error code in BMv2's exception.
    pub code: i32,
}

impl Refusal {
    pub(super) fn new(family: Family, code: i32) -> Refusal {
        Refusal { family, code }
    }

    fn row(self) -> Option<&'static Row> {
        self.family.rows().iter().find(|row| row.0 == self.code)
    }

    /// Reason that the code stands for in its family.
    #[must_use]
    pub fn reason(self) -> Reason {
        self.row().map_or(Reason::Unknown, |row| row.1)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row() {
            Some((_, reason, text)) => write!(f, "{text} ({reason:?})"),
            None => write!(f, "code {} of {:?} operations", self.code, self.family),
        }
    }
}
