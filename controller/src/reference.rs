//! Computes the demo's training in one process without a network: the three runs over networks must reach the same result.

use std::time::{Duration, Instant};

use host_agent::train::{Recipe, reference_run};
use scenario::model::workload::Training;

use crate::experiment::ExperimentError;

/// The result of the reference training, which runs in one process without a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Fraction of the held-out samples that the final weights classify correctly, from 0 to 1.
    pub accuracy: f64,
    /// SHA-256 of the final weights, in hexadecimal.
    pub weights_sha256: String,
    /// Wall-clock duration of the training.
    pub wall: Duration,
}

impl Reference {
    /// Runs the reference training in this process; `seed` determines the initial weights and the batches.
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
