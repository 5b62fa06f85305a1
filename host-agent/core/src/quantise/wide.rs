//! Vectorized loops over the values of a block: largest magnitude, quantisation, dequantisation.
//!
//! Each loop has one plain source. The compiler vectorizes it twice: for every processor, and for those with AVX2, which can
//! reverse bytes and compare unsigned words. Both versions give the same bits: lanes are independent, and each performs the
//! same operations.
//!
//! The only unsafe code is the call of the AVX2 version. Its invariant: AVX2 support was checked right before.
#![allow(unsafe_code)]

use super::round_ties_even;
use super::rounding::Draws;

/// Defines a function that runs the loop `$plain`, compiled for the features of the processor.
macro_rules! widened {
    ($(#[$doc:meta])* $name:ident, $plain:ident, ($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        $(#[$doc])*
        pub fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn with_avx2($($argument: $type),*) $(-> $result)? {
                    $plain($($argument),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the line above has checked that the processor has AVX2; the function is safe otherwise.
                    return unsafe { with_avx2($($argument),*) };
                }
            }
            $plain($($argument),*)
        }
    };
}

widened! {
    /// The largest bit pattern among the values, without their sign bits.
    largest_magnitude, largest_magnitude_plain, (values: &[f32]) -> u32
}

widened! {
    /// Multiplies values by `factor`, rounds to nearest, and writes big-endian words. |value · factor| must be below 2³¹.
    encode_nearest, encode_nearest_plain, (values: &[f32], factor: f64, words: &mut [u8])
}

widened! {
    /// Multiplies values by `factor`, rounds by the bits `draws`, writes big-endian words. `first`: index of the first value.
    encode_drawn, encode_drawn_plain,
    (values: &[f32], factor: f64, draws: Draws, first: u32, words: &mut [u8])
}

widened! {
    /// Reads big-endian integers, multiplies them by `factor` and rounds to binary32. Returns an integer's largest magnitude.
    decode, decode_plain, (words: &[u8], factor: f64, values: &mut [f32]) -> u32
}

widened! {
    /// Rounds values to eight significant bits (bfloat16), ties to even; writes the upper halves of the binary32 results.
    upper_halves, upper_halves_plain, (values: &[f32], halves: &mut [u16])
}

#[inline(always)]
fn upper_halves_plain(values: &[f32], halves: &mut [u16]) {
    for (half, value) in halves.iter_mut().zip(values) {
        let bits = value.to_bits();
        // Add half a unit, or just less if the last kept digit is even; the carry does the rest, up to infinity.
        let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
        let is_nan = bits << 1 > 0xFF00_0000;
        *half = if is_nan { bits >> 16 | 0x40 } else { rounded } as u16;
    }
}

#[inline(always)]
fn largest_magnitude_plain(values: &[f32]) -> u32 {
    values
        .iter()
        .fold(0, |largest, value| (value.to_bits() << 1 >> 1).max(largest))
}

#[inline(always)]
fn encode_nearest_plain(values: &[f32], factor: f64, words: &mut [u8]) {
    for (word, value) in words.as_chunks_mut().0.iter_mut().zip(values) {
        *word = round_ties_even(f64::from(*value) * factor).to_be_bytes();
    }
}

#[inline(always)]
fn encode_drawn_plain(values: &[f32], factor: f64, draws: Draws, first: u32, words: &mut [u8]) {
    let indices = first..;
    for ((word, value), index) in words.as_chunks_mut().0.iter_mut().zip(values).zip(indices) {
        *word = draws.round(f64::from(*value) * factor, index).to_be_bytes();
    }
}

#[inline(always)]
fn decode_plain(words: &[u8], factor: f64, values: &mut [f32]) -> u32 {
    let mut largest = 0;
    for (word, value) in words.as_chunks().0.iter().zip(values) {
        let sum = i32::from_be_bytes(*word);
        largest = sum.unsigned_abs().max(largest);
        *value = (f64::from(sum) * factor) as f32;
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any bit pattern, with edge cases often.
    fn value() -> impl Strategy<Value = f32> {
        const EDGES: &[f32] = &[
            0.0,
            -0.0,
            f32::MIN_POSITIVE,
            f32::from_bits(1),
            f32::from_bits(0x007F_FFFF),
            1.0,
            -1.0,
            0.5,
            f32::MAX,
            f32::MIN,
        ];
        prop_oneof![
            any::<u32>()
                .prop_map(f32::from_bits)
                .prop_filter("finite", |value| value.is_finite()),
            prop::sample::select(EDGES),
        ]
    }

    /// A factor that keeps all products below 2³¹: L / 2^128, or larger for small values.
    fn scaled(values: &mut [f32], shift: i32) -> f64 {
        for value in values.iter_mut() {
            *value *= 2_f32.powi(-shift);
        }
        f64::from(i32::MAX) / 2_f64.powi(128 - shift)
    }

    proptest! {
        /// AVX2 and plain code give the same bits. Without AVX2 both are the same code, and the test checks nothing.
        #[test]
        fn wide_loops_give_the_bits_of_the_plain_ones(
            mut values in prop::collection::vec(value(), 0..70),
            shift in 0..200_i32,
            sums in prop::collection::vec(any::<i32>(), 0..70),
            seed in any::<u64>(),
            exponent in -130..200_i32,
        ) {
            prop_assert_eq!(largest_magnitude(&values), largest_magnitude_plain(&values));
            let factor = scaled(&mut values, shift);
            let (mut wide, mut plain) = (vec![0; 4 * values.len()], vec![0; 4 * values.len()]);
            encode_nearest(&values, factor, &mut wide);
            encode_nearest_plain(&values, factor, &mut plain);
            prop_assert_eq!(&wide, &plain);
            let draws = Draws::new(seed, 3, 5);
            encode_drawn(&values, factor, draws, 7, &mut wide);
            encode_drawn_plain(&values, factor, draws, 7, &mut plain);
            prop_assert_eq!(&wide, &plain);
            let (mut wide, mut plain) = (vec![0; values.len()], vec![0; values.len()]);
            upper_halves(&values, &mut wide);
            upper_halves_plain(&values, &mut plain);
            prop_assert_eq!(wide, plain);
            let words: Vec<u8> = sums.iter().flat_map(|sum| sum.to_be_bytes()).collect();
            let factor = 2_f64.powi(exponent) / 715_827_882.0;
            let (mut wide, mut plain) = (vec![0.0; sums.len()], vec![0.0; sums.len()]);
            let of = |largest: u32, values: &[f32]| {
                (largest, values.iter().map(|value| value.to_bits()).collect::<Vec<_>>())
            };
            let largest = decode(&words, factor, &mut wide);
            let wide = of(largest, &wide);
            let largest = decode_plain(&words, factor, &mut plain);
            prop_assert_eq!(wide, of(largest, &plain));
        }

        /// The largest magnitude reveals a value that is not finite, at any index.
        #[test]
        fn values_that_are_not_finite_are_found(length in 1..70_usize, at in any::<prop::sample::Index>(), bits in 0..0x80_0000_u32, minus: bool) {
            let mut values = vec![f32::MAX; length];
            values[at.index(length)] = f32::from_bits(0x7F80_0000 | bits | u32::from(minus) << 31);
            prop_assert_eq!(super::super::Exponent::bounding(&values), None);
        }
    }
}
