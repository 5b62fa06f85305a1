//! A measured figure, and how it is shown.

/// What we want of a figure: a worse one is noticed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// Shown beside others.
    Nothing,
    /// The measurement failed before it said what its goal is.
    Unknown,
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
    /// The row of a measurement that failed.
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

    /// Whether its measurement failed.
    pub fn has_failed(&self) -> bool {
        self.goal == Goal::Unknown
    }

    /// Whether it meets its goal.
    pub fn ok(&self) -> bool {
        match (self.value, self.goal) {
            (Some(v), Goal::AtMost(most)) => v <= most,
            (Some(v), Goal::AtLeast(least)) => v >= least,
            (_, Goal::Nothing) => true,
            (None, _) | (_, Goal::Unknown) => false,
        }
    }

    /// Its line of the table; names are `width` wide.
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

/// The table's first line; names are `width` wide.
pub fn header(width: usize) -> String {
    format!(
        "{:<width$} {:>12} {:>12} {:>12} {:<10} ok",
        "name", "value", "goal", "floor", "unit"
    )
}

/// Enough digits to compare, no more.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// One line: a list of {name, value, unit, goal, ok}.
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
