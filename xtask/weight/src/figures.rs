//! Figures of weight (sizes and import cycles), the file that holds them, and the limits of their growth.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context, Result};

/// All figures. The text form has one line for each figure, in alphabetical order.
#[derive(Debug, Default, PartialEq)]
pub struct Figures {
    /// Numbers of units, lines, tests and so on, by the figure's name.
    pub numbers: BTreeMap<String, u64>,
    /// Import cycles between modules.
    pub cycles: BTreeSet<CycleFigure>,
}

/// An import cycle as the file of figures lists it: modules that reach each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CycleFigure {
    /// Name of the crate, followed by the name of its library, program, example or benchmark unless that is the main one.
    pub target: String,
    /// Paths of the cycle's modules from the root.
    pub modules: BTreeSet<String>,
}

impl fmt::Display for CycleFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target)?;
        self.modules
            .iter()
            .try_for_each(|module| write!(f, " {module}"))
    }
}

/// Result of comparing figures with the file, with a line for each figure that has changed.
#[derive(Debug, Default, PartialEq)]
pub struct Verdict {
    /// Figures that have grown beyond their limit, so that the check fails.
    pub failures: Vec<String>,
    /// Figures that have shrunk, so that the file can be tightened.
    pub hints: Vec<String>,
}

const HEAD: &str = "\
# Figures of `cargo xtask weight`, which docs/performance.md describes.
# `cargo xtask weight --update` writes this file. If a number grows or a cycle is new, the same
# commit says why in docs/performance.md.
";

const CYCLE: &str = "cycle ";

/// Prefix of figures that count lines.
pub const LINES: &str = "lines ";

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for cycle in &self.cycles {
            writeln!(f, "{CYCLE}{cycle}")?;
        }
        for (name, number) in &self.numbers {
            writeln!(f, "{name} {number}")?;
        }
        Ok(())
    }
}

impl Figures {
    /// Parses the text form of figures.
    ///
    /// # Errors
    /// If a line has neither a cycle nor a number.
    pub fn parse(text: &str) -> Result<Self> {
        let mut figures = Self::default();
        for (index, line) in text.lines().enumerate() {
            if let Some(cycle) = line.strip_prefix(CYCLE) {
                let mut words = cycle.split(' ').map(str::to_owned);
                figures.cycles.insert(CycleFigure {
                    target: words.next().unwrap_or_default(),
                    modules: words.collect(),
                });
            } else if !line.is_empty() && !line.starts_with('#') {
                let number = line
                    .rsplit_once(' ')
                    .and_then(|(name, number)| Some((name.to_owned(), number.parse().ok()?)));
                let (name, number) = number.with_context(|| {
                    format!(
                        "line {}: `{line}` is neither `NAME NUMBER` nor `cycle …`",
                        index + 1
                    )
                })?;
                figures.numbers.insert(name, number);
            }
        }
        Ok(figures)
    }

    /// Compares the figures of the tree with those of the file. A number may grow by a twentieth, and a
    /// number of lines by one line at least. All modules of a cycle must be in one cycle of the file.
    pub fn compare(&self, file: &Self) -> Verdict {
        let mut verdict = Verdict::default();
        for cycle in self.cycles.iter().filter(|cycle| !file.lists(cycle)) {
            let text = format!("{CYCLE}{cycle}: new, none is allowed");
            verdict.failures.push(text);
        }
        for cycle in file.cycles.difference(&self.cycles) {
            verdict
                .hints
                .push(format!("{CYCLE}{cycle}: broken, or has other members"));
        }
        for (name, &new) in &self.numbers {
            let old = file.numbers.get(name).copied().unwrap_or(0);
            let least = u64::from(name.starts_with(LINES));
            let allowed = old + (old / 20).max(least);
            if new > allowed {
                let text = format!("{name}: {old} before, {new} now, at most {allowed} allowed");
                verdict.failures.push(text);
            } else if old - old.min(new) > old / 20 {
                verdict
                    .hints
                    .push(format!("{name}: {old} before, {new} now"));
            }
        }
        for (name, old) in &file.numbers {
            if !self.numbers.contains_key(name) {
                verdict
                    .hints
                    .push(format!("{name}: {old} before, none now"));
            }
        }
        verdict
    }

    /// Whether one of these cycles has all modules of `cycle`.
    pub fn lists(&self, cycle: &CycleFigure) -> bool {
        let mut cycles = self.cycles.iter();
        cycles.any(|listed| {
            listed.target == cycle.target && listed.modules.is_superset(&cycle.modules)
        })
    }

    /// The modules of the listed cycle that has most modules in common with `cycle`. Uses between these modules are known.
    pub fn known(&self, cycle: &CycleFigure) -> BTreeSet<String> {
        let listed = self
            .cycles
            .iter()
            .filter(|listed| listed.target == cycle.target);
        let common = |listed: &&CycleFigure| listed.modules.intersection(&cycle.modules).count();
        let nearest = listed.max_by_key(common);
        nearest
            .map(|listed| listed.modules.clone())
            .unwrap_or_default()
    }

