//! Random number generators: SplitMix64, one stream of numbers per instance and seed.

/// A generator of random numbers in an inclusive range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    state: u64,
    stream: u64,
    low: u64,
    span: u64,
}

impl Random {
    /// Creates a generator of numbers from `low` to `high`; `stream` distinguishes instances with the same seed.
    pub fn new(seed: u64, stream: u64, low: u64, high: u64) -> Random {
        let mut random = Random {
            state: seed,
            stream,
            low,
            span: high.saturating_sub(low),
        };
        random.reseed(seed);
        random
    }

    /// Restarts the generator's sequence with another seed.
    pub fn reseed(&mut self, seed: u64) {
        self.state = seed;
        self.state = self.word() ^ self.stream.wrapping_mul(0xd134_2543_de82_ef95);
    }

    fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Draws the next number of the generator's range. The draw's bias is below 2⁻⁶⁴ · range.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.between(self.low, self.low.saturating_add(self.span))
    }

    /// Draws a number from `low` to `high`, inclusive; `low` if the range is empty.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let word = u128::from(self.word());
        let span = u128::from(high.saturating_sub(low)) + 1;
        low + ((word * span) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_inclusive_and_evenly_filled() {
        let mut random = Random::new(7, 0, 10, 13);
        let mut counts = [0u32; 4];
        for _ in 0..40_000 {
            counts[(random.next() - 10) as usize] += 1;
        }
        assert!(
            counts.iter().all(|n| (9_700..10_300).contains(n)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_seed_and_stream_name_one_sequence() {
        let draw = |seed, stream| {
            let mut r = Random::new(seed, stream, 0, u64::MAX);
            [r.next(), r.next()]
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }
}
