//! Checksum units of one packet: the Internet checksum (RFC 1071, updated by RFC 1624), and data collected for other
//! algorithms.

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChecksumUnit {
    /// One's complement sum of the data added so far, folded to 16 bits.
    pub sum: u16,
    /// Bytes added so far to a `Checksum` with any algorithm.
    pub data: Vec<u8>,
}

impl ChecksumUnit {
    /// Resets the checksum unit to its state at the start of a packet.
    pub fn clear(&mut self) {
        self.sum = 0;
        self.data.clear();
    }

    /// Adds the 16-bit words of `data` to the sum; an odd last byte is padded with zeroes.
    pub fn add(&mut self, data: &[u8]) {
        for word in data.chunks(2) {
            self.add_word(u16::from_be_bytes([
                word[0],
                word.get(1).copied().unwrap_or(0),
            ]));
        }
    }

    /// Subtracts the 16-bit words of `data` from the sum; an odd last byte is padded with zeroes.
    pub fn subtract(&mut self, data: &[u8]) {
        for word in data.chunks(2) {
            self.add_word(!u16::from_be_bytes([
                word[0],
                word.get(1).copied().unwrap_or(0),
            ]));
        }
    }

    fn add_word(&mut self, word: u16) {
        let (sum, carry) = self.sum.overflowing_add(word);
        self.sum = sum + u16::from(carry);
    }

    /// Adds the one's complement sum of further 16-bit words.
    pub fn add_sum(&mut self, sum: u16) {
        self.add_word(sum);
    }

    /// The Internet checksum as it is written to the header: the complement of the sum.
    pub fn result(&self) -> u16 {
        !self.sum
    }
}

/// Folds a plain sum of 16-bit words to their one's complement sum.
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_header_of_rfc_1071_kind() {
        // The usual example: 4500 0073 0000 4000 4011 .... c0a8 0001 c0a8 00c7 has b861.
        let words: [u16; 9] = [0x4500, 0x0073, 0, 0x4000, 0x4011, 0xc0a8, 1, 0xc0a8, 0xc7];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
        let mut unit = ChecksumUnit::default();
        unit.add(&bytes);
        assert_eq!(unit.result(), 0xb861);
        unit.subtract(&[0x40, 0x11]);
        unit.add(&[0x3f, 0x11]);
        assert_eq!(unit.result(), 0xb961, "TTL one less");
        unit.clear();
        assert_eq!(unit.result(), 0xffff);
    }
}
