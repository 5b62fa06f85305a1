//! The training task: a small network on the digits data set, in arithmetic that gives the same bits everywhere.
//!
//! The weights depend only on +, −, ·, ÷ and √ of IEEE 754 in a fixed order: even the exponential function is our own, since
//! that of the system's library differs between systems.

mod data;
mod model;
mod reference;
mod sgd;

use sha2::{Digest, Sha256};

pub use data::{Batches, CLASSES, DataError, Digits, FEATURES, Sample};
pub use model::{PARAMETERS, accuracy, gradient, initial_parameters};
pub use reference::{Outcome, reference_run};
pub use sgd::Sgd;

/// Settings that determine a training's result. Nothing else may change it, such as which node sums, or which packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, clap::Args)]
pub struct Recipe {
    /// Seed of the initial weights and of the order of the samples.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of training rounds.
    #[arg(long, default_value_t = 40)]
    pub rounds: u64,
    /// Number of samples per worker and round.
    #[arg(long, default_value_t = 32)]
    pub batch: usize,
    /// Learning rate.
    #[arg(long, default_value_t = 0.1)]
    pub learning_rate: f32,
    /// Momentum, kept at the server.
    #[arg(long, default_value_t = 0.9)]
    pub momentum: f32,
}

impl Default for Recipe {
    /// The default settings of the command line.
    fn default() -> Self {
        Recipe {
            seed: 1,
            rounds: 40,
            batch: 32,
            learning_rate: 0.1,
            momentum: 0.9,
        }
    }
}

/// SHA-256 of the weights, in order, as little-endian binary32, in hexadecimal digits.
pub fn weights_sha256(weights: &[f32]) -> String {
    let mut hash = Sha256::new();
    for weight in weights {
        hash.update(weight.to_le_bytes());
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_of_little_endian_words() {
        // printf '\0\0\200\077' | sha256sum
        let expected = "e00e5eb9444182f352323374ef4e08ebcb784725fdd4fd612d7730540b3e0c8c";
        assert_eq!(weights_sha256(&[1.0]), expected);
    }
}
