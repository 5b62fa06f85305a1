//! `samples_accepted`: checks that our compiler's front end accepts p4c's sample programs.

use super::corpus::{self, Corpus};
use super::suite::{Case, Suite, SuiteGoal};
use anyhow::Result;
use p4lang::diagnostics::Diagnostics;
use std::path::Path;

pub const NAMES: &[&str] = &["samples_accepted"];

pub const SAMPLES: &str = "testdata/p4_16_samples";

/// Compiles every sample program that needs no architecture except core, v1model and PSA.
pub fn run(corpus: &Corpus) -> Result<Vec<Suite>> {
    let samples = corpus.path(SAMPLES);
    let paths = corpus.files(SAMPLES, ".p4")?;
    let paths: Vec<_> = paths.into_iter().filter(|path| is_ours(path)).collect();
    let cases: Vec<Case> = corpus::run_cases(
        &paths,
        |path| corpus::name_below(path, &samples),
        |path| match corpus::compile(path) {
            Ok(_) => Ok(()),
            Err(found) if only_main_is_missing(&found) => Ok(()),
            Err(found) => Err(found.short().lines().next().unwrap_or("").to_owned()),
        },
    );
    Ok(vec![Suite {
        name: NAMES[0],
        goal: SuiteGoal::Percent(97.0),
        cases,
        apart: Vec::new(),
    }])
}

/// Whether the only error is a missing `main`: half of the samples are declarations without it, which test the front end.
pub fn only_main_is_missing(found: &Diagnostics) -> bool {
    let mut errors = found.errors();
    errors
        .next()
        .is_some_and(|e| e.message.contains("no package named `main`"))
        && errors.next().is_none()
}

/// Whether a program includes only files that this crate has, directly or through files of the program's folder.
pub fn is_ours(path: &Path) -> bool {
    let mut todo = vec![path.to_path_buf()];
    let mut seen = Vec::new();
    while let Some(path) = todo.pop() {
        if seen.contains(&path) {
            continue;
        }
        let Ok(bytes) = std::fs::read(&path) else {
            return false;
        };
        let text = String::from_utf8_lossy(&bytes);
        for name in text.lines().filter_map(corpus::included) {
            let local = path.with_file_name("").join(name);
            if local.is_file() {
                todo.push(local);
            } else if !matches!(name, "core.p4" | "v1model.p4" | "psa.p4" | "bmv2/psa.p4") {
                return false;
            }
        }
        seen.push(path);
    }
    true
}
