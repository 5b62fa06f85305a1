//! `cargo xtask bench switch`: measures the cost of the embedded switch, in memory and between
//! interfaces. docs/performance.md keeps the figures.

mod aggregate;
mod filters;
mod idle;
mod load;
mod lpm;
mod router;
mod tcp;
mod ternary;
mod writes;

use anyhow::Result;

use super::driver::{Group, measure};
use super::{Args, veth};

pub fn run(args: &Args) -> Result<bool> {
    let groups = vec![
        Group::new(router::NAMES, |_| router::run()),
        Group::new(aggregate::NAMES, |_| aggregate::run()),
        Group::new(filters::NAMES, |_| filters::run()),
        Group::new(ternary::NAMES, |_| ternary::run()),
        Group::new(lpm::NAMES, |_| lpm::run()),
        Group::new(load::NAMES, |_| load::run()),
        Group::new(writes::NAMES, writes::run),
        Group::new(veth::NAMES, veth::run),
        Group::new(tcp::NAMES, tcp::run),
        Group::new(idle::NAMES, idle::run),
    ];
    measure(args, groups, || Ok(args.clone()))
}

/// Measures in this process, in a role in a network namespace; returns the figures as text.
pub fn run_role(role: &str) -> Result<String> {
    match role {
        idle::ROLE => idle::measure(),
        tcp::ROLE => tcp::measure(),
        role => veth::run_role(role),
    }
}
