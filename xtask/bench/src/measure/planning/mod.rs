//! `cargo xtask bench planning`: what the planners reach. Figures are kept in docs/planning.md.
//!
//! What measures is `controller/planner/examples/planning`, built as what is shipped and started anew for each point, so that
//! its memory is its own. It says JSON; here that becomes rows, tables and drawings. Times are those on a processor, which
//! others that use the machine change little; all else is the same on every machine.

mod asynchrony;
mod child;
mod golden;
mod growth;
mod injection;
mod margins;
mod moments;
mod servers;

use std::path::PathBuf;

use anyhow::Result;

use super::row::Row;
use child::Child;

/// What measures rows of these names.
type Measure = (&'static [&'static str], fn(&Bench) -> Result<Vec<Row>>);

/// In the order of the printed table.
const ROWS: &[Measure] = &[
    (golden::NAMES, golden::run),
    (margins::NAMES, margins::run),
    (servers::NAMES, servers::run),
    (asynchrony::NAMES, asynchrony::run),
    (growth::NAMES, growth::run),
    (injection::NAMES, injection::run),
    (moments::NAMES, moments::run),
];

/// The names of all rows.
pub fn names() -> Vec<&'static str> {
    ROWS.iter().flat_map(|(names, _)| *names).copied().collect()
}

/// What was built, and what is asked of it.
struct Bench {
    child: Child,
    /// Of each network.
    seeds: u32,
    /// Where drawings go, if any are wanted.
    plots: Option<PathBuf>,
}

/// Measures the rows that are wanted.
pub fn run(wanted: &dyn Fn(&str) -> bool, seeds: u32, plots: Option<PathBuf>) -> Result<Vec<Row>> {
    let bench = Bench {
        child: Child::built()?,
        seeds,
        plots,
    };
    let mut rows = Vec::new();
    for (names, measure) in ROWS {
        if names.iter().any(|name| wanted(name)) {
            eprintln!("measuring {} …", names.join(", "));
            rows.extend(measure(&bench)?.into_iter().filter(|row| wanted(row.name)));
        }
    }
    Ok(rows)
}

impl Bench {
    /// Writes a drawing, if drawings are wanted.
    fn draw(&self, name: &str, svg: impl FnOnce() -> Result<String>) -> Result<()> {
        if let Some(folder) = &self.plots {
            std::fs::write(folder.join(name), svg()?)?;
            eprintln!("  {}", folder.join(name).display());
        }
        Ok(())
    }
}
