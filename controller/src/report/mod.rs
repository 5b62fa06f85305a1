//! Reports of a run, for users and programs: text for the terminal, one self-contained HTML page, JSON.

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

/// Width of a terminal in columns.
pub const WIDTH: usize = 80;

/// Width of a text on a terminal in columns; one per character, which holds for weir's texts.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

/// A condition that must hold, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Whether the condition holds.
    pub holds: bool,
    /// The condition, with the values found.
    pub text: String,
}

impl Check {
    /// Creates a check with its outcome.
    pub fn new(holds: bool, text: impl Into<String>) -> Check {
        Check {
            holds,
            text: text.into(),
        }
    }
}

/// The summary at the top of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Each condition that must hold, once.
    pub checks: Vec<Check>,
    /// Why the machine, not the faults, distorts the figures. Fails nothing by itself.
    pub degraded: Vec<String>,
    /// Other reasons that distort the figures. They fail nothing by themselves either.
    pub remarks: Vec<String>,
}

impl Verdict {
    /// Whether all checks hold.
    pub fn is_ok(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }

    /// The checks that fail.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.holds)
    }

    /// The checks that hold.
    pub fn successes(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.holds)
    }

    /// Whether a remark needs the reader's attention.
    pub fn has_reserves(&self) -> bool {
        !self.degraded.is_empty() || !self.remarks.is_empty()
    }

    /// The verdict in a few words.
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

/// Formats nanoseconds as milliseconds.
pub fn milliseconds(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

/// Formats a share of one in percent.
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
