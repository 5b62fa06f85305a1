//! Line continuations, comments and strings as in the C preprocessor; shared by the preprocessor and the lexer.

/// Length in bytes of a backslash and line end at the start of `text`, with white space between; `None` if there is none.
pub(crate) fn continuation(text: &str) -> Option<usize> {
    let blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c');
    let behind = text.strip_prefix('\\')?.bytes();
    let blanks = behind.take_while(|b| blank(b)).count();
    match text.as_bytes().get(1 + blanks) {
        None => Some(text.len()),
        Some(b'\n') => Some(2 + blanks),
        Some(_) => None,
    }
}

/// Length in bytes of the `//` comment at the start of `text`. The comment ends at the first line end without a backslash: the
/// C preprocessor joins lines before it looks for comments (C23, section 5.1.1.2).
pub(crate) fn line_comment(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        let Some(whole) = line.strip_suffix('\n') else {
            break;
        };
        if !is_continued(whole) {
            return length + whole.len();
        }
        length += line.len();
    }
    text.len()
}

/// Whether a backslash at the end of `line` joins the next line to it.
pub(crate) fn is_continued(line: &str) -> bool {
    let backslash = line.rfind('\\').map(|at| &line[at..]);
    backslash.is_some_and(|end| continuation(end) == Some(end.len()))
}

/// A string literal's value: without its quotes, escapes resolved.
pub fn unescape(literal: &str) -> String {
    let inner = literal.strip_prefix('"').unwrap_or(literal);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    loop {
        let rest = chars.as_str();
        let Some(c) = chars.next() else {
            return out;
        };
        if c != '\\' {
            out.push(c);
            continue;
        }
        // The C preprocessor also joins lines within strings.
        if let Some(length) = continuation(rest).filter(|n| rest[..*n].ends_with('\n')) {
            chars = rest[length..].chars();
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(other @ ('"' | '\\')) => out.push(other),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
}
