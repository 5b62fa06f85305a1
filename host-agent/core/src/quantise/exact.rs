//! Sums without a scale: each value is split into the digits of a fixed-point number with a place for every bit of binary32.
//! The digits are summed as integers, so the sum of each element is exact, whatever the other elements are.
//!
//! With n workers a digit has b = ⌊log₂(L + 1)⌋ bits, where L = ⌊(2³¹ − 1)/n⌋, so no sum of n digits can wrap. Binary32 needs
//! 277 bits from 2^−149 on: ⌈277/b⌉ words, the lowest first, each with the sign of the value.

use super::block::through_binary32;
use super::float::Float;
use super::limit;

/// The exponent of the lowest bit that binary32 can represent.
const LOWEST: i32 = -149;
/// Number of bits from binary32's lowest bit to its largest finite value.
const BITS: u32 = 277;
/// Largest number of digits per value: that of a job of 1,024 workers, the maximum.
const MOST_DIGITS: usize = 14;
const WORD: usize = size_of::<i32>();

/// Width of a fixed-point digit in bits, for sums over this many workers.
fn digit_bits(workers: u16) -> u32 {
    (limit(workers) as u32 + 1).ilog2()
}

/// Number of 32-bit words per value in a frame: one word for each fixed-point digit.
pub fn words_per_value(workers: u16) -> usize {
    BITS.div_ceil(digit_bits(workers)) as usize
}

/// Writes finite values, as the fixed-point digits of their exact form, into a zeroed frame of big-endian words.
pub fn encode<T: Float>(values: &[T], workers: u16, words: &mut [u8]) {
    let (bits, count) = (digit_bits(workers), words_per_value(workers));
    through_binary32(values, |first, wide| {
        let places = words.chunks_exact_mut(WORD * count).skip(first);
        for (place, value) in places.zip(wide) {
            encode_one(*value, bits, place);
        }
    });
}

fn encode_one(value: f32, bits: u32, place: &mut [u8]) {
    let magnitude = value.to_bits() << 1 >> 1;
    let (biased, fraction) = (magnitude >> 23, magnitude & ((1 << 23) - 1));
    let significand = if biased == 0 {
        fraction
    } else {
        fraction | 1 << 23
    };
    let shift = biased.max(1) - 1;
    let mut rest = u64::from(significand) << (shift % bits);
    let digits = place.as_chunks_mut::<WORD>().0.iter_mut();
    for word in digits.skip((shift / bits) as usize) {
        if rest == 0 {
            return;
        }
        let digit = (rest & ((1 << bits) - 1)) as i32;
        let signed = if value.is_sign_negative() {
            -digit
        } else {
            digit
        };
        *word = signed.to_be_bytes();
        rest >>= bits;
    }
}

/// Reads sums of fixed-point digits from a frame's big-endian words, divides them by `divisor`, and rounds once to binary32,
/// then to the element type. Returns the largest magnitude of a result before it is rounded.
pub fn decode<T: Float>(words: &[u8], workers: u16, divisor: u16, values: &mut [T]) -> f64 {
    let (bits, count) = (digit_bits(workers), words_per_value(workers));
    let mut largest: f64 = 0.0;
    for (value, place) in values.iter_mut().zip(words.chunks_exact(WORD * count)) {
        let sum = decode_one(bits, place) / f64::from(divisor);
        largest = largest.max(sum.abs());
        T::narrow(&[sum as f32], std::slice::from_mut(value));
    }
    largest
}

