//! What can be wrong with a filter, and where.

use std::ops::Range;

/// Why a text is no filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct FilterError {
    /// What is wrong.
    pub kind: FilterErrorKind,
    /// Bytes of the filter's text that it is about.
    pub span: Range<usize>,
    /// What to write instead.
    pub hint: Option<String>,
}

/// What is wrong with a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterErrorKind {
    /// A character that begins no token.
    #[error("unexpected character `{found}`")]
    UnexpectedCharacter {
        /// The character.
        found: char,
    },
    /// No closing quote.
    #[error("unterminated string")]
    UnterminatedString,
    /// A backslash before something that is no escape.
    #[error("unknown escape in a string")]
    BadEscape,
    /// The grammar wants something else here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What may stand here.
        expected: &'static str,
        /// What stands here.
        found: String,
    },
    /// Parentheses and negations nest too deep.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The text is longer than a filter may be.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// An operator of other filter languages.
    #[error("there is no operator `{operator}`")]
    UnknownOperator {
        /// As written.
        operator: String,
    },
    /// The protocol library has no such name.
    #[error("no {what} is called `{name}`")]
    Unknown {
        /// "field" or "protocol".
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Slices of payloads are read where it would stand.
    #[error(
        "`{protocol}` is not read here: filters look at bytes of the payload where it would stand"
    )]
    BehindPayload {
        /// The protocol.
        protocol: String,
    },
    /// A protocol that no packet has.
    #[error("no packet has `{protocol}`: nothing carries it")]
    Uncarried {
        /// The protocol.
        protocol: String,
    },
    /// A string for a field of another length.
    #[error("`{field}` has {expected} byte(s), and the string {found}")]
    TextLength {
        /// The field.
        field: String,
        /// Its bytes.
        expected: usize,
        /// The string's.
        found: usize,
    },
    /// A protocol where a field is needed.
    #[error("`{name}` is a protocol and has no value")]
    ProtocolCompared {
        /// The protocol.
        name: String,
    },
    /// A field without a comparison.
    #[error("`{name}` needs a comparison")]
    BareField {
        /// The field.
        name: String,
    },
    /// A value of another type.
    #[error("`{field}` is compared with {expected}, not {found}")]
    TypeClash {
        /// The field.
        field: String,
        /// The field's type.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// An operator that the field's type lacks.
    #[error("`{operator}` does not apply to {ty}")]
    OperatorClash {
        /// As written.
        operator: &'static str,
        /// The field's type.
        ty: &'static str,
    },
    /// A number that the field cannot hold.
    #[error("{value} is out of range for `{field}`, which has {bits} bit(s)")]
    OutOfRange {
        /// The field.
        field: String,
        /// As written.
        value: String,
        /// The field's width.
        bits: u32,
    },
    /// A string longer than what the switch reads.
    #[error("the string has {length} bytes, but the switch reads only {limit} of `{field}`")]
    TextTooLong {
        /// The field.
        field: String,
        /// The string's length.
        length: usize,
        /// The field's limit.
        limit: usize,
    },
    /// No name made of labels.
    #[error("not a name of labels with dots between them")]
    NotLabels,
    /// A string with a byte that ends the field.
    #[error("`{field}` ends at the first `{end}`, so it holds none")]
    BeyondEnd {
        /// The field.
        field: String,
        /// The byte.
        end: String,
    },
    /// A prefix length beyond the address.
    #[error("/{length} is longer than an address of {bits} bits")]
    PrefixLength {
        /// As written.
        length: u32,
        /// Width of the address.
        bits: u32,
    },
    /// Set bits beyond the prefix.
    #[error("the address has bits set beyond its prefix")]
    HostBits,
    /// `hi..lo`.
    #[error("the range is empty: its end is before its beginning")]
    EmptyRange,
    /// `in {}`.
    #[error("the set is empty")]
    EmptySet,
    /// A comparison that no value passes, such as `< 0`.
    #[error("no value passes this comparison")]
    NeverTrue,
}

impl FilterError {
    pub(super) fn new(kind: FilterErrorKind, span: Range<usize>) -> FilterError {
        FilterError {
            kind,
            span,
            hint: None,
        }
    }

    pub(super) fn hint(mut self, hint: Option<&str>) -> FilterError {
        self.hint = hint.map(str::to_owned);
        self
    }
}
