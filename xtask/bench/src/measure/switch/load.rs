//! `load`: time from P4 text to a switch that forwards packets.

use crate::measure::clock::thread_cpu_ns;
use crate::measure::row::{Goal, Row};
use anyhow::{Context, Result, anyhow};
use parser_gen::FrameValues;
use std::sync::Arc;

pub const NAMES: &[&str] = &["load", "load_2048", "load_redis"];

/// Filters of flows in p4src's largest program: PSA, both fault engines, flows by address, port, and Redis command and key.
const FILTERS: [&str; 4] = [
    "ip.src == 10.0.0.0/8 && tcp.dport == 6379",
    "redis.command == \"GET\"",
    "udp.dport in {4000..5000}",
    "redis.command in {\"SET\", \"DEL\"} && redis.key startswith \"cart:\"",
];

pub fn run() -> Result<Vec<Row>> {
    Ok(vec![
        largest("load", FrameValues::V256, Goal::AtMost(20.0))?,
        largest("load_2048", FrameValues::V2048, Goal::Nothing)?,
        redis()?,
    ])
}

fn largest(name: &'static str, values: FrameValues, goal: Goal) -> Result<Row> {
    let files = files(values)?;
    let path = parser_gen::Arch::Psa.main_path();
    let mut samples = Vec::new();
    for _ in 0..15 {
        let start = thread_cpu_ns();
        let compiled = p4lang::compile(&files, &path, &p4lang::Options::default())
            .map_err(|e| anyhow!("{e}"))?;
        let front = thread_cpu_ns();
        let switch =
            pipeline::Switch::new(Arc::new(compiled.program), pipeline::Config::default())?;
        let end = thread_cpu_ns();
        samples.push((end - start, front - start, switch.code_size().0));
    }
    samples.sort_unstable();
    let (all, front, ops) = samples[samples.len() / 2];
    let ms = |ns: u64| ns as f64 / 1e6;
    Ok(Row {
        name,
        value: Some(ms(all)),
        unit: "ms",
        goal,
        floor: None,
        note: format!(
            "frames of {} values: {:.1} ms to IR, {:.1} ms to {ops} instructions; p4c alone takes 170 ms and more with 256",
            values.count(),
            ms(front),
            ms(all - front)
        ),
    })
}

/// Row of the shipped scenario with a real Redis: time from the scenario's plan to a switch with all table entries.
fn redis() -> Result<Row> {
    const TEXT: &str = include_str!("../../../../../testbeds/scenarios/redis-get-loss.yaml");
    let scenario = scenario::load("redis-get-loss.yaml", TEXT).map_err(|e| anyhow!("{e}"))?;
    let plan =
        scenario::plan(&scenario, &scenario::TargetModel::EMBEDDED).map_err(|e| anyhow!("{e}"))?;
    let planned = plan.switches.first().context("a switch")?;
    let arch = parser_gen::Arch::Psa;
    let mut samples = Vec::new();
    for _ in 0..15 {
        let start = thread_cpu_ns();
        let generated = planned.generate()?;
        let mut files = p4lang::Files::new();
        for (path, text) in parser_gen::program(arch, &generated) {
            files.insert(&path, text);
        }
        let compiled = p4lang::compile(&files, &arch.main_path(), &p4lang::Options::default())
            .map_err(|e| anyhow!("{e}"))?;
        let program = thread_cpu_ns();
        let mut switch =
            pipeline::Switch::new(Arc::new(compiled.program), pipeline::Config::default())?;
        let entries = planned.all_entries(arch, &generated);
        for entry in &entries {
            switch.insert_entry(entry)?;
        }
        let end = thread_cpu_ns();
        samples.push((end - start, program - start, entries.len()));
    }
    samples.sort_unstable();
    let (all, program, entries) = samples[samples.len() / 2];
    let ms = |ns: u64| ns as f64 / 1e6;
    Ok(Row {
        name: "load_redis",
        value: Some(ms(all)),
        unit: "ms",
        goal: Goal::AtMost(20.0),
        floor: None,
        note: format!(
            "{:.1} ms to write and compile the program, {:.1} ms to load it with {entries} entries",
            ms(program),
            ms(all - program)
        ),
    })
}

fn files(values: FrameValues) -> Result<p4lang::Files> {
    let library = parser_gen::Library::builtin();
    let mut flows = Vec::new();
    for (i, text) in FILTERS.iter().enumerate() {
        flows.push(parser_gen::Flow {
            name: format!("flow_{i}"),
            filter: parser_gen::Filter::parse(&library, text).map_err(|e| anyhow!("{e}"))?,
        });
    }
    let options = parser_gen::Options {
        aggregate: Some(values),
        ..Default::default()
    };
    let generated = parser_gen::generate(&library, &flows, &options)?;
    let mut files = p4lang::Files::new();
    for (path, text) in parser_gen::program(parser_gen::Arch::Psa, &generated) {
        files.insert(&path, text);
    }
    Ok(files)
}
