//! Block scaling: converts floating point values to integers whose sums are exact, and converts the sums back.
//!
//! With n workers and L = ⌊(2³¹ − 1)/n⌋, a block with exponent e (the smallest with |x| ≤ 2^e for all its
//! values) is sent as q = round(x · (L / 2^e)), ties to even. |q| ≤ L, so no sum of n can wrap; it is
//! dequantised as Σq · (2^e / L). All arithmetic is in binary64 and in the order that `docs/protocol.md`
//! states, so that every implementation gets the same bits.
//!
//! This module is the reference, one value at a time. [`block`] writes and reads frames with the same bits. [`rounding`] has
//! the two ways of rounding, [`bound`] the error bound of a sum, [`float`] the element types; [`exact`] sums short tensors
//! without a scale.

pub mod block;
pub mod bound;
pub mod exact;
pub mod float;
pub mod rounding;
mod wide;

/// A block's exponent in the header's encoding: biased by 127, or 0 for a block of zeros.
///
/// The smallest e with |x| ≤ 2^e is binary32's own biased exponent, plus one unless x is a power of two. So 1 to 255 covers
/// every finite value: 255 means 2^128, and all values below 2^−126 share 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Exponent(u8);

impl Exponent {
    /// The exponent of a block whose values are all zero.
    pub const ZERO: Self = Self(0);
    /// Bias of the exponent: the header's byte is e + 127.
    pub const BIAS: i32 = 127;

    /// Decodes the header's exponent byte.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The header's byte for this exponent.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The smallest exponent that bounds a block; `None` if the block has NaN or infinity.
    pub fn bounding(values: &[f32]) -> Option<Self> {
        Self::of_magnitude(wide::largest_magnitude(values))
    }

    /// The exponent of a block, from the bits of its largest magnitude. Without their sign, binary32's bits order like
    /// integers, with infinity and NaN at the top.
    fn of_magnitude(largest: u32) -> Option<Self> {
        let (biased, fraction) = (largest >> 23, largest & ((1 << 23) - 1));
        if biased == 0xFF {
            return None;
        }
        Some(Self((biased + u32::from(fraction != 0)) as u8))
    }

    /// The scale 2^e, exact; 0 for a block of zeros.
    pub fn scale(self) -> f64 {
        if self == Self::ZERO {
            return 0.0;
        }
        let e = i64::from(self.0) - i64::from(Self::BIAS);
        f64::from_bits(((e + 1023) as u64) << 52)
    }
}

/// The largest |q| of an integer q that a worker may send if `workers` workers contribute.
pub const fn limit(workers: u16) -> i32 {
    i32::MAX / workers as i32
}

/// The difference between the values of two neighboring integers of a block: 2^e / L.
pub fn step(exponent: Exponent, workers: u16) -> f64 {
    exponent.scale() / f64::from(limit(workers))
}

/// The factor from values to integers: L / 2^e, exact, since 2^e is a power of two.
fn to_integers(exponent: Exponent, workers: u16) -> f64 {
    // A block of zeros has no scale: divide by one.
    let scale = if exponent == Exponent::ZERO {
        1.0
    } else {
        exponent.scale()
    };
    f64::from(limit(workers)) / scale
}

/// Quantises a block's values to integers. `exponent` must be at least the block's own exponent.
pub fn quantise(
    values: &[f32],
    exponent: Exponent,
    workers: u16,
) -> impl ExactSizeIterator<Item = i32> + '_ {
    let factor = to_integers(exponent, workers);
    values
        .iter()
        .map(move |value| round_ties_even(f64::from(*value) * factor))
}

/// Rounds |x| < 2³¹ to the nearest integer, ties to even. The sum x + 1.5 · 2⁵² has no bits for a fraction, so IEEE 754's
/// addition rounds it, and its low bits are the integer. Without a library call, loops over values can be vectorized.
fn round_ties_even(x: f64) -> i32 {
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    (x + SHIFT).to_bits() as i32
}

