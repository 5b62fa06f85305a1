//! Counts packages, compilation units and test programs, as cargo plans them.
//!
//! cargo prints its plan as a unit graph, in a fraction of a second and without building. A unit is
//! one call of rustc, or one run of a build script. The option is unstable, so `RUSTC_BOOTSTRAP`
//! admits it; with `--unit-graph` cargo starts no compiler, and no artifact changes.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::surplus::{Surplus, surplus};

/// Numbers of packages and units in the plan of a build.
#[derive(Debug, PartialEq)]
pub struct Build {
    /// Number of packages that have a unit in the plan.
    pub packages: u64,
    /// Number of all units in the plan.
    pub units: u64,
}

/// Numbers of test programs that `cargo test --workspace` runs.
#[derive(Debug, PartialEq)]
pub struct Tests {
    /// Number of integration tests' programs.
    pub programs: u64,
    /// Number of all programs with a test harness: integration tests, and the unit tests of each library, program and example.
    pub harnesses: u64,
}

/// Plans the build of README's first command, and counts its units.
///
/// # Errors
/// If cargo fails.
pub fn demo() -> Result<Build> {
    let graph = graph(&["build", "--release", "--package", "controller"])?;
    let units = units(&graph);
    let packages: BTreeSet<_> = units.iter().map(|unit| unit.split('"').nth(1)).collect();
    Ok(Build {
        packages: packages.len() as u64,
        units: units.len() as u64,
    })
}

/// Plans the build of the workspace's tests, and counts the programs.
///
/// # Errors
/// If cargo fails.
pub fn tests() -> Result<Tests> {
    let graph = graph(&["test", "--workspace", "--no-run"])?;
    Ok(count_tests(&graph))
}

/// Plans all compilations of one run of `cargo xtask test`, and finds the units that it compiles twice.
///
/// # Errors
/// If cargo fails.
pub fn compiled_twice() -> Result<Surplus> {
    let build = graph(&["build", "--workspace", "--all-targets"])?;
    // Later commands must be able to reuse the build, so only the profile's name differs.
    let tests = graph(&["test", "--workspace", "--no-run"])?;
    let tests = tests.replace(
        "\"profile\":{\"name\":\"test\"",
        "\"profile\":{\"name\":\"dev\"",
    );
    let xtask = graph(&["build", "--package", "xtask"])?;
    Ok(surplus(&[units(&build), units(&tests), units(&xtask)]))
}

fn count_tests(graph: &str) -> Tests {
    let mut harnesses = units(graph);
    harnesses.retain(|unit| unit.contains("\"mode\":\"test\""));
    let programs = harnesses
        .iter()
        .filter(|unit| unit.contains("\"kind\":[\"test\"]"));
    Tests {
        programs: programs.count() as u64,
        harnesses: harnesses.len() as u64,
    }
}

/// Splits a unit graph into the JSON text of each unit. The key `"pkg_id":` begins each, and no
/// string contains it, because a quote in a string has a backslash before it.
fn units(graph: &str) -> Vec<&str> {
    graph.split("\"pkg_id\":").skip(1).collect()
}

fn graph(arguments: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .args(["-Z", "unstable-options", "--unit-graph"])
        .env("RUSTC_BOOTSTRAP", "1")
        .output()
        .context("cargo")?;
    if !output.status.success() {
        bail!(
            "`cargo {} --unit-graph`: {}\n{}",
            arguments.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    String::from_utf8(output.stdout).context("cargo's unit graph")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str = concat!(
        r#"{"version":1,"units":[{"pkg_id":"path+file:///a#0.1.0","target":{"kind":["lib"],"#,
        r#""name":"\"pkg_id\":"},"mode":"build"},"#,
        r#"{"pkg_id":"path+file:///a#0.1.0","target":{"kind":["lib"]},"mode":"test"},"#,
        r#"{"pkg_id":"path+file:///a#0.1.0","target":{"kind":["lib"]},"mode":"doctest"},"#,
        r#"{"pkg_id":"path+file:///b#0.1.0","target":{"kind":["test"]},"mode":"test"}],"#,
        r#""roots":[1,2,3]}"#
    );

    #[test]
    fn units_begin_with_their_package() {
        let units = units(GRAPH);
        assert_eq!(units.len(), 4);
        assert!(units.iter().all(|unit| unit.starts_with("\"path+file:///")));
    }

    #[test]
    fn integration_tests_are_harnesses_as_well() {
        let expected = Tests {
            programs: 1,
            harnesses: 2,
        };
        assert_eq!(count_tests(GRAPH), expected);
    }
}
