//! Replaces macro calls in a source file, and records the positions that map each replacement back to its call.

use super::macros::CallSite;
use super::tokens::{self, Kind, Token};
use super::{Cursor, Preprocessor};
use crate::diagnostics::Code;
use crate::source::{Expansion, Span};

impl Preprocessor<'_, '_> {
    /// Replaces the macro call at the cursor, including its arguments if the macro takes any.
    pub(super) fn call(&mut self, cursor: &mut Cursor<'_>, kind: Kind, length: usize) {
        let start = cursor.at;
        let first_column = cursor.column();
        let line = cursor.line;
        self.keep_written(cursor);
        let name = &cursor.rest()[..length];
        cursor.at += length;
        let mut input = vec![Token::new(kind, name)];
        let is_function = self.macros.called(name).is_some_and(|m| m.is_function());
        if is_function && !self.gather_arguments(cursor, &mut input) {
            if !self.stopped {
                self.copy(cursor, name);
            }
            return;
        }
        let file_name = self
            .map
            .files
            .get(cursor.file as usize)
            .cloned()
            .unwrap_or_default();
        let site = CallSite {
            file: &file_name,
            line,
        };
        let mut result = self.macros.expand(input, site);
        // An expansion may end in the name of another macro whose arguments follow in the file.
        while let Ok(tokens) = &mut result {
            let Some(last) = tokens.pop_if(|last| self.macros.awaits_arguments(last)) else {
                break;
            };
            let mut more = vec![last.clone()];
            if !self.gather_arguments(cursor, &mut more) {
                tokens.push(last);
                break;
            }
            let before = std::mem::take(tokens);
            result = self.macros.expand(more, site).map(|after| {
                let mut all = before;
                all.extend(after);
                all
            });
        }
        let written = &cursor.text[start..cursor.at];
        let over_lines = written.contains('\n') || cursor.joint_before(cursor.at).is_some();
        let last_column = cursor.column();
        match result {
            Ok(tokens) => {
                // For a call over several lines, the part on the first line.
                let line_end = written.find('\n').map(|n| start + n);
                let first_end = cursor
                    .joint_before(line_end.unwrap_or(cursor.at))
                    .or(line_end);
                let end = match first_end {
                    Some(end) => {
                        let head = cursor.text[start..end].trim_end();
                        first_column + head.chars().count() as u32
                    }
                    None => last_column,
                };
                self.push_expansion(&tokens, (first_column, end));
            }
            Err(message) => {
                self.fault(Code::Macro, written.lines().next().unwrap_or(""), message);
                self.stopped |= self.macros.exhausted();
            }
        }
        if over_lines {
            self.blank_lines(cursor, written);
            let here = self.map.text.len() as u32;
            self.map.expansions.push(Expansion {
                output: Span::new(here, here),
                columns: (last_column, last_column),
            });
            self.keep_written(cursor);
        }
    }

    /// Keeps the current line as the user wrote it, for error messages: the output contains the macro's replacement instead.
    fn keep_written(&mut self, cursor: &Cursor<'_>) {
        let index = self.map.lines.len().saturating_sub(1) as u32;
        // Copied once per line, so that many calls on a long line cost no more than its length.
        self.map
            .written
            .entry(index)
            .or_insert_with(|| cursor.written_line().to_owned());
    }

    fn push_expansion(&mut self, tokens: &[Token], columns: (u32, u32)) {
        let text = tokens::render(tokens);
        if tokens::would_glue(&self.map.text, &text) {
            self.map.text.push(' ');
        }
        let start = self.map.text.len() as u32;
        self.push(&text.replace(['\n', '\r'], " "));
        self.map.expansions.push(Expansion {
            output: Span::new(start, self.map.text.len() as u32),
            columns,
        });
    }

    /// Consumes a macro call's `( … )` from the file, across line ends too. Without a `(`, returns false and consumes nothing.
    fn gather_arguments(&mut self, cursor: &mut Cursor<'_>, input: &mut Vec<Token>) -> bool {
        let rest = cursor.rest();
        let mut at = 0;
        let mut parentheses = 0u32;
        let mut gathered = Vec::new();
        while at < rest.len() {
            let (kind, length) = tokens::first(&rest[at..]);
            let mut token = Token::new(kind, &rest[at..at + length]);
            at += length;
            if token.is_blank() {
                token = Token::new(Kind::Space, " ");
            } else if token.is("(") {
                parentheses += 1;
            } else if parentheses == 0 {
                return false;
            } else if token.is(")") {
                parentheses -= 1;
            }
            gathered.push(token);
            if parentheses == 0 && gathered.last().is_some_and(|t| t.is(")")) {
                break;
            }
        }
        if parentheses > 0 {
            let name = input.first().map_or("", |t| &*t.text);
            let message = format!("the call of macro `{name}` has no closing `)`");
            self.fault(Code::Macro, name.to_owned().as_str(), message);
            self.stopped = true;
            return false;
        }
        if gathered.last().is_none_or(|t| !t.is(")")) {
            return false;
        }
        input.extend(gathered);
        cursor.at += at;
        true
    }
}
