//! A scenario's file: YAML text becomes a checked scenario, or diagnostics with positions.

mod check;
pub mod elsewhere;
mod expect;
mod filter;
mod resolve;
mod schema;
mod sections;
pub mod yaml;

use crate::diagnostic::{Diagnostics, Sink, Source};
use crate::model::Scenario;

pub use schema::{
    CutGradient, Given, PastRounds, PlacedWorkers, ReadFor, TrainingInNetwork, TrainingSpans,
    hosts_named, json_schema, load_topology, load_trainings, named_files, named_topology,
    named_workload, reference, refused_training, workload_json_schema,
};

/// Reads and checks a file. Returns all its diagnostics at once.
///
/// A file that names protocol files needs [`load_with`].
pub fn load(file: &str, text: &str) -> Result<Scenario, Diagnostics> {
    load_with(file, text, &Given::default())
}

/// As [`load`], with the files that the scenario names and those given on the command line.
pub fn load_with(file: &str, text: &str, given: &Given) -> Result<Scenario, Diagnostics> {
    let mut sink = Sink::new(Source { file, text });
    let scenario = schema::read(&mut sink, given).and_then(|raw| resolve::resolve(&mut sink, raw));
    match scenario {
        Some(mut scenario) if !sink.has_errors() => {
            scenario.warnings = sink.into_diagnostics();
            Ok(scenario)
        }
        _ => Err(sink.into_diagnostics()),
    }
}
