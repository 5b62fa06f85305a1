//! `stf_v1model`, `stf_psa`: p4c's packet tests on the embedded switch, run as p4c's script runs them on BMv2.

mod entries;
mod expand;
mod replication;
mod script;
mod switch;
pub mod tofino;

use super::corpus::{self, Corpus};
use super::suite::{Suite, SuiteGoal};
use anyhow::Result;
use p4lang::ir::Arch;
use pipeline::{Config, Executor, Switch};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switch::StfSwitch;

pub const NAMES: &[&str] = &["stf_v1model", "stf_psa"];

pub fn run(corpus: &Corpus) -> Result<Vec<Suite>> {
    let xfail = corpus.expected_failures();
    let (mut v1model, mut psa) = (Vec::new(), Vec::new());
    for path in corpus.files(super::samples::SAMPLES, ".stf")? {
        match architecture(&path) {
            Some(Arch::V1model) => v1model.push(path),
            Some(Arch::Psa) => psa.push(path),
            _ => {}
        }
    }
    let samples = corpus.path(super::samples::SAMPLES);
    let suite = |name, goal, paths: Vec<PathBuf>| {
        let (apart, counted): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(|p| {
            let program = corpus::file_name(&p.with_extension("p4"));
            xfail.contains(&format!("testdata/p4_16_samples/{program}"))
        });
        let cases = |paths: &[PathBuf]| {
            corpus::run_cases(
                paths,
                |p| corpus::name_below(p, &samples),
                |p| case(p, corpus.executor),
            )
        };
        Suite {
            name,
            goal: SuiteGoal::Cases(goal),
            cases: cases(&counted),
            apart: cases(&apart),
        }
    };
    Ok(vec![
        suite(NAMES[0], 190, v1model),
        suite(NAMES[1], 26, psa),
    ])
}

/// Architecture of the package in the program of an STF file, or in a file of its folder that the program includes.
fn architecture(stf: &Path) -> Option<Arch> {
    let program = std::fs::read_to_string(stf.with_extension("p4")).ok()?;
    let included = program
        .lines()
        .filter_map(|l| l.trim().strip_prefix("#include")?.trim().strip_prefix('"'))
        .filter_map(|l| std::fs::read_to_string(stf.with_file_name(l.trim_end_matches('"'))).ok());
    let mut text = included.collect::<String>();
    text.push_str(&program);
    if text.contains("V1Switch") {
        Some(Arch::V1model)
    } else if text.contains("PSA_Switch") {
        Some(Arch::Psa)
    } else {
        None
    }
}

fn case(stf: &Path, executor: Executor) -> Result<(), String> {
    let text = std::fs::read_to_string(stf).map_err(|e| e.to_string())?;
    let script = script::parse(&text).map_err(|e| e.to_string())?;
    let compiled = corpus::compile(&stf.with_extension("p4")).map_err(|d| d.short())?;
    let config = Config {
        executor,
        ..Config::default()
    };
    let switch = Switch::new(Arc::new(compiled.program), config).map_err(|e| e.to_string())?;
    let mut device = StfSwitch::new(switch);
    for command in &script {
        device.execute(command)?;
    }
    device.finish()
}