/// The sum that one value's summed digits represent, off by a few units in binary64's last place.
fn decode_one(bits: u32, place: &[u8]) -> f64 {
    let mut digits = [0_i64; MOST_DIGITS];
    let mut carry = 0;
    let words = place.as_chunks::<WORD>().0;
    for (at, (digit, word)) in digits.iter_mut().zip(words).enumerate() {
        let sum = i64::from(i32::from_be_bytes(*word)) + carry;
        // Round the carry to the nearest: everything below the first nonzero digit is then smaller than it, so nothing cancels.
        carry = if at + 1 < words.len() {
            (sum + (1 << (bits - 1))) >> bits
        } else {
            0
        };
        *digit = sum - (carry << bits);
    }
    let base = f64::from(1_u32 << bits);
    let whole = digits
        .iter()
        .rev()
        .fold(0.0, |sum, digit| sum * base + *digit as f64);
    whole * 2_f64.powi(LOWEST)
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use proptest::prelude::*;

    use super::super::bound::of_exact;
    use super::*;

    #[test]
    fn all_of_binary32_has_a_place() {
        for workers in 1..=1024 {
            let (bits, words) = (digit_bits(workers), words_per_value(workers));
            assert!(
                words <= MOST_DIGITS && words as u32 * bits >= BITS,
                "{workers}"
            );
            let most = i64::from(workers) * ((1 << bits) - 1);
            assert!(most <= i64::from(i32::MAX), "{workers}");
        }
        assert_eq!(
            [1, 2, 3, 64, 1024].map(words_per_value),
            [9, 10, 10, 12, 14]
        );
    }

    /// The words of a frame with the sum over all ranks' blocks.
    fn summed<T: Float>(blocks: &[Vec<T>]) -> Vec<u8> {
        let workers = blocks.len() as u16;
        let mut sums = vec![0_i32; blocks[0].len() * words_per_value(workers)];
        for block in blocks {
            let mut words = vec![0; WORD * sums.len()];
            encode(block, workers, &mut words);
            for (sum, word) in sums.iter_mut().zip(words.as_chunks().0) {
                *sum = sum
                    .checked_add(i32::from_be_bytes(*word))
                    .expect("no sum can wrap");
            }
        }
        sums.into_iter().flat_map(i32::to_be_bytes).collect()
    }

    fn sums<T: Float>(blocks: &[Vec<T>], divisor: u16) -> (Vec<T>, f64) {
        let mut values = blocks[0].clone();
        let largest = decode(&summed(blocks), blocks.len() as u16, divisor, &mut values);
        (values, largest)
    }

    /// Elements beside others of any magnitude, and elements where the ranks' values cancel.
    #[test]
    fn elements_are_independent() {
        let tiny = f32::from_bits(1);
        for (ranks, expected) in [
            (
                [vec![0.25, 0.9, 1e8], vec![0.5, 0.8, 2e8]],
                [0.75, 0.9 + 0.8, 3e8],
            ),
            (
                [vec![f32::MAX, tiny, -0.0], vec![-f32::MAX, tiny, 0.0]],
                [0.0, 2.0 * tiny, 0.0],
            ),
            (
                [
                    vec![1.0, -1.0, tiny],
                    vec![-f32::EPSILON / 2.0, 1.0, -f32::MIN_POSITIVE],
                ],
                [1.0 - f32::EPSILON / 2.0, 0.0, tiny - f32::MIN_POSITIVE],
            ),
            (
                [vec![f32::MAX, 1e-30, 7.0], vec![f32::MAX, 1e30, 1.0]],
                [f32::INFINITY, 1e30, 8.0],
            ),
        ] {
            let (values, largest) = sums(&ranks, 1);
            assert_eq!(values, expected);
            assert_eq!(
                of_exact::<f32>(largest).is_infinite(),
                expected[0].is_infinite()
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(test_support::cases(60)))]

        #[test]
        fn each_sum_is_right_to_the_rounding_of_its_type(
            ranks in prop::collection::vec(prop::collection::vec((-(1 << 24)..1_i64 << 24, 0..60_i32), 5), 1..40),
            bases in prop::collection::vec(-149..40_i32, 5),
            average: bool,
        ) {
            let places = |rank: &Vec<(i64, i32)>| rank.iter().copied().zip(bases.clone()).collect::<Vec<_>>();
            let value = |((whole, e), base): ((i64, i32), i32)| (whole as f64 * 2_f64.powi(e + base)) as f32;
            let blocks: Vec<Vec<f32>> = ranks.iter().map(|rank| places(rank).into_iter().map(value).collect()).collect();
            let divisor = if average { blocks.len() as u16 } else { 1 };
            let (values, largest) = sums(&blocks, divisor);
            for (at, value) in values.into_iter().enumerate() {
                let whole: i128 = ranks.iter().map(|rank| i128::from(rank[at].0) << rank[at].1).sum();
                let expected = (whole as f64 * 2_f64.powi(bases[at]) / f64::from(divisor)) as f32;
                prop_assert_eq!(value.to_bits(), expected.to_bits(), "{} {}", value, expected);
            }
            prop_assert!(of_exact::<f32>(largest) <= largest * 2_f64.powi(-23) + 2_f64.powi(-149));
            let halves: Vec<Vec<f16>> = blocks.iter().map(|block| block.iter().map(|value| f16::from_f32(value.clamp(-1e3, 1e3))).collect()).collect();
            let brains: Vec<Vec<bf16>> = blocks.iter().map(|block| block.iter().map(|value| bf16::from_f32(*value)).collect()).collect();
            let by_binary32 = |block: &Vec<f32>| block.iter().map(|value| f16::from_f32(*value)).collect::<Vec<_>>();
            let widened: Vec<Vec<f32>> = halves.iter().map(|block| block.iter().map(|half| half.to_f32()).collect()).collect();
            prop_assert_eq!(sums(&halves, divisor).0, by_binary32(&sums(&widened, divisor).0));
            let widened: Vec<Vec<f32>> = brains.iter().map(|block| block.iter().map(|brain| brain.to_f32()).collect()).collect();
            let narrow: Vec<bf16> = sums(&widened, divisor).0.into_iter().map(bf16::from_f32).collect();
            prop_assert_eq!(sums(&brains, divisor).0, narrow);
        }
    }
}
