//! Fault scenarios: the YAML schema, topologies, resolution and planning. Pure.
//!
//! A file becomes a tree with positions ([`yaml`]), then a checked [`Scenario`] ([`load`]), then a [`Plan`] ([`plan()`])
//! that says which switch injects which fault, with the table entries for it. After the run, [`expect::evaluate`] judges
//! the expectations. docs/scenarios.md describes the file for users.

pub mod blast_radius;
mod check;
pub mod decision;
pub mod diagnostic;
pub mod disruption;
pub mod effect;
pub mod elsewhere;
pub mod expect;
mod filter;
pub mod gradient;
pub mod job;
pub mod lease;
pub mod model;
pub mod names;
pub mod natural;
pub mod overlap;
pub mod plan;
pub mod probe;
pub mod protocols;
pub mod replay;
mod resolve;
pub mod routing;
mod schema;
mod sections;
pub mod selection;
pub mod telling;
pub mod topology;
pub mod trigger;
pub mod units;
pub mod vacuous;
pub mod workload;
pub mod yaml;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use model::Scenario;
pub use plan::{Plan, TargetModel, check_together, plan, plan_to_prove, plan_together};
pub use protocols::{Given, Protocols, named_files, named_topology, named_workload};
pub use resolve::{load, load_with};
pub use schema::{
    CutGradient, PastRounds, PlacedWorkers, ReadFor, TrainingInNetwork, TrainingSpans, hosts_named,
    json_schema, load_topology, load_trainings, reference, refused_training, workload_json_schema,
};
pub use topology::topology_network;
