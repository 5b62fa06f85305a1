//! A measured figure, and how it is shown.

use std::fmt::Write;

/// What we want of a figure: a worse one is noticed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// Shown beside others.
    Nothing,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// As docs/performance.md calls it.
    pub name: &'static str,
    /// Measured; `None` if it could not be measured here, the note says why.
    pub value: Option<f64>,
    /// Of value, goal and floor.
    pub unit: &'static str,
    /// What we want of it.
    pub goal: Goal,
    /// The least that this machine could do, measured or counted in the same run.
    pub floor: Option<f64>,
    /// What was measured, what the floor is, what else was seen.
    pub note: String,
}

impl Row {
    /// Whether it meets its goal.
    pub fn ok(&self) -> bool {
        match (self.value, self.goal) {
            (Some(v), Goal::AtMost(most)) => v <= most,
            (Some(v), Goal::AtLeast(least)) => v >= least,
            (_, Goal::Nothing) => true,
            (None, _) => false,
        }
    }

    fn goal_text(&self) -> String {
        match self.goal {
            Goal::AtMost(most) => format!("<= {}", number(most)),
            Goal::AtLeast(least) => format!(">= {}", number(least)),
            Goal::Nothing => "-".into(),
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
    let width = rows.iter().map(|row| row.name.len()).max();
    let width = width.unwrap_or(0).max(16);
    let mut out = format!(
        "{:<width$} {:>12} {:>12} {:>12} {:<10} ok\n",
        "name", "value", "goal", "floor", "unit"
    );
    for row in rows {
        let value = row.value.map_or("-".into(), number);
        let floor = row.floor.map_or("-".into(), number);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:<width$} {value:>12} {:>12} {floor:>12} {:<10} {}",
            row.name,
            row.goal_text(),
            row.unit,
            if row.ok() { "yes" } else { "no" }
        );
    }
    for row in rows {
        let _ = writeln!(out, "{}: {}", row.name, row.note);
    }
    out
}

/// One line: a list of {name, value, unit, goal, ok}.
pub fn json(rows: &[Row]) -> String {
    let row = |row: &Row| {
        let goal = match row.goal {
            Goal::AtMost(v) | Goal::AtLeast(v) => Some(v),
            Goal::Nothing => None,
        };
        serde_json::json!({
            "name": row.name, "value": row.value, "unit": row.unit, "goal": goal, "ok": row.ok(),
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
        let row = |value, goal| Row {
            name: "r",
            value,
            unit: "us",
            goal,
            floor: None,
            note: String::new(),
        };
        assert!(row(Some(1.0), Goal::AtMost(1.0)).ok());
        assert!(!row(Some(1.1), Goal::AtMost(1.0)).ok());
        assert!(!row(Some(3.9), Goal::AtLeast(4.0)).ok());
        assert!(!row(None, Goal::AtLeast(4.0)).ok());
        let text = json(&[row(Some(0.5), Goal::AtMost(1.0))]);
        assert!(
            text.starts_with("[{\"name\":\"r\",\"value\":0.5,"),
            "{text}"
        );
    }
}
