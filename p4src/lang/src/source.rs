//! Positions in the P4 source. The preprocessor writes one buffer; a [`Span`] is a byte range in it, and the [`SourceMap`] maps
//! the span to file, line and column.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// A byte range of the preprocessed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset one past the last byte.
    pub end: u32,
}

impl Span {
    /// Creates the span from `start` up to `end` (exclusive).
    pub fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// The smallest span that covers `self` and `other`.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// The empty span directly after this span: the position at which something is missing.
    pub fn after(self) -> Span {
        Span {
            start: self.end,
            end: self.end,
        }
    }
}

/// The replacement of a macro call in the preprocessed text; the source map needs it to compute columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// Span of the replacement in the preprocessed text.
    pub output: Span,
    /// Columns of the macro call in the user's source: (start, end), 1-based, in characters.
    pub columns: (u32, u32),
}

/// Maps spans to the source as the user wrote it.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    /// The preprocessed text.
    pub text: String,
    /// Start of each preprocessed line: (byte offset, index into `files`, line number in that file). Lines joined by a backslash
    /// have one entry each, although no line end separates them in the text.
    pub lines: Vec<(u32, u32, u32)>,
    /// Names of the source files, as written in `#include`.
    pub files: Vec<String>,
    /// Replacements of macro calls, sorted by their offset in the preprocessed text.
    pub expansions: Vec<Expansion>,
    /// Source lines that differ from the preprocessed text, as the user wrote them, by index into `lines`.
    pub written: BTreeMap<u32, String>,
}

/// A source position as messages show it: file, line and column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// File name, as written in `#include`.
    pub file: String,
    /// Line number in the file, from 1.
    pub line: u32,
    /// Column in the line, from 1, in characters.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Returns the text without characters that move a terminal's cursor or change its colors: replaces control characters by
/// their Unicode control pictures or by U+FFFD, as source excerpts show them.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        c if is_hidden(c) => '\u{fffd}',
        c => c,
    };
    Cow::Owned(text.chars().map(picture).collect())
}

/// Whether `c` is a control character or changes the writing direction of text.
fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Longest run of empty lines that [`SourceMap::with_line_markers`] copies; a `#line` marker replaces a longer run.
const MAX_BLANK_RUN: usize = 8;

impl SourceMap {
    /// Creates the source map of one text that is not preprocessed.
    pub fn plain(file: &str, text: &str) -> SourceMap {
        let mut lines = vec![(0, 0, 1)];
        for (at, _) in text.match_indices('\n') {
            lines.push((at as u32 + 1, 0, lines.len() as u32 + 1));
        }
        SourceMap {
            text: text.to_owned(),
            lines,
            files: vec![file.to_owned()],
            ..SourceMap::default()
        }
    }

    /// The file, line and column at which a span starts.
    pub fn location(&self, span: Span) -> Location {
        let index = self.line_index(span.start);
        let Some(&(line_start, file, line)) = self.lines.get(index) else {
            return Location {
                file: self.file_name(0),
                line: 1,
                column: 1,
            };
        };
        Location {
            file: self.file_name(file),
            line,
            column: self.column(line_start, span.start),
        }
    }

    /// The line with index `index` in `lines` as the user wrote it, without its line end.
    pub fn written_line(&self, index: usize) -> &str {
        match self.written.get(&(index as u32)) {
            Some(line) => line,
            None => self.line_text(index),
        }
    }

    /// The byte range of `written_line(index)` that a span covers; for a span in a macro's replacement, the whole macro call.
    pub fn written_range(&self, index: usize, span: Span) -> Range<usize> {
        let line_start = self.lines.get(index).map_or(0, |l| l.0);
        let line = self.written_line(index);
        let line_end = line_start + self.line_text(index).len() as u32;
        let start = span.start.clamp(line_start, line_end);
        let end = span.end.clamp(start, line_end);
        if !self.written.contains_key(&(index as u32)) {
            return (start - line_start) as usize..(end - line_start) as usize;
        }
        let byte = |column: u32| {
            let mut chars = line.char_indices().map(|(at, _)| at);
            let nth = chars.nth(column.saturating_sub(1) as usize);
            nth.unwrap_or(line.len())
        };
        let first = self.column(line_start, start);
        let last = match self.expansion_at(line_start, end) {
            // The end of the call, not its start: the span covers a part of the expansion.
            Some(e) if e.output.start < end && end < e.output.end => e.columns.1,
            _ => self.column(line_start, end),
        };
        let first = byte(first);
        first..byte(last).max(first)
    }

    /// The text that replaced a macro call; `None` if the span does not start inside such a replacement.
    pub fn expansion_of(&self, span: Span) -> Option<&str> {
        let line_start = self.lines.get(self.line_index(span.start))?.0;
        let e = self.expansion_at(line_start, span.start)?;
        (span.start < e.output.end).then(|| self.slice(e.output))
    }

    /// The name of the file with index `file`, passed through [`visible`]: a `#line` directive can hold any name.
    fn file_name(&self, file: u32) -> String {
        let name = self.files.get(file as usize).map_or("", String::as_str);
        visible(name).into_owned()
    }

    /// An empty span at the end of the compiled file's last non-blank line, for errors about something that the file lacks.
    pub(crate) fn end_of_main(&self) -> Span {
        let own = |index: &usize| self.lines.get(*index).is_some_and(|line| line.1 == 0);
        let lines = || (0..self.lines.len()).rev().filter(own);
        let last = lines().find(|index| !self.line_text(*index).trim().is_empty());
        let Some(index) = last.or_else(|| lines().next_back()) else {
            return Span::default();
        };
        let start = self.lines.get(index).map_or(0, |line| line.0);
        let end = start + self.line_text(index).trim_end().len() as u32;
        Span::new(end, end)
    }

