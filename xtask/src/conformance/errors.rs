//! `errors_rejected`, `errors_line`: p4c's faulty programs are refused, with the first error where p4c has it.

use super::corpus::{self, Corpus};
use super::samples::only_main_is_missing;
use super::suite::{Reach, Suite};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Its suites.
pub const NAMES: &[&str] = &["errors_rejected", "errors_line"];

/// Runs both over p4_16_errors. A missing `main` is no reason to refuse a program here: it is not what is wrong with it.
pub fn run(corpus: &Corpus) -> Result<Vec<Suite>> {
    let paths = corpus.files("testdata/p4_16_errors", ".p4")?;
    let rejected = corpus::each(
        &paths,
        |path| corpus::name_of(path),
        |path| match corpus::compile(path) {
            Ok(_) => Err("accepted".to_owned()),
            Err(found) if only_main_is_missing(&found) => Err("accepted".to_owned()),
            Err(_) => Ok(()),
        },
    );
    let outputs = corpus.path("testdata/p4_16_errors_outputs");
    let named: Vec<(PathBuf, u32)> = paths
        .into_iter()
        .filter_map(|path| {
            let name = corpus::name_of(&path);
            let golden = std::fs::read(outputs.join(format!("{name}-stderr"))).ok()?;
            let line = first_error(&String::from_utf8_lossy(&golden), &name)?;
            Some((path, line))
        })
        .collect();
    let line = corpus::each(
        &named,
        |(path, _)| corpus::name_of(path),
        |(path, wanted)| line_of(path, *wanted),
    );
    Ok(vec![
        Suite {
            name: NAMES[0],
            reach: Reach::Cases(530),
            cases: rejected,
            apart: Vec::new(),
        },
        Suite {
            name: NAMES[1],
            reach: Reach::Percent(75.0),
            cases: line,
            apart: Vec::new(),
        },
    ])
}

fn line_of(path: &Path, wanted: u32) -> Result<(), String> {
    let Err(found) = corpus::compile(path) else {
        return Err(format!("line {wanted} wanted, accepted"));
    };
    let text = found.short();
    let first = text
        .lines()
        .find(|line| line.contains(": error["))
        .unwrap_or_default();
    let line = first
        .split(": error[")
        .next()
        .and_then(|place| place.rsplit(':').nth(1))
        .and_then(|line| line.parse::<u32>().ok());
    if line == Some(wanted) {
        Ok(())
    } else {
        Err(format!("line {wanted} wanted, found {first}"))
    }
}

/// The line of the first error in p4c's output: `file.p4(12): … error: …` or `file.p4(12):syntax error …`.
fn first_error(golden: &str, name: &str) -> Option<u32> {
    golden.lines().find_map(|line| {
        let (number, message) = line.strip_prefix(name)?.strip_prefix('(')?.split_once(')')?;
        let is_error = message.starts_with(':')
            && (message.contains("error: ") || message.contains("syntax error"));
        is_error.then(|| number.parse().ok())?
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
        assert_eq!(first_error(golden, "a.p4"), Some(8));
        assert_eq!(first_error("a.p4(9):syntax error\n", "a.p4"), Some(9));
        assert_eq!(first_error("error: no place\n", "a.p4"), None);
    }
}
