//! The neural network: 64 pixels → 668 rectified units → 10 digits, with softmax and cross-entropy.
//!
//! The parameters form one vector, as they are transmitted: the hidden layer's weights by pixel, its biases, the output
//! layer's weights by hidden unit, its biases. In this order every inner loop adds a multiple of one row to another, which
//! vectorizes without changing the order of any sum.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::{CLASSES, FEATURES, Sample};

const HIDDEN: usize = 668;
const HIDDEN_BIASES: usize = FEATURES * HIDDEN;
const OUTPUT: usize = HIDDEN_BIASES + HIDDEN;
const OUTPUT_BIASES: usize = OUTPUT + HIDDEN * CLASSES;

/// Number of the network's parameters: 50,110, which is 196 chunks of 256.
pub const PARAMETERS: usize = OUTPUT_BIASES + CLASSES;

/// Initial parameters of the network: weights drawn uniformly within ±√(6 / inputs) (He), biases zero.
pub fn initial_parameters(seed: u64) -> Vec<f32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut parameters = vec![0.0; PARAMETERS];
    let mut draw = |weights: &mut [f32], inputs: usize| {
        let bound = (6.0 / inputs as f32).sqrt();
        for weight in weights {
            // 24 bits, which binary32 represents exactly.
            let unit = (random.next_u32() >> 8) as f32 / (1 << 24) as f32;
            *weight = (2.0 * unit - 1.0) * bound;
        }
    };
    draw(&mut parameters[..HIDDEN_BIASES], FEATURES);
    draw(&mut parameters[OUTPUT..OUTPUT_BIASES], HIDDEN);
    parameters
}

/// The mean loss of a mini-batch, and its gradient with respect to the parameters.
pub fn gradient<'a>(
    parameters: &[f32],
    batch: impl IntoIterator<Item = &'a Sample>,
) -> (f32, Vec<f32>) {
    let mut sum = vec![0.0; PARAMETERS];
    let mut loss = 0.0;
    let mut samples = 0_u32;
    for sample in batch {
        loss += accumulate(parameters, sample, &mut sum);
        samples += 1;
    }
    let samples = samples.max(1) as f32;
    for value in &mut sum {
        *value /= samples;
    }
    (loss / samples, sum)
}

/// Fraction of the samples that are classified correctly.
pub fn accuracy(parameters: &[f32], samples: &[Sample]) -> f64 {
    let right = samples
        .iter()
        .filter(|sample| classify(parameters, sample) == sample.digit)
        .count();
    right as f64 / samples.len().max(1) as f64
}

fn classify(parameters: &[f32], sample: &Sample) -> usize {
    let logits = forward(parameters, sample).1;
    // The first of equal ones.
    (1..CLASSES).fold(0, |best, class| {
        if logits[class] > logits[best] {
            class
        } else {
            best
        }
    })
}

/// The values of the hidden units, and the logits (sums of the output layer), for one sample.
fn forward(parameters: &[f32], sample: &Sample) -> (Vec<f32>, [f32; CLASSES]) {
    let mut hidden = parameters[HIDDEN_BIASES..OUTPUT].to_vec();
    for (weights, &pixel) in parameters[..HIDDEN_BIASES]
        .chunks_exact(HIDDEN)
        .zip(&sample.pixels)
    {
        add_multiple(&mut hidden, pixel, weights);
    }
    let mut logits = [0.0; CLASSES];
    logits.copy_from_slice(&parameters[OUTPUT_BIASES..]);
    for (unit, weights) in hidden
        .iter_mut()
        .zip(parameters[OUTPUT..OUTPUT_BIASES].chunks_exact(CLASSES))
    {
        *unit = unit.max(0.0);
        add_multiple(&mut logits, *unit, weights);
    }
    (hidden, logits)
}

/// Adds the gradient for one sample to `sum`, and returns the sample's loss.
fn accumulate(parameters: &[f32], sample: &Sample, sum: &mut [f32]) -> f32 {
    let (hidden, logits) = forward(parameters, sample);
    let (loss, error) = cross_entropy(&logits, sample.digit);
    let (hidden_part, output_part) = sum.split_at_mut(OUTPUT);
    let (output_weights, output_biases) = output_part.split_at_mut(HIDDEN * CLASSES);
    add_multiple(output_biases, 1.0, &error);
    let mut hidden_error = vec![0.0; HIDDEN];
    let layer = parameters[OUTPUT..OUTPUT_BIASES].chunks_exact(CLASSES);
    for (unit, (weights, row)) in layer
        .zip(output_weights.chunks_exact_mut(CLASSES))
        .enumerate()
    {
        if hidden[unit] > 0.0 {
            add_multiple(row, hidden[unit], &error);
            hidden_error[unit] = weights
                .iter()
                .zip(&error)
                .fold(0.0, |dot, (weight, error)| dot + weight * error);
        }
    }
    let (hidden_weights, hidden_biases) = hidden_part.split_at_mut(HIDDEN_BIASES);
    add_multiple(hidden_biases, 1.0, &hidden_error);
    for (row, &pixel) in hidden_weights.chunks_exact_mut(HIDDEN).zip(&sample.pixels) {
        add_multiple(row, pixel, &hidden_error);
    }
    loss
}

