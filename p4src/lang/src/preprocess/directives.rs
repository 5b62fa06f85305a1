//! Handles preprocessor directives: `#include`, `#define`, conditionals, `#line`, `#error`.

use super::condition;
use super::loader::{self, BUILTIN_DIR};
use super::macros::{CallSite, Defined};
use super::tokens::{self, Kind, Token, tokens};
use super::{Cursor, Preprocessor};
use crate::diagnostics::{Code, Diagnostic};
use crate::limits::LIMITS;
use crate::source::Span;
use crate::spelling::unescape;

/// The reason why an `#include` fails.
enum NotFound {
    /// A file that exists but cannot be read: (path, reason).
    Unreadable(String, String),
    /// No file was found at any of these paths.
    Nowhere(Vec<String>),
}

/// An open `#if`, `#ifdef` or `#ifndef`, whose `#endif` has not been read yet.
pub(super) struct Conditional {
    /// Name of the opening directive: `if`, `ifdef`, `ifndef`.
    pub(super) directive: String,
    /// First line of the opening directive, as written.
    pub(super) shown: String,
    /// Position of the opening directive in the output: (line number from 0, empty span at the start of that line).
    pub(super) place: (u32, Span),
    /// Whether the text of the current branch is read; if not, it is skipped.
    pub(super) live: bool,
    /// Whether further branches are skipped: a branch has been or is being read, or the whole conditional is in skipped text.
    done: bool,
    seen_else: bool,
}

impl Preprocessor<'_, '_> {
    /// Handles the directive at the cursor; `lead` is the number of bytes before its `#`.
    pub(super) fn directive(&mut self, cursor: &mut Cursor<'_>, lead: usize) {
        let raw = logical_line(cursor.rest());
        let shown = cursor.written_line().trim_end();
        let body = joined(&raw[lead + 1..]);
        let body = body.trim();
        let word_end = body
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(body.len());
        let (word, args) = body.split_at(word_end);
        let args = args.trim();
        cursor.at += raw.len();
        if self.conditional(cursor, word, args, shown) || !cursor.live() {
            return self.end_directive(cursor, raw);
        }
        match word {
            "include" => return self.include(cursor, args, shown, raw),
            "define" => match self.macros.define(args) {
                Ok(Defined::New) => {}
                Ok(Defined::Changed) => {
                    let span = self.show_comment(shown);
                    let name: String = args.chars().take_while(|c| is_word(*c)).collect();
                    self.sink.push(Diagnostic::warning(
                        Code::Macro,
                        span,
                        format!("macro `{name}` is redefined with a different replacement"),
                    ));
                }
                Err(message) => self.fault(Code::Macro, shown, message),
            },
            "undef" => match args {
                name if !name.is_empty() && name.chars().all(is_word) => {
                    self.macros.undefine(name);
                }
                _ => self.fault(Code::Directive, shown, "expected a name after `#undef`"),
            },
            "error" => {
                let message = if args.is_empty() { "#error" } else { args };
                self.fault(Code::ErrorDirective, shown, message);
            }
            "warning" => {
                let span = self.show_comment(shown);
                self.sink
                    .push(Diagnostic::warning(Code::ErrorDirective, span, args));
            }
            "line" => {
                self.end_directive(cursor, raw);
                return self.line_directive(cursor, args, shown);
            }
            // `# 12 "file" 2`: line markers that other preprocessors write.
            "" if args.is_empty() => {}
            _ if word.bytes().all(|b| b.is_ascii_digit()) => {
                self.end_directive(cursor, raw);
                return self.line_directive(cursor, &format!("{word} {args}"), shown);
            }
            "pragma" => {
                if args == "once"
                    && let Some(path) = self.stack.last()
                {
                    self.once.insert(path.clone());
                }
            }
            _ => self.fault(
                Code::Directive,
                shown,
                format!("`#{word}` is not a directive"),
            ),
        }
        self.end_directive(cursor, raw);
    }

    /// Writes empty lines to the output in place of the directive's lines.
    fn end_directive(&mut self, cursor: &mut Cursor<'_>, raw: &str) {
        if raw.ends_with('\n') {
            self.blank_lines(cursor, raw);
        } else {
            self.blank_lines(cursor, raw);
            self.newline(cursor);
        }
    }

