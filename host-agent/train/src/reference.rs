//! The training in one process, without a network: the reference result for all distributed trainings.
//!
//! It shares the model with the agents, but none of the network's arithmetic: blocks, exponents, integers and sums are
//! implemented here independently, from `docs/protocol.md` alone.

use super::{
    Batches, DataError, Digits, PARAMETERS, Recipe, Sgd, accuracy, gradient, weights_sha256,
};

/// Number of values per block, which is one packet.
const BLOCK: usize = 256;

/// Result of a reference training.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// SHA-256 of the final weights.
    pub weights_sha256: String,
    /// Fraction of held-out samples that the final weights classify correctly.
    pub accuracy: f64,
    /// The mean loss of the workers' batches, by round.
    pub losses: Vec<f32>,
}

/// Trains in one process, with the arithmetic of distributed workers.
pub fn reference_run(recipe: &Recipe, workers: u16) -> Result<Outcome, DataError> {
    let digits = Digits::load()?;
    let mut batches = (0..workers)
        .map(|rank| {
            Batches::new(
                digits.training.len(),
                rank,
                workers,
                recipe.batch,
                recipe.seed,
            )
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut sgd = Sgd::new(recipe);
    let mut losses = Vec::new();
    for _ in 0..recipe.rounds {
        let mut gradients = Vec::new();
        let mut loss = 0.0;
        for batches in &mut batches {
            let batch = batches.next_batch();
            let (batch_loss, batch_gradient) = gradient(
                sgd.weights(),
                batch.iter().map(|&index| &digits.training[index]),
            );
            loss += batch_loss / f32::from(workers);
            gradients.push(batch_gradient);
        }
        losses.push(loss);
        for start in (0..PARAMETERS).step_by(BLOCK) {
            let end = (start + BLOCK).min(PARAMETERS);
            let blocks: Vec<&[f32]> = gradients
                .iter()
                .map(|gradient| &gradient[start..end])
                .collect();
            sgd.step(start, mean_of_blocks(&blocks));
        }
    }
    Ok(Outcome {
        weights_sha256: weights_sha256(sgd.weights()),
        accuracy: accuracy(sgd.weights(), &digits.held_out),
        losses,
    })
}

/// The mean of the workers' blocks as a switch and server compute it, by way of integers.
fn mean_of_blocks(blocks: &[&[f32]]) -> Vec<f32> {
    let workers = blocks.len() as f64;
    let limit = f64::from(i32::MAX).div_euclid(workers);
    let largest = blocks
        .iter()
        .flat_map(|block| block.iter())
        .fold(0.0, |largest: f64, &x| largest.max(f64::from(x).abs()));
    let bound = power_of_two_above(largest);
    let integers = |block: &&[f32]| -> Vec<i64> {
        block
            .iter()
            .map(|&x| (f64::from(x) * limit / bound).round_ties_even() as i64)
            .collect()
    };
    let quantised: Vec<Vec<i64>> = blocks.iter().map(integers).collect();
    (0..blocks[0].len())
        .map(|index| {
            let sum: i64 = quantised.iter().map(|block| block[index]).sum();
            (sum as f64 * (bound / limit) / workers) as f32
        })
        .collect()
}

/// The smallest power of two that is at least `x`, and at least the smallest normal binary32.
fn power_of_two_above(x: f64) -> f64 {
    let mut power = f64::from(f32::MIN_POSITIVE);
    while power < x {
        power *= 2.0;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: Recipe = Recipe {
        seed: 1,
        rounds: 40,
        batch: 32,
        learning_rate: 0.1,
        momentum: 0.9,
    };

    #[test]
    fn thirty_rounds_learn_the_digits() {
        let outcome = reference_run(
            &Recipe {
                rounds: 30,
                ..RECIPE
            },
            8,
        )
        .unwrap();
        assert!(outcome.accuracy >= 0.9, "{}", outcome.accuracy);
        assert!(
            outcome.losses[29] < outcome.losses[0] / 4.0,
            "{:?}",
            outcome.losses
        );
    }

    #[test]
    fn the_result_depends_only_on_the_seed() {
        let run = |seed, workers| {
            reference_run(
                &Recipe {
                    seed,
                    rounds: 2,
                    ..RECIPE
                },
                workers,
            )
            .unwrap()
            .weights_sha256
        };
        assert_eq!(run(1, 2), run(1, 2));
        assert_ne!(run(1, 2), run(2, 2));
        assert_ne!(run(1, 2), run(1, 3));
    }

    #[test]
    fn blocks_go_through_integers() {
        // Two workers: limit 2³⁰ − 1; largest 0.75, so bound 1.
        let limit = f64::from((1 << 30) - 1);
        let mean = mean_of_blocks(&[&[0.75, 0.0, 1e-12], &[0.25, -0.5, 0.0]]);
        let q = |x: f64| (x * limit).round_ties_even();
        assert_eq!(
            mean,
            [
                (q(0.75) + q(0.25)) / limit / 2.0,
                q(-0.5) / limit / 2.0,
                0.0
            ]
            .map(|x| x as f32)
        );
        assert_eq!(mean_of_blocks(&[&[0.0, -0.0]]), [0.0, 0.0]);
    }

    #[test]
    fn powers_of_two_bound_from_above() {
        for (x, power) in [(1.0, 1.0), (1.5, 2.0), (0.3, 0.5), (0.25, 0.25)] {
            assert_eq!(power_of_two_above(x), power);
        }
    }
}
