//! Loops over a block, many values at a time.
//!
//! Each is written once, plainly; the compiler makes vector code of it, once for every processor and once for
//! those with AVX2, which has what the loops need: to reverse bytes, and to compare unsigned words. Bits do not
//! depend on which is taken: lanes are independent, and a lane's operations are the same.
//!
//! Unsafe is the step into code for AVX2 alone. Its invariant: the processor has AVX2, asked right before.
#![allow(unsafe_code)]

use super::round_ties_even;
use super::rounding::Draws;

/// Defines a function that runs `$plain`, compiled for what the processor has.
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
                    // SAFETY: the processor has AVX2, as was asked just now; it is safe in all else.
                    return unsafe { with_avx2($($argument),*) };
                }
            }
            $plain($($argument),*)
        }
    };
}

widened! {
    /// The largest of the values' bits without their signs.
    largest_magnitude, largest_magnitude_plain, (values: &[f32]) -> u32
}

widened! {
    /// Writes values, times a factor and rounded to the nearest, as big-endian words. |value · factor| < 2³¹.
    encode_nearest, encode_nearest_plain, (values: &[f32], factor: f64, words: &mut [u8])
}

widened! {
    /// Writes values, times a factor and rounded by draws, as big-endian words. `first` is the index of the first.
    encode_drawn, encode_drawn_plain,
    (values: &[f32], factor: f64, draws: Draws, first: u32, words: &mut [u8])
}

widened! {
    /// Reads big-endian words, times a factor, rounded to binary32. Gives the largest magnitude of a word.
    decode, decode_plain, (words: &[u8], factor: f64, values: &mut [f32]) -> u32
}

widened! {
    /// The bits of the nearest numbers of eight digits, ties to even: the upper half of binary32's.
    upper_halves, upper_halves_plain, (values: &[f32], halves: &mut [u16])
}

#[inline(always)]
fn upper_halves_plain(values: &[f32], halves: &mut [u16]) {
    for (half, value) in halves.iter_mut().zip(values) {
        let bits = value.to_bits();
        // Half a step up, or just below it if the digit before is even: a carry does the rest, up to infinity.
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

    /// Any bits at all, and often those at an edge.
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

    /// A factor that leaves all of them below 2³¹: L / 2^128, or larger for small values.
    fn scaled(values: &mut [f32], shift: i32) -> f64 {
        for value in values.iter_mut() {
            *value *= 2_f32.powi(-shift);
        }
        f64::from(i32::MAX) / 2_f64.powi(128 - shift)
    }

    proptest! {
        /// Which code is taken makes no difference: on processors without AVX2 they are the same, and this says nothing.
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

        /// The largest magnitude says whether one is not finite, wherever it stands.
        #[test]
        fn what_is_not_finite_is_found(length in 1..70_usize, at in any::<prop::sample::Index>(), bits in 0..0x80_0000_u32, minus: bool) {
            let mut values = vec![f32::MAX; length];
            values[at.index(length)] = f32::from_bits(0x7F80_0000 | bits | u32::from(minus) << 31);
            prop_assert_eq!(super::super::Exponent::of(&values), None);
        }
    }
}
