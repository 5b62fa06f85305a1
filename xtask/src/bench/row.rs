//! A measured figure, and how it is shown.

use std::fmt::Write;

/// What a figure has to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reach {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// Shown beside others, nothing asked.
    Nothing,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// As docs/performance.md calls it.
    pub name: &'static str,
    /// Measured; `None` if it could not be measured here, the note says why.
    pub value: Option<f64>,
    /// Of value, reach and floor.
    pub unit: &'static str,
    /// What is asked.
    pub reach: Reach,
    /// The least that this machine could do, measured or counted in the same run.
    pub floor: Option<f64>,
    /// What was measured, what the floor is, what else was seen.
    pub note: String,
}

impl Row {
    /// Whether it is as asked.
    pub fn ok(&self) -> bool {
        match (self.value, self.reach) {
            (Some(v), Reach::AtMost(most)) => v <= most,
            (Some(v), Reach::AtLeast(least)) => v >= least,
            (_, Reach::Nothing) => true,
            (None, _) => false,
        }
    }

    fn reach_text(&self) -> String {
        match self.reach {
            Reach::AtMost(most) => format!("<= {}", number(most)),
            Reach::AtLeast(least) => format!(">= {}", number(least)),
            Reach::Nothing => "-".into(),
        }
    }
}

/// Enough digits to compare, no more.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// A table with a row for each figure, then the notes.
pub fn report(rows: &[Row]) -> String {
    let mut out = format!(
        "{:<16} {:>12} {:>12} {:>12} {:<10} ok\n",
        "name", "value", "reach", "floor", "unit"
    );
    for row in rows {
        let value = row.value.map_or("-".into(), number);
        let floor = row.floor.map_or("-".into(), number);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:<16} {value:>12} {:>12} {floor:>12} {:<10} {}",
            row.name,
            row.reach_text(),
            row.unit,
            if row.ok() { "yes" } else { "no" }
        );
    }
    for row in rows {
        let _ = writeln!(out, "{}: {}", row.name, row.note);
    }
    out
}

/// One line: a list of {name, value, unit, reach, ok}.
pub fn json(rows: &[Row]) -> String {
    let row = |row: &Row| {
        let reach = match row.reach {
            Reach::AtMost(v) | Reach::AtLeast(v) => Some(v),
            Reach::Nothing => None,
        };
        serde_json::json!({
            "name": row.name, "value": row.value, "unit": row.unit, "reach": reach, "ok": row.ok(),
            "floor": row.floor,
        })
    };
    serde_json::Value::Array(rows.iter().map(row).collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_was_not_measured_is_not_ok() {
        let row = |value, reach| Row {
            name: "r",
            value,
            unit: "us",
            reach,
            floor: None,
            note: String::new(),
        };
        assert!(row(Some(1.0), Reach::AtMost(1.0)).ok());
        assert!(!row(Some(1.1), Reach::AtMost(1.0)).ok());
        assert!(!row(Some(3.9), Reach::AtLeast(4.0)).ok());
        assert!(!row(None, Reach::AtLeast(4.0)).ok());
        let text = json(&[row(Some(0.5), Reach::AtMost(1.0))]);
        assert!(
            text.starts_with("[{\"name\":\"r\",\"value\":0.5,"),
            "{text}"
        );
    }
}
