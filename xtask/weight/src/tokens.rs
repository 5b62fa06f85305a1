//! Splits Rust source into token trees with line numbers.
//!
//! `syn` gives no line numbers unless proc-macro2 has its feature `span-locations`. With it the
//! workspace would compile proc-macro2, quote and syn twice, because the procedural macros use them
//! without it. The module tree, the imports and the paths need no grammar below items, and the
//! bodies of macros are token trees anyway.

use anyhow::{Result, bail};

/// A token of Rust source, or a pair of brackets with the tokens between them.
#[derive(Debug)]
pub struct Token<'a> {
    /// Kind of the token, with the token's text where a caller needs the text.
    pub kind: Kind<'a>,
    /// Line of the token's first character, from 1.
    pub line: usize,
    /// Line of the token's last character, from 1.
    pub last_line: usize,
}

/// Kind of a token.
#[derive(Debug, PartialEq)]
pub enum Kind<'a> {
    /// An identifier or a keyword; a raw identifier without its `r#`.
    Word(&'a str),
    /// Content of a string literal, with its escapes.
    Text(&'a str),
    /// The separator `::`.
    Separator,
    /// One character of an operator other than `::`.
    Mark(char),
    /// An opening bracket, and the tokens up to the closing one.
    Group(char, Vec<Token<'a>>),
    /// A number, a character or a lifetime.
    Other,
}

impl PartialEq for Token<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl<'a> Token<'a> {
    /// The identifier or keyword; `None` if the token is neither.
    pub fn word(&self) -> Option<&'a str> {
        match self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The tokens between `bracket` and the closing bracket; `None` if the token is no such pair.
    pub fn group(&self, bracket: char) -> Option<&[Token<'a>]> {
        match &self.kind {
            Kind::Group(open, inner) if *open == bracket => Some(inner),
            _ => None,
        }
    }

    /// Whether the token is this operator character.
    pub fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

/// Splits the text of a Rust file into tokens.
///
/// # Errors
/// If brackets do not match, or a literal or comment does not end.
pub fn parse(text: &str) -> Result<Vec<Token<'_>>> {
    let mut cursor = Cursor {
        text,
        at: 0,
        line: 1,
    };
    let mut tokens = Vec::new();
    let mut outer: Vec<(char, usize, Vec<Token>)> = Vec::new();
    while let Some(byte) = cursor.byte(0) {
        let line = cursor.line;
        let kind = match byte {
            b if b.is_ascii_whitespace() => {
                cursor.skip(1);
                continue;
            }
            b'/' if matches!(cursor.byte(1), Some(b'/' | b'*')) => {
                cursor.comment()?;
                continue;
            }
            b'(' | b'[' | b'{' => {
                cursor.skip(1);
                outer.push((byte as char, line, std::mem::take(&mut tokens)));
                continue;
            }
            b')' | b']' | b'}' => {
                cursor.skip(1);
                let Some((open, first, before)) = outer.pop() else {
                    bail!("line {line}: `{}` closes no bracket", byte as char);
                };
                if !matches!((open, byte), ('(', b')') | ('[', b']') | ('{', b'}')) {
                    bail!(
                        "line {line}: `{}` closes `{open}` of line {first}",
                        byte as char
                    );
                }
                let inner = std::mem::replace(&mut tokens, before);
                tokens.push(Token {
                    kind: Kind::Group(open, inner),
                    line: first,
                    last_line: line,
                });
                continue;
            }
            b':' if cursor.byte(1) == Some(b':') => {
                cursor.skip(2);
                Kind::Separator
            }
            b'"' => Kind::Text(cursor.string(0)?),
            b'\'' => cursor.quote()?,
            b'0'..=b'9' => cursor.number(),
            b if is_word(b) => cursor.word()?,
            _ => {
                cursor.skip(1);
                Kind::Mark(byte as char)
            }
        };
        let last_line = cursor.line;
        tokens.push(Token {
            kind,
            line,
            last_line,
        });
    }
    if let Some((open, line, _)) = outer.pop() {
        bail!("line {line}: `{open}` is not closed");
    }
    Ok(tokens)
}

/// Whether a word may contain this byte. Bytes of characters beyond ASCII count as letters.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// A position in the text of a file.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Cursor<'a> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Moves the position by this number of bytes, and counts the lines that end there.
    fn skip(&mut self, bytes: usize) {
        let end = self.text.len().min(self.at + bytes);
        let passed = &self.text.as_bytes()[self.at..end];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.at = end;
    }

    fn comment(&mut self) -> Result<()> {
        if self.byte(1) == Some(b'/') {
            let rest = &self.text[self.at..];
            self.skip(rest.find('\n').unwrap_or(rest.len()));
            return Ok(());
        }
        let first = self.line;
        let mut depth = 0;
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b'/'), Some(b'*')) => depth += 1,
                (Some(b'*'), Some(b'/')) => depth -= 1,
                (Some(_), _) => {
                    self.skip(1);
                    continue;
                }
                (None, _) => bail!("line {first}: the comment does not end"),
            }
            self.skip(2);
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Reads a string literal whose opening quote is `prefix` bytes ahead; returns its content.
    fn string(&mut self, prefix: usize) -> Result<&'a str> {
        let first = self.line;
        self.skip(prefix + 1);
        let start = self.at;
        loop {
            match self.byte(0) {
                Some(b'"') => break,
                Some(b'\\') => self.skip(2),
                Some(_) => self.skip(1),
                None => bail!("line {first}: the string does not end"),
            }
        }
        let content = &self.text[start..self.at];
        self.skip(1);
        Ok(content)
    }

    /// Reads a raw string literal whose first `#` or quote is `prefix` bytes ahead; returns its content.
    fn raw_string(&mut self, prefix: usize) -> Result<&'a str> {
        let rest = &self.text[self.at + prefix..];
        let hashes = rest.bytes().take_while(|byte| *byte == b'#').count();
        let end = format!("\"{}", "#".repeat(hashes));
        let content = &rest[hashes + 1..];
        let Some(length) = content.find(&end) else {
            bail!("line {}: the raw string does not end", self.line);
        };
        self.skip(prefix + hashes + 1 + length + end.len());
        Ok(&content[..length])
    }

    /// Reads a character literal or a lifetime, both of which begin with a single quote.
    fn quote(&mut self) -> Result<Kind<'a>> {
        let rest = &self.text[self.at + 1..];
        if rest.starts_with('\\') {
            let Some(length) = rest.get(2..).and_then(|rest| rest.find('\'')) else {
                bail!("line {}: the character does not end", self.line);
            };
            self.skip(length + 4);
            return Ok(Kind::Other);
        }
        let length = rest.chars().next().map_or(0, char::len_utf8);
        if rest[length..].starts_with('\'') {
            self.skip(length + 2);
        } else {
            self.skip(1 + rest.bytes().take_while(|byte| is_word(*byte)).count());
        }
        Ok(Kind::Other)
    }

    fn number(&mut self) -> Kind<'a> {
        let digits = |rest: &[u8]| rest.iter().take_while(|byte| is_word(**byte)).count();
        let rest = &self.text.as_bytes()[self.at..];
        let mut length = digits(rest);
        // `1..2` and `1.max(2)` have no fraction.
        if rest.get(length) == Some(&b'.') && rest.get(length + 1).is_some_and(u8::is_ascii_digit) {
            length += 1 + digits(&rest[length + 1..]);
        }
        self.skip(length);
        Kind::Other
    }

    /// Reads a word, or a literal that begins with a letter: `r"…"`, `b'…'`, `br#"…"#`, `c"…"`.
    fn word(&mut self) -> Result<Kind<'a>> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
        let (word, behind) = rest.split_at(length);
        match word {
            "b" | "c" if behind.starts_with('"') => return Ok(Kind::Text(self.string(1)?)),
            "b" if behind.starts_with('\'') => {
                self.skip(1);
                return self.quote();
            }
            "r" | "br" | "cr" if behind.trim_start_matches('#').starts_with('"') => {
                return Ok(Kind::Text(self.raw_string(length)?));
            }
            "r" if behind.starts_with('#') => {
                self.skip(2);
                return self.word();
            }
            _ => {}
        }
        self.skip(length);
        Ok(Kind::Word(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All words of the text, those between brackets as well.
    fn words(text: &str) -> Vec<&str> {
        fn all<'a>(tokens: &[Token<'a>], words: &mut Vec<&'a str>) {
            for token in tokens {
                words.extend(token.word());
                if let Kind::Group(_, inner) = &token.kind {
                    all(inner, words);
                }
            }
        }
        let mut found = Vec::new();
        all(&parse(text).expect("Rust"), &mut found);
        found
    }

    #[test]
    fn literals_and_comments_hide_what_is_in_them() {
        let text = r###"a "b \" b" r#"c " c"# b"d" br##"e"# e"## '"' b'\'' '\u{7f}' /* f /* f */ f */
            g // h "
            i 'static j<'l> r#type 1.5e3 1..k 2.max(l) 'é' m"###;
        let expected = ["a", "g", "i", "j", "type", "k", "max", "l", "m"];
        assert_eq!(words(text), expected);
    }

    #[test]
    fn lines_are_counted_through_literals_and_groups() {
        let text = "mod a {\n  \"x\n\\\ny\" r\"\n\"\n}\nlast";
        let tokens = parse(text).expect("Rust");
        let lines: Vec<_> = tokens.iter().map(|t| (t.line, t.last_line)).collect();
        assert_eq!(lines, [(1, 1), (1, 1), (1, 6), (7, 7)]);
    }

    #[test]
    fn an_error_names_its_line() {
        let error = |text: &str| parse(text).expect_err("an error").to_string();
        assert_eq!(error("a\n)"), "line 2: `)` closes no bracket");
        assert_eq!(error("(\n]"), "line 2: `]` closes `(` of line 1");
        assert_eq!(error("\n{"), "line 2: `{` is not closed");
        assert_eq!(error("\n\"a"), "line 2: the string does not end");
        assert_eq!(error("/* /* */"), "line 1: the comment does not end");
    }
}
