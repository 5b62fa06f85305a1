//! Hash algorithms of PSA, v1model and TNA: names, CRC parameters and computation.

use super::checksum::ChecksumUnit;
use crate::bits;

/// A hash algorithm of `PSA_HashAlgorithm_t`, of v1model's `HashAlgorithm` or TNA's `HashAlgorithm_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// The hash is the data itself: its last bits.
    Identity,
    /// The hash is the data's first eight bytes as a number, as BMv2 computes v1model's `identity`.
    First8,
    /// The exclusive or of the data's 16-bit words.
    Xor16,
    /// The hash is the CRC-32 of IEEE 802.3.
    Crc32,
    /// The hash is the CRC-16/ARC, as BMv2 computes it.
    Crc16,
    /// The hash is the Internet checksum of the data.
    OnesComplement16,
    /// The exclusive or of the data's bytes.
    Xor8,
    /// The exclusive or of the data's 32-bit words.
    Xor32,
    /// A CRC with these parameters.
    Crc(Crc),
}

/// Parameters of a CRC, as CRC catalogues give them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crc {
    /// Width of the CRC in bits, at most 64.
    pub width: u8,
    /// The generator polynomial without its leading 1.
    pub polynomial: u64,
    /// Initial value of the CRC's register.
    pub init: u64,
    /// Value that is XORed with the final value of the CRC's register.
    pub xor: u64,
    /// Whether input and output are processed from the least significant bit.
    pub reflected: bool,
    /// Whether a hash narrower than the CRC takes the CRC's leftmost bits instead of its rightmost bits.
    pub top: bool,
    /// Whether a hash wider than the CRC repeats the CRC's bits instead of zeroes.
    pub extended: bool,
}

impl Crc {
    /// Computes the CRC of whole bytes.
    pub fn checksum(&self, data: &[u8]) -> u64 {
        let width = u32::from(self.width.clamp(1, 64));
        let top = 1 << (width - 1);
        let mask = bits::mask(width);
        let mut crc = self.init & mask;
        for byte in data {
            for i in 0..8 {
                let bit = if self.reflected {
                    byte >> i & 1
                } else {
                    byte >> (7 - i) & 1
                };
                let carry = (crc & top != 0) != (bit == 1);
                crc = crc << 1 & mask;
                if carry {
                    crc ^= self.polynomial & mask;
                }
            }
        }
        if self.reflected {
            crc = crc.reverse_bits() >> (64 - width);
        }
        (crc ^ self.xor) & mask
    }

    /// Computes the CRC and cuts or extends it to `wanted` bits.
    fn sized(&self, data: &[u8], wanted: u32) -> u64 {
        let (crc, width) = (self.checksum(data), u32::from(self.width));
        if wanted < width && self.top {
            return crc >> (width - wanted);
        }
        if wanted > width && self.extended {
            let repeats = wanted.div_ceil(width.max(1));
            return (0..repeats).fold(0, |all, i| all | crc.checked_shl(i * width).unwrap_or(0));
        }
        crc
    }
}

impl Algorithm {
    /// The algorithm with this name in `PSA_HashAlgorithm_t`, else `None`. The `_CUSTOM` variants use the usual polynomial of
    /// their algorithm, as on BMv2.
    pub fn named(name: &str) -> Option<Algorithm> {
        Some(match name.to_ascii_uppercase().as_str() {
            "IDENTITY" => Algorithm::Identity,
            "CRC32" | "CRC32_CUSTOM" | "TARGET_DEFAULT" => Algorithm::Crc32,
            "CRC16" | "CRC16_CUSTOM" => Algorithm::Crc16,
            "ONES_COMPLEMENT16" | "CSUM16" => Algorithm::OnesComplement16,
            _ => return None,
        })
    }

    /// The algorithm with this name in v1model, else `None`: also for `random`, which ignores the data.
    pub fn from_v1model(name: &str) -> Option<Algorithm> {
        match name {
            "identity" => Some(Algorithm::First8),
            "xor16" => Some(Algorithm::Xor16),
            "random" => None,
            _ => Algorithm::named(name),
        }
    }
}

