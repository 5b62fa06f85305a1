//! Diagnostics: the error in a scenario file, its position, and a hint on how to correct it.

mod code;
mod names;
mod text;

use std::fmt;

use serde::Serialize;

pub use code::Code;
pub(crate) use names::unknown;
pub use names::{enumerate_names, few, few_names, nearest};
pub(crate) use text::is_obeyed;
pub use text::shown;
use text::{MESSAGE, excerpt};

/// A range of bytes in a file; the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Span {
    /// Index of the first byte, counted from 0.
    pub start: usize,
    /// Index after the last byte.
    pub end: usize,
}

/// A value that was read from a file, with its position there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value that was read.
    pub value: T,
    /// Position of the value in the file.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Pairs a value with its position.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }

    /// Converts the value and keeps its position in the file.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned {
            value: f(self.value),
            span: self.span,
        }
    }
}

/// The severity of a diagnostic: whether it stops the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The diagnostic is an error and stops the run.
    Error,
    /// The diagnostic is a warning; the run continues.
    Warning,
}

/// A further position that a diagnostic refers to, possibly in another file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Related {
    /// Name of the file to which the position belongs, as given to [`Source`].
    pub file: String,
    /// Line of the position, counted from 1.
    pub line: usize,
    /// Column of the position, counted from 1, in characters.
    pub column: usize,
    /// Byte range of the position in the file.
    pub span: Span,
    /// Explanation of the position, for the user.
    pub message: String,
}

/// One error or warning about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Kind of the error or warning.
    pub code: Code,
    /// Whether the diagnostic stops the run.
    pub severity: Severity,
    /// Name of the file to which the position belongs, as given to [`Source`].
    pub file: String,
    /// Line of the error or warning, counted from 1.
    pub line: usize,
    /// Column of the error or warning, counted from 1, in characters.
    pub column: usize,
    /// Byte range of the error or warning in the file.
    pub span: Span,
    /// The text of the error or warning, for the user.
    pub message: String,
    /// How to correct the error, for the user; `None` if there is no suggestion.
    pub hint: Option<String>,
    /// Further positions that the diagnostic refers to.
    pub related: Vec<Related>,
    /// The line to show if the error is in another file, which the checked file names; `None` if it is in the checked file.
    #[serde(skip)]
    elsewhere: Option<Excerpt>,
}

/// The line of a file that a diagnostic shows, with a mark under a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    line: String,
    /// Length of the part of the line that is marked, in characters.
    width: usize,
}

impl Excerpt {
    fn new(source: &Source<'_>, line: usize, span: Span) -> Excerpt {
        let text = source.text.get(span.start..span.end);
        Excerpt {
            line: source.line(line).to_owned(),
            width: text.map_or(1, |text| text.chars().count()),
        }
    }
}

impl Diagnostic {
    /// Adds a hint on how to correct the error.
    pub fn hint(&mut self, hint: impl Into<String>) -> &mut Self {
        self.hint = Some(shown(&hint.into(), MESSAGE));
        self
    }

    /// Adds a further position in this file or another one.
    pub fn related(
        &mut self,
        source: &Source<'_>,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Self {
        let (line, column) = source.position(span.start);
        let file = source.file.to_owned();
        self.related.push(Related {
            file,
            line,
            column,
            span,
            message: shown(&message.into(), MESSAGE),
        });
        self
    }

    /// The message with the line of the file that it refers to, as text for a terminal without colors. `source` is the checked
    /// file; a diagnostic about another file that it names carries its own line.
    #[must_use]
    pub fn render(&self, source: &Source<'_>) -> String {
        let here = || Excerpt::new(source, self.line, self.span);
        let shown = self.elsewhere.clone().unwrap_or_else(here);
        let (line, column) = excerpt(&shown.line, self.column);
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let rest_of_line = line.chars().count().saturating_sub(column - 1);
        let caret = "^".repeat(shown.width.min(rest_of_line).max(1));
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut text = format!(
            "{severity}[{code}]: {message}\n{margin}--> {file}:{line_number}:{column}\n{margin} |\n{number} | {line}\n{margin} | {indent}{caret}\n",
            code = self.code,
            message = self.message,
            file = self.file,
            line_number = self.line,
            column = self.column,
            indent = " ".repeat(column - 1),
        );
        for other in &self.related {
            let place = format!("{}:{}:{}", other.file, other.line, other.column);
            text.push_str(&format!("{margin} = {place}: {}\n", other.message));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("{margin} = hint: {hint}\n"));
        }
        text
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: [{}] {}",
            self.file, self.line, self.column, self.code, self.message
        )?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// All diagnostics of one or several files: file by file, in the order of their positions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The name and text of a file that is checked.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// File name as the user wrote it on the command line.
    pub file: &'a str,
    /// The whole text of the file.
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// Line and column of a byte of the file, both counted from 1; columns count characters.
    #[must_use]
    pub fn position(&self, byte: usize) -> (usize, usize) {
        let mut byte = byte.min(self.text.len());
        while !self.text.is_char_boundary(byte) {
            byte -= 1;
        }
        let before = &self.text[..byte];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (
            before.matches('\n').count() + 1,
            before[line_start..].chars().count() + 1,
        )
    }

    fn line(&self, number: usize) -> &'a str {
        self.text.lines().nth(number - 1).unwrap_or("")
    }
}

/// Collects the diagnostics of one file while it is checked, so that all of them are reported at once.
#[derive(Debug)]
pub struct Sink<'a> {
    source: Source<'a>,
    found: Vec<Diagnostic>,
    errors: usize,
    /// The last diagnostic that is hidden because the file has more than [`MOST`] of them; `None` if all are shown.
    beyond: Option<Diagnostic>,
}

