//! Conversion of a chunk's values to a frame's integers, and of a frame's sums to values: same bits as the scalar reference.

use super::float::Float;
use super::rounding::Draws;
use super::{Exponent, limit, to_integers, wide};

/// Number of 16-bit values that are converted to binary32 at a time.
const WIDENED: usize = 128;

/// The exponent of a block of values; `None` if a value is NaN or infinite.
pub fn exponent<T: Float>(values: &[T]) -> Option<Exponent> {
    let mut largest = 0;
    through_binary32(values, |_, wide| {
        largest = wide::largest_magnitude(wide).max(largest);
    });
    Exponent::of_magnitude(largest)
}

/// Writes quantised values into a frame, as big-endian words. The block's own exponent must be at most `exponent`; without
/// random bits (`draws`), values are rounded to the nearest integer.
pub fn encode<T: Float>(
    values: &[T],
    exponent: Exponent,
    workers: u16,
    draws: Option<Draws>,
    words: &mut [u8],
) {
    let factor = to_integers(exponent, workers);
    through_binary32(values, |first, wide| {
        let words = &mut words[4 * first..];
        match draws {
            None => wide::encode_nearest(wide, factor, words),
            Some(draws) => wide::encode_drawn(wide, factor, draws, first as u32, words),
        }
    });
}

/// Reads sums from a frame's big-endian words, divides them by `divisor`, and rounds once to binary32, then to the element
/// type. Returns the largest magnitude of the summed integers.
pub fn decode<T: Float>(
    words: &[u8],
    exponent: Exponent,
    workers: u16,
    divisor: u16,
    values: &mut [T],
) -> u32 {
    // Σq · (2^e / (L · divisor)): the divisor adds no rounding of its own.
    let factor = exponent.scale() / (f64::from(limit(workers)) * f64::from(divisor));
    if let Some(values) = T::as_binary32_mut(values) {
        return wide::decode(words, factor, values);
    }
    let mut largest = 0;
    let mut wide = [0.0; WIDENED];
    for (values, words) in values.chunks_mut(WIDENED).zip(words.chunks(4 * WIDENED)) {
        let wide = &mut wide[..values.len()];
        largest = wide::decode(words, factor, wide).max(largest);
        T::narrow(wide, values);
    }
    largest
}

