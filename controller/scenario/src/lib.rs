//! Fault scenarios: the YAML schema, topologies, resolution and planning. Pure.
//!
//! A file becomes a tree with positions ([`yaml`]), then a checked [`Scenario`] ([`load`]), then a [`Plan`] ([`plan()`])
//! that says which switch injects which fault, with the table entries for it. After the run, [`expect::evaluate`] judges
//! the expectations. docs/scenarios.md describes the file for users.

pub mod diagnostic;
pub mod file;
pub mod model;
pub mod outcome;
pub mod plan;
pub mod replay;
pub mod units;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use file::{
    CutGradient, Given, PastRounds, PlacedWorkers, ReadFor, TrainingInNetwork, TrainingSpans,
    elsewhere, hosts_named, json_schema, load, load_topology, load_trainings, load_with,
    named_files, named_topology, named_workload, reference, refused_training, workload_json_schema,
    yaml,
};
pub use model::protocols::Protocols;
pub use model::topology::topology_network;
pub use model::{
    Scenario, decision, disruption, effect, expect, gradient, job, lease, overlap, probe,
    protocols, routing, selection, topology, trigger, workload,
};
pub use outcome::vacuous;
pub use plan::{
    Plan, TargetModel, blast_radius, check_together, names, plan, plan_to_prove, plan_together,
    telling,
};
