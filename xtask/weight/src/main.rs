//! `cargo xtask weight`: size of the build, the sources and the tests, import cycles, and limits of their growth.
//!
//! - `units`: packages, units and test programs in cargo's plan.
//! - `surplus`: units that one run of the tests compiles twice.
//! - `repository`: the crates and their lines.
//! - `tokens`, `items`, `tree`: from the text of a crate to its modules and their uses of items.
//! - `cycles`: sibling modules that reach each other, with the rule.
//! - `figures`: the file of figures and the limits of their growth.
//! - `history`: whether each commit that raises a figure gives the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::cycles::Use;
use crate::figures::{CycleFigure, Figures, LINES};
use crate::history::Reason;
use crate::repository::Contents;

mod cycles;
mod figures;
mod history;
mod items;
mod repository;
mod surplus;
mod tokens;
mod tree;
mod units;

const FILE: &str = "xtask/weight/weight.txt";
const DOCUMENT: &str = "docs/performance.md";
const USAGE: &str = "\
Usage: cargo xtask weight [--json | --cycles | --check | --update]

Counts packages and units of the demo's build, test programs, lines and import cycles.

  --json    print the figures as one JSON object
  --cycles  print each import cycle with all uses between its members
  --check   exit with 1 if a figure has grown by more than a twentieth over xtask/weight/weight.txt,
            a cycle is new, or a commit has raised a figure there without a reason
  --update  write the figures to xtask/weight/weight.txt
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("weight: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => print!("{}", table(&figures(&contents()?)?)),
        ["--json"] => println!("{}", figures(&contents()?)?.json()),
        ["--cycles"] => {
            for (cycle, uses) in &cycles(&contents()?) {
                print!("{cycle}\n{}", describe(uses, &BTreeSet::new()));
            }
        }
        ["--check"] => return check(),
        ["--update"] => fs::write(FILE, figures(&contents()?)?.to_string()).context(FILE)?,
        ["--help" | "-h"] => print!("{USAGE}"),
        _ => bail!("unknown arguments: `{}`\n{USAGE}", arguments.join(" ")),
    }
    Ok(ExitCode::SUCCESS)
}

fn contents() -> Result<Contents> {
    repository::read(Path::new("."))
}

fn figures(contents: &Contents) -> Result<Figures> {
    let mut figures = Figures::default();
    let mut number = |name: &str, value| figures.numbers.insert(name.to_owned(), value);
    let build = units::demo()?;
    number("demo packages", build.packages);
    number("demo units", build.units);
    let tests = units::tests()?;
    number("test harnesses", tests.harnesses);
    number("test programs", tests.programs);
    let twice = units::compiled_twice()?;
    number("compiled twice, ours", twice.ours.len() as u64);
    number("compiled twice, others", twice.others);
    if !twice.ours.is_empty() {
        let names: Vec<&str> = twice.ours.iter().map(String::as_str).collect();
        eprintln!(
            "compiled twice by one run of the tests: {}",
            names.join(", ")
        );
    }
    let crates = contents
        .crates
        .iter()
        .map(|(name, lines)| (name.as_str(), lines));
    let others = [("P4", &contents.p4), ("Python", &contents.python)];
    for (name, lines) in crates.chain(others) {
        number(&format!("{LINES}{name} source"), lines.source);
        number(&format!("{LINES}{name} tests"), lines.tests);
    }
    for (cycle, uses) in cycles(contents) {
        let name = format!("cyclic uses {}", cycle.target);
        *figures.numbers.entry(name).or_default() += uses.len() as u64;
        figures.cycles.insert(cycle);
    }
    Ok(figures)
}

/// All import cycles, each with the uses between its modules, in the order of the file of figures.
fn cycles(contents: &Contents) -> BTreeMap<CycleFigure, &[Use]> {
    let cycles = contents.cycles.iter().map(|(target, cycle)| {
        let (target, modules) = (target.clone(), cycle.modules.clone());
        (CycleFigure { target, modules }, cycle.uses.as_slice())
    });
    cycles.collect()
}

/// Formats the figures as text for a reader.
fn table(figures: &Figures) -> String {
    let number = |name: &str| figures.numbers.get(name).copied().unwrap_or(0);
    let mut text = format!(
        "The demo's build: {} packages, {} units\nTests: {} programs, {} harnesses\n\
         Compiled twice by one run of the tests: {} units of ours, {} of others\n\n",
        number("demo packages"),
        number("demo units"),
        number("test programs"),
        number("test harnesses"),
        number("compiled twice, ours"),
        number("compiled twice, others"),
    );
    let mut row = |name: &str, source: &str, tests: &str| {
        text += &format!("{name:<20}{source:>9}{tests:>9}\n");
    };
    row("lines", "source", "tests");
    let mut rust = (0, 0);
    for name in figures.numbers.keys() {
        let name = name
            .strip_prefix(LINES)
            .and_then(|name| name.strip_suffix(" source"));
        let Some(name) = name else { continue };
        let source = number(&format!("{LINES}{name} source"));
        let tests = number(&format!("{LINES}{name} tests"));
        if !["P4", "Python"].contains(&name) {
            rust = (rust.0 + source, rust.1 + tests);
        }
        row(name, &source.to_string(), &tests.to_string());
    }
    row("all crates", &rust.0.to_string(), &rust.1.to_string());
    text += &format!("\nImport cycles: {}\n", figures.cycles.len());
    for cycle in &figures.cycles {
        text += &format!("{cycle}\n");
    }
    text
}

/// Formats a line for each use, except for uses between known modules.
fn describe(uses: &[Use], known: &BTreeSet<String>) -> String {
    let mut text = String::new();
    for Use {
        user,
        used,
        count,
        example,
    } in uses
    {
        if !(known.contains(user) && known.contains(used)) {
            text += &format!("  {user} uses {used}, {count} x: {example}\n");
        }
    }
    text
}

fn check() -> Result<ExitCode> {
    let text = fs::read_to_string(FILE).context(FILE)?;
    let file = Figures::parse(&text).context(FILE)?;
    let contents = contents()?;
    let verdict = figures(&contents)?.compare(&file);
    if !verdict.hints.is_empty() {
        println!("Smaller than in {FILE}; `cargo xtask weight --update` lowers the limits:");
        print_each(&verdict.hints);
    }
    if !verdict.failures.is_empty() {
        println!("Grown beyond {FILE}:");
        print_each(&verdict.failures);
        for (cycle, uses) in cycles(&contents) {
            if !file.lists(&cycle) {
                println!("Uses that form the cycle {cycle}:");
                print!("{}", describe(uses, &file.known(&cycle)));
            }
        }
        println!(
            "Make it smaller. If it has to grow, run `cargo xtask weight --update` and give the reason \
             in {DOCUMENT}, in the same commit."
        );
    }
    let reason = history::reason(Path::new("."), FILE, DOCUMENT)?;
    match &reason {
        Reason::Stated => {}
        Reason::Unknown(why) => println!("Not checked: reasons for changes of {FILE}: {why}."),
        Reason::Missing(raised) => {
            println!("A change of {FILE} raises figures:");
            print_each(raised);
            println!("Give the reason in {DOCUMENT}, in the same commit.");
        }
    }
    let failed = !verdict.failures.is_empty() || matches!(reason, Reason::Missing(_));
    Ok(ExitCode::from(u8::from(failed)))
}

fn print_each(lines: &[String]) {
    for line in lines {
        println!("  {line}");
    }
}
