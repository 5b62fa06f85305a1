//! Formats the results of runs for users and programs: text for the terminal, one self-contained HTML page, JSON.

pub mod chart;
#[cfg(feature = "testbed")]
pub mod disruptions;
pub mod faults;
pub mod html;
pub mod json;
pub mod machine_load;
#[cfg(feature = "testbed")]
pub mod recoveries;
#[cfg(feature = "testbed")]
pub mod repairs;
pub mod section;
pub mod table;
pub mod text;
pub mod triggers;

/// Width of text for a terminal in columns.
pub const WIDTH: usize = 80;

/// Width of a text on a terminal: one column per character, which holds for the characters that weir prints.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

/// A condition that a run must fulfill, and whether it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Whether the run fulfills the condition.
    pub holds: bool,
    /// The condition in words, with the values that were found.
    pub text: String,
}

impl Check {
    /// Creates a check from a condition in words and whether it holds.
    pub fn new(holds: bool, text: impl Into<String>) -> Check {
        Check {
            holds,
            text: text.into(),
        }
    }
}

/// The summary at the top of a report: which checks hold, and which remarks a reader needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The conditions that the run must fulfill, each once.
    pub checks: Vec<Check>,
    /// Reasons why the machine, not the faults, distorts the figures; they fail no run.
    pub degraded: Vec<String>,
    /// Other remarks that readers of the figures need; they fail no run.
    pub remarks: Vec<String>,
}

impl Verdict {
    /// Whether all checks hold.
    pub fn is_ok(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }

    /// The checks that fail, in the order of the report.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.holds)
    }

    /// The checks that hold.
    pub fn successes(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.holds)
    }

    /// Whether the report has a reason or remark that needs the reader's attention.
    pub fn has_reserves(&self) -> bool {
        !self.degraded.is_empty() || !self.remarks.is_empty()
    }

    /// The verdict as a headline: `passed`, `FAILED, 2 of 9 checks`.
    pub fn headline(&self) -> String {
        let all = self.checks.len();
        let mut words = match self.failures().count() {
            0 => "passed".to_owned(),
            failed => format!("FAILED, {failed} of {all} checks"),
        };
        if !self.degraded.is_empty() {
            words += "; degraded";
        }
        words
    }
}

/// Groups digits by thousands: 1234567 → `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats nanoseconds as milliseconds, with their unit.
pub fn milliseconds(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

/// Formats a share from 0 to 1 in percent: `87.0 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_from_the_right() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
    }

    #[test]
    fn a_headline_counts_what_failed() {
        let mut verdict = Verdict::default();
        verdict.checks.push(Check::new(true, "a"));
        assert_eq!(verdict.headline(), "passed");
        verdict.checks.push(Check::new(false, "b"));
        verdict.degraded.push("slow".to_owned());
        assert_eq!(verdict.headline(), "FAILED, 1 of 2 checks; degraded");
    }
}
