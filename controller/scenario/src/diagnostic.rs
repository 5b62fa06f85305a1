//! What is wrong with a file, where, and what to write instead.

use std::fmt;

use serde::Serialize;

/// A range of bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A value and where it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands in the file.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Pairs a value with its place.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }

    /// The same place, another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned {
            value: f(self.value),
            span: self.span,
        }
    }
}

/// The kind of a diagnostic; its text form is stable, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// Not YAML.
    Syntax,
    /// A key that the schema does not have.
    UnknownKey,
    /// A key that the schema asks for.
    MissingKey,
    /// The same key twice in a mapping, or the same name twice in a section.
    Duplicate,
    /// A list where a mapping is wanted, and the like.
    WrongType,
    /// No unit, an unknown unit, or one of another dimension.
    Unit,
    /// A number or size outside its range.
    OutOfRange,
    /// A variant of an enumeration that does not exist.
    UnknownVariant,
    /// A flow, host, switch, step or fault that is not declared.
    UnknownName,
    /// `weir:` names a version that this program does not read.
    Version,
    /// A filter that does not parse or does not type-check.
    Filter,
    /// The topology is not one network, or its addresses collide.
    Topology,
    /// No path of the network carries the flow.
    Unreachable,
    /// No single place sees every packet of a flow exactly once.
    Placement,
    /// An effect that the place cannot make.
    Effect,
    /// Two faults that cannot both do what the file says.
    Contradiction,
    /// Two faults whose doings captures would take for each other's.
    Unprovable,
    /// A fault that may hit a protected flow.
    Protected,
    /// More than the switch holds.
    Capacity,
    /// An expectation that does not parse or does not type-check.
    Expectation,
    /// An expectation that did not hold.
    Unmet,
    /// A metric that the run did not deliver.
    MissingMetric,
    /// Legal, and probably not meant.
    Suspicious,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "syntax",
            Self::UnknownKey => "unknown-key",
            Self::MissingKey => "missing-key",
            Self::Duplicate => "duplicate",
            Self::WrongType => "wrong-type",
            Self::Unit => "unit",
            Self::OutOfRange => "out-of-range",
            Self::UnknownVariant => "unknown-variant",
            Self::UnknownName => "unknown-name",
            Self::Version => "version",
            Self::Filter => "filter",
            Self::Topology => "topology",
            Self::Unreachable => "unreachable",
            Self::Placement => "placement",
            Self::Effect => "effect",
            Self::Contradiction => "contradiction",
            Self::Unprovable => "unprovable",
            Self::Protected => "protected",
            Self::Capacity => "capacity",
            Self::Expectation => "expectation",
            Self::Unmet => "unmet",
            Self::MissingMetric => "missing-metric",
            Self::Suspicious => "suspicious",
        })
    }
}

/// Whether a diagnostic stops the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// It does.
    Error,
    /// It does not.
    Warning,
}

/// Another place that a diagnostic speaks of, perhaps in another file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Related {
    /// File name as given to [`Source`].
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Bytes.
    pub span: Span,
    /// What stands there.
    pub message: String,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// What kind.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// File name as given to [`Source`].
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Bytes.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Other places.
    pub related: Vec<Related>,
}

impl Diagnostic {
    /// Adds what to do about it.
    pub fn hint(&mut self, hint: impl Into<String>) -> &mut Self {
        self.hint = Some(shown(&hint.into(), MESSAGE));
        self
    }

    /// Adds a place in the same or another file.
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

    /// The message with the line it speaks of, for a terminal without colours.
    #[must_use]
    pub fn render(&self, source: &Source<'_>) -> String {
        let (line, column) = excerpt(source.line(self.line), self.column);
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let rest_of_line = line.chars().count().saturating_sub(column - 1);
        let width = source
            .text
            .get(self.span.start..self.span.end)
            .map_or(1, |text| text.chars().count());
        let caret = "^".repeat(width.min(rest_of_line).max(1));
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

/// Characters of a message or hint at most.
const MESSAGE: usize = 400;
/// Characters of a line that are shown at most, and how many of them stand before the place.
const LINE: (usize, usize) = (120, 60);

/// Text of a file or of a message, so that a terminal shows it and does not obey it: a control character becomes its
/// picture, one that turns the order of others a question mark, and each remains one character.
fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        c => c,
    }
}

/// The same of a text, and no more than so many characters of it.
fn shown(text: &str, most: usize) -> String {
    // Messages of several lines are ours.
    let mut shown: String = text
        .chars()
        .take(most)
        .map(|c| if c == '\n' { c } else { visible(c) })
        .collect();
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

/// What is shown of a line, and at which column of that the place is.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    let (most, before) = LINE;
    let skipped = if line.chars().count() > most {
        (column - 1).saturating_sub(before)
    } else {
        0
    };
    let rest: String = line.chars().skip(skipped).collect();
    let shown = shown(&rest, most);
    if skipped == 0 {
        return (shown, column);
    }
    (format!("…{shown}"), column - skipped + 1)
}

/// Everything found wrong with a set of files, in file order.
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

/// A file's name and text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// As the user wrote it on the command line.
    pub file: &'a str,
    /// The whole text.
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// Line and column of a byte, both from 1; columns count characters.
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

/// Collects what is wrong with one file, so that one run reports it all.
#[derive(Debug)]
pub struct Sink<'a> {
    source: Source<'a>,
    found: Vec<Diagnostic>,
}

impl<'a> Sink<'a> {
    /// Nothing found yet.
    #[must_use]
    pub fn new(source: Source<'a>) -> Self {
        Self {
            source,
            found: Vec::new(),
        }
    }

    /// The file that is spoken of.
    #[must_use]
    pub fn source(&self) -> Source<'a> {
        self.source
    }

    /// Reports an error; hint and related places may be added to what comes back.
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Error, code, span, message.into())
    }

    /// Reports something that does not stop the run.
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
        let (line, column) = self.source.position(span.start);
        let file = self.source.file.to_owned();
        let at = self.found.len();
        self.found.push(Diagnostic {
            code,
            severity,
            file,
            line,
            column,
            span,
            message: shown(&message, MESSAGE),
            hint: None,
            related: Vec::new(),
        });
        &mut self.found[at]
    }

    /// Whether an error was reported.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.found.iter().any(|d| d.severity == Severity::Error)
    }

    /// What was found, in file order.
    #[must_use]
    pub fn into_diagnostics(mut self) -> Diagnostics {
        self.found.sort_by_key(|d| (d.span.start, d.code));
        // An aliased value is read, and refused, wherever it is used.
        self.found.dedup();
        Diagnostics(self.found)
    }
}

/// The candidate that a misspelt name most likely meant.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // At least one letter must be right.
    let allowed = (name.chars().count() / 3)
        .max(1)
        .min(name.chars().count().saturating_sub(1));
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::osa_distance(&name.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `a`, `b` and `c`.
#[must_use]
pub fn enumerate_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
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

    #[test]
    fn nearest_finds_typos_and_nothing_else() {
        let names = ["effect", "select", "flows"];
        assert_eq!(nearest("efect", names), Some("effect"));
        assert_eq!(nearest("slecet", names), Some("select"));
        assert_eq!(nearest("Flow", names), Some("flows"));
        assert_eq!(nearest("colour", names), None);
    }
}
