//! A finding of `weir doctor` about one item that it checked.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Severity of a finding of `weir doctor`, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The checked item is as it should be.
    Fine,
    /// The checked item works, but deserves attention.
    Note,
    /// The checked item does not work, or hangs.
    Wrong,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Fine => "fine",
            Level::Note => "note",
            Level::Wrong => "wrong",
        })
    }
}

/// A finding of `weir doctor` about one item that it checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Severity of the finding.
    pub level: Level,
    /// The item that was checked: `interface eth0`, `switch s1`, `job 3`.
    pub about: String,
    /// The finding in one sentence.
    pub text: String,
    /// Suggested remedy; `None` if none is needed or known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Finding {
    fn new(level: Level, about: &str, text: impl Into<String>) -> Finding {
        Finding {
            level,
            about: about.to_owned(),
            text: text.into(),
            hint: None,
        }
    }

    /// A finding that the item `about` is as it should be.
    pub fn fine(about: &str, text: impl Into<String>) -> Finding {
        Finding::new(Level::Fine, about, text)
    }

    /// A finding that the item `about` works, but deserves attention.
    pub fn note(about: &str, text: impl Into<String>) -> Finding {
        Finding::new(Level::Note, about, text)
    }

    /// A finding that the item `about` does not work.
    pub fn wrong(about: &str, text: impl Into<String>) -> Finding {
        Finding::new(Level::Wrong, about, text)
    }

    /// Adds a suggested remedy to this finding.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Finding {
        Finding {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding {
            level,
            about,
            text,
            hint,
        } = self;
        write!(f, "{level:5}  {about}: {text}")?;
        match hint {
            Some(hint) => write!(f, "\n       hint: {hint}"),
            None => Ok(()),
        }
    }
}