    /// Handles `#if`, `#ifdef`, `#ifndef`, `#elif`, `#else` and `#endif`; returns whether `word` is one of these directives.
    fn conditional(
        &mut self,
        cursor: &mut Cursor<'_>,
        word: &str,
        args: &str,
        shown: &str,
    ) -> bool {
        match word {
            "if" | "ifdef" | "ifndef" => {
                let here = self.map.text.len() as u32;
                let line = self.map.lines.len().saturating_sub(1) as u32;
                let outer = cursor.live();
                let live = outer && self.test(cursor, word, args, shown);
                cursor.conditionals.push(Conditional {
                    directive: word.to_owned(),
                    shown: shown.to_owned(),
                    place: (line, Span::new(here, here)),
                    live,
                    done: live || !outer,
                    seen_else: false,
                });
            }
            "elif" | "else" | "endif" => {
                let Some(mut open) = cursor.conditionals.pop() else {
                    self.fault(Code::Directive, shown, format!("`#{word}` without `#if`"));
                    return true;
                };
                if word == "endif" {
                    return true;
                }
                if open.seen_else {
                    let message = format!("`#{word}` behind `#else`");
                    self.fault(Code::Directive, shown, message);
                }
                open.seen_else |= word == "else";
                open.live = !open.done && (word == "else" || self.test(cursor, "if", args, shown));
                open.done |= open.live;
                cursor.conditionals.push(open);
            }
            _ => return false,
        }
        true
    }

    fn test(&mut self, cursor: &Cursor<'_>, word: &str, args: &str, shown: &str) -> bool {
        if word != "if" {
            let name: String = args.chars().take_while(|c| is_word(*c)).collect();
            if name.is_empty() {
                self.fault(
                    Code::Directive,
                    shown,
                    format!("expected a name after `#{word}`"),
                );
            }
            return self.macros.is_defined(&name) == (word == "ifdef");
        }
        let value = self
            .replace_defined(tokens(args))
            .and_then(|tokens| {
                let file = self.map.files.get(cursor.file as usize).cloned();
                let site = CallSite {
                    file: &file.unwrap_or_default(),
                    line: cursor.line,
                };
                self.macros.expand(tokens, site)
            })
            .and_then(|tokens| condition::evaluate(&tokens::render(&tokens)));
        match value {
            Ok(value) => value != 0,
            Err(message) => {
                self.fault(Code::Directive, shown, message);
                false
            }
        }
    }

    /// Replaces `defined X` and `defined(X)` by 1 or 0.
    fn replace_defined(&self, tokens: Vec<Token>) -> Result<Vec<Token>, String> {
        let mut out = Vec::new();
        let mut rest = tokens.into_iter().peekable();
        while let Some(token) = rest.next() {
            if !token.is("defined") {
                out.push(token);
                continue;
            }
            let mut next = || rest.find(|t| !t.is_blank());
            let mut name = next();
            let parenthesised = name.as_ref().is_some_and(|t| t.is("("));
            if parenthesised {
                name = next();
            }
            let Some(name) = name.filter(|t| t.kind == Kind::Ident) else {
                return Err("expected a name after `defined`".to_owned());
            };
            if parenthesised && !next().is_some_and(|t| t.is(")")) {
                return Err("expected `)` after the name".to_owned());
            }
            let value = if self.macros.is_defined(&name.text) {
                "1"
            } else {
                "0"
            };
            out.push(Token::new(Kind::Number, value));
        }
        Ok(out)
    }

    /// Handles `#line 12 "file"`, which sets the position of the following lines.
    fn line_directive(&mut self, cursor: &mut Cursor<'_>, args: &str, shown: &str) {
        let parts = tokens(args);
        let mut parts = parts.iter().filter(|t| !t.is_blank());
        let number = parts.next().and_then(|t| t.text.parse::<u32>().ok());
        let file = parts.next();
        match (number, file) {
            (Some(number), None) => cursor.line = number,
            (Some(number), Some(file)) if file.kind == Kind::Str => {
                cursor.line = number;
                cursor.file = self.file_index(&unescape(&file.text));
            }
            _ => {
                let message = "expected `#line NUMBER` or `#line NUMBER \"FILE\"`";
                self.fault(Code::Directive, shown, message);
            }
        }
        self.mark_line(cursor);
    }

