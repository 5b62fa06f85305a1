//! The preprocessor of P4 (P4_16 1.2.5, section 5.3): `#include`, `#define` and `#undef`, conditionals, `#line`, `#error`;
//! function-like macros too, which every P4 compiler that calls `cpp` supports.
//!
//! The output keeps the source's lines: a directive leaves an empty line, and the output's line map has one entry per source
//! line. Lines that a backslash joins are one output line with several entries. Comments and faulty directives stay.

mod calls;
mod condition;
mod directives;
mod loader;
mod macros;
mod splice;
mod target;
mod tokens;

pub(crate) use directives::logical_line;

pub use loader::{BUILTIN_DIR, Files, Loader, builtin, source_text};

use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::limits::LIMITS;
use crate::source::{SourceMap, Span};
use directives::Conditional;
use hashbrown::HashMap;
use macros::Macros;
use splice::Spliced;
use std::collections::BTreeSet;
use tokens::Kind;

/// Options of the preprocessor, given by the compiler's caller.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Macros defined before the first line: (name, body), as `("N", "8")` for `-DN=8`; the name may have parameters.
    pub defines: Vec<(String, String)>,
    /// Include folders, searched in this order, after the including file's own folder and before the built-in files.
    pub include_dirs: Vec<String>,
}

/// Reads `path` and all its includes into one text. Errors go to the sink; their spans refer to the returned map.
///
/// Macros of the target's compiler driver are defined before the first line. The architecture's include file determines the
/// target, so a source that uses one of those macros is read a second time once that file is known.
pub fn preprocess(
    loader: &dyn Loader,
    path: &str,
    options: &Options,
    sink: &mut Sink,
) -> SourceMap {
    let mut found = Sink::new();
    let (map, asked) = read(loader, path, options, &[], &mut found);
    let driver = match asked {
        true => target::macros(&map.files),
        false => &[],
    };
    if driver.is_empty() {
        sink.append(found);
        return map;
    }
    read(loader, path, options, driver, sink).0
}

/// Reads the source once; returns the source map, and whether the source names a macro that a compiler driver defines.
fn read(
    loader: &dyn Loader,
    path: &str,
    options: &Options,
    driver: &[(&str, &str)],
    sink: &mut Sink,
) -> (SourceMap, bool) {
    let mut pre = Preprocessor {
        loader,
        options,
        asks_target: false,
        macros: Macros::default(),
        file_numbers: HashMap::new(),
        once: BTreeSet::new(),
        includes: 0,
        bytes_read: 0,
        stack: Vec::new(),
        map: SourceMap::default(),
        sink,
        stopped: false,
    };
    let path = loader::normalised(path);
    pre.file_index(&path);
    pre.map.lines.push((0, 0, 1));
    for (name, body) in driver {
        // These definitions are well-formed; the caller's options override them.
        let _ = pre.macros.define(&format!("{name} {body}"));
    }
    for (name, body) in &options.defines {
        if let Err(message) = pre.macros.define(&format!("{name} {body}")) {
            pre.fault(
                Code::Macro,
                &format!("{name}={body}"),
                format!("in a macro that an option defines: {message}"),
            );
        }
    }
    match loader.load(&path) {
        Some(text) => {
            if pre.has_room(&path, &text, "") {
                pre.file(&path, &text);
            }
        }
        None => {
            let message = match loader.why_not(&path) {
                Some(why) => format!("cannot read `{path}`: {why}"),
                None => format!("there is no file `{path}`"),
            };
            pre.fault(Code::Include, "", message);
        }
    }
    (pre.map, pre.asks_target)
}

struct Preprocessor<'o, 's> {
    loader: &'o dyn Loader,
    options: &'o Options,
    /// Whether a file of the program names a macro that a compiler driver defines.
    asks_target: bool,
    macros: Macros,
    /// Index of each file name in the source map's `files`.
    file_numbers: HashMap<String, u32>,
    /// Names of the files that contain `#pragma once` and have been read.
    once: BTreeSet<String>,
    includes: u32,
    bytes_read: usize,
    /// Paths of the files that are being read, the innermost include last.
    stack: Vec<String>,
    map: SourceMap,
    sink: &'s mut Sink,
    /// Whether a limit was reached, so that reading stops.
    stopped: bool,
}

/// The read position in one source file.
struct Cursor<'t> {
    /// The file's text with joined lines, which is also in `spliced`.
    text: &'t str,
    spliced: &'t Spliced<'t>,
    /// Number of joints (places where a backslash joined two lines) in `spliced` that the cursor has passed.
    joints: usize,
    at: usize,
    /// Line number in the file, from 1, which `#line` may set.
    line: u32,
    file: u32,
    conditionals: Vec<Conditional>,
    /// The position up to which `column` has counted: (byte, column there).
    counted: (usize, u32),
}

