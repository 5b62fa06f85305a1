//! Planner: decides which switches sum gradients, and which inject faults. Topologies, routing, optimization. Pure.
//!
//! All modules read one model: the hosts, switches, links and capacities of a [`Network`], which [`import`] reads from files,
//! and a training's [`gradient::Job`]. No plan exceeds a capacity; each reports how far from the optimum it may be. Equal input
//! and seed give equal plans.
//!
//! | command | decision | module |
//! |---|---|---|
//! | `weir plan`, `weir run` | switches at which each fault acts | [`injection`] |
//! | `weir plan`, `weir run` | switches that sum a training with a `plan` | [`gradient::grid`], by [`Method`] |
//! | `weir route` | switches that sum a training, any method | [`Method`]: [`gradient`] and [`baseline`]; [`gradient::goat`] |
//! | `weir route` | hosts of workers; with `--robust`, plans that share few switches | [`placement`] |
//! | `weir collectives` | paths of each step | [`routing`] |
//! | `cargo bench` | networks and jobs of the papers | [`evaluation`], [`gradient::fragments`] |

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
