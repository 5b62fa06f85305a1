//! Stochastic gradient descent with momentum, applied to part of the weights at a time, as sums arrive.

use super::{PARAMETERS, Recipe, initial_parameters};

/// The network's weights and their momentum.
#[derive(Debug, Clone)]
pub struct Sgd {
    weights: Vec<f32>,
    velocity: Vec<f32>,
    learning_rate: f32,
    momentum: f32,
}

impl Sgd {
    /// The initial weights, with zero momentum.
    pub fn new(recipe: &Recipe) -> Sgd {
        Sgd {
            weights: initial_parameters(recipe.seed),
            velocity: vec![0.0; PARAMETERS],
            learning_rate: recipe.learning_rate,
            momentum: recipe.momentum,
        }
    }

    /// The current weights.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Moves the weights from `start` on by their mean gradients, and returns the weights that it moved. Gradients beyond the
    /// last weight are ignored, since the last chunk is padded.
    pub fn step(&mut self, start: usize, gradients: impl IntoIterator<Item = f32>) -> &[f32] {
        let start = start.min(PARAMETERS);
        let mut end = start;
        let weights = self.weights[start..]
            .iter_mut()
            .zip(&mut self.velocity[start..]);
        for ((weight, velocity), gradient) in weights.zip(gradients) {
            *velocity = self.momentum * *velocity + gradient;
            *weight -= self.learning_rate * *velocity;
            end += 1;
        }
        &self.weights[start..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_move_alone_and_the_end_is_respected() {
        let recipe = Recipe {
            seed: 1,
            rounds: 1,
            batch: 1,
            learning_rate: 0.5,
            momentum: 0.5,
        };
        let mut sgd = Sgd::new(&recipe);
        let before = sgd.weights().to_vec();
        assert_eq!(sgd.step(2, [1.0]), [before[2] - 0.5]);
        // Velocity 0.5 · 1 + 1 = 1.5.
        assert_eq!(sgd.step(2, [1.0]), [before[2] - 0.5 - 0.75]);
        assert_eq!(sgd.weights()[3], before[3]);
        assert_eq!(sgd.step(PARAMETERS - 1, [1.0; 256]).len(), 1);
        assert_eq!(sgd.step(PARAMETERS + 5, [1.0]).len(), 0);
    }
}
