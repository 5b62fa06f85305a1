//! Where to aggregate, where to inject: topologies, routing, optimisation. Pure.
//!
//! A [`Network`] is what there is: hosts, switches, links, and what each can take. Planners read it and say where a job's
//! gradients are summed, or where a fault meets its flows; they never plan over a capacity, and say how far from the
//! optimum they may be. The same input and seed give the same plan.

pub mod baseline;
pub mod evaluation;
pub mod flow;
pub mod gradient;
pub mod import;
pub mod injection;
pub mod network;
pub mod placement;
pub mod routing;

pub use network::{Host, LinkId, Network, NodeId, Switch};
pub use solve;
