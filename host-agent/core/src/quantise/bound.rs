//! What a sum may be off by.

use super::float::Float;
use super::rounding::Rounding;
use super::{Exponent, step};

/// What binary64's own rounding adds, of the whole: a rank's product is off by 2^−22 steps at most, and the sum by 2^−21. Of
/// n halves of a step this share is more.
const OWN_ROUNDING: f64 = 1.0 + 1.0 / (1 << 19) as f64;

/// The most that any element of a chunk is off by, if `largest` is the largest magnitude of its integers' sums: the rounding of
/// the ranks, each half a step or a step, and that of the result to its type. Infinite, if a result is.
pub fn of_chunk<T: Float>(
    exponent: Exponent,
    workers: u16,
    divisor: u16,
    rounding: Rounding,
    largest: u32,
) -> f64 {
    let step = step(exponent, workers) / f64::from(divisor);
    let largest = f64::from(largest) * step;
    (f64::from(workers) * rounding.steps() * step + of_result::<T>(largest)) * OWN_ROUNDING
}

/// The same of sums without a scale, of which `largest` is the largest magnitude: the rounding of the result alone.
pub fn of_exact<T: Float>(largest: f64) -> f64 {
    of_result::<T>(largest) * OWN_ROUNDING
}

fn of_result<T: Float>(largest: f64) -> f64 {
    let to_binary32 = half_ulp::<f32>(largest);
    // What is not binary32 is rounded from that once more.
    match T::PRECISION == <f32 as Float>::PRECISION {
        true => to_binary32,
        false => to_binary32 + half_ulp::<T>(largest),
    }
}

/// The same of integers: their sums are exact, modulo what their type holds, and a mean is cut off toward zero.
pub fn of_integers(divisor: u16) -> f64 {
    f64::from(divisor - 1) / f64::from(divisor)
}

/// The most that a number of at most this magnitude is off by when it is rounded to the type.
fn half_ulp<T: Float>(largest: f64) -> f64 {
    if f64::from(largest as f32) >= T::OVERFLOW {
        return f64::INFINITY;
    }
    if largest == 0.0 {
        return 0.0;
    }
    // Of a normal binary64; what is not, is far below what any type has.
    let exponent = (largest.to_bits() >> 52) as i32 - 1023;
    2_f64.powi((exponent + 1 - T::PRECISION).max(T::LEAST) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn halves_of_a_last_place() {
        assert_eq!(half_ulp::<f32>(1.0), 2_f64.powi(-24));
        assert_eq!(half_ulp::<f32>(1.999), 2_f64.powi(-24));
        assert_eq!(half_ulp::<f32>(1e-300), 2_f64.powi(-150));
        assert_eq!(half_ulp::<f16>(1024.0), 0.5);
        assert_eq!(half_ulp::<f16>(65_519.0), 16.0);
        assert_eq!(half_ulp::<f16>(65_520.0), f64::INFINITY);
        assert_eq!(half_ulp::<f16>(0.0), 0.0);
    }
}
