//! The math unit of a stateful ALU (TNA 7.13.1.1): approximates x, x², √x and their inverses by a table of 16 bytes.
//!
//! The operand is brought to the form i / 8 · 2^e with i of 4 bits; the result is `data[i]` · 2^(f(e) + scale), where
//! f(e) is e, 2e or e / 2, negated for inverses. For roots e is even, and i may be as small as 4. Bits beyond the
//! result's type are cut off.

/// A math unit, as its constructor configures it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MathUnit {
    /// Whether the exponent is negated, to approximate an inverse.
    pub invert: bool,
    /// Factor by which the exponent is multiplied, as a shift: −1, 0, 1 halve, keep, double it.
    pub shift: i8,
    /// Exponent that scales the result by a power of 2: −32 … 31.
    pub scale: i8,
    /// The table of results, indexed by i.
    pub data: [u8; 16],
}

impl MathUnit {
    /// The unit for `a / b` · x^(2^shift), or with `invert` for its inverse in x. Table values are rounded half to even.
    pub fn new(invert: bool, shift: i8, a: u64, b: u64) -> MathUnit {
        let function = |i: usize| {
            let x = i as f64 / 8.0;
            let y = match shift {
                -1 => x.sqrt(),
                0 => x,
                _ => x * x,
            };
            if invert { 1.0 / y } else { y }
        };
        let first = if shift < 0 { 4 } else { 8 };
        let largest = (first..16).map(function).fold(0.0, f64::max);
        let mut factor = a as f64 / b.max(1) as f64;
        // The largest result has 8 bits.
        let mut scale = 0;
        while factor * largest >= 256.0 && scale < 31 {
            (factor, scale) = (factor / 2.0, scale + 1);
        }
        while factor * largest < 128.0 && scale > -32 {
            (factor, scale) = (factor * 2.0, scale - 1);
        }
        let mut data = [0; 16];
        for (i, entry) in data.iter_mut().enumerate().skip(first) {
            // Casts of floats saturate.
            *entry = (function(i) * factor).round_ties_even() as u8;
        }
        MathUnit {
            invert,
            shift,
            scale,
            data,
        }
    }

    /// The approximated function of an operand of up to 32 bits, before the result is cut to its type.
    pub fn execute(&self, x: u64) -> u64 {
        let Some(top) = x.checked_ilog2() else {
            return moved(self.data[0], self.scale.into());
        };
        // Roots need an even exponent: the next one if this is odd.
        let exponent = if self.shift < 0 {
            top.next_multiple_of(2)
        } else {
            top
        };
        let i = if exponent >= 3 {
            x >> (exponent - 3)
        } else {
            x << (3 - exponent)
        };
        let exponent = exponent as i32;
        let exponent = match self.shift {
            -1 => exponent / 2,
            0 => exponent,
            _ => exponent * 2,
        };
        let exponent = if self.invert { -exponent } else { exponent };
        moved(
            self.data[(i & 15) as usize],
            exponent + i32::from(self.scale),
        )
    }
}

/// n · 2^`by`, rounded down.
fn moved(n: u8, by: i32) -> u64 {
    let n = u64::from(n);
    if by < 0 {
        n.checked_shr(by.unsigned_abs()).unwrap_or(0)
    } else {
        n.checked_shl(by.unsigned_abs()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the result is within this share of the true value, or off by one.
    fn near(got: u64, truth: f64, share: f64) {
        let off = (got as f64 - truth).abs();
        assert!(off <= (truth * share).max(1.0), "{got}, not {truth}");
    }

    #[test]
    fn functions_are_near_the_truth() {
        for x in [1u64, 2, 3, 7, 8, 15, 16, 100, 1000, 30_000, 65_535] {
            let f = x as f64;
            // Four bits of an operand are off by an eighth at most; a square doubles that.
            near(MathUnit::new(false, 0, 1, 1).execute(x), f, 0.125);
            near(MathUnit::new(false, 0, 3, 2).execute(x), f * 1.5, 0.13);
            near(MathUnit::new(false, 1, 1, 1).execute(x), f * f, 0.25);
            near(MathUnit::new(false, -1, 1, 1).execute(x), f.sqrt(), 0.14);
            near(
                MathUnit::new(true, 0, 1 << 20, 1).execute(x),
                1_048_576.0 / f,
                0.13,
            );
            near(
                MathUnit::new(true, 1, 1 << 30, 1).execute(x),
                1_073_741_824.0 / (f * f),
                0.28,
            );
            near(
                MathUnit::new(true, -1, 1 << 20, 1).execute(x),
                1_048_576.0 / f.sqrt(),
                0.14,
            );
        }
        assert_eq!(MathUnit::new(true, 0, 1, 1).execute(0), 0);
    }

    #[test]
    fn powers_of_two_are_exact() {
        for k in 0..16u32 {
            let x = 1u64 << k;
            assert_eq!(MathUnit::new(false, 0, 1, 1).execute(x), x);
            assert_eq!(MathUnit::new(false, 1, 1, 1).execute(x), x * x);
            assert_eq!(MathUnit::new(true, 0, 1 << 16, 1).execute(x), (1 << 16) / x);
        }
        assert_eq!(MathUnit::new(false, -1, 1, 1).execute(1 << 16), 256);
    }

    #[test]
    fn a_table_of_ones_own_is_used_as_it_is() {
        let data = [9, 1, 2, 3, 4, 5, 6, 7, 80, 90, 100, 110, 120, 130, 140, 150];
        let unit = MathUnit {
            invert: false,
            shift: 0,
            scale: -3,
            data,
        };
        assert_eq!(unit.execute(0), 1, "9 / 8");
        assert_eq!(unit.execute(12), 120, "12 / 8 · 2³");
        assert_eq!(unit.execute(13), 130);
        assert_eq!(unit.execute(26), 260);
    }
}
