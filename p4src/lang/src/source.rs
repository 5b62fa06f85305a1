//! Places in the source. The preprocessor writes one buffer; a [`Span`] is a byte range in it, and the
//! [`SourceMap`] leads back to file, line and column.

/// A byte range of the preprocessed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// Leads spans back to what the user wrote.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    /// The preprocessed text.
    pub text: String,
    /// Start of each preprocessed line: (byte offset, index into `files`, line number there).
    pub lines: Vec<(u32, u32, u32)>,
    /// File names as included.
    pub files: Vec<String>,
}
