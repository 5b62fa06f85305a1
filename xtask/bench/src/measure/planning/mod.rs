//! `cargo xtask bench planning`: measures quality and cost of the planners. docs/planning.md keeps the figures.
//!
//! This program starts itself for each [point], so that a point's peak memory is its own. The child
//! prints JSON; this module turns it into rows, tables and drawings. Times are processor times, which
//! other programs on the machine change little; all other figures are the same on every machine.

mod asynchrony;
mod child;
mod golden;
mod growth;
mod injection;
mod margins;
mod moments;
pub mod point;
mod servers;

use anyhow::Result;

use super::Args;
use super::driver::{self, Group};
use child::Child;

struct PlanningBench {
    child: Child,
    args: Args,
}

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
        Ok(PlanningBench {
            child: Child::new()?,
            args: args.clone(),
        })
    })
}
