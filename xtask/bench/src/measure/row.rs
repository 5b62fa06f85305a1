//! Rows of a benchmark: measured figures, their goals and floors.

/// Goal of a row's figure; a row that misses its goal is marked `no`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// The row has no goal: it is for comparison.
    Nothing,
    /// The measurement failed, so the goal is not known.
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name of the row in docs/performance.md.
    pub name: &'static str,
    /// Measured value; `None` if this machine cannot measure it, and the note says why.
    pub value: Option<f64>,
    /// Unit of the row's value, goal and floor.
    pub unit: &'static str,
    pub goal: Goal,
    /// Least possible value on this machine, measured or computed in the same run; `None` if it is not known.
    pub floor: Option<f64>,
    /// Text that explains the measurement and the floor.
    pub note: String,
}

impl Row {
    /// Creates the row of a failed measurement.
    pub fn failed(name: &'static str, note: String) -> Row {
        Row {
            name,
            value: None,
            unit: "-",
            goal: Goal::Unknown,
            floor: None,
            note,
        }
    }

    /// Whether the row's measurement failed.
    pub fn has_failed(&self) -> bool {
        self.goal == Goal::Unknown
    }

    /// Whether the row's value meets its goal.
    pub fn ok(&self) -> bool {
        match (self.value, self.goal) {
            (Some(v), Goal::AtMost(most)) => v <= most,
            (Some(v), Goal::AtLeast(least)) => v >= least,
            (_, Goal::Nothing) => true,
            (None, _) | (_, Goal::Unknown) => false,
        }
    }

    /// Line of the printed table for this row; the column of names is `width` wide.
    pub fn line(&self, width: usize) -> String {
        let goal = match self.goal {
            Goal::AtMost(most) => format!("<= {}", number(most)),
            Goal::AtLeast(least) => format!(">= {}", number(least)),
            Goal::Nothing | Goal::Unknown => "-".into(),
        };
        format!(
            "{:<width$} {:>12} {goal:>12} {:>12} {:<10} {}",
            self.name,
            self.value.map_or("-".into(), number),
            self.floor.map_or("-".into(), number),
            self.unit,
            if self.ok() { "yes" } else { "no" }
        )
    }
}

/// Head line of the printed table; the column of names is `width` wide.
pub fn header(width: usize) -> String {
    format!(
        "{:<width$} {:>12} {:>12} {:>12} {:<10} ok",
        "name", "value", "goal", "floor", "unit"
    )
}

/// Formats a value with enough digits to compare values.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats the rows as one line of JSON: a list of {name, value, unit, goal, ok, floor}.
pub fn json(rows: &[Row]) -> String {
    let row = |row: &Row| {
        let goal = match row.goal {
            Goal::AtMost(v) | Goal::AtLeast(v) => Some(v),
            Goal::Nothing | Goal::Unknown => None,
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
        assert!(!Row::failed("r", String::new()).ok());
        let text = json(&[row(Some(0.5), Goal::AtMost(1.0))]);
        assert!(
            text.starts_with("[{\"name\":\"r\",\"value\":0.5,"),
            "{text}"
        );
    }
}