impl Algorithm {
    /// The algorithm with this name in TNA, else `None`. `RANDOM` has unpredictable bits: a CRC with an unusual polynomial.
    pub fn from_tofino(name: &str) -> Option<Algorithm> {
        let crc = |width, polynomial| Crc {
            width,
            polynomial,
            init: 0,
            xor: 0,
            reflected: false,
            top: false,
            extended: true,
        };
        Some(match name {
            "IDENTITY" => Algorithm::Identity,
            "RANDOM" => Algorithm::Crc(Crc {
                reflected: true,
                ..crc(64, 0x259c_84cb_a642_6349)
            }),
            "XOR8" => Algorithm::Xor8,
            "XOR16" => Algorithm::Xor16,
            "XOR32" => Algorithm::Xor32,
            "CRC8" => Algorithm::Crc(crc(8, 0x07)),
            "CRC16" => Algorithm::Crc16,
            "CRC32" => Algorithm::Crc32,
            "CRC64" => Algorithm::Crc(crc(64, 0x42f0_e1eb_a9ea_3693)),
            _ => return None,
        })
    }
}

impl Algorithm {
    /// The algorithm as TNA uses it: a hash wider than the algorithm's result repeats its bits, from the right.
    pub fn extended(self) -> Algorithm {
        let crc = |width, polynomial, ones| {
            Algorithm::Crc(Crc {
                width,
                polynomial,
                init: ones,
                xor: ones,
                reflected: true,
                top: false,
                extended: true,
            })
        };
        match self {
            Algorithm::Crc16 => crc(16, 0x8005, 0),
            Algorithm::Crc32 => crc(32, 0x04c1_1db7, 0xffff_ffff),
            other => other,
        }
    }

    /// Width in bits of the result of CRC-16 and CRC-32; `None` for other algorithms.
    pub fn table_width(self) -> Option<u32> {
        match self {
            Algorithm::Crc16 => Some(16),
            Algorithm::Crc32 => Some(32),
            _ => None,
        }
    }
}

/// The hash of the first `bits` bits of `data`. Only as much is computed as a hash of `width` bits needs.
pub fn compute(algorithm: Algorithm, data: &[u8], width: u32, bits: u32) -> u64 {
    match algorithm {
        Algorithm::Crc32 => crc32fast::hash(data).into(),
        Algorithm::Crc16 => crc16(data).into(),
        Algorithm::OnesComplement16 => {
            let mut unit = ChecksumUnit::default();
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
        Algorithm::Xor8 => data.iter().fold(0, |x, byte| x ^ byte).into(),
        Algorithm::Xor32 => data
            .chunks(4)
            .fold(0, |x, w| {
                let byte = |i: usize| u32::from(w.get(i).copied().unwrap_or(0));
                x ^ (byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3))
            })
            .into(),
        Algorithm::Crc(crc) => crc.sized(data, width),
        Algorithm::Identity => {
            let n = width.min(bits).min(64);
            bits::read(data, (bits - n) as usize, n)
        }
    }
}

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
        assert_eq!(compute(Algorithm::Crc32, b"123456789", 32, 72), 0xcbf4_3926);
        assert_eq!(crc16(b"123456789"), 0xbb3d);
        let crc = |width, polynomial, init, xor, reflected| {
            let crc = Crc {
                width,
                polynomial,
                init,
                xor,
                reflected,
                top: false,
                extended: false,
            };
            crc.checksum(b"123456789")
        };
        // CRC-8/SMBUS, CRC-16/ARC, CRC-16/IBM-3740, CRC-32, CRC-64/ECMA-182.
        assert_eq!(crc(8, 0x07, 0, 0, false), 0xf4);
        assert_eq!(crc(16, 0x8005, 0, 0, true), 0xbb3d);
        assert_eq!(crc(16, 0x1021, 0xffff, 0, false), 0x29b1);
        let ones = 0xffff_ffff;
        assert_eq!(crc(32, 0x04c1_1db7, ones, ones, true), 0xcbf4_3926);
        let ecma = crc(64, 0x42f0_e1eb_a9ea_3693, 0, 0, false);
        assert_eq!(ecma, 0x6c40_df5f_0b49_7347);
    }

    #[test]
    fn a_wider_result_of_tna_repeats_the_bits() {
        let data = b"123456789";
        let wide = |name: &str, w| {
            let algorithm = Algorithm::from_tofino(name).unwrap().extended();
            compute(algorithm, data, w, 72) & bits::mask(w)
        };
        assert_eq!(wide("CRC16", 32), 0xbb3d_bb3d);
        assert_eq!(wide("CRC16", 24), 0x3d_bb3d);
        assert_eq!(wide("CRC8", 16), 0xf4f4);
        assert_eq!(wide("CRC32", 64), 0xcbf4_3926_cbf4_3926);
        assert_eq!(wide("CRC32", 16), 0x3926);
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
