//! Preprocessing tokens: coarser than P4's tokens, and with white space and comments among them.

use std::rc::Rc;

use crate::spelling::{continuation, line_comment};

/// Kinds of preprocessing tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a reserved word.
    Ident,
    /// A token that starts with a digit.
    Number,
    /// A string or character literal, `"…"` or `'…'`, closed or ended by the end of the line.
    Str,
    /// White space within a line, a backslash that continues the line, or a block comment without a line end.
    Space,
    /// A block comment that extends over several lines.
    LongComment,
    /// A `//` comment, with the lines that a backslash joins to it.
    LineComment,
    /// The end of a line.
    Newline,
    /// Any other single character.
    Punct,
}

/// The token at the start of `text`, which is not empty, as (kind, length in bytes). A backslash at a line's end occurs only
/// where lines have not been joined, and counts as white space.
pub(super) fn first(text: &str) -> (Kind, usize) {
    if let Some(length) = continuation(text) {
        return (Kind::LongComment, length);
    }
    let bytes = text.as_bytes();
    let run = |keep: fn(u8) -> bool| bytes.iter().position(|&b| !keep(b)).unwrap_or(bytes.len());
    match bytes[0] {
        b'\n' => (Kind::Newline, 1),
        b'\r' if bytes.get(1) == Some(&b'\n') => (Kind::Newline, 2),
        b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c' => (
            Kind::Space,
            run(|b| matches!(b, b' ' | b'\t' | b'\x0b' | b'\x0c')).max(1),
        ),
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
            (Kind::Ident, run(|b| b.is_ascii_alphanumeric() || b == b'_'))
        }
        b'0'..=b'9' => (
            Kind::Number,
            run(|b| b.is_ascii_alphanumeric() || b == b'_'),
        ),
        b'"' => (Kind::Str, string(bytes)),
        b'/' if text.starts_with("//") => (Kind::LineComment, line_comment(text)),
        b'/' if text.starts_with("/*") => {
            let end = text[2..].find("*/").map_or(text.len(), |n| n + 4);
            if text[..end].contains('\n') {
                (Kind::LongComment, end)
            } else {
                (Kind::Space, end)
            }
        }
        _ => (Kind::Punct, text.chars().next().map_or(1, char::len_utf8)),
    }
}

/// Length in bytes of a string literal; an unclosed literal ends at the end of its line.
fn string(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\n' => return at,
            b'\\'
                if bytes
                    .get(at + 1)
                    .is_some_and(|&b| b != b'\n' && b.is_ascii()) =>
            {
                at += 2
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Sorted ids of the macros from whose expansion a token came; these macros do not expand it again.
pub(super) type HideSet = Rc<[u32]>;

/// A token during macro expansion.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: Rc<str>,
    pub(super) hide: HideSet,
    /// Whether the token directly followed its predecessor in the source, so that no space may be inserted.
    pub(super) joined: bool,
}

impl Token {
    pub(super) fn new(kind: Kind, text: &str) -> Token {
        Token {
            kind,
            text: text.into(),
            hide: Rc::new([]),
            joined: true,
        }
    }

    pub(super) fn is(&self, text: &str) -> bool {
        &*self.text == text
    }

    pub(super) fn is_blank(&self) -> bool {
        matches!(
            self.kind,
            Kind::Space | Kind::LongComment | Kind::LineComment | Kind::Newline
        )
    }
}

/// Splits text into preprocessing tokens; each run of white space and comments becomes one space, and is dropped at both ends.
pub(super) fn tokens(mut text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut blank = false;
    while !text.is_empty() {
        let (kind, length) = first(text);
        let (head, tail) = text.split_at(length);
        let token = Token::new(kind, head);
        if token.is_blank() {
            blank = !tokens.is_empty();
        } else {
            if std::mem::take(&mut blank) {
                tokens.push(Token::new(Kind::Space, " "));
            }
            tokens.push(token);
        }
        text = tail;
    }
    tokens
}

/// The text of the tokens, with a space between two tokens that were apart and would otherwise merge.
pub(super) fn render(tokens: &[Token]) -> String {
    let mut text = String::new();
    for token in tokens {
        if !token.joined && would_glue(&text, &token.text) {
            text.push(' ');
        }
        text.push_str(&token.text);
    }
    text
}

/// Whether `text` and `next` written together would read as one token.
pub(super) fn would_glue(text: &str, next: &str) -> bool {
    let (Some(a), Some(b)) = (text.chars().next_back(), next.chars().next()) else {
        return false;
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let operator = |c: char| "+-*/%<>=!&|^.#".contains(c);
    (word(a) && word(b)) || (operator(a) && operator(b))
}