    /// Names of the figures that a change of the file from `old` to these figures has raised.
    pub fn raised_from(&self, old: &Self) -> Vec<String> {
        let cycles = self.cycles.iter().filter(|cycle| !old.lists(cycle));
        let mut raised: Vec<_> = cycles.map(|cycle| format!("{CYCLE}{cycle}")).collect();
        for (name, &new) in &self.numbers {
            let old = old.numbers.get(name).copied().unwrap_or(0);
            if new > old {
                raised.push(format!("{name}: {old} to {new}"));
            }
        }
        raised
    }

    /// Formats the figures as one JSON object.
    pub fn json(&self) -> String {
        let cycles: Vec<_> = self
            .cycles
            .iter()
            .map(|cycle| format!("\"{cycle}\""))
            .collect();
        let mut members = vec![format!("\"cycles\": [{}]", cycles.join(", "))];
        let numbers = self.numbers.iter();
        members.extend(numbers.map(|(name, number)| format!("\"{name}\": {number}")));
        format!("{{{}}}", members.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(text: &str) -> Figures {
        Figures::parse(text).expect("figures")
    }

    #[test]
    fn the_text_form_can_be_read_back() {
        let text = "cycle a x y\ndemo units 318\nlines a source 7\n";
        let figures = figures(text);
        assert_eq!(figures.to_string(), format!("{HEAD}{text}"));
        assert_eq!(
            Figures::parse(&figures.to_string()).expect("figures"),
            figures
        );
        let error = Figures::parse("a 1\nb\n")
            .expect_err("no number")
            .to_string();
        assert_eq!(error, "line 2: `b` is neither `NAME NUMBER` nor `cycle …`");
    }

    #[test]
    fn a_number_may_grow_by_a_twentieth() {
        let file =
            figures("demo units 318\nlines a source 40\nlines b source 7\ntest programs 19\n");
        let grown =
            figures("demo units 333\nlines a source 42\nlines b source 8\ntest programs 19\n");
        assert_eq!(grown.compare(&file), Verdict::default());
        let failures = |text: &str| figures(text).compare(&file).failures;
        assert_eq!(
            failures("demo units 334\n"),
            ["demo units: 318 before, 334 now, at most 333 allowed"]
        );
        assert_eq!(
            failures("lines b source 9\nlines c source 2\ntest programs 20\n"),
            [
                "lines b source: 7 before, 9 now, at most 8 allowed",
                "lines c source: 0 before, 2 now, at most 1 allowed",
                "test programs: 19 before, 20 now, at most 19 allowed",
            ]
        );
    }

    #[test]
    fn a_number_that_shrinks_by_more_than_a_twentieth_is_a_hint() {
        let file = figures("a 100\nb 100\nc 3\n");
        let verdict = figures("a 95\nb 94\n").compare(&file);
        assert_eq!(verdict.failures, Vec::<String>::new());
        assert_eq!(
            verdict.hints,
            ["b: 100 before, 94 now", "c: 3 before, none now"]
        );
    }

    #[test]
    fn a_cycle_may_not_gain_a_member() {
        let file = figures("cycle a x y z\ncycle a u v\ncycle b x y\n");
        let failures = |text: &str| figures(text).compare(&file).failures;
        assert_eq!(failures("cycle a x z\ncycle a u v\n"), Vec::<String>::new());
        for new in ["a x y z u", "a w y", "a u v x y z", "b x z", "c x y"] {
            let cycle = format!("cycle {new}");
            let expected = figures(&cycle)
                .cycles
                .first()
                .map(|cycle| format!("cycle {cycle}: new, none is allowed"));
            assert_eq!(failures(&cycle), Vec::from_iter(expected));
        }
    }

    #[test]
    fn a_cycle_that_loses_a_member_is_a_hint() {
        let file = figures("cycle a x y z\ncycle b x y\n");
        let verdict = figures("cycle a x y\ncycle b x y\n").compare(&file);
        assert_eq!(verdict.failures, Vec::<String>::new());
        assert_eq!(
            verdict.hints,
            ["cycle a x y z: broken, or has other members"]
        );
    }

    #[test]
    fn uses_within_the_nearest_listed_cycle_are_known() {
        let file = figures("cycle a x y\ncycle a u v w\ncycle b t u v w x y\n");
        let new = figures("cycle a t u v w x\n");
        let known = new.cycles.iter().map(|cycle| file.known(cycle));
        let expected = ["u", "v", "w"].map(str::to_owned);
        assert_eq!(Vec::from_iter(known), [BTreeSet::from(expected)]);
    }

    #[test]
    fn every_growth_of_the_file_is_raised() {
        let old = figures("cycle a x y\na 100\nb 100\n");
        assert_eq!(
            figures("a 100\nb 99\n").raised_from(&old),
            Vec::<String>::new()
        );
        let raised = figures("cycle a x z\na 101\nb 100\nc 1\n").raised_from(&old);
        assert_eq!(raised, ["cycle a x z", "a: 100 to 101", "c: 0 to 1"]);
    }

    #[test]
    fn the_json_form_has_every_figure() {
        let json = figures("cycle a x y\ncycle b x y\nunits 3\n").json();
        assert_eq!(json, r#"{"cycles": ["a x y", "b x y"], "units": 3}"#);
    }
}
