//! Errors in a filter, and their positions.

use std::ops::Range;

/// Why a text is not a valid filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct FilterError {
    /// Kind of the error.
    pub kind: FilterErrorKind,
    /// Bytes of the filter's text that the error is about.
    pub span: Range<usize>,
    /// Suggested replacement for the erroneous text.
    pub hint: Option<String>,
}

/// Kind of an error in a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterErrorKind {
    /// A character with which no token begins.
    #[error("unexpected character `{found}`")]
    UnexpectedCharacter {
        /// The unexpected character.
        found: char,
    },
    /// A string without a closing quote.
    #[error("unterminated string")]
    UnterminatedString,
    /// A backslash before a character that it does not escape.
    #[error("unknown escape in a string")]
    BadEscape,
    /// A token that the grammar does not allow here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// Description of the tokens that are allowed.
        expected: &'static str,
        /// Description of the token that was found.
        found: String,
    },
    /// Parentheses and negations nest too deep.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// Maximum depth of nesting.
        limit: usize,
    },
    /// The text exceeds the maximum length of a filter.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// Maximum length of a filter in bytes.
        limit: usize,
    },
    /// An operator of another filter language.
    #[error("there is no operator `{operator}`")]
    UnknownOperator {
        /// The operator as written.
        operator: String,
    },
    /// A name that the protocol library does not contain.
    #[error("no {what} is called `{name}`")]
    Unknown {
        /// "field" or "protocol".
        what: &'static str,
        /// The unknown name, as written in the filter.
        name: String,
    },
    /// A protocol that is not parsed, since filters read payload bytes in its position.
    #[error("`{protocol}` is not parsed here: filters match bytes of the payload at its position")]
    BehindPayload {
        /// Name of the protocol.
        protocol: String,
    },
    /// A protocol that no other protocol carries.
    #[error("no packet has `{protocol}`: no protocol carries it")]
    Uncarried {
        /// Name of the protocol.
        protocol: String,
    },
    /// A string whose length differs from the field's fixed length.
    #[error("`{field}` has {expected} byte(s), and the string {found}")]
    TextLength {
        /// Name of the field.
        field: String,
        /// Length of the field in bytes.
        expected: usize,
        /// Length of the string in bytes.
        found: usize,
    },
    /// A protocol that is compared with a value, as only a field can be.
    #[error("`{name}` is a protocol and has no value")]
    ProtocolCompared {
        /// Name of the protocol.
        name: String,
    },
    /// A field without a comparison.
    #[error("`{name}` needs a comparison")]
    BareField {
        /// Name of the field.
        name: String,
    },
    /// A value whose type is not the type of the field.
    #[error("`{field}` is compared with {expected}, not {found}")]
    TypeClash {
        /// Name of the field.
        field: String,
        /// Description of the field's type.
        expected: &'static str,
        /// Description of the value that was found.
        found: String,
    },
    /// An operator that does not apply to the field's type.
    #[error("`{operator}` does not apply to {ty}")]
    OperatorClash {
        /// The operator as written.
        operator: &'static str,
        /// Description of the field's type.
        ty: &'static str,
    },
    /// A number that the field cannot hold.
    #[error("{value} is out of range for `{field}`, which has {bits} bit(s)")]
    OutOfRange {
        /// Name of the field.
        field: String,
        /// The number as written.
        value: String,
        /// Width of the field in bits.
        bits: u32,
    },
    /// A string longer than the part of the field that the switch reads.
    #[error("the string has {length} bytes, but the switch reads only {limit} of `{field}`")]
    TextTooLong {
        /// Name of the field.
        field: String,
        /// Length of the string in bytes.
        length: usize,
        /// Number of bytes that the switch reads.
        limit: usize,
    },
    /// A string that is not a domain name, which consists of labels.
    #[error("not a domain name: write labels separated by dots")]
    NotLabels,
    /// A string that contains a byte at which the field ends.
    #[error("`{field}` cannot contain `{end}`: it ends at the first one")]
    BeyondEnd {
        /// Name of the field.
        field: String,
        /// The byte at which the field ends, escaped.
        end: String,
    },
    /// A prefix length greater than the width of the address.
    #[error("/{length} is longer than an address of {bits} bits")]
    PrefixLength {
        /// The prefix length as written.
        length: u32,
        /// Width of the address in bits.
        bits: u32,
    },
    /// An address with bits set beyond its prefix.
    #[error("the address has bits set beyond its prefix")]
    HostBits,
    /// A range `hi..lo` whose end is before its beginning.
    #[error("the range is empty: its end is before its beginning")]
    EmptyRange,
    /// An empty set: `in {}`.
    #[error("the set is empty")]
    EmptySet,
    /// A comparison that no value fulfills, such as `< 0`.
    #[error("this comparison is never true")]
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
