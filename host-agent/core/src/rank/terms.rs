//! What ranks have to agree on of an operation.
//!
//! The first word of an operation's first chunk with values is no value but a digest of its terms. Switches sum it as they sum
//! values: of n equal digests the sum is n times one, so every rank sees by the first answer whether all gave the same, and no
//! sum of an operation is given away before. It costs one value of the operation, and no frame unless those fill their last one.

use std::fmt;

use super::{Reduction, Values};

/// Names of the types, by their number on the wire less one.
const NAMES: [&str; 5] = ["float32", "float16", "bfloat16", "int32", "int8"];
/// What an operation takes in a frame: type and reduction, and the length.
const WORDS: usize = 3;

/// What a rank gave to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    dtype: u8,
    average: bool,
    length: u64,
}

impl Terms {
    /// Of values to be summed so.
    pub fn of(values: &Values, reduction: Reduction) -> Self {
        let dtype = match values {
            Values::Floats(_) => 1,
            Values::Float16s(_) => 2,
            Values::Bfloat16s(_) => 3,
            Values::Integers(_) => 4,
            Values::Int8s(_) => 5,
        };
        Self {
            dtype,
            average: reduction.average,
            length: values.len() as u64,
        }
    }

    /// As a frame says it.
    pub(super) fn words(self) -> [u32; WORDS] {
        let kind = u32::from(self.dtype) << 8 | u32::from(self.average);
        [kind, (self.length >> 32) as u32, self.length as u32]
    }

    /// What a frame says; `None` where this version knows no such type.
    pub(super) fn of_words(bytes: &[u8]) -> impl Iterator<Item = Option<Self>> {
        let words = bytes.as_chunks::<4>().0.as_chunks::<WORDS>().0.iter();
        let words = words.map(|words| words.map(u32::from_be_bytes));
        words.map(|[kind, high, low]| {
            let [0, 0, dtype @ 1..=5, average @ 0..=1] = kind.to_be_bytes() else {
                return None;
            };
            Some(Self {
                dtype,
                average: average == 1,
                length: u64::from(high) << 32 | u64::from(low),
            })
        })
    }

    /// The word that is summed. It is odd: fewer than 2³² of them, or none, never pass for another number of them.
    pub(super) fn digest(self) -> u32 {
        let kind = u64::from(self.dtype) << 1 | u64::from(self.average);
        // SplitMix64's finalizer: each bit of the digest depends on all that differs.
        let mut mixed = self.length.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ kind << 58 ^ kind;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) as u32 | 1
    }

    /// Whether a word is the sum of so many ranks' digests, all of them this one.
    pub(super) fn is_agreed(self, shares: u16, word: [u8; 4]) -> bool {
        u32::from_be_bytes(word) == self.digest().wrapping_mul(shares.into())
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES[usize::from(self.dtype) - 1];
        let reduction = if self.average { "average" } else { "sum" };
        write!(f, "{name} x {}, {reduction}", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_gives_something_else_is_seen_by_all() {
        let terms = |dtype, average, length| Terms {
            dtype,
            average,
            length,
        };
        let mut seen = std::collections::BTreeMap::new();
        for dtype in 1..=5 {
            for average in [false, true] {
                for length in (0..3000).chain((12..40).map(|bits| 1 << bits)) {
                    let own = terms(dtype, average, length);
                    let words = own.words().map(u32::to_be_bytes);
                    let read: Vec<_> = Terms::of_words(words.as_flattened()).collect();
                    assert_eq!(read, [Some(own)]);
                    assert_eq!(seen.insert(own.digest(), own), None, "{own}");
                }
            }
        }
        let (own, other) = (terms(1, false, 1000), terms(1, false, 1001));
        for ranks in 2..=1024_u16 {
            let all = own.digest().wrapping_mul(ranks.into());
            assert!(own.is_agreed(ranks, all.to_be_bytes()));
            let others = all.wrapping_sub(own.digest()).wrapping_add(other.digest());
            assert!(!own.is_agreed(ranks, others.to_be_bytes()), "{ranks}");
            assert!(!other.is_agreed(ranks, others.to_be_bytes()), "{ranks}");
            // One of them has none.
            let fewer = all.wrapping_sub(own.digest());
            assert!(!own.is_agreed(ranks, fewer.to_be_bytes()), "{ranks}");
        }
        assert_eq!(own.to_string(), "float32 x 1000, sum");
        assert_eq!(terms(5, true, 7).to_string(), "int8 x 7, average");
        for unknown in [0, 6 << 8, 1 << 8 | 2, 1 << 16 | 1 << 8] {
            let words = [unknown, 0, 1].map(u32::to_be_bytes);
            assert_eq!(Terms::of_words(words.as_flattened()).next(), Some(None));
        }
    }
}
