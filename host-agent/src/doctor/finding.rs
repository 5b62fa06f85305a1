//! One thing that was looked at.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is to be thought of it. The worst comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Fine,
    /// Not wrong, and good to know.
    Note,
    /// Something does not work, or hangs.
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

/// What was found of a thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What is to be thought of it.
    pub level: Level,
    /// The thing: `interface eth0`, `switch s1`, `job 3`.
    pub about: String,
    /// What is so, in a sentence.
    pub text: String,
    /// What helps.
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

    /// All is well.
    pub fn fine(about: &str, text: impl Into<String>) -> Finding {
        Finding::new(Level::Fine, about, text)
    }

    /// Good to know.
    pub fn note(about: &str, text: impl Into<String>) -> Finding {
        Finding::new(Level::Note, about, text)
    }

    /// Something does not work.
    pub fn wrong(about: &str, text: impl Into<String>) -> Finding {
        Finding::new(Level::Wrong, about, text)
    }

    /// With what helps.
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
