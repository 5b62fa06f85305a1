//! Prepares text of files and messages for display: shortens it, and replaces characters that act on a terminal.

/// Maximum length of a message or hint, in characters.
pub(super) const MESSAGE: usize = 400;
/// Maximum number of characters that are shown of a line, and how many of these may come before the marked position.
const LINE: (usize, usize) = (120, 60);

/// Whether a character would act on a terminal instead of being shown: control characters other than newline and tab, and
/// characters that change the text direction.
pub(crate) fn is_obeyed(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        c => c.is_control(),
    }
}

/// Replaces a character that could act on a terminal: a control character becomes its picture, a character that changes the
/// text direction a question mark. One character stays one character.
fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '\u{2421}',
        c if is_obeyed(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Replaces the characters of a foreign text that could act on a terminal, and cuts the text to `most` characters.
#[must_use]
pub fn shown(text: &str, most: usize) -> String {
    // Only our own messages have several lines.
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

/// The part of a line that is shown around a column, and the column of the marked position within this part.
pub(super) fn excerpt(line: &str, column: usize) -> (String, usize) {
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
