//! Planner: where to aggregate and where to inject faults. Topologies, routing, optimization. Pure.
//!
//! A [`Network`] consists of hosts, switches, links and their capacities. Planners decide where a job's gradients are summed,
//! or where a fault meets its flows. They never exceed a capacity, and report how far from the optimum a plan may be. Equal
//! input and seed give equal plans.

pub mod baseline;
pub mod evaluation;
pub mod flow;
pub mod gradient;
pub mod import;
pub mod injection;
mod method;
pub mod network;
pub mod placement;
pub mod routing;

pub use method::Method;
pub use network::{Host, LinkId, Network, NodeId, Switch};
pub use solve;
