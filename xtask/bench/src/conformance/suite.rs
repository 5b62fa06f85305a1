//! Results of conformance suites, and the table that shows them.

use std::fmt::Write;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Name of the case in the corpus (the checkout).
    pub name: String,
    /// Reason why the case failed; `None` if it passed.
    pub missed: Option<String>,
}

/// Goal of a conformance suite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SuiteGoal {
    /// Least number of the suite's cases that must pass.
    Cases(usize),
    /// Least share of the suite's cases that must pass, in percent.
    Percent(f64),
}

#[derive(Debug)]
pub struct Suite {
    pub name: &'static str,
    pub goal: SuiteGoal,
    /// Cases that count toward the goal.
    pub cases: Vec<Case>,
    /// Cases that their own project expects to fail: the report shows them, but they do not count.
    pub apart: Vec<Case>,
}

impl Suite {
    pub fn passed(&self) -> usize {
        self.cases.iter().filter(|c| c.missed.is_none()).count()
    }

    fn percent(&self) -> f64 {
        100.0 * self.passed() as f64 / self.cases.len().max(1) as f64
    }

    /// Whether the suite meets its goal.
    pub fn is_met(&self) -> bool {
        match self.goal {
            SuiteGoal::Cases(n) => self.passed() >= n,
            SuiteGoal::Percent(p) => self.percent() >= p,
        }
    }
}

/// Text for the user: the reason of each failed case, then a table with a row for each suite.
pub fn report(commit: &str, suites: &[Suite]) -> String {
    let mut out = String::new();
    for suite in suites {
        for case in &suite.cases {
            if let Some(reason) = &case.missed {
                line(
                    &mut out,
                    format_args!("{}: {}: {reason}", suite.name, case.name),
                );
            }
        }
        for case in &suite.apart {
            let outcome = case.missed.as_deref().unwrap_or("passes here");
            line(
                &mut out,
                format_args!(
                    "{}: {} (expected to fail by its project): {outcome}",
                    suite.name, case.name
                ),
            );
        }
    }
    line(&mut out, format_args!("corpus: {commit}"));
    line(
        &mut out,
        format_args!(
            "{:<18} {:>6} {:>6} {:>8} {:>8}  ok",
            "name", "passed", "of", "share", "goal"
        ),
    );
    for suite in suites {
        let goal = match suite.goal {
            SuiteGoal::Cases(n) => n.to_string(),
            SuiteGoal::Percent(p) => format!("{p} %"),
        };
        let share = format!("{:.1} %", suite.percent());
        let ok = if suite.is_met() { "yes" } else { "no" };
        line(
            &mut out,
            format_args!(
                "{:<18} {:>6} {:>6} {share:>8} {goal:>8}  {ok}",
                suite.name,
                suite.passed(),
                suite.cases.len()
            ),
        );
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}

/// Formats the suites' results as one line of JSON: a list of {name, value, unit, goal, ok}.
pub fn json(suites: &[Suite]) -> String {
    let row = |suite: &Suite| {
        let (value, unit, goal) = match suite.goal {
            SuiteGoal::Cases(n) => (
                suite.passed().into(),
                format!("of {}", suite.cases.len()),
                serde_json::Value::from(n),
            ),
            SuiteGoal::Percent(p) => (
                serde_json::Value::from((suite.percent() * 100.0).round() / 100.0),
                "%".to_owned(),
                p.into(),
            ),
        };
        serde_json::json!({
            "name": suite.name, "value": value, "unit": unit, "goal": goal, "ok": suite.is_met(),
        })
    };
    serde_json::Value::Array(suites.iter().map(row).collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(goal: SuiteGoal) -> Suite {
        let case = |name: &str, missed: Option<&str>| Case {
            name: name.into(),
            missed: missed.map(str::to_owned),
        };
        Suite {
            name: "s",
            goal,
            cases: vec![case("a", None), case("b", Some("why")), case("c", None)],
            apart: vec![case("d", Some("known"))],
        }
    }

    #[test]
    fn misses_count_and_cases_apart_do_not() {
        assert!(suite(SuiteGoal::Cases(2)).is_met());
        assert!(!suite(SuiteGoal::Cases(3)).is_met());
        assert!(suite(SuiteGoal::Percent(66.0)).is_met());
        assert!(!suite(SuiteGoal::Percent(67.0)).is_met());
        let text = report("abc", &[suite(SuiteGoal::Cases(3))]);
        assert!(text.contains("s: b: why\n"), "{text}");
        assert!(
            text.contains("s: d (expected to fail by its project): known\n"),
            "{text}"
        );
        assert!(text.trim_end().ends_with("no"), "{text}");
    }

    #[test]
    fn json_is_one_line() {
        let text = json(&[suite(SuiteGoal::Cases(2)), suite(SuiteGoal::Percent(97.0))]);
        assert_eq!(
            text,
            r#"[{"name":"s","value":2,"unit":"of 3","goal":2,"ok":true},{"name":"s","value":66.67,"unit":"%","goal":97.0,"ok":false}]"#
        );
    }
}
