//! Fault scenarios, from the file to the verdict. Pure.
//!
//! 1. [`file`](mod@file) reads YAML. [`load`] returns a checked [`Scenario`], or all errors with their positions.
//! 2. [`model`] holds what a scenario says: flows, faults, topology, workload. It knows neither YAML nor a target.
//! 3. [`plan`](mod@plan) chooses each switch's program and entries: [`plan()`] returns a [`Plan`] for a [`TargetModel`].
//! 4. [`replay`] computes from a plan and the frames that a switch received which of them it must hit, and how.
//! 5. [`outcome`] judges the file's expectations after the run ([`outcome::evaluate`]).
//!
//! Each module uses only those before it; [`diagnostic`] and [`units`] are below all. docs/scenarios.md describes the file for
//! users.

pub mod diagnostic;
pub mod file;
pub mod model;
pub mod outcome;
pub mod plan;
pub mod replay;
pub mod units;

use diagnostic::{Sink, Source};

pub use diagnostic::{Diagnostic, Diagnostics};
pub use file::{
    CutGradient, Given, PastRounds, PlacedWorkers, ReadFor, TrainingInNetwork, TrainingSpans,
    hosts_named, json_schema, load_topology, load_trainings, named_files, named_topology,
    named_workload, reference, refused_training, workload_json_schema,
};
pub use model::Scenario;
pub use model::protocols::Protocols;
pub use model::topology::topology_network;
pub use plan::{Plan, TargetModel, check_together, plan, plan_to_prove, plan_together};

/// Reads and checks a scenario file; `file` is its name in messages. Returns all errors at once.
///
/// A scenario that names further files needs [`load_with`].
pub fn load(file: &str, text: &str) -> Result<Scenario, Diagnostics> {
    load_with(file, text, &Given::default())
}

/// Reads and checks a scenario file, with the contents of the files that it or the command line names.
pub fn load_with(file: &str, text: &str, given: &Given) -> Result<Scenario, Diagnostics> {
    let mut sink = Sink::new(Source { file, text });
    match file::read(&mut sink, given) {
        Some(mut scenario) if !sink.has_errors() => {
            scenario.warnings = sink.into_diagnostics();
            Ok(scenario)
        }
        _ => Err(sink.into_diagnostics()),
    }
}