/// Maximum number of errors, and of warnings, that are shown for one file; a user does not correct more at once.
const MOST: usize = 100;

impl<'a> Sink<'a> {
    /// A collector for the diagnostics of one file, without any yet.
    #[must_use]
    pub fn new(source: Source<'a>) -> Self {
        Self {
            source,
            found: Vec::new(),
            errors: 0,
            beyond: None,
        }
    }

    /// The file that the diagnostics refer to.
    #[must_use]
    pub fn source(&self) -> Source<'a> {
        self.source
    }

    /// Reports an error; the caller may add a hint and related positions to the returned diagnostic.
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Error, code, span, message.into())
    }

    /// Reports a problem that does not stop the run.
    pub fn warning(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Severity::Warning, code, span, message.into())
    }

    fn push(
        &mut self,
        severity: Severity,
        code: Code,
        span: Span,
        message: String,
    ) -> &mut Diagnostic {
        let count = match severity {
            Severity::Error => {
                self.errors += 1;
                self.errors
            }
            Severity::Warning => self.found.len() - self.errors.min(MOST) + 1,
        };
        let is_beyond = count > MOST;
        let (line, column) = match is_beyond {
            // Computing the position takes time, and this diagnostic is not shown.
            true => (1, 1),
            false => self.source.position(span.start),
        };
        let file = self.source.file.to_owned();
        let diagnostic = Diagnostic {
            code,
            severity,
            file,
            line,
            column,
            span,
            message: shown(&message, MESSAGE),
            hint: None,
            related: Vec::new(),
            elsewhere: None,
        };
        if is_beyond {
            return self.beyond.insert(diagnostic);
        }
        let at = self.found.len();
        self.found.push(diagnostic);
        &mut self.found[at]
    }

    /// Adds the diagnostics of another file that this file names.
    pub fn adopt(&mut self, other: Sink<'_>) {
        let source = other.source;
        for mut diagnostic in other.into_diagnostics().0 {
            let excerpt = Excerpt::new(&source, diagnostic.line, diagnostic.span);
            diagnostic.elsewhere = Some(excerpt);
            self.errors += usize::from(diagnostic.severity == Severity::Error);
            self.found.push(diagnostic);
        }
    }

    /// Number of errors reported so far.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Whether so many errors were reported that further errors will not be shown.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.errors > MOST
    }

    /// Whether an error was reported.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The diagnostics in file order; diagnostics of files that this file names come last.
    #[must_use]
    pub fn into_diagnostics(mut self) -> Diagnostics {
        self.found
            .sort_by_key(|d| (d.elsewhere.is_some(), d.span.start, d.code));
        // An aliased value is read, and refused, at each place where it is used.
        self.found.dedup();
        if let Some(mut beyond) = self.beyond {
            beyond.message = format!("there are more errors than the first {MOST} shown here");
            if beyond.severity == Severity::Warning {
                beyond.message =
                    format!("there are more warnings than the first {MOST} shown here");
            }
            beyond.span = Span::default();
            beyond.hint = None;
            beyond.related.clear();
            self.found.push(beyond);
        }
        Diagnostics(self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        let source = Source {
            file: "f",
            text: "aä\nxyz",
        };
        assert_eq!(source.position(0), (1, 1));
        assert_eq!(source.position(3), (1, 3));
        assert_eq!(source.position(5), (2, 2));
        assert_eq!(source.position(99), (2, 4));
    }

    fn rendered(text: &str, at: &str) -> String {
        let source = Source { file: "f", text };
        let start = text.find(at).unwrap();
        let span = Span {
            start,
            end: start + at.len(),
        };
        let mut sink = Sink::new(source);
        sink.error(Code::UnknownKey, span, format!("no key `{at}`"));
        let found = sink.into_diagnostics();
        found.0[0].render(&source)
    }

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        let text = rendered("a\tb: \u{1b}[2J\u{202e}x\u{9b}", "\u{1b}[2J");
        assert!(
            text.chars().all(|c| c == '\n' || !c.is_control()),
            "{text:?}"
        );
        assert_eq!(
            text,
            "error[unknown-key]: no key `\u{241b}[2J`\n --> f:1:6\n  |\n1 | a b: \u{241b}[2J\u{fffd}x\u{fffd}\n  |      ^^^^\n"
        );
    }

    #[test]
    fn errors_beyond_those_that_are_shown_are_one_line() {
        let text = "a\n".repeat(300);
        let mut sink = Sink::new(Source {
            file: "f",
            text: &text,
        });
        for n in 0..300 {
            let span = Span {
                start: 2 * n,
                end: 2 * n + 1,
            };
            sink.error(Code::Unit, span, "wrong").hint("mend it");
        }
        assert!(sink.is_full() && sink.has_errors());
        let found = sink.into_diagnostics().0;
        assert_eq!(found.len(), 101);
        assert_eq!(found[99].line, 100);
        let last = found[100].to_string();
        assert_eq!(
            last,
            "f:1:1: [unit] there are more errors than the first 100 shown here"
        );
    }

    #[test]
    fn long_lines_and_messages_are_cut_around_the_place() {
        let (before, key) = ("é".repeat(5000), "k".repeat(5000));
        let text = rendered(&format!("{before}{key}"), &key);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.iter().all(|line| line.chars().count() < 450),
            "{text}"
        );
        assert!(lines[0].ends_with('…'), "{text}");
        assert_eq!(
            lines[3],
            format!("1 | …{}{}…", "é".repeat(60), "k".repeat(60))
        );
        assert_eq!(
            lines[4],
            format!("  | {}{}", " ".repeat(61), "^".repeat(61))
        );
        let short = rendered(&format!("{}x", "a".repeat(119)), "x");
        assert!(!short.contains('…'), "{short}");
    }
}
