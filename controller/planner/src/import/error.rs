//! Errors in a file of a network, and their positions.

use super::quantity::Dimension;
use crate::network::NetworkError;

/// Error in a file, and its position.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{line}:{column}: {kind}")]
pub struct ImportError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The error.
    pub kind: ImportErrorKind,
}

/// Kind of an error in a file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ImportErrorKind {
    /// The text violates the format.
    #[error("{0}")]
    Syntax(String),
    /// The format is valid, but the importer does not read this.
    #[error("{0}")]
    Structure(String),
    /// More than the importer reads.
    #[error("{count} {what}; at most {most} are read")]
    TooLarge {
        /// Number of the items.
        count: usize,
        /// Kind of the items.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// Two nodes have one identifier.
    #[error("node `{0}` is declared twice")]
    IdTwice(String),
    /// Two nodes have one label.
    #[error("nodes `{first}` and `{second}` are both labelled `{name}`")]
    NameTwice {
        /// The label.
        name: String,
        /// Identifier of the first node.
        first: String,
        /// Identifier of the second node.
        second: String,
    },
    /// An edge names a node that does not exist.
    #[error("no node is called `{0}`")]
    UnknownEnd(String),
    /// A number without a unit.
    #[error("{attribute} `{value}` has no unit")]
    NoUnit {
        /// Name of the attribute.
        attribute: String,
        /// Value as written.
        value: String,
        /// Kind of its quantity.
        dimension: Dimension,
    },
    /// A value of the wrong type.
    #[error("{attribute} `{value}` is not {wanted}")]
    Value {
        /// Name of the attribute.
        attribute: String,
        /// Value as written.
        value: String,
        /// Description of valid values.
        wanted: String,
    },
    /// An edge without a rate.
    #[error("the edge between `{0}` and `{1}` has no rate")]
    NoRate(String, String),
    /// The two directions of a link differ.
    #[error("{from} to {to} has a {what} of {there}, and back {back}; a link has one of both")]
    Asymmetric {
        /// One end.
        from: String,
        /// The other end.
        to: String,
        /// Rate or delay.
        what: &'static str,
        /// Value in the direction from `from` to `to`.
        there: u64,
        /// Value in the other direction.
        back: u64,
    },
    /// The file is valid, but its network is not.
    #[error(transparent)]
    Network(NetworkError),
}

impl ImportErrorKind {
    /// Suggestion for the user.
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

    /// The error at byte `offset` of a text.
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
