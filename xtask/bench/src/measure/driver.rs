//! Measures the selected rows of a benchmark subject. Each row is printed as soon as it is
//! measured; the notes and the line of JSON follow at the end.
//!
//! A failed measurement does not stop the others: its rows have no value, their notes have the
//! error, and the benchmark ends with an error.

use std::io::Write;

use anyhow::{Result, bail, ensure};

use super::Args;
use super::row::{Row, header, json};

/// Rows of a benchmark that are measured together. All groups of a subject share a context `C`.
pub struct Group<C> {
    names: Vec<&'static str>,
    measure: Box<Measure<C>>,
}

type Measure<C> = dyn Fn(&C) -> Result<Vec<Row>>;

impl<C> Group<C> {
    /// Creates a group of the rows `names`, which `measure` returns in any order.
    pub fn new(
        names: &[&'static str],
        measure: impl Fn(&C) -> Result<Vec<Row>> + 'static,
    ) -> Group<C> {
        Group {
            names: names.to_vec(),
            measure: Box::new(measure),
        }
    }

    /// Creates a group of one row.
    pub fn one(name: &'static str, measure: impl Fn(&C) -> Result<Row> + 'static) -> Group<C> {
        Group::new(&[name], move |shared| Ok(vec![measure(shared)?]))
    }
}

/// Measures the selected rows; `Ok(false)` if a row misses its goal. `prepare` builds the context,
/// only if rows are selected. It is an error if a row does not exist or could not be measured.
pub fn measure<C>(
    args: &Args,
    groups: Vec<Group<C>>,
    prepare: impl FnOnce() -> Result<C>,
) -> Result<bool> {
    let groups = choose(groups, &args.row)?;
    let shared = prepare()?;
    let rows = measure_groups(groups, &shared, &mut std::io::stdout())?;
    if args.json {
        println!("{}", json(&rows));
    }
    let failed = rows.iter().filter(|row| row.has_failed());
    let failed: Vec<&str> = failed.map(|row| row.name).collect();
    ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    Ok(rows.iter().all(Row::ok))
}

/// Keeps the selected rows: rows whose name contains one of the words, or all rows if there are no words.
fn choose<C>(mut groups: Vec<Group<C>>, words: &[String]) -> Result<Vec<Group<C>>> {
    let names: Vec<&str> = groups.iter().flat_map(|of| of.names.clone()).collect();
    for word in words {
        if !names.iter().any(|name| name.contains(word)) {
            bail!("no row is called {word}; they are {}", names.join(", "));
        }
    }
    for group in &mut groups {
        group
            .names
            .retain(|name| words.is_empty() || words.iter().any(|word| name.contains(word)));
    }
    groups.retain(|group| !group.names.is_empty());
    Ok(groups)
}

fn measure_groups<C>(groups: Vec<Group<C>>, shared: &C, out: &mut impl Write) -> Result<Vec<Row>> {
    let names = groups.iter().flat_map(|group| &group.names);
    let width = names.map(|name| name.len()).max().unwrap_or(0).max(16);
    writeln!(out, "{}", header(width))?;
    let mut rows: Vec<Row> = Vec::new();
    for Group { names, measure } in groups {
        eprintln!("measuring {} …", names.join(", "));
        let measured = measure(shared);
        for name in names {
            let row = match &measured {
                Ok(rows) => rows.iter().find(|row| row.name == name).cloned(),
                Err(error) => Some(Row::failed(name, format!("{error:#}"))),
            };
            let row =
                row.unwrap_or_else(|| Row::failed(name, "the measurement has no such row".into()));
            writeln!(out, "{}", row.line(width))?;
            rows.push(row);
        }
    }
    for row in &rows {
        writeln!(out, "{}: {}", row.name, row.note)?;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::super::row::Goal;
    use super::*;
    use std::cell::RefCell;

    fn row(name: &'static str, value: f64) -> Row {
        Row {
            name,
            value: Some(value),
            unit: "us",
            goal: Goal::AtMost(2.0),
            floor: None,
            note: format!("{name} was measured"),
        }
    }

    fn groups() -> Vec<Group<()>> {
        vec![
            Group::new(&["a/one", "a/two"], |()| {
                Ok(vec![row("a/two", 2.0), row("a/one", 1.0)])
            }),
            Group::one("b/one", |()| bail!("/proc/1/x: no such file")),
            Group::one("c/three", |()| Ok(row("c/three", 3.0))),
        ]
    }

    fn names(words: &[&str]) -> Result<Vec<&'static str>> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let groups = choose(groups(), &words)?;
        Ok(groups.into_iter().flat_map(|group| group.names).collect())
    }

    #[test]
    fn a_row_is_wanted_if_its_name_contains_one_of_the_words() {
        assert_eq!(names(&[]).unwrap(), ["a/one", "a/two", "b/one", "c/three"]);
        assert_eq!(names(&["one"]).unwrap(), ["a/one", "b/one"]);
        assert_eq!(names(&["two", "c/"]).unwrap(), ["a/two", "c/three"]);
    }

    #[test]
    fn a_word_without_a_row_is_an_error_that_lists_the_names() {
        let error = names(&["one", "four"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "no row is called four; they are a/one, a/two, b/one, c/three"
        );
    }

    #[test]
    fn a_failed_group_leaves_other_rows() {
        let mut out = Vec::new();
        let rows = measure_groups(groups(), &(), &mut out).unwrap();
        let figures: Vec<_> = rows.iter().map(|row| (row.name, row.value)).collect();
        assert_eq!(
            figures,
            [
                ("a/one", Some(1.0)),
                ("a/two", Some(2.0)),
                ("b/one", None),
                ("c/three", Some(3.0))
            ]
        );
        let failed: Vec<bool> = rows.iter().map(Row::has_failed).collect();
        assert_eq!(failed, [false, false, true, false]);
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 1 + 4 + 4, "{out}");
        assert!(lines[3].starts_with("b/one ") && lines[3].ends_with("no"));
        assert_eq!(lines[7], "b/one: /proc/1/x: no such file");
        assert_eq!(lines[8], "c/three: c/three was measured");
    }

    #[test]
    fn a_row_that_a_group_leaves_out_has_failed() {
        let groups = vec![Group::new(&["a", "b"], |()| Ok(vec![row("a", 1.0)]))];
        let rows = measure_groups(groups, &(), &mut Vec::new()).unwrap();
        assert!(!rows[0].has_failed() && rows[1].has_failed());
    }

    /// An output that a group can read while rows are printed.
    #[derive(Default)]
    struct Output(RefCell<Vec<u8>>);

    impl Write for &Output {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_row_is_printed_before_the_next_is_measured() {
        let output = Output::default();
        let groups = vec![
            Group::one("first", |_: &Output| Ok(row("first", 1.0))),
            Group::one("second", |output: &Output| {
                let printed = String::from_utf8(output.0.borrow().clone())?;
                ensure!(printed.contains("\nfirst "), "{printed:?}");
                Ok(row("second", 1.0))
            }),
        ];
        let rows = measure_groups(groups, &output, &mut &output).unwrap();
        assert!(rows.iter().all(Row::ok), "{rows:?}");
    }
}
