//! Byte strings (P4Runtime 1.4, section 8.4): unsigned integers, most significant byte first.
//!
//! We send the canonical form, the shortest. We accept any length whose value fits.

/// Why a byte string is not a value of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BytesError {
    /// No byte at all; zero is one byte.
    #[error("the byte string is empty; zero is one byte")]
    Empty,
    /// The value needs more bits than the field has.
    #[error("the value does not fit into {bitwidth} bits")]
    TooWide {
        /// Width of the field.
        bitwidth: u32,
    },
    /// The field is wider than this implementation carries.
    #[error("fields of {bitwidth} bits are not supported; the most is 128")]
    Unsupported {
        /// Width of the field.
        bitwidth: u32,
    },
}

/// The canonical byte string of `value`: no leading zero byte, except that zero is one.
#[must_use]
pub fn encode(value: u128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let skip = (value.leading_zeros() as usize / 8).min(bytes.len() - 1);
    bytes[skip..].to_vec()
}

/// The value of a byte string in a field of `bitwidth` bits.
pub fn decode(bytes: &[u8], bitwidth: u32) -> Result<u128, BytesError> {
    if bytes.is_empty() {
        return Err(BytesError::Empty);
    }
    if bitwidth > 128 {
        return Err(BytesError::Unsupported { bitwidth });
    }
    let (zeroes, low) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut padded = [0; 16];
    padded[16 - low.len()..].copy_from_slice(low);
    let value = u128::from_be_bytes(padded);
    if fits(value, bitwidth) && zeroes.iter().all(|&byte| byte == 0) {
        Ok(value)
    } else {
        Err(BytesError::TooWide { bitwidth })
    }
}

/// The canonical byte string of an `int<bitwidth>`, given as its two's complement bits.
#[must_use]
pub fn encode_signed(bits: u128, bitwidth: u32) -> Vec<u8> {
    let bytes = sign_extend(bits, bitwidth).to_be_bytes();
    let redundant =
        |pair: &[u8]| (pair[0] == 0 && pair[1] < 0x80) || (pair[0] == 0xff && pair[1] >= 0x80);
    let skip = bytes.windows(2).take_while(|pair| redundant(pair)).count();
    bytes[skip..].to_vec()
}

/// The two's complement bits of a byte string in an `int<bitwidth>`.
pub fn decode_signed(bytes: &[u8], bitwidth: u32) -> Result<u128, BytesError> {
    let Some(&first) = bytes.first() else {
        return Err(BytesError::Empty);
    };
    if bitwidth > 128 {
        return Err(BytesError::Unsupported { bitwidth });
    }
    let sign: u8 = if first >= 0x80 { 0xff } else { 0 };
    let (extension, low) = bytes.split_at(bytes.len().saturating_sub(16));
    let value = low
        .iter()
        .fold(if sign == 0 { 0 } else { u128::MAX }, |value, &byte| {
            value << 8 | u128::from(byte)
        });
    let bits = value & max(bitwidth);
    if extension.iter().any(|&byte| byte != sign) || sign_extend(bits, bitwidth) != value {
        return Err(BytesError::TooWide { bitwidth });
    }
    Ok(bits)
}

fn sign_extend(bits: u128, bitwidth: u32) -> u128 {
    let negative = (1..=128).contains(&bitwidth) && bits >> (bitwidth - 1) & 1 == 1;
    if negative {
        bits | !max(bitwidth)
    } else {
        bits & max(bitwidth)
    }
}

/// Whether `value` is a `bit<bitwidth>`.
#[must_use]
pub fn fits(value: u128, bitwidth: u32) -> bool {
    value <= max(bitwidth)
}

/// The largest `bit<bitwidth>`; all bits set.
#[must_use]
pub fn max(bitwidth: u32) -> u128 {
    match bitwidth {
        0 => 0,
        1..=127 => (1 << bitwidth) - 1,
        _ => u128::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn canonical_is_shortest() {
        assert_eq!(encode(0), [0]);
        assert_eq!(encode(0x63), [0x63]);
        assert_eq!(encode(0x0063), [0x63]);
        assert_eq!(encode(0x3064), [0x30, 0x64]);
        assert_eq!(encode(u128::MAX), [0xff; 16]);
    }

    #[test]
    fn any_length_that_fits_is_accepted() {
        assert_eq!(decode(&[0x63], 7), Ok(0x63));
        assert_eq!(decode(&[0, 0, 0x63], 7), Ok(0x63));
        assert_eq!(decode(&[0; 40], 7), Ok(0));
        assert_eq!(decode(&[0xe3], 7), Err(BytesError::TooWide { bitwidth: 7 }));
        assert_eq!(decode(&[], 7), Err(BytesError::Empty));
        assert_eq!(
            decode(&[1; 17], 128),
            Err(BytesError::TooWide { bitwidth: 128 })
        );
        assert_eq!(decode(&[0xff; 16], 128), Ok(u128::MAX));
        assert_eq!(
            decode(&[1], 129),
            Err(BytesError::Unsupported { bitwidth: 129 })
        );
    }

    #[test]
    fn signed_values_of_the_specification() {
        for (width, value, bytes) in [
            (8, 99i128, &[0x63u8][..]),
            (8, -99, &[0x9d]),
            (12, -739, &[0xfd, 0x1d]),
            (16, 0, &[0]),
        ] {
            let bits = value as u128 & max(width);
            assert_eq!(encode_signed(bits, width), bytes);
            assert_eq!(decode_signed(bytes, width), Ok(bits));
        }
        assert_eq!(decode_signed(&[0xff, 0x9d], 8), Ok(0x9d));
        assert_eq!(
            decode_signed(&[0x00, 0x9d], 8),
            Err(BytesError::TooWide { bitwidth: 8 })
        );
        assert_eq!(
            decode_signed(&[0x8d, 0x1d], 12),
            Err(BytesError::TooWide { bitwidth: 12 })
        );
        assert_eq!(decode_signed(&[], 16), Err(BytesError::Empty));
    }

    proptest! {
        #[test]
        fn signed_round_trip(value: u128, width in 1u32..=128) {
            let bits = value & max(width);
            let mut bytes = encode_signed(bits, width);
            prop_assert_eq!(decode_signed(&bytes, width), Ok(bits));
            let sign = if bytes[0] >= 0x80 { 0xff } else { 0 };
            bytes.splice(0..0, [sign; 17]);
            prop_assert_eq!(decode_signed(&bytes, width), Ok(bits));
        }

        #[test]
        fn round_trip(value: u128, width in 1u32..=128, padding in 0usize..8) {
            let value = value & max(width);
            let mut bytes = vec![0; padding];
            bytes.extend(encode(value));
            prop_assert_eq!(decode(&bytes, width), Ok(value));
            prop_assert!(encode(value).len() <= (width as usize).div_ceil(8));
            if width < 128 {
                prop_assert!(decode(&encode(max(width) + 1), width).is_err());
            }
        }
    }
}
