//! What a run leaves for people and programs: text for the terminal, one self-contained HTML page, JSON.

pub mod chart;
#[cfg(feature = "testbed")]
pub mod disruptions;
pub mod faults;
pub mod html;
pub mod json;
#[cfg(feature = "testbed")]
pub mod recoveries;
#[cfg(feature = "testbed")]
pub mod repairs;
pub mod section;
pub mod strain;
pub mod table;
pub mod text;
pub mod triggers;

/// Columns of a terminal.
pub const WIDTH: usize = 80;

/// How wide a text is on a terminal, as far as our texts go.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

/// Something that must hold, and whether it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Whether it holds.
    pub holds: bool,
    /// What, with what was found.
    pub text: String,
}

impl Check {
    /// A check with its outcome.
    pub fn new(holds: bool, text: impl Into<String>) -> Check {
        Check {
            holds,
            text: text.into(),
        }
    }
}

/// What a report says at its top.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Each thing that must hold, once.
    pub checks: Vec<Check>,
    /// Why the machine, not the faults, spoils the figures. Fails nothing by itself.
    pub degraded: Vec<String>,
    /// What else spoils the figures. Fails nothing by itself either.
    pub remarks: Vec<String>,
}

impl Verdict {
    /// Whether everything holds that must.
    pub fn is_ok(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }

    /// What does not hold.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.holds)
    }

    /// What holds.
    pub fn successes(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.holds)
    }

    /// Whether something is to be looked at.
    pub fn has_reserves(&self) -> bool {
        !self.degraded.is_empty() || !self.remarks.is_empty()
    }

    /// In a word or a few.
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

/// 1,234,567 → `1,234,567`.
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

/// Nanoseconds in milliseconds.
pub fn milliseconds(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

/// A share of one in percent.
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