/// Computes `to += factor · from` for each element.
fn add_multiple(to: &mut [f32], factor: f32, from: &[f32]) {
    if factor == 0.0 {
        return; // dark pixels, silent units: about half
    }
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

/// The cross-entropy loss, and its derivative with respect to the output layer's sums.
fn cross_entropy(logits: &[f32; CLASSES], digit: usize) -> (f32, [f32; CLASSES]) {
    let largest = logits
        .iter()
        .fold(f32::MIN, |largest, &logit| largest.max(logit));
    let mut probabilities = logits.map(|logit| exp(logit - largest));
    let total: f32 = probabilities.iter().sum();
    for probability in &mut probabilities {
        *probability /= total;
    }
    let loss = f64::from(total).ln() as f32 + largest - logits[digit];
    probabilities[digit] -= 1.0;
    (loss, probabilities)
}

/// eˣ for x ≤ 0, by operations that IEEE 754 defines exactly; accurate to a few units in the last place.
fn exp(x: f32) -> f32 {
    if x < -87.0 {
        return 0.0;
    }
    // x = k·ln 2 + r with |r| ≤ ln 2 / 2; ln 2 is split into two parts, of which the first is short, so that its product with
    // k is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let k = (x * std::f32::consts::LOG2_E).round_ties_even();
    let r = x - k * LN_2_HIGH - k * LN_2_LOW;
    // Taylor series up to r⁷/7!: the remainder is below 2⁻²⁷.
    let mut power = 1.0 + r / 7.0;
    for n in [6.0, 5.0, 4.0, 3.0, 2.0, 1.0] {
        power = 1.0 + r / n * power;
    }
    power * f32::from_bits(((k as i32 + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digits;

    #[test]
    fn fits_196_chunks_and_needs_them() {
        assert_eq!(PARAMETERS, 50_110);
        assert_eq!(PARAMETERS.div_ceil(256), 196);
    }

    #[test]
    fn exp_is_near_the_systems() {
        for step in 0..8_700 {
            let x = -step as f32 / 100.0;
            let (ours, theirs) = (f64::from(exp(x)), f64::from(x).exp());
            assert!(
                (ours - theirs).abs() <= theirs * 3e-7,
                "{x}: {ours} {theirs}"
            );
        }
        assert_eq!(
            (exp(0.0), exp(-1e9), exp(f32::NEG_INFINITY)),
            (1.0, 0.0, 0.0)
        );
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let digits = Digits::load().unwrap();
        let batch = &digits.training[..8];
        let parameters = initial_parameters(3);
        let (_, slopes) = gradient(&parameters, batch);
        // Binary32 leaves a difference quotient few digits, so only steep directions are compared.
        let mut steepest: Vec<usize> = (0..PARAMETERS).collect();
        steepest.sort_by(|&a, &b| slopes[b].abs().total_cmp(&slopes[a].abs()));
        let layers = [
            0..HIDDEN_BIASES,
            HIDDEN_BIASES..OUTPUT,
            OUTPUT..OUTPUT_BIASES,
            OUTPUT_BIASES..PARAMETERS,
        ];
        for layer in layers {
            for &index in steepest
                .iter()
                .filter(|index| layer.contains(index))
                .take(5)
            {
                let loss_at = |step: f32| {
                    let mut moved = parameters.clone();
                    moved[index] += step;
                    f64::from(gradient(&moved, batch).0)
                };
                let step = 4e-3;
                let quotient = (loss_at(step) - loss_at(-step)) / (2.0 * f64::from(step));
                let slope = f64::from(slopes[index]);
                assert!(
                    (quotient - slope).abs() < 0.03 * slope.abs() + 1e-3,
                    "{index}: {quotient} {slope}"
                );
            }
        }
    }

    #[test]
    fn an_untrained_network_guesses() {
        let digits = Digits::load().unwrap();
        let guessed = accuracy(&initial_parameters(1), &digits.held_out);
        assert!(guessed < 0.3, "{guessed}");
    }
}
