//! Reads a scenario file: from YAML to a checked [`Scenario`], or diagnostics with positions.
//!
//! [`yaml`] makes a tree of nodes with spans; `schema` reads the tree, section by section, into types of its own; `resolve`
//! looks up the names and builds the scenario; `check` refuses what contradicts itself.

mod check;
pub mod elsewhere;
mod expect;
mod filter;
mod resolve;
mod schema;
mod sections;
pub mod yaml;

use crate::diagnostic::Sink;
use crate::model::Scenario;

pub use schema::{
    CutGradient, Given, PastRounds, PlacedWorkers, ReadFor, TrainingInNetwork, TrainingSpans,
    hosts_named, json_schema, load_topology, load_trainings, named_files, named_topology,
    named_workload, reference, refused_training, workload_json_schema,
};

/// Reads a scenario file. The errors and warnings are in `sink`; `None` if the errors leave no scenario.
pub(crate) fn read(sink: &mut Sink<'_>, given: &Given) -> Option<Scenario> {
    let raw = schema::read(sink, given)?;
    resolve::resolve(sink, raw)
}
