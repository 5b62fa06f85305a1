//! Messages for people.

use std::io::Write as _;

/// Writes it to standard error if that takes it: a message that nobody can read is no reason to end.
pub fn tell(message: std::fmt::Arguments<'_>) {
    let _unread = std::io::stderr().write_fmt(message);
}
