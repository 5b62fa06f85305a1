//! Shortens and sanitizes the text of files and messages for display.

/// Maximum length of a message or hint, in characters.
pub(super) const MESSAGE: usize = 400;
/// Maximum number of characters shown of a line, and how many of them come before the marked position.
const LINE: (usize, usize) = (120, 60);

/// Whether a terminal or a renderer would obey a character instead of showing it: control characters other than newline
/// and tab, and characters that change the text direction.
pub(crate) fn is_obeyed(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        c => c.is_control(),
    }
}

/// Makes a character of a file or message harmless for a terminal: a control character becomes its picture, a character
/// that changes the text direction a question mark. One character stays one character.
fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '\u{2421}',
        c if is_obeyed(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Makes a text from outside harmless for a terminal, and cuts it to `most` characters.
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

/// The part of a line that is shown, and the column of the marked position within that part.
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
