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

use anyhow::Result;

use super::Args;
use super::driver::{self, Group};
use super::programs::PLANNING;
use child::Child;

/// The program that measures, and what is asked of it.
struct Bench {
    child: Child,
    args: Args,
}

/// Measures what `args` asks for.
pub fn run(args: &Args) -> Result<bool> {
    let groups = vec![
        Group::new(golden::NAMES, golden::run),
        Group::new(margins::NAMES, margins::run),
        Group::new(servers::NAMES, servers::run),
        Group::new(asynchrony::NAMES, asynchrony::run),
        Group::new(growth::NAMES, growth::run),
        Group::new(injection::NAMES, injection::run),
        Group::new(moments::NAMES, moments::run),
    ];
    driver::measure(args, groups, || {
        Ok(Bench {
            child: Child::new(PLANNING.build(args.prebuilt)?),
            args: args.clone(),
        })
    })
}