    /// Whether a span starts in the compiled file itself and not in a file that it includes.
    pub(crate) fn in_main(&self, span: Span) -> bool {
        let line = self.lines.get(self.line_index(span.start));
        line.is_some_and(|line| line.1 == 0)
    }

    /// The preprocessed text that a span covers.
    pub fn slice(&self, span: Span) -> &str {
        self.text
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// Index in `lines` of the line that holds the byte `offset` of the preprocessed text.
    pub fn line_index(&self, offset: u32) -> usize {
        self.lines
            .partition_point(|&(start, _, _)| start <= offset)
            .saturating_sub(1)
    }

    /// Preprocessed text of the line with index `index` in `lines`, without its line end.
    pub fn line_text(&self, index: usize) -> &str {
        let start = self.lines.get(index).map_or(0, |l| l.0 as usize);
        let end = self
            .lines
            .get(index + 1)
            .map_or(self.text.len(), |l| l.0 as usize);
        self.text
            .get(start..end)
            .unwrap_or_default()
            .trim_end_matches(['\n', '\r'])
    }

    /// The preprocessed text as one self-contained file; `#line` markers keep the original positions.
    pub fn with_line_markers(&self) -> String {
        let mut out = String::with_capacity(self.text.len() + 256);
        let mut expected: Option<(u32, u32)> = None;
        let mut blank = 0usize;
        for (index, &(_, file, line)) in self.lines.iter().enumerate() {
            let text = self.line_text(index);
            let joined = self.is_joined(index);
            if text.trim().is_empty() && !joined && !self.is_joined(index + 1) {
                blank += 1;
                continue;
            }
            if joined {
                // Remove the line end that the previous line ended with.
                out.pop();
                out.push_str("\\\n");
                out.push_str(text);
                out.push('\n');
                expected = Some((file, line + 1));
                continue;
            }
            let reachable = expected
                .is_some_and(|(f, next)| f == file && next + blank as u32 == line)
                && blank <= MAX_BLANK_RUN;
            if reachable {
                out.extend(std::iter::repeat_n('\n', blank));
            } else {
                let name = self.files.get(file as usize).map_or("", String::as_str);
                let name = name.replace('\\', "\\\\").replace('"', "\\\"");
                out.push_str(&format!("#line {line} \"{name}\"\n"));
            }
            blank = 0;
            out.push_str(text);
            out.push('\n');
            expected = Some((file, line + 1));
        }
        out
    }

    /// Whether the line with index `index` in `lines` continues the preprocessed text of the previous line.
    fn is_joined(&self, index: usize) -> bool {
        let start = self.lines.get(index).map_or(0, |line| line.0 as usize);
        start > 0 && self.text.as_bytes().get(start - 1) != Some(&b'\n')
    }

    fn column(&self, line_start: u32, offset: u32) -> u32 {
        let chars = |from: u32, to: u32| {
            self.text
                .get(from as usize..to as usize)
                .map_or(0, |t| t.chars().count() as u32)
        };
        match self.expansion_at(line_start, offset) {
            Some(e) if offset < e.output.end => e.columns.0,
            Some(e) => e.columns.1 + chars(e.output.end, offset),
            None => 1 + chars(line_start, offset),
        }
    }

    /// The last macro replacement in a line that starts at or before the byte `offset`; `line_start` is the line's first byte.
    fn expansion_at(&self, line_start: u32, offset: u32) -> Option<&Expansion> {
        let last = self
            .expansions
            .partition_point(|e| e.output.start <= offset);
        let e = self.expansions.get(last.checked_sub(1)?)?;
        (e.output.start >= line_start).then_some(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_counts_lines_and_characters() {
        let map = SourceMap::plain("a.p4", "é x\n  yy\n");
        let at = |s| map.location(Span::new(s, s)).to_string();
        assert_eq!(at(0), "a.p4:1:1");
        assert_eq!(at(3), "a.p4:1:3");
        assert_eq!(at(7), "a.p4:2:3");
    }

    #[test]
    fn a_place_holds_no_control_characters() {
        let map = SourceMap::plain("a\x1b[31m\x07\u{9b}\u{202e}.p4", "x");
        let at = map.location(Span::default()).to_string();
        assert_eq!(at, "a\u{241b}[31m\u{2407}\u{fffd}\u{fffd}.p4:1:1");
        assert_eq!(visible("é 日本"), "é 日本");
    }

    #[test]
    fn a_column_inside_an_expansion_is_the_calls() {
        // The source `A + b`, where A expands to 12345.
        let mut map = SourceMap::plain("a.p4", "12345 + b\n");
        map.expansions.push(Expansion {
            output: Span::new(0, 5),
            columns: (1, 2),
        });
        let column = |s| map.location(Span::new(s, s)).column;
        assert_eq!(column(3), 1);
        assert_eq!(column(6), 3);
        assert_eq!(column(8), 5);
        map.written.insert(0, "A + b".to_owned());
        let range = |a, b| map.written_range(0, Span::new(a, b));
        assert_eq!(range(1, 3), 0..1, "in the expansion");
        assert_eq!(range(8, 9), 4..5, "behind it");
        assert_eq!(range(0, 9), 0..5, "all");
        assert_eq!(range(5, 5), 1..1, "where something is missing");
        assert_eq!(map.expansion_of(Span::new(3, 4)), Some("12345"));
        assert_eq!(map.expansion_of(Span::new(5, 5)), None);
    }
}