    fn include(&mut self, cursor: &mut Cursor<'_>, args: &str, shown: &str, raw: &str) {
        let target = match self.include_target(cursor, args) {
            Some(target) => target,
            None => {
                let message = "expected `\"file\"` or `<file>` after `#include`";
                self.fault(Code::Directive, shown, message);
                return self.end_directive(cursor, raw);
            }
        };
        self.includes += 1;
        let deep = self.stack.len() >= LIMITS.include_depth;
        if deep || self.includes > LIMITS.includes {
            let message = match deep {
                true => format!(
                    "`#include`s are nested more than {} deep; does `{}` include itself?",
                    LIMITS.include_depth,
                    shortened(&target.0)
                ),
                false => format!("more than {} files are included", LIMITS.includes),
            };
            self.fault_hint(
                Code::Include,
                shown,
                message,
                Some("guard the included file with `#ifndef` or `#pragma once`".to_owned()),
            );
            self.stopped = true;
            return self.end_directive(cursor, raw);
        }
        match self.find(&target.0, target.1) {
            Ok((path, _)) if self.once.contains(&path) => self.end_directive(cursor, raw),
            Ok((path, text)) if !self.has_room(&shortened(&path), &text, shown) => {
                self.end_directive(cursor, raw);
            }
            Ok((path, text)) => {
                self.file(&path, &text);
                let mut lines = raw.matches('\n').count() as u32;
                while cursor.joint_before(cursor.at).is_some() {
                    cursor.joints += 1;
                    lines += 1;
                }
                cursor.line = cursor.line.saturating_add(lines);
                self.mark_line(cursor);
            }
            Err(NotFound::Unreadable(path, why)) => {
                let message = format!("cannot read `{}`: {why}", shortened(&path));
                self.fault(Code::Include, shown, message);
                self.end_directive(cursor, raw);
            }
            Err(NotFound::Nowhere(tried)) => {
                let message = format!("there is no file `{}` to include", shortened(&target.0));
                let tried: Vec<String> = tried.iter().map(|path| shortened(path)).collect();
                let hint = format!("looked for {}", tried.join(", "));
                self.fault_hint(Code::Include, shown, message, Some(hint));
                self.end_directive(cursor, raw);
            }
        }
    }

    /// File name in an `#include`, and whether it is in quotes. Macros are expanded if the text has no quotes or `<…>`.
    fn include_target(&mut self, cursor: &Cursor<'_>, args: &str) -> Option<(String, bool)> {
        if let Some(target) = quoted(args) {
            return Some(target);
        }
        let file = self.map.files.get(cursor.file as usize).cloned();
        let site = CallSite {
            file: &file.unwrap_or_default(),
            line: cursor.line,
        };
        let expanded = self.macros.expand(tokens(args), site).ok()?;
        quoted(tokens::render(&expanded).trim())
    }

    /// Finds an included file and returns (path, text).
    fn find(&self, name: &str, in_quotes: bool) -> Result<(String, String), NotFound> {
        let mut tried = Vec::new();
        let mut folders: Vec<String> = Vec::new();
        let here = self.stack.last().map_or("", |path| loader::directory(path));
        if in_quotes && !here.starts_with(BUILTIN_DIR) {
            folders.push(here.to_owned());
        }
        folders.extend(self.options.include_dirs.iter().map(|d| format!("{d}/")));
        for folder in folders {
            let path = if name.starts_with('/') {
                name.to_owned()
            } else {
                format!("{folder}{name}")
            };
            let path = loader::normalised(&path);
            if let Some(text) = self.loader.load(&path) {
                return Ok((path, text));
            }
            if let Some(why) = self.loader.why_not(&path) {
                return Err(NotFound::Unreadable(path, why));
            }
            if !tried.contains(&path) {
                tried.push(path);
            }
        }
        let path = format!("{BUILTIN_DIR}/{name}");
        match loader::builtin(name) {
            Some(text) => Ok((path, text.to_owned())),
            None => {
                tried.push(path);
                Err(NotFound::Nowhere(tried))
            }
        }
    }
}

/// A path for an error message, cut to at most 200 characters.
fn shortened(path: &str) -> String {
    const LENGTH: usize = 200;
    match path.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path.to_owned(),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn quoted(args: &str) -> Option<(String, bool)> {
    let (close, in_quotes) = match args.chars().next()? {
        '"' => ('"', true),
        '<' => ('>', false),
        _ => return None,
    };
    let name = args[1..].split(close).next()?;
    let closed = args[1..].len() > name.len();
    (closed && !name.is_empty()).then(|| (name.to_owned(), in_quotes))
}

/// The line at the start of `text`, with its line end, and with the lines that a backslash or a comment joins to it.
pub(crate) fn logical_line(text: &str) -> &str {
    let mut at = 0;
    while at < text.len() {
        let (kind, length) = tokens::first(&text[at..]);
        at += length;
        if kind == Kind::Newline {
            break;
        }
    }
    &text[..at]
}

/// A line and the lines joined to it as one physical line: backslashes with line ends, and comments, become spaces.
fn joined(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let (kind, length) = tokens::first(&text[at..]);
        match kind {
            Kind::Newline | Kind::LineComment | Kind::LongComment | Kind::Space => out.push(' '),
            _ => out.push_str(&text[at..at + length]),
        }
        at += length;
    }
    out
}
