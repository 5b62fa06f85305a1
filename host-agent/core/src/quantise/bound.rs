//! Upper bounds of the error that quantisation and rounding cause in sums.

use super::float::Float;
use super::rounding::Rounding;
use super::{Exponent, step};

/// Factor that covers binary64's own rounding: at most 2^−22 steps in a rank's product and 2^−21 steps in the sum.
const OWN_ROUNDING: f64 = 1.0 + 1.0 / (1 << 19) as f64;

/// Largest error of any element of a chunk, in the unit of the values. `largest` is the largest magnitude of the integer
/// sums. Covers the ranks' rounding (half a step or a step each) and that of the result to its type; infinite if a result is.
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

/// Largest error of sums made by the module `exact`, where only the result is rounded. `largest`: a result's largest magnitude.
pub fn of_exact<T: Float>(largest: f64) -> f64 {
    of_result::<T>(largest) * OWN_ROUNDING
}

fn of_result<T: Float>(largest: f64) -> f64 {
    let to_binary32 = half_ulp::<f32>(largest);
    // Types other than binary32 are rounded from binary32 once more.
    match T::PRECISION == <f32 as Float>::PRECISION {
        true => to_binary32,
        false => to_binary32 + half_ulp::<T>(largest),
    }
}

/// Largest error of sums of integers: they are exact modulo the range of their type, and a mean is truncated toward zero.
pub fn of_integers(divisor: u16) -> f64 {
    f64::from(divisor - 1) / f64::from(divisor)
}

/// Largest error of rounding a number of magnitude up to `largest` to type `T`; infinite if such a number overflows `T`.
fn half_ulp<T: Float>(largest: f64) -> f64 {
    if f64::from(largest as f32) >= T::OVERFLOW {
        return f64::INFINITY;
    }
    if largest == 0.0 {
        return 0.0;
    }
    // The exponent of a normal binary64; subnormal ones lie far below the range of every type.
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
