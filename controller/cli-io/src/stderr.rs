//! Writes messages for users to the standard error.

use std::io::Write as _;

/// Writes a message to the standard error; ignores errors, so that a closed standard error does not end the program.
pub fn tell(message: std::fmt::Arguments<'_>) {
    let _unread = std::io::stderr().write_fmt(message);
}
