//! `stf_tna`: the packet tests of Tofino's own compiler, from a checkout that the user names, on the embedded switch.
//!
//! A program runs on the Tofino that it is written for, or on both if it uses `__TARGET_TOFINO__`, which the compiler's
//! driver sets. Programs of unsupported architectures are listed, but not counted.

use super::switch::StfSwitch;
use super::{expand, script};
use crate::conformance::corpus;
use crate::conformance::suite::{Case, Suite, SuiteGoal};
use p4lang::ir::Arch;
use pipeline::{Config, Executor, Switch};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const NAME: &str = "stf_tna";

/// Number of cases that have to pass: all that pass today.
const GOAL: usize = 181;

/// A port of pipe 0 that no test uses.
const UNUSED_PORT: u32 = 63;

/// Result of the suite, and reasons for programs that were skipped.
#[derive(Default)]
pub struct TofinoResults {
    pub suite: Option<Suite>,
    pub skipped: Vec<String>,
}

/// Test (an STF file and its program) for one generation of Tofino.
struct TofinoTest {
    name: String,
    stf: PathBuf,
    generation: &'static str,
}

/// Runs the tests of the folder `p4-tests/p4_16` of Tofino's compiler.
pub fn run(dir: Option<&Path>, filter: &str, executor: Executor) -> TofinoResults {
    let Some(dir) = dir else {
        return TofinoResults {
            suite: None,
            skipped: vec!["--tofino DIR names no checkout".to_owned()],
        };
    };
    let mut found = TofinoResults::default();
    let xfail = expected_failures(dir);
    let (mut counted, mut apart) = (Vec::new(), Vec::new());
    for folder in ["stf", "jbay"] {
        for stf in files(&dir.join(folder)) {
            let name = format!("{folder}/{}", corpus::file_name(&stf));
            if !name.contains(filter) {
                continue;
            }
            let generations = match generations(&stf, folder) {
                Ok(generations) => generations,
                Err(why) => {
                    found.skipped.push(format!("{name}: {why}"));
                    continue;
                }
            };
            let several = generations.len() > 1;
            for generation in generations {
                let name = match several {
                    true => format!("{name} (Tofino {generation})"),
                    false => name.clone(),
                };
                let program = corpus::file_name(&stf.with_extension("p4"));
                let expected = xfail.contains(&format!("{generation} {folder}/{program}"));
                let list = if expected { &mut apart } else { &mut counted };
                list.push(TofinoTest {
                    name,
                    stf: stf.clone(),
                    generation,
                });
            }
        }
    }
    let include = dir.join("includes").to_string_lossy().into_owned();
    let cases = |tests: &[TofinoTest]| -> Vec<Case> {
        corpus::run_cases(tests, |t| t.name.clone(), |t| case(t, &include, executor))
    };
    if !counted.is_empty() || !apart.is_empty() {
        found.suite = Some(Suite {
            name: NAME,
            goal: SuiteGoal::Cases(GOAL),
            cases: cases(&counted),
            apart: cases(&apart),
        });
    } else if found.skipped.is_empty() {
        let at = dir.display();
        found.skipped.push(format!("{at} has no such stf/*.stf"));
    }
    found
}

/// Paths of the tests (STF files) in a folder, sorted by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "stf"))
        .collect();
    found.sort();
    found
}

/// Generations of Tofino on which to run a test's program, or the reason to skip it. Programs of
/// other architectures than TNA run once.
fn generations(stf: &Path, folder: &str) -> Result<Vec<&'static str>, String> {
    let Ok(text) = std::fs::read_to_string(stf.with_extension("p4")) else {
        return Err("the test has no program of its name".into());
    };
    let includes = |file: &str| {
        let mut lines = text.lines().map(str::trim);
        lines.any(|l| l.starts_with("#include") && l.contains(file))
    };
    if includes("<tofino/") {
        return Err(
            "v1model with the externs of a former compiler (tofino/stateful_alu.p4)".into(),
        );
    }
    if includes("\"tofino.h\"") {
        return Err("an architecture of its own (tofino.h)".into());
    }
    match (
        includes("tna.p4>") || includes("\"tna.p4"),
        includes("t2na.p4"),
    ) {
        _ if folder == "jbay" => Ok(vec!["2"]),
        (true, true) => Ok(vec!["1", "2"]),
        (false, true) => Ok(vec!["2"]),
        _ => Ok(vec!["1"]),
    }
}