impl<'t> Cursor<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn live(&self) -> bool {
        self.conditionals.last().is_none_or(|c| c.live)
    }

    /// Byte of the next joint (place where a backslash joined two lines) in the joined text; `None` if it is not before `end`.
    fn joint_before(&self, end: usize) -> Option<usize> {
        self.spliced.joint(self.joints).filter(|at| *at < end)
    }

    /// Number of joints (places where a backslash joined two lines) up to the cursor; one at the cursor counts if it is passed.
    fn joints_here(&self) -> usize {
        self.joints.max(self.spliced.joints_before(self.at))
    }

    /// The line of the file that contains the cursor, as written.
    fn written_line(&self) -> &'t str {
        self.spliced.line(self.at, self.joints_here())
    }

    /// Column of the cursor in its line, from 1. Calls in the same line must come in the order of their positions.
    fn column(&mut self) -> u32 {
        let (from, column) = self.counted;
        let last_joint = self.joints_here().checked_sub(1);
        let last_joint = last_joint.and_then(|n| self.spliced.joint(n));
        let (from, column) = match last_joint {
            Some(joint) if joint >= from => (joint, 1),
            _ => (from, column),
        };
        let between = self.text.get(from..self.at).unwrap_or_default();
        let column = match between.rfind('\n') {
            Some(n) => between[n + 1..].chars().count() as u32 + 1,
            None => column + between.chars().count() as u32,
        };
        self.counted = (self.at, column);
        column
    }
}

impl Preprocessor<'_, '_> {
    /// Counts a file before it is read. If a limit is exceeded, reports an error at `shown`, the directive that includes it.
    fn has_room(&mut self, path: &str, text: &str, shown: &str) -> bool {
        self.bytes_read += text.len();
        let fits = self.bytes_read <= LIMITS.source_bytes;
        if !fits {
            let most = LIMITS.source_bytes >> 20;
            let message = format!("the source, with `{path}`, exceeds {most} MiB");
            self.fault(Code::Limit, shown, message);
            self.stopped = true;
        }
        fits
    }

