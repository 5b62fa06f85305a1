//! `samples_accepted`: p4c's sample programs go through the front end.

use super::corpus::{self, Corpus};
use super::suite::{Case, Reach, Suite};
use anyhow::Result;
use p4lang::diagnostics::Diagnostics;
use std::path::Path;

/// Its suite.
pub const NAMES: &[&str] = &["samples_accepted"];

/// Compiles every sample that needs no architecture but core, v1model and PSA.
pub fn run(corpus: &Corpus) -> Result<Vec<Suite>> {
    let paths = corpus.files("testdata/p4_16_samples", ".p4")?;
    let paths: Vec<_> = paths.into_iter().filter(|path| is_ours(path)).collect();
    let cases: Vec<Case> = corpus::each(
        &paths,
        |path| corpus::name_of(path),
        |path| match corpus::compile(path) {
            Ok(_) => Ok(()),
            Err(found) if only_main_is_missing(&found) => Ok(()),
            Err(found) => Err(found.short().lines().next().unwrap_or("").to_owned()),
        },
    );
    Ok(vec![Suite {
        name: NAMES[0],
        reach: Reach::Percent(97.0),
        cases,
        apart: Vec::new(),
    }])
}

/// Half of the samples are declarations that end without a `main`; the front end is what they test.
pub fn only_main_is_missing(found: &Diagnostics) -> bool {
    let mut errors = found.errors();
    errors
        .next()
        .is_some_and(|e| e.message.contains("no package named `main`"))
        && errors.next().is_none()
}

/// Whether a program includes, directly or by its own folder's files, only what is declared here.
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
        for name in text.lines().filter_map(included) {
            let local = path.with_file_name(name);
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

/// The file that a line includes.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix('#')?.trim_start();
    let name = rest.strip_prefix("include")?.trim();
    let end = match name.chars().next()? {
        '<' => '>',
        '"' => '"',
        _ => return None,
    };
    name[1..].split(end).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_read_off_their_lines() {
        assert_eq!(included("#include <core.p4>"), Some("core.p4"));
        assert_eq!(included("  # include \"a/b.p4\" // why"), Some("a/b.p4"));
        assert_eq!(included("#define include"), None);
        assert_eq!(included("#include MACRO"), None);
    }
}