/// Converts the values to binary32 piece by piece, and calls `call` with the index of each piece's first value and the piece.
pub(super) fn through_binary32<T: Float>(values: &[T], mut call: impl FnMut(usize, &[f32])) {
    if let Some(values) = T::as_binary32(values) {
        return call(0, values);
    }
    let mut wide = [0.0; WIDENED];
    for (part, values) in values.chunks(WIDENED).enumerate() {
        let wide = &mut wide[..values.len()];
        T::widen(values, wide);
        call(part * WIDENED, wide);
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use proptest::prelude::*;

    use super::super::bound::of_chunk;
    use super::super::rounding::Rounding;
    use super::super::{dequantise, quantise};
    use super::*;

    fn finite() -> impl Strategy<Value = f32> {
        const EDGES: &[f32] = &[0.0, f32::MIN_POSITIVE, f32::from_bits(1), 1.0, f32::MAX];
        prop_oneof![
            4 => any::<u32>().prop_map(f32::from_bits),
            // Values of similar magnitude, as gradients are.
            4 => (-1.0..1.0_f32, -6..6_i32).prop_map(|(unit, e)| unit * 2_f32.powi(e)),
            // Subnormal: below the smallest exponent.
            1 => (0..0x80_0000_u32).prop_map(f32::from_bits),
            1 => prop::sample::select(EDGES),
        ]
        .prop_filter("finite", |value| value.is_finite())
    }

    /// The words of a frame with the sum over all ranks' blocks, and the exponent used.
    fn summed<T: Float>(blocks: &[Vec<T>], spare: u8, rounding: Rounding) -> (Vec<u8>, Exponent) {
        let own = blocks.iter().map(|block| exponent(block).expect("finite"));
        let wanted = own.max().unwrap();
        // A guessed exponent may be above the one that the ranks want.
        let used = match wanted {
            Exponent::ZERO => wanted,
            wanted => Exponent::from_bits(wanted.bits().saturating_add(spare)),
        };
        let workers = blocks.len() as u16;
        let mut sums = vec![0_i32; blocks[0].len()];
        for (rank, block) in blocks.iter().enumerate() {
            let mut words = vec![0; 4 * block.len()];
            let draws = rounding.draws(rank as u16, 3);
            encode(block, used, workers, draws, &mut words);
            for (sum, word) in sums.iter_mut().zip(words.as_chunks().0) {
                *sum = sum
                    .checked_add(i32::from_be_bytes(*word))
                    .expect("no sum can wrap");
            }
        }
        (sums.into_iter().flat_map(i32::to_be_bytes).collect(), used)
    }

    /// Checks that each sum or mean is within the bound of the exact result, and that the bound is finite where it should be.
    fn holds<T: Float + Into<f64>>(
        blocks: &[Vec<T>],
        zero: T,
        spare: u8,
        average: bool,
        rounding: Rounding,
    ) -> Result<(), TestCaseError> {
        let workers = blocks.len() as u16;
        let divisor = if average { workers } else { 1 };
        let (words, used) = summed(blocks, spare, rounding);
        let mut results = vec![zero; blocks[0].len()];
        let largest = decode(&words, used, workers, divisor, &mut results);
        let bound = of_chunk::<T>(used, workers, divisor, rounding, largest);
        let mut most: f64 = 0.0;
        for (index, result) in results.into_iter().enumerate() {
            let exact: f64 =
                blocks.iter().map(|block| block[index].into()).sum::<f64>() / f64::from(divisor);
            let off = (result.into() - exact).abs();
            prop_assert!(
                off <= bound,
                "{} is off by {}, the bound is {}",
                exact,
                off,
                bound
            );
            most = most.max(exact.abs());
        }
        if most < T::OVERFLOW / 2.0 {
            prop_assert!(bound.is_finite());
        }
        Ok(())
    }

    fn rounding() -> impl Strategy<Value = Rounding> {
        prop_oneof![
            Just(Rounding::Nearest),
            any::<u64>().prop_map(|seed| Rounding::Stochastic { seed }),
        ]
    }

    /// Blocks of equal length, one per rank.
    fn blocks() -> impl Strategy<Value = Vec<Vec<f32>>> {
        (1..=70_usize, 1..300_usize).prop_flat_map(|(ranks, length)| {
            prop::collection::vec(prop::collection::vec(finite(), length), ranks)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(test_support::cases(60)))]

        #[test]
        fn frames_are_the_references(values in prop::collection::vec(finite(), 1..300), workers in 1..=1024_u16, above in 0..3_u8) {
            let own = exponent(&values).unwrap();
            let used = Exponent::from_bits(own.bits().saturating_add(above));
            let mut words = vec![0; 4 * values.len()];
            encode(&values, used, workers, None, &mut words);
            let reference: Vec<u8> = quantise(&values, used, workers).flat_map(i32::to_be_bytes).collect();
            prop_assert_eq!(&words, &reference);
            let mut sums = values.clone();
            decode(&words, used, workers, 1, &mut sums);
            for (sum, word) in sums.iter().zip(words.as_chunks().0) {
                let one = dequantise(i32::from_be_bytes(*word), used, workers) as f32;
                prop_assert_eq!(sum.to_bits(), one.to_bits());
            }
        }

        #[test]
        fn no_sum_is_farther_off_than_its_bound(
            blocks in blocks(),
            spare in 0..5_u8,
            average: bool,
            rounding in rounding(),
        ) {
            holds(&blocks, 0.0, spare, average, rounding)?;
            let halves: Vec<Vec<f16>> = blocks
                .iter()
                .map(|block| block.iter().map(|value| f16::from_f32(*value)).map(|half| if half.is_finite() { half } else { f16::MAX }).collect())
                .collect();
            holds(&halves, f16::ZERO, spare, average, rounding)?;
            let brains: Vec<Vec<bf16>> = blocks
                .iter()
                .map(|block| block.iter().map(|value| bf16::from_f32(*value)).map(|brain| if brain.is_finite() { brain } else { bf16::MIN }).collect())
                .collect();
            holds(&brains, bf16::ZERO, spare, average, rounding)?;
        }

        /// For widened types, the parts of a block draw the same bits as the whole block does.
        #[test]
        fn draws_go_by_the_index_in_the_chunk(length in 1..400_usize, seed: u64) {
            let values: Vec<f32> = (0..length).map(|index| (index as f32).sin()).map(|value| bf16::from_f32(value).to_f32()).collect();
            let brains: Vec<bf16> = values.iter().map(|value| bf16::from_f32(*value)).collect();
            let used = exponent(&values).unwrap();
            let draws = Rounding::Stochastic { seed }.draws(1, 2);
            let (mut wide, mut narrow) = (vec![0; 4 * length], vec![0; 4 * length]);
            encode(&values, used, 3, draws, &mut wide);
            encode(&brains, used, 3, draws, &mut narrow);
            prop_assert_eq!(wide, narrow);
        }
    }

    /// Errors come close to the bound: by rounding of the result, and by rounding of the ranks if the exponent is far too large.
    #[test]
    fn the_bound_is_close() {
        let reached = |blocks: &[Vec<f32>], spare, rounding| {
            let workers = blocks.len() as u16;
            let (words, used) = summed(blocks, spare, rounding);
            let mut results = vec![0.0; blocks[0].len()];
            let largest = decode(&words, used, workers, 1, &mut results);
            let bound = of_chunk::<f32>(used, workers, 1, rounding, largest);
            let off = results.iter().enumerate().map(|(index, result)| {
                let exact: f64 = blocks.iter().map(|block| f64::from(block[index])).sum();
                (f64::from(*result) - exact).abs()
            });
            off.fold(0.0, f64::max) / bound
        };
        let tie = [vec![1.0], vec![2_f32.powi(-24)]];
        let by_result = reached(&tie, 0, Rounding::Nearest);
        assert!(0.95 < by_result && by_result <= 1.0, "{by_result}");
        // 2^28 times the exponent that is needed: only zeros remain.
        let below = vec![vec![0.99 * 2_f32.powi(-1); 8]; 16];
        let by_ranks = reached(&below, 28, Rounding::Nearest);
        assert!(0.95 < by_ranks && by_ranks <= 1.0, "{by_ranks}");
        let little = vec![vec![0.01; 500]];
        let by_chance = reached(&little, 37, Rounding::Stochastic { seed: 1 });
        assert!(0.95 < by_chance && by_chance <= 1.0, "{by_chance}");
    }

    /// A mean is finite even if the sum is not.
    #[test]
    fn a_mean_needs_no_sum_of_its_type() {
        let blocks = vec![vec![f16::MAX; 3]; 4];
        let (words, used) = summed(&blocks, 0, Rounding::Nearest);
        let mut results = [f16::ZERO; 3];
        let largest = decode(&words, used, 4, 4, &mut results);
        assert_eq!(results, [f16::MAX; 3]);
        assert!(of_chunk::<f16>(used, 4, 4, Rounding::Nearest, largest).is_finite());
        let largest = decode(&words, used, 4, 1, &mut results);
        assert_eq!(results, [f16::INFINITY; 3]);
        assert!(of_chunk::<f16>(used, 4, 1, Rounding::Nearest, largest).is_infinite());
    }
}
