//! Rounding of a value between two integers: to the nearest, or stochastically.
//!
//! With stochastic rounding the expected error of a value is zero: a value too small to move a sum by a step moves it now and
//! then. The random bits depend only on the seed, the rank, the item (chunk) and the value's index, so a retransmitted frame
//! has the same bits, and blocks may be quantised in any order.

/// Rounding mode of a rank; ranks of a job may use different modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    /// Values are rounded to the nearest integer, ties to even.
    #[default]
    Nearest,
    /// A value is rounded up with the probability of its fraction, otherwise down.
    Stochastic {
        /// Seed of the random bits. Ranks with the same seed draw different bits.
        seed: u64,
    },
}

impl Rounding {
    /// Largest distance between a value and the integer that a rank rounds it to, in steps.
    pub const fn steps(self) -> f64 {
        match self {
            Rounding::Nearest => 0.5,
            Rounding::Stochastic { .. } => 1.0,
        }
    }

    /// The random bits for one item (chunk) of a rank; `None` for rounding to the nearest.
    pub fn draws(self, rank: u16, item: u64) -> Option<Draws> {
        match self {
            Rounding::Nearest => None,
            Rounding::Stochastic { seed } => Some(Draws::new(seed, rank, item)),
        }
    }
}

/// Random bits for rounding the values of one item (chunk), indexed by value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    low: u32,
    high: u32,
}

impl Draws {
    /// The random bits for an item (chunk) of a rank.
    pub fn new(seed: u64, rank: u16, item: u64) -> Self {
        let key = mix64(mix64(mix64(seed) ^ u64::from(rank)) ^ item);
        Self {
            low: key as u32,
            high: (key >> 32) as u32,
        }
    }

    /// Rounds |x| ≤ 2³¹ − 1 up or down at random: adds a fraction of 21 bits (20 random ones, then a 1) and rounds down. The
    /// sum is exact in binary64 where it must stay below the next integer. Probabilities are off by 2^−21 at most.
    #[inline(always)]
    pub fn round(self, x: f64, index: u32) -> i32 {
        const UNIT: f64 = 1.0 / (1 << 21) as f64;
        let drawn = (self.bits(index) >> 12) as i32;
        let chance = f64::from(2 * drawn + 1) * UNIT;
        super::round_ties_even((x + chance).floor())
    }

    /// The random bits for the value at `index`: two keyed rounds of a 32-bit mixer, which vector code can compute.
    #[inline(always)]
    fn bits(self, index: u32) -> u32 {
        mix32(mix32(index ^ self.low).wrapping_add(self.high))
    }
}

/// Mixes a 64-bit word: the finalizer of splitmix64.
fn mix64(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Mixes a 32-bit word with little bias; found by search (C. Wellons, "lowbias32").
#[inline(always)]
fn mix32(x: u32) -> u32 {
    let x = (x ^ (x >> 16)).wrapping_mul(0x7FEB_352D);
    let x = (x ^ (x >> 15)).wrapping_mul(0x846C_A68B);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over many draws the mean approaches the value; each draw gives one of the two neighboring integers.
    #[test]
    fn the_mean_is_the_value() {
        for x in [0.0, 0.25, -0.25, 0.5, 0.9, -7.125, 1e6 + 0.01, 1.0 - 1e-4] {
            let mut sum = 0.0;
            let draws = 1 << 20;
            for item in 0..draws >> 8 {
                let of = Draws::new(1, 2, item);
                for index in 0..256 {
                    let q = f64::from(of.round(x, index));
                    assert!((q - x).abs() < 1.0, "{q} for {x}");
                    sum += q;
                }
            }
            let mean = sum / draws as f64;
            // Five standard deviations of the mean, plus the error of 20-bit probabilities.
            let share = x - x.floor();
            let allowed = 5.0 * (share * (1.0 - share) / draws as f64).sqrt() + 2f64.powi(-21);
            assert!((mean - x).abs() <= allowed, "{mean} for {x}");
        }
    }

    #[test]
    fn integers_are_unchanged_and_limits_hold() {
        for index in 0..100_000 {
            let draws = Draws::new(7, 0, u64::from(index));
            for whole in [0, 1, -1, i32::MAX, -i32::MAX] {
                assert_eq!(draws.round(f64::from(whole), index), whole);
            }
            let below = f64::from(i32::MAX).next_down();
            assert!(draws.round(below, index) >= i32::MAX - 1);
            assert!(draws.round(-below, index) <= -i32::MAX + 1);
        }
    }

    /// Bits of different ranks, items and indices are independent: each of the 20 that count is set half of the time, and
    /// agrees with its neighbor's half of the time.
    #[test]
    fn draws_are_independent() {
        let (ranks, items, indices) = (4, 64, 256);
        let draw = |rank, item, index| Draws::new(9, rank, item).bits(index) >> 12;
        let mut set = [0_u32; 20];
        let mut agree = [[0_u32; 20]; 3];
        for rank in 0..ranks {
            for item in 0..items {
                for index in 0..indices {
                    let own = draw(rank, item, index);
                    let others = [
                        draw(rank + 1, item, index),
                        draw(rank, item + 1, index),
                        draw(rank, item, index + 1),
                    ];
                    for bit in 0..20 {
                        set[bit] += own >> bit & 1;
                        for (agree, other) in agree.iter_mut().zip(others) {
                            agree[bit] += !(own ^ other) >> bit & 1;
                        }
                    }
                }
            }
        }
        let all = f64::from(ranks) * items as f64 * f64::from(indices);
        let allowed = 5.0 * (all / 4.0).sqrt();
        for count in set.iter().chain(agree.iter().flatten()) {
            assert!(
                (f64::from(*count) - all / 2.0).abs() < allowed,
                "{count} of {all}"
            );
        }
    }
}
