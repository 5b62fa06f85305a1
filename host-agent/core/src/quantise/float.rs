//! Element types that block scaling sums: binary32, and the 16-bit types by conversion to binary32.
//!
//! A 16-bit sum is rounded twice, to binary32 and from there to its type: processors convert from binary32 alone, and all ranks
//! must get the same bits.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::wide;

/// A floating point type whose values are all representable in binary32.
pub trait Float: Copy {
    /// Number of binary digits in the type's significand.
    const PRECISION: i32;
    /// Exponent of the type's smallest positive value: the value is 2 to this power.
    const LEAST: i32;
    /// Smallest magnitude that rounds to infinity in this type.
    const OVERFLOW: f64;
    /// Converts all values of `from`, exactly. Both slices have the same length.
    fn widen(from: &[Self], to: &mut [f32]);
    /// Rounds each value of `from` to the nearest value of this type, ties to even; to infinity from
    /// [`OVERFLOW`](Self::OVERFLOW) on. Both slices have the same length.
    fn narrow(from: &[f32], to: &mut [Self]);
    /// The same slice if this type is binary32, otherwise `None`.
    fn as_binary32(_: &[Self]) -> Option<&[f32]> {
        None
    }
    /// The same slice, writable, if this type is binary32, otherwise `None`.
    fn as_binary32_mut(_: &mut [Self]) -> Option<&mut [f32]> {
        None
    }
}

/// The largest finite value plus half a unit in the last place, for a type with `digits` binary digits and largest power
/// `power`.
const fn overflow(digits: i32, power: f64) -> f64 {
    power * (2.0 - 1.0 / (1_u32 << digits) as f64)
}

impl Float for f32 {
    const PRECISION: i32 = 24;
    const LEAST: i32 = -149;
    const OVERFLOW: f64 = overflow(<Self as Float>::PRECISION, 1.701_411_834_604_692_3e38);
    fn widen(from: &[f32], to: &mut [f32]) {
        to.copy_from_slice(from);
    }
    fn narrow(from: &[f32], to: &mut [f32]) {
        to.copy_from_slice(from);
    }
    fn as_binary32(values: &[f32]) -> Option<&[f32]> {
        Some(values)
    }
    fn as_binary32_mut(values: &mut [f32]) -> Option<&mut [f32]> {
        Some(values)
    }
}

impl Float for f16 {
    const PRECISION: i32 = 11;
    const LEAST: i32 = -24;
    const OVERFLOW: f64 = overflow(<Self as Float>::PRECISION, 32_768.0);
    fn widen(from: &[f16], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }
    fn narrow(from: &[f32], to: &mut [f16]) {
        to.convert_from_f32_slice(from);
    }
}

impl Float for bf16 {
    const PRECISION: i32 = 8;
    const LEAST: i32 = -133;
    const OVERFLOW: f64 = overflow(<Self as Float>::PRECISION, 1.701_411_834_604_692_3e38);
    fn widen(from: &[bf16], to: &mut [f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = f32::from_bits(u32::from(from.to_bits()) << 16);
        }
    }
    fn narrow(from: &[f32], to: &mut [bf16]) {
        wide::upper_halves(from, to.reinterpret_cast_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed<T: Float>(value: f32, zero: T) -> T {
        let mut to = [zero];
        T::narrow(&[value], &mut to);
        to[0]
    }

    #[test]
    fn overflow_is_where_infinity_begins() {
        assert!((f32::OVERFLOW as f32).is_infinite());
        assert_eq!(f32::OVERFLOW.next_down() as f32, f32::MAX);
        let below = |overflow: f64| (overflow as f32).next_down();
        assert!(narrowed(f16::OVERFLOW as f32, f16::ZERO).is_infinite());
        assert_eq!(narrowed(below(f16::OVERFLOW), f16::ZERO), f16::MAX);
        assert!(narrowed(bf16::OVERFLOW as f32, bf16::ZERO).is_infinite());
        assert_eq!(narrowed(below(bf16::OVERFLOW), bf16::ZERO), bf16::MAX);
    }

    /// Batch conversion (by the processor's instructions if it has them) and single conversion give the same bits.
    #[test]
    fn all_values_come_back_and_ways_to_convert_agree() {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let halves: Vec<f16> = all.iter().map(|bits| f16::from_bits(*bits)).collect();
        let brains: Vec<bf16> = all.iter().map(|bits| bf16::from_bits(*bits)).collect();
        let mut wide = vec![0.0; all.len()];
        f16::widen(&halves, &mut wide);
        for (half, wide) in halves.iter().zip(&wide).filter(|(half, _)| !half.is_nan()) {
            assert_eq!(narrowed(*wide, f16::ZERO).to_bits(), half.to_bits());
            // Half a unit on either side: ties and their neighbors.
            for bits in [-0x1001, -0x1000, -0xfff, 0xfff, 0x1000, 0x1001] {
                let near = f32::from_bits(wide.to_bits().wrapping_add_signed(bits));
                if near.is_nan() {
                    continue;
                }
                let one = f16::from_f32_const(near).to_bits();
                assert_eq!(narrowed(near, f16::ZERO).to_bits(), one, "{near:e}");
                let many = {
                    let mut to = [f16::ZERO; 9];
                    f16::narrow(&[near; 9], &mut to);
                    to
                };
                assert!(many.iter().all(|half| half.to_bits() == one), "{near:e}");
            }
        }
        bf16::widen(&brains, &mut wide);
        for (brain, wide) in brains.iter().zip(&wide) {
            assert_eq!(wide.to_bits(), u32::from(brain.to_bits()) << 16);
            // Same rounding as the crate of these types: to the nearest, ties to even.
            for bits in [-0x8001, -0x8000, -0x7fff, 0, 0x7fff, 0x8000, 0x8001] {
                let near = f32::from_bits(wide.to_bits().wrapping_add_signed(bits));
                let one = bf16::from_f32_const(near).to_bits();
                assert_eq!(narrowed(near, bf16::ZERO).to_bits(), one, "{near:e}");
                let mut to = [bf16::ZERO; 9];
                bf16::narrow(&[near; 9], &mut to);
                assert!(to.iter().all(|brain| brain.to_bits() == one), "{near:e}");
            }
        }
    }
}
