//! The contents of undefined bits: zeroes, or a seeded pattern that marks them.

use super::bits::{Bits, ones};
use crate::rules::InvalidFields;
use num_bigint::BigUint;

/// The source of the contents of undefined bits.
#[derive(Debug, Clone, Default)]
pub struct Fill {
    /// State of the pattern's generator (SplitMix64); `None`: zeroes that count as defined.
    pattern: Option<u64>,
    /// The contents of an invalid header's fields, if undefined bits are not marked.
    pub invalid: InvalidFields,
}

impl Fill {
    /// Creates a source that marks undefined bits and fills them with a pattern from this seed.
    pub fn poison(seed: u64) -> Fill {
        Fill {
            pattern: Some(seed),
            invalid: InvalidFields::Zero,
        }
    }

    /// Whether undefined bits are marked as undefined.
    pub fn marks(&self) -> bool {
        self.pattern.is_some()
    }

    /// Makes undefined bits of this width. A pattern is never 0, to differ from bits that an architecture sets to 0.
    pub fn bits(&mut self, width: u32) -> Bits {
        if self.pattern.is_none() {
            return Bits::new(width, 0u8);
        }
        let words: Vec<u8> = (0..width.div_ceil(64))
            .flat_map(|_| self.word().to_le_bytes())
            .collect();
        let bits = Bits::new(width, BigUint::from_bytes_le(&words) | BigUint::from(1u8));
        Bits {
            undefined: ones(width),
            ..bits
        }
    }

    fn word(&mut self) -> u64 {
        let state = self.pattern.get_or_insert(0);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}
