//! `errors_rejected`, `errors_line`: our compiler rejects p4c's faulty programs, with the first error on the same line as p4c.

use super::corpus::{self, Corpus};
use super::samples::only_main_is_missing;
use super::suite::{Suite, SuiteGoal};
use anyhow::Result;
use std::path::{Path, PathBuf};

pub const NAMES: &[&str] = &["errors_rejected", "errors_line"];

/// Runs both suites over p4_16_errors. A missing `main` does not count: it is not the error under test.
pub fn run(corpus: &Corpus) -> Result<Vec<Suite>> {
    let paths = corpus.files("testdata/p4_16_errors", ".p4")?;
    let rejected = corpus::run_cases(
        &paths,
        |path| corpus::file_name(path),
        |path| match corpus::compile(path) {
            Ok(_) => Err("accepted".to_owned()),
            Err(found) if only_main_is_missing(&found) => Err("accepted".to_owned()),
            Err(_) => Ok(()),
        },
    );
    let outputs = corpus.path("testdata/p4_16_errors_outputs");
    let named: Vec<(PathBuf, ErrorPosition)> = paths
        .into_iter()
        .filter_map(|path| {
            let name = format!("{}-stderr", corpus::file_name(&path));
            let golden = std::fs::read(outputs.join(name)).ok()?;
            let place = first_error(&String::from_utf8_lossy(&golden))?;
            Some((path, place))
        })
        .collect();
    let line = corpus::run_cases(
        &named,
        |(path, _)| corpus::file_name(path),
        |(path, wanted)| check_position(path, wanted),
    );
    Ok(vec![
        Suite {
            name: NAMES[0],
            goal: SuiteGoal::Cases(530),
            cases: rejected,
            apart: Vec::new(),
        },
        Suite {
            name: NAMES[1],
            goal: SuiteGoal::Percent(75.0),
            cases: line,
            apart: Vec::new(),
        },
    ])
}

/// Position of an error: file name, and line from 1.
type ErrorPosition = (String, u32);

fn check_position(path: &Path, wanted: &ErrorPosition) -> Result<(), String> {
    let (file, line) = wanted;
    let found = match corpus::compile(path) {
        Err(found) if !only_main_is_missing(&found) => found,
        _ => return Err(format!("{file}:{line} wanted, accepted")),
    };
    let Some(first) = found.errors().next() else {
        return Err(format!("{file}:{line} wanted, no error"));
    };
    let at = found.source.location(first.span);
    if at.line == *line && corpus::file_name(Path::new(&at.file)) == *file {
        Ok(())
    } else {
        Err(format!("{file}:{line} wanted, {at}: {}", first.message))
    }
}

/// Position of the first error in p4c's output: `file.p4(12): … error: …` or `file.p4(12):syntax error …`.
fn first_error(golden: &str) -> Option<ErrorPosition> {
    golden.lines().find_map(|line| {
        let (file, rest) = line.split_once('(')?;
        let (number, message) = rest.split_once(')')?;
        let is_error = message.starts_with(':')
            && (message.contains("error: ") || message.contains("syntax error"));
        if !is_error || file.contains(' ') {
            return None;
        }
        Some((file.to_owned(), number.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_before_the_error_do_not_count() {
        let golden = "a.p4(3): [--Wwarn=unused] warning: 'x' is unused\nconst bit x = 0;\n\
                      a.p4(8): [--Werror=type-error] error: y: no\n\
                      a.p4(9):syntax error, unexpected }\n";
        assert_eq!(first_error(golden), Some(("a.p4".to_owned(), 8)));
        assert_eq!(
            first_error("b.p4(9):syntax error\n"),
            Some(("b.p4".to_owned(), 9))
        );
        assert_eq!(first_error("error: no place (1): x\n"), None);
    }
}
