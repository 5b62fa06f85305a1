//! Errors in a network file that is imported, with their positions.

use super::quantity::Dimension;
use crate::network::NetworkError;

/// Error in a network file, and its position.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{line}:{column}: {kind}")]
pub struct ImportError {
    /// Line of the error, from 1.
    pub line: usize,
    /// Column of the error in characters, from 1.
    pub column: usize,
    /// The kind and data of the error.
    pub kind: ImportErrorKind,
}

/// Kind of an error in a network file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ImportErrorKind {
    /// The text violates the format.
    #[error("{0}")]
    Syntax(String),
    /// The format is valid, but the importer does not support this part of it.
    #[error("{0}")]
    Structure(String),
    /// The file has more items of a kind than the importer reads.
    #[error("{count} {what}; at most {most} are read")]
    TooLarge {
        /// Number of items in the file.
        count: usize,
        /// Kind of the items, such as nodes or edges.
        what: &'static str,
        /// Maximum number of items of this kind.
        most: usize,
    },
    /// Two nodes have the same identifier.
    #[error("node `{0}` is declared twice")]
    IdTwice(String),
    /// Two nodes have the same label.
    #[error("nodes `{first}` and `{second}` are both labelled `{name}`")]
    NameTwice {
        /// The label that both nodes have.
        name: String,
        /// Identifier of the first node.
        first: String,
        /// Identifier of the second node.
        second: String,
    },
    /// An edge names a node that does not exist.
    #[error("no node is called `{0}`")]
    UnknownEnd(String),
    /// A number is written without a unit, and no default unit is known.
    #[error("{attribute} `{value}` has no unit")]
    NoUnit {
        /// Name of the attribute in the file.
        attribute: String,
        /// Value of the attribute, as written.
        value: String,
        /// Kind of quantity that the attribute has: rate, delay or size.
        dimension: Dimension,
    },
    /// The value of an attribute has the wrong type.
    #[error("{attribute} `{value}` is not {wanted}")]
    Value {
        /// Name of the attribute in the file.
        attribute: String,
        /// Value of the attribute, as written.
        value: String,
        /// Description of valid values.
        wanted: String,
    },
    /// An edge has no rate; these are the names of its two ends.
    #[error("the edge between `{0}` and `{1}` has no rate")]
    NoRate(String, String),
    /// The two directions of a link have different rates or delays.
    #[error("{from} to {to} has a {what} of {there}, and back {back}; a link has one of both")]
    Asymmetric {
        /// Name of the link's first end.
        from: String,
        /// Name of the link's second end.
        to: String,
        /// The property that differs: rate or delay.
        what: &'static str,
        /// Value of the property in the direction from `from` to `to`.
        there: u64,
        /// Value of the property in the direction from `to` to `from`.
        back: u64,
    },
    /// The file is valid, but the network that it describes is not.
    #[error(transparent)]
    Network(NetworkError),
}

impl ImportErrorKind {
    /// Suggestion how to fix the file or which option to use; `None` if there is none.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            ImportErrorKind::NoUnit {
                attribute,
                dimension,
                ..
            } => format!(
                "write `{}`, or call it `{attribute}_{}`, or give the graph an attribute `{attribute}_unit`",
                dimension.example(),
                dimension.suffix()
            ),
            ImportErrorKind::NameTwice { .. } => "name nodes by their identifiers".to_owned(),
            ImportErrorKind::NoRate(..) => {
                "give the edge a `rate`, or all such edges a default".to_owned()
            }
            _ => return None,
        })
    }

    /// The error with the line and column of byte `offset` of a text.
    pub(super) fn at(self, text: &str, offset: usize) -> ImportError {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ImportError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            kind: self,
        }
    }
}
