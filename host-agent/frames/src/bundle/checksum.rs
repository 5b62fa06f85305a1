//! The Internet checksum (RFC 1071).

/// Treatment of checksums that the kernel vouches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksums {
    /// All checksums are finished: the frames can be sent.
    Finish,
    /// UDP checksums over IPv4 become 0 ("no checksum"), which saves the sum for a reader that needs none; others are finished.
    Omit,
}

/// Number of 64-bit words that one iteration adds, each to sums of its own, so that the compiler uses vector instructions.
const LANES: usize = 4;

/// Sum of all big-endian 16-bit words; a last odd byte counts as the high byte of a word. The result is congruent to the sum
/// modulo 65,535, below 65,536, and 0 only if all bytes are 0. Sums of several pieces may be added before [`fold`], if each
/// piece but the last has an even length.
pub fn sum(bytes: &[u8]) -> u64 {
    let (mut low, mut high) = ([0u64; LANES], [0u64; LANES]);
    let mut blocks = bytes.chunks_exact(LANES * 8);
    for block in &mut blocks {
        for lane in 0..LANES {
            let word = &block[lane * 8..lane * 8 + 8];
            let word = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
            low[lane] += word & 0xffff_ffff;
            high[lane] += word >> 32;
        }
    }
    let mut sum: u64 = low.iter().sum::<u64>() + high.iter().sum::<u64>();
    let mut words = blocks.remainder().chunks_exact(2);
    for word in &mut words {
        sum += u64::from(u16::from_ne_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        sum += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    // The bytes of a sum may be swapped instead of those of each word.
    u64::from(u16::from_be(fold(sum)))
}

/// Reduces a sum to 16 bits, with the carries added back. Only a sum of 0 becomes 0.
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071, word by word.
    fn slow(bytes: &[u8]) -> u16 {
        let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
        let mut sum: u64 = bytes.chunks(2).map(word).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn example_of_rfc_1071() {
        assert_eq!(
            sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            0xddf2
        );
    }

    #[test]
    fn extremes() {
        for length in 0..200 {
            assert_eq!(sum(&vec![0; length]), 0);
            let ones = vec![0xff; length];
            assert_eq!(sum(&ones), u64::from(slow(&ones)), "{length}");
        }
        assert_eq!(sum(&vec![0xff; 1 << 20]), 0xffff);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(test_support::cases(500)))]

        #[test]
        fn equals_the_sum_word_by_word(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(sum(&bytes), u64::from(slow(&bytes)));
        }

        #[test]
        fn sums_of_even_pieces_add_up(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..150) {
            let (one, other) = bytes.split_at((at * 2).min(bytes.len() / 2 * 2));
            prop_assert_eq!(fold(sum(one) + sum(other)), slow(&bytes));
        }
    }
}
