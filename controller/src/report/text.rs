//! Formats a report for the terminal: the checks that fail, remarks, tables, then the checks that hold.

use std::fmt::Write as _;

use super::table::Table;
use super::{Verdict, WIDTH};

/// Whether lines of a report are colored by their meaning: red fails, yellow needs attention, green holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Colors, for a terminal.
    On,
    /// No colors, for files and pipes.
    Off,
}

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

/// Indentation of a line that continues the line above it.
const INDENT: &str = "       ";

/// Formats the whole report of a run; empty tables are left out.
pub fn report<'t>(
    title: &str,
    verdict: &Verdict,
    tables: impl IntoIterator<Item = &'t Table>,
    colour: Colour,
) -> String {
    let mut text = String::new();
    let headline = format!("{title}: {}", verdict.headline());
    let meaning = match (verdict.is_ok(), verdict.has_reserves()) {
        (false, _) => RED,
        (true, true) => YELLOW,
        (true, false) => GREEN,
    };
    let _ = writeln!(text, "\n{}", paint(&headline, meaning, colour));
    for check in verdict.failures() {
        line(&mut text, "FAILED", &check.text, RED, colour);
    }
    for reason in &verdict.degraded {
        line(&mut text, "slow", reason, YELLOW, colour);
    }
    for remark in &verdict.remarks {
        line(&mut text, "note", remark, YELLOW, colour);
    }
    for table in tables {
        if !table.rows().is_empty() {
            let _ = write!(text, "\n{table}");
        }
    }
    text.push('\n');
    for check in verdict.successes() {
        line(&mut text, "ok", &check.text, GREEN, colour);
    }
    text
}

fn line(text: &mut String, word: &str, what: &str, meaning: &str, colour: Colour) {
    let word = format!("{word:<6}");
    for (number, part) in wrapped(what, WIDTH - INDENT.len()).iter().enumerate() {
        let _ = match number {
            0 => writeln!(text, "{} {part}", paint(&word, meaning, colour)),
            _ => writeln!(text, "{INDENT}{part}"),
        };
    }
}

fn paint(text: &str, meaning: &str, colour: Colour) -> String {
    match colour {
        Colour::On => format!("\u{1b}[{meaning}m{text}\u{1b}[0m"),
        Colour::Off => text.to_owned(),
    }
}

/// Wraps text between words into lines of at most `width` characters; a longer word has its own line.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let length = lines[last].chars().count();
        if length > 0 && length + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if length > 0 {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::Check;
    use super::*;

    fn verdict() -> Verdict {
        Verdict {
            checks: vec![
                Check::new(true, "flow.b.lost == 0: 0 == 0"),
                Check::new(false, format!("{} is wrong", "one and ".repeat(12))),
            ],
            degraded: vec!["late".to_owned()],
            remarks: vec!["refused".to_owned()],
        }
    }

    #[test]
    fn failures_stand_first_and_lines_are_short() {
        let mut table = Table::new(["flow", "lost"]);
        table.row(["b", "0"]);
        let text = report(
            "weir run x",
            &verdict(),
            &[Table::default(), table],
            Colour::Off,
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "weir run x: FAILED, 1 of 2 checks; degraded");
        assert!(lines[2].starts_with("FAILED one and "), "{text}");
        assert!(lines[3].starts_with("       one and "), "{text}");
        assert_eq!(lines[4], "slow   late");
        assert_eq!(lines[5], "note   refused");
        assert_eq!(
            lines[7..],
            [
                "flow  lost",
                "b        0",
                "",
                "ok     flow.b.lost == 0: 0 == 0"
            ]
        );
        assert!(
            lines.iter().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
    }

    #[test]
    fn colours_are_for_terminals() {
        let coloured = report("t", &verdict(), &[], Colour::On);
        assert!(
            coloured.contains("\u{1b}[31mFAILED\u{1b}[0m one"),
            "{coloured:?}"
        );
        assert!(
            coloured.contains("\u{1b}[32mok    \u{1b}[0m flow"),
            "{coloured:?}"
        );
        assert!(!report("t", &verdict(), &[], Colour::Off).contains('\u{1b}'));
    }
}