/// Generation, folder and program of the tests that the project's build files expect to fail or to
/// be rejected. These build files are beside the folder `dir`.
fn expected_failures(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (file, generation) in [
        ("TofinoXfail.cmake", "1"),
        ("TofinoErrors.cmake", "1"),
        ("JBayXfail.cmake", "2"),
        ("JBayErrors.cmake", "2"),
    ] {
        let text = std::fs::read_to_string(dir.join("..").join(file)).unwrap_or_default();
        for line in text.lines() {
            let path = line.split('#').next().unwrap_or("").trim();
            if let Some((_, path)) = path.split_once("/p4_16/") {
                found.insert(format!("{generation} {path}"));
            }
        }
    }
    found
}

fn case(test: &TofinoTest, include: &str, executor: Executor) -> Result<(), String> {
    let text = std::fs::read_to_string(&test.stf).map_err(|e| e.to_string())?;
    let script = script::parse(&expand::expand(&text)?).map_err(|e| e.to_string())?;
    let options = p4lang::Options {
        defines: vec![("__TARGET_TOFINO__".to_owned(), test.generation.to_owned())],
        include_dirs: vec![include.to_owned()],
    };
    let program = test.stf.with_extension("p4");
    let compiled = corpus::compile_with(&program, &options).map_err(|d| d.short())?;
    let config = Config {
        executor,
        // Tofino 2's CPU port is 0 unless it is set, but the tests use port 0 like any other.
        cpu_port: match compiled.program.arch {
            Arch::Tna | Arch::T2na => UNUSED_PORT,
            _ => Config::default().cpu_port,
        },
        ..Config::default()
    };
    let switch = Switch::new(Arc::new(compiled.program), config).map_err(|e| e.to_string())?;
    let mut device = StfSwitch::tofino(switch);
    for command in &script {
        device.execute(command)?;
    }
    device.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_select_their_tofino() {
        let dir = tempfile::tempdir().unwrap();
        let of = |text: &str, folder: &str| {
            std::fs::write(dir.path().join("x.p4"), text).unwrap();
            generations(&dir.path().join("x.stf"), folder)
        };
        let both =
            "#if __TARGET_TOFINO__ == 2\n#include <t2na.p4>\n#else\n#include <tna.p4>\n#endif\n";
        assert_eq!(of(both, "stf").unwrap(), ["1", "2"]);
        assert_eq!(of("#include <tna.p4>\n", "stf").unwrap(), ["1"]);
        assert_eq!(of("#include \"t2na.p4\"\n", "stf").unwrap(), ["2"]);
        assert_eq!(of(both, "jbay").unwrap(), ["2"]);
        assert_eq!(of("#include <v1model.p4>\n", "stf").unwrap(), ["1"]);
        assert!(of("#include <tofino/stateful_alu.p4>\n", "stf").is_err());
        assert!(generations(&dir.path().join("y.stf"), "stf").is_err());
    }

    #[test]
    fn build_files_list_expected_failures() {
        let dir = tempfile::tempdir().unwrap();
        let list = "macro(\"tofino\"\n  \"reason\"\n  extensions/p4_tests/p4_16/stf/a.p4 # why\n  # x/p4_16/stf/b.p4\n)\n";
        std::fs::write(dir.path().join("TofinoXfail.cmake"), list).unwrap();
        let programs = dir.path().join("p4_16");
        std::fs::create_dir(&programs).unwrap();
        let found = expected_failures(&programs);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["1 stf/a.p4"]);
    }
}