/// Dequantises one element of a sum: Σq · (2^e / L). In this order a block needs one division, not one per value.
pub fn dequantise(sum: i32, exponent: Exponent, workers: u16) -> f64 {
    f64::from(sum) * step(exponent, workers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exponents_are_the_smallest_that_bound_the_block() {
        for (value, bits) in [
            (0.0, 0),
            (-0.0, 0),
            (1.0, 127),
            (-1.0, 127),
            (1.000_000_1, 128),
            (0.75, 127),
            (0.5, 126),
            (f32::MAX, 255),
            (f32::MIN_POSITIVE, 1),
            (f32::from_bits(1), 1),
        ] {
            assert_eq!(
                Exponent::bounding(&[0.0, value]),
                Some(Exponent(bits)),
                "{value}"
            );
        }
        assert_eq!(Exponent(255).scale(), 2f64.powi(128));
        assert_eq!(Exponent(1).scale(), 2f64.powi(-126));
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(Exponent::bounding(&[1.0, bad, 2.0]), None);
        }
    }

    #[test]
    fn extremes_stay_within_the_limit() {
        for workers in [1, 2, 3, 32, 64, 1000, 1024] {
            for block in [[f32::MAX, -f32::MAX], [1.0, -1.0], [f32::from_bits(1), 0.0]] {
                let exponent = Exponent::bounding(&block).unwrap();
                for q in quantise(&block, exponent, workers) {
                    assert!(q.abs() <= limit(workers));
                    assert!(i64::from(q) * i64::from(workers) <= i64::from(i32::MAX));
                }
            }
        }
        assert_eq!(
            quantise(&[1.0, -1.0], Exponent(127), 1).collect::<Vec<_>>(),
            [i32::MAX, -i32::MAX]
        );
    }

    fn finite() -> impl Strategy<Value = f32> {
        any::<u32>()
            .prop_map(f32::from_bits)
            .prop_filter("finite", |value| value.is_finite())
    }

    proptest! {
        #[test]
        fn rounding_is_ties_to_even(half_steps in -(1i64 << 31) + 2..(1i64 << 31) - 1, noise in -0.5..0.5f64) {
            let tie = half_steps as f64 / 2.0;
            for x in [tie, tie + noise] {
                prop_assert_eq!(f64::from(round_ties_even(x)), x.round_ties_even());
            }
        }

        #[test]
        fn the_exponent_bounds_the_block(values in prop::collection::vec(finite(), 1..20)) {
            let exponent = Exponent::bounding(&values).unwrap();
            let largest = values.iter().fold(0f64, |max, value| max.max(f64::from(value.abs())));
            prop_assert!(largest <= exponent.scale());
            if exponent.0 > 1 {
                prop_assert!(largest > exponent.scale() / 2.0, "a smaller exponent would do");
            }
        }

        #[test]
        fn sums_are_within_the_error_bound(
            blocks in (1..=64usize).prop_flat_map(|n| prop::collection::vec(prop::array::uniform4(finite()), n)),
        ) {
            let workers = blocks.len() as u16;
            let exponent = blocks.iter().map(|block| Exponent::bounding(block).unwrap()).max().unwrap();
            let mut sums = [0i32; 4];
            for block in &blocks {
                for (sum, q) in sums.iter_mut().zip(quantise(block, exponent, workers)) {
                    *sum = sum.checked_add(q).expect("no sum can wrap");
                }
            }
            let bound = step(exponent, workers) * f64::from(workers) * (0.5 + 2f64.powi(-20));
            for (i, sum) in sums.into_iter().enumerate() {
                let exact: f64 = blocks.iter().map(|block| f64::from(block[i])).sum();
                let got = dequantise(sum, exponent, workers);
                prop_assert!((got - exact).abs() <= bound, "{} for {}, bound {}", got, exact, bound);
            }
        }
    }
}
