//! What is shown of a file's text and of a message.

/// Characters of a message or hint at most.
pub(super) const MESSAGE: usize = 400;
/// Characters of a line that are shown at most, and how many of them stand before the place.
const LINE: (usize, usize) = (120, 60);

/// Whether a terminal, or what lays a page out, obeys a character instead of showing it: controls other than the end of
/// a line and the tab, and what turns the order of others.
pub(crate) fn is_obeyed(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        c => c.is_control(),
    }
}

/// Text of a file or of a message, so that a terminal shows it and does not obey it: a control character becomes its
/// picture, one that turns the order of others a question mark, and each remains one character.
fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '\u{2421}',
        c if is_obeyed(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// A text from outside, so that a terminal shows it and does not obey it, and no more than so many characters of it.
#[must_use]
pub fn shown(text: &str, most: usize) -> String {
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
