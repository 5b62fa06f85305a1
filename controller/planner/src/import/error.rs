//! Why a file gives no network, and where.

use super::quantity::Dimension;
use crate::network::NetworkError;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{line}:{column}: {kind}")]
pub struct ImportError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What it is.
    pub kind: ImportErrorKind,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ImportErrorKind {
    /// Not the format.
    #[error("{0}")]
    Syntax(String),
    /// The format, and nothing that we read.
    #[error("{0}")]
    Structure(String),
    /// More than is read.
    #[error("{count} {what}; at most {most} are read")]
    TooLarge {
        /// How many.
        count: usize,
        /// Of what.
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
        /// The identifier of the one.
        first: String,
        /// Of the other.
        second: String,
    },
    /// An edge names a node that there is not.
    #[error("no node is called `{0}`")]
    UnknownEnd(String),
    /// A number alone.
    #[error("{attribute} `{value}` has no unit")]
    NoUnit {
        /// Its name.
        attribute: String,
        /// What stands there.
        value: String,
        /// What it counts.
        dimension: Dimension,
    },
    /// Something else than what the attribute is.
    #[error("{attribute} `{value}` is not {wanted}")]
    Value {
        /// Its name.
        attribute: String,
        /// What stands there.
        value: String,
        /// What it should be.
        wanted: String,
    },
    /// An edge does not say what it carries.
    #[error("the edge between `{0}` and `{1}` has no rate")]
    NoRate(String, String),
    /// The two directions of a link differ.
    #[error("{from} to {to} has a {what} of {there}, and back {back}; a link has one of both")]
    Asymmetric {
        /// An end.
        from: String,
        /// The other.
        to: String,
        /// Rate or delay.
        what: &'static str,
        /// In that direction.
        there: u64,
        /// In the other.
        back: u64,
    },
    /// Read, and no network.
    #[error(transparent)]
    Network(NetworkError),
}

impl ImportErrorKind {
    /// What to do about it.
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

    /// At a byte of a text.
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
