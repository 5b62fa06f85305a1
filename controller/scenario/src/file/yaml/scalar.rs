//! Finds positions inside a scalar: maps a byte of the decoded text to a byte of the file.

use super::{Kind, Node};
use crate::diagnostic::Span;

/// The span in the file that corresponds to the bytes `start..end` of the scalar's decoded text.
///
/// Quotes, escapes, indentation and folded line breaks make the two texts differ. They are aligned character by character:
/// outside white space and escapes both texts are equal.
#[must_use]
pub fn locate(file: &str, node: &Node, start: usize, end: usize) -> Span {
    let Kind::Text { value, style } = &node.kind else {
        return node.span;
    };
    if *style == super::Style::Made {
        return node.span;
    }
    let Some(raw) = file.get(node.span.start..node.span.end) else {
        return node.span;
    };
    let skip = usize::from(matches!(style, super::Style::Single | super::Style::Double));
    let offsets = align(raw, skip, value, *style);
    let at = |decoded: usize| node.span.start + offsets.get(decoded).copied().unwrap_or(raw.len());
    let start_at = at(start);
    // The end is exclusive: one past the last character, not the first of the next word.
    let last = value
        .get(start..end)
        .and_then(|text| text.char_indices().last());
    let end_at = last.map_or(start_at, |(i, c)| at(start + i) + c.len_utf8());
    Span {
        start: start_at,
        end: end_at.max(start_at),
    }
}

/// For each byte of the decoded text, and for its end: the offset of the corresponding byte in the raw text.
fn align(raw: &str, skip: usize, decoded: &str, style: super::Style) -> Vec<usize> {
    let mut offsets = Vec::with_capacity(decoded.len() + 1);
    let mut at = skip;
    for c in decoded.chars() {
        let rest = &raw[at.min(raw.len())..];
        let (lead, width) = step(rest, c, style);
        offsets.extend((0..c.len_utf8()).map(|_| at + lead));
        at = (at + lead + width).min(raw.len());
    }
    offsets.push(at);
    offsets
}

/// Number of raw bytes to skip in front of the character `c`, and number of raw bytes that represent the character.
fn step(rest: &str, c: char, style: super::Style) -> (usize, usize) {
    let lead: usize = if c.is_whitespace() {
        0
    } else {
        rest.chars()
            .take_while(|c| c.is_whitespace())
            .map(char::len_utf8)
            .sum()
    };
    let rest = &rest[lead..];
    match (style, rest.chars().next()) {
        (super::Style::Single, Some('\'')) if rest.starts_with("''") => (lead, 2),
        (super::Style::Double, Some('\\')) => (lead, escape_width(rest)),
        (_, Some(found)) if found == c || found.is_whitespace() == c.is_whitespace() => {
            (lead, found.len_utf8())
        }
        _ => (lead, 0),
    }
}

fn escape_width(rest: &str) -> usize {
    let width = match rest.as_bytes().get(1) {
        Some(b'x') => 4,
        Some(b'u') => 6,
        Some(b'U') => 10,
        Some(byte) if byte.is_ascii() => 2,
        _ => 1,
    };
    width.min(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Sink, Source};

    /// The text in the file at the span of a word in the decoded value.
    fn found<'a>(file: &'a str, word: &str) -> &'a str {
        let mut sink = Sink::new(Source {
            file: "t",
            text: file,
        });
        let root = super::super::parse(&mut sink).unwrap();
        let node = root.get("f").unwrap();
        let Kind::Text { value, .. } = &node.kind else {
            panic!("{node:?}")
        };
        let start = value.find(word).unwrap();
        let span = locate(file, node, start, start + word.len());
        &file[span.start..span.end]
    }

    #[test]
    fn every_style() {
        for file in [
            "f: a.b == 1 && bad == 2\n",
            "f: 'it''s && bad'\n",
            "f: \"x == \\\"y\\\" && bad\"\n",
            "f: |\n    a.b == 1 &&\n    bad == 2\n",
            "f: >-\n    a.b == 1 &&\n    bad == 2\n",
            "f: a.b == 1 &&\n   bad == 2\n",
            "é: ü\nf: \"é\\u00e9 bad\"\n",
        ] {
            assert_eq!(found(file, "bad"), "bad", "{file}");
        }
    }

    #[test]
    fn in_blocks_the_line_is_right() {
        let file = "f: |\n    a\n    bad\n";
        let mut sink = Sink::new(Source {
            file: "t",
            text: file,
        });
        let root = super::super::parse(&mut sink).unwrap();
        let span = locate(file, root.get("f").unwrap(), 2, 5);
        assert_eq!(sink.source().position(span.start), (3, 5));
    }
}
