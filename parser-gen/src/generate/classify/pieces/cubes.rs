//! Covers exactly a set of bytes with few masks (Quine and McCluskey, with a greedy choice at the end).

use std::collections::BTreeSet;

/// Pairs (value, mask) that together match exactly these bytes.
pub(super) fn cover(bytes: &[u8]) -> Vec<(u8, u8)> {
    let mut current: BTreeSet<(u8, u8)> = bytes.iter().map(|byte| (*byte, 0xff)).collect();
    let mut primes: Vec<(u8, u8)> = Vec::new();
    while !current.is_empty() {
        let mut wider = BTreeSet::new();
        for (value, mask) in &current {
            let mut is_prime = true;
            for bit in (0..8).map(|bit| 1_u8 << bit).filter(|bit| mask & bit != 0) {
                if current.contains(&(value ^ bit, *mask)) {
                    is_prime = false;
                    wider.insert((value & !bit, mask & !bit));
                }
            }
            if is_prime {
                primes.push((*value, *mask));
            }
        }
        current = wider;
    }
    let mut left: BTreeSet<u8> = bytes.iter().copied().collect();
    let mut chosen = Vec::new();
    while !left.is_empty() {
        let covers =
            |(value, mask): (u8, u8)| left.iter().filter(|byte| *byte & mask == value).count();
        // The first of equally good ones, so that the choice is deterministic.
        let Some(best) = primes
            .iter()
            .copied()
            .rev()
            .max_by_key(|prime| covers(*prime))
        else {
            break;
        };
        left.retain(|byte| byte & best.1 != best.0);
        chosen.push(best);
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::cover;

    #[test]
    fn few_masks() {
        assert_eq!(cover(b"Gg"), [(b'G', 0xdf)]);
        assert_eq!(cover(b"0123456789"), [(0x30, 0xf6), (0x30, 0xf8)]);
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(cover(&all), [(0, 0)]);
        assert_eq!(cover(&all[1..]).len(), 8);
        assert!(cover(&[]).is_empty());
    }
}
