//! Hash algorithms of PSA and v1model.

use super::checksum::Unit;
use crate::exec::bits;

/// `PSA_HashAlgorithm_t`, v1model's `HashAlgorithm`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// The data's last bits.
    Identity,
    /// The first eight bytes as a number, as v1model's `identity` on BMv2.
    First8,
    /// 16-bit words, exclusive or.
    Xor16,
    /// CRC-32 of IEEE 802.3.
    Crc32,
    /// CRC-16/ARC, as BMv2 computes it.
    Crc16,
    /// The Internet checksum.
    OnesComplement16,
}

impl Algorithm {
    /// From the enum member's name. The `_CUSTOM` variants have their algorithm's usual polynomial, as on BMv2.
    pub fn named(name: &str) -> Option<Algorithm> {
        Some(match name.to_ascii_uppercase().as_str() {
            "IDENTITY" => Algorithm::Identity,
            "CRC32" | "CRC32_CUSTOM" | "TARGET_DEFAULT" => Algorithm::Crc32,
            "CRC16" | "CRC16_CUSTOM" => Algorithm::Crc16,
            "ONES_COMPLEMENT16" | "CSUM16" => Algorithm::OnesComplement16,
            _ => return None,
        })
    }

    /// From v1model's name. `random` is none: it looks at no data.
    pub fn of_v1model(name: &str) -> Option<Algorithm> {
        match name {
            "identity" => Some(Algorithm::First8),
            "xor16" => Some(Algorithm::Xor16),
            "random" => None,
            _ => Algorithm::named(name),
        }
    }
}

/// The hash of `data`, whose first `bits` bits count, as far as `width` bits need it.
pub fn compute(algorithm: Algorithm, data: &[u8], width: u32, bits: u32) -> u64 {
    match algorithm {
        Algorithm::Crc32 => crc32(data).into(),
        Algorithm::Crc16 => crc16(data).into(),
        Algorithm::OnesComplement16 => {
            let mut unit = Unit::default();
            unit.add(data);
            unit.result().into()
        }
        Algorithm::First8 => data
            .iter()
            .take(8)
            .fold(0, |n, byte| n << 8 | u64::from(*byte)),
        Algorithm::Xor16 => data
            .chunks(2)
            .fold(0, |x, w| {
                x ^ u16::from_be_bytes([w[0], w.get(1).copied().unwrap_or(0)])
            })
            .into(),
        Algorithm::Identity => {
            let n = width.min(bits).min(64);
            bits::read(data, (bits - n) as usize, n)
        }
    }
}

const CRC32_TABLE: [u32; 256] = crc_table(0xedb8_8320);
const CRC16_TABLE: [u32; 256] = crc_table(0xa001);

const fn crc_table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ polynomial
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |crc, byte| {
        CRC32_TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ crc >> 8
    })
}

fn crc16(data: &[u8]) -> u32 {
    data.iter().fold(0, |crc, byte| {
        CRC16_TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ crc >> 8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_of_the_catalogues() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc16(b"123456789"), 0xbb3d);
    }

    #[test]
    fn identity_takes_the_last_bits() {
        assert_eq!(
            compute(Algorithm::Identity, &[0x12, 0x34, 0x56], 16, 24),
            0x3456
        );
        assert_eq!(compute(Algorithm::Identity, &[0x12, 0x30], 8, 12), 0x23);
        assert_eq!(compute(Algorithm::Identity, &[0x12], 16, 8), 0x12);
    }
}
