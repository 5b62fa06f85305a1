//! The training without any network: every other run has to reach the same result.

use std::time::{Duration, Instant};

use host_agent::train::{Recipe, reference_run};
use scenario::model::workload::Training;

use crate::experiment::ExperimentError;

/// The result of the training in one process.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// The fraction of held-out samples that the final weights recognise.
    pub accuracy: f64,
    /// The SHA-256 of the final weights.
    pub weights_sha256: String,
    /// Duration of the training.
    pub wall: Duration,
}

impl Reference {
    /// Runs the training.
    pub fn compute(seed: u64, training: &Training) -> Result<Reference, ExperimentError> {
        let start = Instant::now();
        let recipe = Recipe {
            seed,
            rounds: training.iterations.into(),
            ..Recipe::default()
        };
        let workers = u16::try_from(training.workers.len()).map_err(|_| {
            ExperimentError::Scenario("a training has 255 workers at most".to_owned())
        })?;
        let outcome = reference_run(&recipe, workers)
            .map_err(|error| ExperimentError::Scenario(error.to_string()))?;
        Ok(Reference {
            accuracy: outcome.accuracy,
            weights_sha256: outcome.weights_sha256,
            wall: start.elapsed(),
        })
    }
}
