//! `load`: from P4 text to a switch that forwards.

use super::clock::thread_cpu_ns;
use super::row::{Goal, Row};
use anyhow::{Result, anyhow};
use std::sync::Arc;

/// What [`run`] measures.
pub const NAMES: &[&str] = &["load"];

/// p4src's largest program: PSA, 256 values, both fault engines, flows by address, port, and Redis command and key.
const FILTERS: [&str; 4] = [
    "ip.src == 10.0.0.0/8 && tcp.dport == 6379",
    "redis.command == \"GET\"",
    "udp.dport in {4000..5000}",
    "redis.command in {\"SET\", \"DEL\"} && redis.key startswith \"cart:\"",
];

/// The row.
pub fn run() -> Result<Vec<Row>> {
    let files = files()?;
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
    Ok(vec![Row {
        name: "load",
        value: Some(ms(all)),
        unit: "ms",
        goal: Goal::AtMost(20.0),
        floor: None,
        note: format!(
            "{:.1} ms to IR, {:.1} ms to {ops} instructions; p4c alone takes 170 ms and more",
            ms(front),
            ms(all - front)
        ),
    }])
}

fn files() -> Result<p4lang::Files> {
    let library = parser_gen::Library::builtin();
    let mut flows = Vec::new();
    for (i, text) in FILTERS.iter().enumerate() {
        flows.push(parser_gen::Flow {
            name: format!("flow_{i}"),
            filter: parser_gen::Filter::parse(&library, text).map_err(|e| anyhow!("{e}"))?,
        });
    }
    let options = parser_gen::Options::aggregating(true);
    let generated = parser_gen::generate(&library, &flows, &options)?;
    let mut files = p4lang::Files::new();
    for (path, text) in parser_gen::program(parser_gen::Arch::Psa, &generated) {
        files.insert(&path, text);
    }
    Ok(files)
}
