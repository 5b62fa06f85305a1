//! Random numbers and shuffles, from a generator that the caller has seeded.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::RngCore;

/// Uniform random integer from 0 to `n` − 1; `n` must be above 0.
pub fn below(random: &mut ChaCha12Rng, n: u64) -> u64 {
    // Redraw the lowest values, which would make small numbers likelier.
    let uneven = (u64::MAX % n + 1) % n;
    loop {
        let drawn = random.next_u64();
        if drawn >= uneven {
            return drawn % n;
        }
    }
}

/// Uniform random number of at least 0 and below 1, a multiple of 2⁻⁵³.
pub fn unit(random: &mut ChaCha12Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Shuffles only the first `count` positions of a list, as a full shuffle would fill them (Fisher and Yates).
pub fn shuffle<T>(random: &mut ChaCha12Rng, list: &mut [T], count: usize) {
    for place in 0..count.min(list.len().saturating_sub(1)) {
        let other = place + below(random, (list.len() - place) as u64) as usize;
        list.swap(place, other);
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn each_number_below_is_as_likely() {
        let mut random = ChaCha12Rng::seed_from_u64(1);
        let mut seen = [0_u32; 6];
        for _ in 0..6_000 {
            seen[below(&mut random, 6) as usize] += 1;
        }
        // 1,000 of each are expected, with a standard deviation of 29.
        assert!(seen.iter().all(|n| (850..1_150).contains(n)), "{seen:?}");
        assert_eq!(below(&mut random, 1), 0);
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&unit(&mut random))));
    }

    #[test]
    fn a_shuffle_loses_nothing() {
        let mut random = ChaCha12Rng::seed_from_u64(2);
        let mut list: Vec<_> = (0..100).collect();
        shuffle(&mut random, &mut list, 100);
        assert_ne!(list, (0..100).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..100).collect::<Vec<_>>());
    }
}
