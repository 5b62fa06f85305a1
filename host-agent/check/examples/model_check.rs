//! `cargo xtask model-check`: explores the configurations in `docs/model-checking.md`, and prints their rows.
#![allow(clippy::disallowed_methods)] // The library is pure; this program measures its running time.

use std::process::ExitCode;

use check::configurations::{Bounds, configurations, prototype, rules};
use check::{Report, Search};

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let known: Vec<&str> = configurations().iter().map(|row| row.name).collect();
    let unknown = names
        .iter()
        .find(|name| *name != "rules" && !known.contains(&name.as_str()));
    if let Some(unknown) = unknown {
        eprintln!(
            "no configuration is called {unknown}: rules, {}",
            known.join(", ")
        );
        return ExitCode::from(2);
    }
    match run(&names) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Explores the named configurations, or all; returns whether all results are as expected.
fn run(names: &[String]) -> Result<bool, String> {
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let mut right = true;
    println!(
        "| configuration | states | transitions | depth | of single nodes | periods | broken, stuck | CPU s | MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for row in configurations().iter().filter(|row| is_wanted(row.name)) {
        right &= explore(row.name, &row.bounds)?;
    }
    if is_wanted("rules") {
        right &= without_rules()?;
    }
    Ok(right)
}

/// Explores a configuration and prints its row; returns whether the search was complete and found no error.
fn explore(name: &str, bounds: &Bounds) -> Result<bool, String> {
    forget_peak();
    let started = cpu_seconds();
    let report = bounds
        .explore(Search::ALL)
        .map_err(|error| format!("{name}: {error}"))?;
    let Report {
        states,
        transitions,
        depth,
        machines,
        periods,
        broken,
        broken_and_stuck,
        ..
    } = report;
    let seconds = cpu_seconds() - started;
    let broken = match broken {
        0 => "–".into(),
        _ => format!("{broken}, {broken_and_stuck}"),
    };
    let memory = peak_mib().map_or("?".into(), |mib| mib.to_string());
    println!(
        "| {name} | {states} | {transitions} | {depth} | {machines} | {periods} | {broken} | {seconds:.1} | {memory} |"
    );
    if let Some(found) = &report.found {
        println!("\n{name}: {}\n{}", found.wrong, found.trace);
    } else if !report.complete {
        println!("\n{name}: more than {states} states");
    }
    Ok(report.found.is_none() && report.complete)
}

/// Explores the prototype, and our protocol without each rule; prints the errors, and returns whether each has one.
fn without_rules() -> Result<bool, String> {
    let prototype = prototype()
        .into_iter()
        .map(|(name, bounds, search)| (format!("the prototype: {name}"), bounds, search));
    let rules = rules()
        .into_iter()
        .map(|(rule, bounds)| (format!("without {rule:?}"), bounds, Search::ALL));
    let mut all = true;
    for (name, bounds, search) in prototype.chain(rules) {
        let report = bounds
            .explore(search)
            .map_err(|error| format!("{name}: {error}"))?;
        match &report.found {
            Some(found) => println!(
                "\n{name}, {} steps: {}\n{}",
                found.trace.0.len(),
                found.wrong,
                found.trace
            ),
            None => println!("\n{name}: nothing was found"),
        }
        all &= report.found.is_some();
    }
    Ok(all)
}

/// Processor time of this process in seconds, independent of other load.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The process's name may contain spaces; after it, the 12th and 13th fields are hundredths of seconds (proc(5)).
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// Resets the peak memory of this process.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib.div_ceil(1024))
}
