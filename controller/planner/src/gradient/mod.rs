//! Plans where gradients are summed on their way to the parameter server.
//!
//! A [`Job`]'s workers each send a gradient of equal size, and the server needs their sum. A [`Plan`] assigns workers to the
//! nodes that sum them, and frames to paths. Its load on the network follows from it alone ([`Loads`]), so every planner's plan
//! is checked against the same capacities, and none is ever exceeded.
//!
//! | planner | decision and goal | source |
//! |---|---|---|
//! | [`goat`] | nodes for each sub-model, within switches' memory; the least traffic | GOAT, IWQoS 2023 |
//! | [`grid`] | one node for each worker; the greatest rate that all workers have | GRID, ToN 2023 |
//! | [`inart`] | several servers: their shares, a node for each worker and server, paths; the greatest rate | InArt, WWW 2024 |

pub mod fragments;
pub mod goat;
pub mod grid;
pub mod inart;
mod job;
mod load;
mod plan;

pub use job::{Job, JobError, Server};
pub use load::{Binding, Loads, Resource, occupy, release, spare_bps};
pub use plan::{Answers, Goal, Member, Part, Plan, Route};
