//! Planner: where to aggregate and where to inject faults. Topologies, routing, optimization. Pure.
//!
//! A [`Network`] consists of hosts, switches, links and their capacities. Planners decide where a job's gradients are summed,
//! or where a fault meets its flows. They never exceed a capacity, and report how far from the optimum a plan may be. Equal
//! input and seed give equal plans.
//!
//! | command | decision | module |
//! |---|---|---|
//! | `weir plan`, `weir run` | switches of each fault | [`injection`] |
//! | `weir plan`, `weir run` | switches that sum a training with a `plan` | [`gradient::grid`], by [`Method`] |
//! | `weir route` | the same, by any method | [`Method`]: [`gradient`] and [`baseline`]; [`gradient::goat`] |
//! | `weir route` | hosts of a training's workers | [`placement::workers`] |
//! | `weir route --robust` | plans that share few switches | [`placement::robust`] |
//! | `weir collectives` | paths of each step | [`routing`] |
//! | `cargo bench` | networks and jobs of the papers | [`evaluation`], [`gradient::fragments`] |
//!
//! All modules read one model: [`network`] (from a file by [`import`]) and, for trainings, [`gradient::Job`].

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
