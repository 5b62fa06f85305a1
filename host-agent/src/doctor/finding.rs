//! A finding about one checked item.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Severity of a finding, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The item is as it should be.
    Fine,
    /// The item works, but deserves attention.
    Note,
    /// The item does not work, or hangs.
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

/// A finding about an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Severity.
    pub level: Level,
    /// The item: `interface eth0`, `switch s1`, `job 3`.
    pub about: String,
    /// Description in one sentence.
    pub text: String,
    /// Suggested remedy.
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

    /// A finding that all is well.
    pub fn fine(about: &str, text: impl Into<String>) -> Finding {
        Finding::new(Level::Fine, about, text)
    }

    /// A finding that deserves attention.
    pub fn note(about: &str, text: impl Into<String>) -> Finding {
        Finding::new(Level::Note, about, text)
    }

    /// A finding that something does not work.
    pub fn wrong(about: &str, text: impl Into<String>) -> Finding {
        Finding::new(Level::Wrong, about, text)
    }

    /// Adds a remedy.
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
