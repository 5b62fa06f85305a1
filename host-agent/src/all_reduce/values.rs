//! Generated values of `weir-agent all-reduce`, and their sums: all ranks derive both from the seed.

use std::str::FromStr;

use aggregation::rank::{Sums, Values};
use anyhow::{Result, bail};

/// Element type of the generated values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// IEEE 754 binary32; the values lie in [-1, 1).
    Float32,
    /// 32-bit two's complement integers, whose sums wrap.
    Int32,
}

impl FromStr for Dtype {
    type Err = String;
    fn from_str(text: &str) -> Result<Dtype, String> {
        match text {
            "float32" => Ok(Dtype::Float32),
            "int32" => Ok(Dtype::Int32),
            _ => Err(format!("`{text}` is neither float32 nor int32")),
        }
    }
}

/// The rule that generates the values of all ranks.
#[derive(Debug, Clone, Copy)]
pub struct InputRule {
    /// Element type of the values.
    pub dtype: Dtype,
    /// Seed of the values, equal at all ranks.
    pub seed: u64,
    /// Number of values per operation.
    pub length: usize,
}

impl InputRule {
    /// The values of a rank for the operation with this number.
    pub fn by(&self, rank: u16, operation: u32) -> Values {
        let word = self.words(rank, operation);
        match self.dtype {
            Dtype::Float32 => Values::Floats((0..self.length).map(|at| float(word(at))).collect()),
            Dtype::Int32 => Values::Integers((0..self.length).map(|at| word(at) as i32).collect()),
        }
    }

    /// Number of sums of an operation that differ from the exact ones by more than the error bound.
    pub fn wrong(&self, sums: &Sums, ranks: u16, operation: u32) -> Result<u64> {
        let words: Vec<_> = (0..ranks).map(|rank| self.words(rank, operation)).collect();
        let wrong = match (&sums.values, self.dtype) {
            (Values::Floats(sums_of), Dtype::Float32) => {
                // A sum that is NaN is not near anything.
                let is_right = |(at, sum): &(usize, &f32)| {
                    let given = words.iter().map(|word| f64::from(float(word(*at))));
                    let exact: f64 = given.sum();
                    (f64::from(**sum) - exact).abs() <= sums.error_bound
                };
                sums_of.len() - sums_of.iter().enumerate().filter(is_right).count()
            }
            (Values::Integers(sums_of), Dtype::Int32) => {
                let is_wrong = |(at, sum): &(usize, &i32)| {
                    let given = words.iter().map(|word| word(*at) as i32);
                    given.fold(0, i32::wrapping_add) != **sum
                };
                sums_of.iter().enumerate().filter(is_wrong).count()
            }
            _ => bail!("sums of another type"),
        };
        Ok(wrong as u64)
    }

    fn words(&self, rank: u16, operation: u32) -> impl Fn(usize) -> u32 + use<> {
        let salt = mixed(self.seed ^ u64::from(operation) << 16 ^ u64::from(rank));
        move |at| mixed(salt.wrapping_add(at as u64)) as u32
    }
}

/// A float from the upper 24 bits of a random word, which binary32 represents exactly.
fn float(word: u32) -> f32 {
    (word >> 8) as f32 / (1 << 23) as f32 - 1.0
}

/// Mixes a 64-bit word: one step of splitmix64.
fn mixed(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_sum_is_counted() {
        for dtype in [Dtype::Float32, Dtype::Int32] {
            let given = InputRule {
                dtype,
                seed: 7,
                length: 1000,
            };
            let values = match (given.by(0, 3), given.by(1, 3)) {
                (Values::Floats(ours), Values::Floats(theirs)) => {
                    assert!(ours.iter().all(|value| (-1.0..1.0).contains(value)));
                    Values::Floats(ours.iter().zip(theirs).map(|(a, b)| a + b).collect())
                }
                (Values::Integers(ours), Values::Integers(theirs)) => {
                    let sums = ours.iter().zip(theirs).map(|(a, b)| a.wrapping_add(b));
                    Values::Integers(sums.collect())
                }
                _ => panic!("other types"),
            };
            let mut sums = Sums {
                values,
                error_bound: if dtype == Dtype::Float32 { 2e-7 } else { 0.0 },
                partial: Vec::new(),
            };
            assert_eq!(given.wrong(&sums, 2, 3).unwrap(), 0);
            assert!(given.wrong(&sums, 2, 4).unwrap() > 900);
            match &mut sums.values {
                Values::Floats(values) => values[5] = f32::NAN,
                Values::Integers(values) => values[5] ^= 1,
                _ => {}
            }
            assert_eq!(given.wrong(&sums, 2, 3).unwrap(), 1);
        }
    }
}