    /// Reads one file from its first line; afterwards the output is at the start of a line.
    fn file(&mut self, path: &str, text: &str) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        self.asks_target |= !path.starts_with(BUILTIN_DIR) && target::asks(text);
        let spliced = Spliced::new(text);
        let text = &*spliced.text;
        let file = self.file_index(path);
        self.stack.push(path.to_owned());
        let mut cursor = Cursor {
            text,
            spliced: &spliced,
            joints: 0,
            at: 0,
            line: 1,
            file,
            conditionals: Vec::new(),
            counted: (0, 1),
        };
        self.mark_line(&cursor);
        while cursor.at < text.len() && !self.stopped {
            self.line(&mut cursor);
        }
        if !self.map.text.is_empty() && !self.map.text.ends_with('\n') {
            self.newline(&mut cursor);
        }
        for open in std::mem::take(&mut cursor.conditionals) {
            let (line, span) = open.place;
            self.map.written.insert(line, open.shown);
            let message = format!("`#{}` without `#endif`", open.directive);
            self.sink.error(Code::Directive, span, message);
        }
        self.stack.pop();
    }

    /// Reads one line of the file, and the further lines into which its comments or macro calls extend.
    fn line(&mut self, cursor: &mut Cursor<'_>) {
        self.pass_joints(cursor);
        let lead = leading_blank(cursor.rest());
        if is_directive(cursor.rest()) {
            return self.directive(cursor, lead);
        }
        while cursor.at < cursor.text.len() && !self.stopped {
            self.pass_joints(cursor);
            let (kind, length) = tokens::first(cursor.rest());
            let text = &cursor.rest()[..length];
            if kind == Kind::Newline {
                cursor.at += length;
                self.newline(cursor);
                return;
            }
            if !cursor.live() {
                cursor.at += length;
                self.blank_lines(cursor, text);
                continue;
            }
            if kind == Kind::Ident
                && (self.macros.called(text).is_some() || macros::is_builtin(text))
            {
                self.call(cursor, kind, length);
                continue;
            }
            let from = cursor.at;
            cursor.at += length;
            if kind == Kind::LineComment
                && let Some(joint) = cursor.joint_before(cursor.at)
            {
                let start = self.map.text.len() as u32;
                let first = text[..joint - from].trim_end();
                self.copy(cursor, text);
                self.warn_of_continued(Span::new(start, start + first.len() as u32));
            } else {
                self.copy(cursor, text);
            }
        }
    }

    /// Warns of a `//` comment that a backslash extends to the next line, which is rarely intended.
    fn warn_of_continued(&mut self, comment: Span) {
        let message = "this comment ends in a backslash, so the next line belongs to it";
        self.sink.push(
            Diagnostic::warning(Code::Lint, comment, message)
                .hint("remove the backslash, or write `/* … */`"),
        );
    }

    /// Copies `text`, which begins at the cursor, to the output unchanged.
    fn copy(&mut self, cursor: &mut Cursor<'_>, text: &str) {
        let behind_expansion = self
            .map
            .expansions
            .last()
            .is_some_and(|e| e.output.end as usize == self.map.text.len());
        if behind_expansion && tokens::would_glue(&self.map.text, text) {
            self.map.text.push(' ');
            if let Some(last) = self.map.expansions.last_mut() {
                last.output.end += 1;
            }
        }
        let mut rest = text;
        while let Some(joint) = cursor.joint_before(cursor.at) {
            let (head, tail) = rest.split_at(joint + rest.len() - cursor.at);
            self.copy_lines(cursor, head);
            self.join_line(cursor);
            rest = tail;
        }
        self.copy_lines(cursor, rest);
    }

    fn copy_lines(&mut self, cursor: &mut Cursor<'_>, text: &str) {
        let mut parts = text.split('\n');
        if let Some(first) = parts.next() {
            self.push(first);
        }
        for part in parts {
            self.newline(cursor);
            self.push(part);
        }
    }

    /// Writes only the line ends in `text`, which begins at the cursor, to the output.
    fn blank_lines(&mut self, cursor: &mut Cursor<'_>, text: &str) {
        for _ in text.matches('\n') {
            self.newline(cursor);
        }
        while cursor.joint_before(cursor.at).is_some() {
            cursor.joints += 1;
            self.newline(cursor);
        }
    }

    /// Moves past the joints of lines at the cursor, where the file has backslashes and line ends that were removed.
    fn pass_joints(&mut self, cursor: &mut Cursor<'_>) {
        while cursor.joint_before(cursor.at + 1).is_some() {
            self.join_line(cursor);
        }
    }

    /// Continues the output line with the next line of the file, and adds an element for that line to the line map.
    fn join_line(&mut self, cursor: &mut Cursor<'_>) {
        if let Some(joint) = cursor.spliced.joint(cursor.joints) {
            let index = self.map.lines.len().saturating_sub(1) as u32;
            let written = || cursor.spliced.line(joint, cursor.joints).to_owned();
            self.map.written.entry(index).or_insert_with(written);
        }
        cursor.joints += 1;
        cursor.line = cursor.line.saturating_add(1);
        self.begin_line(cursor);
    }

    fn push(&mut self, text: &str) {
        self.map.text.push_str(text);
        if self.map.text.len() > LIMITS.source_bytes {
            self.stop(format!(
                "the preprocessed source exceeds {} MiB",
                LIMITS.source_bytes >> 20
            ));
        }
    }

    fn newline(&mut self, cursor: &mut Cursor<'_>) {
        self.map.text.push('\n');
        cursor.line = cursor.line.saturating_add(1);
        self.begin_line(cursor);
    }

    fn begin_line(&mut self, cursor: &Cursor<'_>) {
        self.mark_line(cursor);
        if self.map.lines.len() > LIMITS.lines {
            self.stop(format!("the source has more than {} lines", LIMITS.lines));
        }
    }

    /// Maps the output line that begins here to the cursor's line in its file.
    fn mark_line(&mut self, cursor: &Cursor<'_>) {
        let entry = (self.map.text.len() as u32, cursor.file, cursor.line);
        match self.map.lines.last_mut() {
            Some(last) if last.0 == entry.0 => *last = entry,
            _ => self.map.lines.push(entry),
        }
    }

    fn file_index(&mut self, name: &str) -> u32 {
        if let Some(number) = self.file_numbers.get(name) {
            return *number;
        }
        let number = self.map.files.len() as u32;
        self.map.files.push(name.to_owned());
        self.file_numbers.insert(name.to_owned(), number);
        number
    }

    /// Reports an error; `shown` is written to the output on a line of its own, so that the error's span can refer to it.
    fn fault(&mut self, code: Code, shown: &str, message: impl Into<String>) {
        self.fault_hint(code, shown, message, None);
    }

    fn fault_hint(
        &mut self,
        code: Code,
        shown: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        let span = self.show(shown);
        let mut diagnostic = Diagnostic::error(code, span, message);
        diagnostic.hint = hint;
        self.sink.push(diagnostic);
    }

    /// Writes faulty text to the output and returns its span, for an error message.
    fn show(&mut self, text: &str) -> Span {
        let start = self.map.text.len() as u32;
        self.push(text);
        Span::new(start, self.map.text.len() as u32)
    }

    /// Writes a directive to the output as a comment, and returns its span; messages show the directive as written.
    fn show_comment(&mut self, directive: &str) -> Span {
        let written = directive.trim_start();
        let span = self.show(&format!("// {written}"));
        if let Some(line) = self.map.lines.len().checked_sub(1) {
            self.map.written.insert(line as u32, written.to_owned());
        }
        span
    }

    fn stop(&mut self, message: String) {
        if !self.stopped {
            self.stopped = true;
            let here = self.map.text.len() as u32;
            self.sink.error(Code::Limit, Span::new(here, here), message);
        }
    }
}

/// Whether the line at the start of `text` is a directive.
pub(crate) fn is_directive(text: &str) -> bool {
    text[leading_blank(text)..].starts_with('#')
}

/// Number of bytes of white space and one-line comments at the start of a line.
fn leading_blank(text: &str) -> usize {
    let mut at = 0;
    while at < text.len() {
        let (kind, length) = tokens::first(&text[at..]);
        if kind != Kind::Space {
            break;
        }
        at += length;
    }
    at
}

#[cfg(test)]
mod tests;
