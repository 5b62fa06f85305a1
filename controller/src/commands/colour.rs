//! Decides which outputs of the command line are colored.

use std::io::IsTerminal;

use crate::cli::p4::Color;

/// Whether an output is colored: as `color` says, or, for `auto`, on a terminal without NO_COLOR.
pub(super) fn coloured(color: Color, output: &impl IsTerminal) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        // https://no-color.org: set and not empty.
        Color::Auto => {
            std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                && output.is_terminal()
        }
    }
}

/// Whether a report on the standard output is colored: on a terminal without NO_COLOR.
#[cfg(feature = "testbed")]
pub(super) fn stdout_colour() -> controller::report::text::Colour {
    use controller::report::text::Colour;
    match coloured(Color::Auto, &std::io::stdout()) {
        true => Colour::On,
        false => Colour::Off,
    }
}

/// Whether diagnostics on the standard error are colored: on a terminal without NO_COLOR.
pub(super) fn is_coloured() -> bool {
    coloured(Color::Auto, &std::io::stderr())
}
