//! Errors in YAML protocol files, and their positions in the file.

/// Error in a YAML protocol file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct LibraryError {
    /// Name of the protocol file.
    pub file: String,
    /// Line of the error in the file, from 1.
    pub line: usize,
    /// Column of the error in characters, from 1.
    pub column: usize,
    /// Description of the error, with the field or edge of the protocol that has it.
    pub message: String,
}

/// Converts an error of serde_yaml in a protocol file, with its position.
pub(super) fn misshapen(file: &str, error: &serde_yaml::Error) -> LibraryError {
    let (line, column) = error
        .location()
        .map_or((1, 1), |at| (at.line(), at.column()));
    let message = error.to_string();
    let message = message
        .split(" at line ")
        .next()
        .unwrap_or(&message)
        .to_owned();
    LibraryError {
        file: file.to_owned(),
        line,
        column,
        message,
    }
}

/// Error without a position; [`located`] adds it before the error is returned.
pub(super) fn invalid(file: &str, message: String) -> LibraryError {
    LibraryError {
        file: file.to_owned(),
        line: 0,
        column: 0,
        message,
    }
}

/// Error with a position: that of the first word in backticks in the message that the file
/// contains. If the message begins with a key of the file, positions behind that key come first.
pub(super) fn located(file: &str, text: &str, message: String) -> LibraryError {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let section = section(text, &message);
    let places = |word: &str| {
        let is_whole = |at: &usize| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        };
        let is_said = |at: &usize| {
            let line = text[..*at].rsplit('\n').next().unwrap_or("");
            !line.starts_with('#') && !line.contains(" #")
        };
        let all = text.match_indices(word).map(|(at, _)| at);
        let all = all.filter(is_whole).filter(is_said);
        all.collect::<Vec<usize>>()
    };
    let find = |word: &str| {
        let places = places(word);
        // A complete key or value, rather than a word in a sentence.
        let is_value = |at: &&usize| {
            let before = text[..**at].trim_end_matches([' ', '"']);
            before.is_empty() || before.ends_with([':', '[', '{', ',', '-', '\n'])
        };
        let behind = |at: &&usize| **at >= section;
        let values = || places.iter().filter(is_value);
        let value = values().find(behind).or(values().next());
        value.or(places.first()).copied()
    };
    let mut named = message
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| !word.is_empty());
    let at = named.find_map(find).unwrap_or(0);
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    LibraryError {
        file: file.to_owned(),
        line: text[..at].matches('\n').count() + 1,
        column: text[line_start..at].chars().count() + 1,
        message,
    }
}

/// Byte offset of the key with which a message begins, such as `carried_by: …` or `next 2: …`; 0 if the file lacks the key.
fn section(text: &str, message: &str) -> usize {
    let key = message.split([':', ' ', '`']).next().unwrap_or("");
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let rest = line.strip_prefix(key).filter(|_| !key.is_empty());
        if rest.is_some_and(|rest| rest.trim_start().starts_with(':')) {
            return at;
        }
        at += line.len();
    }
    0
}
