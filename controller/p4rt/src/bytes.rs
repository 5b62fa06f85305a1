//! P4Runtime's byte strings (P4Runtime 1.4, section 8.4): unsigned integers, most significant byte first.
//!
//! weir sends the canonical form, which is the shortest, and accepts any length if the value fits the field.

use p4lang::runtime::Value;

/// Why a byte string is not a value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BytesError {
    /// The byte string is empty; the value 0 is one byte.
    #[error("the byte string is empty; zero takes one byte")]
    Empty,
    /// The value needs more bits than the field has.
    #[error("the value does not fit into {bitwidth} bits")]
    TooWide {
        /// Width of the field in bits.
        bitwidth: u32,
    },
}

/// The canonical byte string of a number (of a [`Value`] it is [`Value::to_be_bytes`]).
#[must_use]
pub fn encode(number: u128) -> Vec<u8> {
    Value::from(number).to_be_bytes()
}

/// The value that a byte string has in a field of `bitwidth` bits.
pub fn decode(bytes: &[u8], bitwidth: u32) -> Result<Value, BytesError> {
    if bytes.is_empty() {
        return Err(BytesError::Empty);
    }
    // Bytes beyond the width must be zero; they are checked without building a value, however many they are.
    let beyond = bytes.len().saturating_sub(bitwidth.div_ceil(8) as usize);
    let (zeroes, bytes) = bytes.split_at(beyond);
    let value = Value::from_be_bytes(bytes);
    if value.fits(bitwidth) && zeroes.iter().all(|byte| *byte == 0) {
        Ok(value)
    } else {
        Err(BytesError::TooWide { bitwidth })
    }
}

/// The canonical byte string of an `int<bitwidth>`, given as its two's complement bits.
#[must_use]
pub fn encode_signed(bits: &Value, bitwidth: u32) -> Vec<u8> {
    let value = bits.to_be_bytes();
    let length = (bitwidth.div_ceil(8) as usize).max(value.len());
    let mut bytes = vec![0; length - value.len()];
    bytes.extend(value);
    if bitwidth > 0 && bits.bits() == bitwidth {
        // Negative: the sign fills up the first byte.
        bytes[0] |= u8::MAX.checked_shl((bitwidth - 1) % 8 + 1).unwrap_or(0);
    }
    let redundant =
        |pair: &[u8]| (pair[0] == 0 && pair[1] < 0x80) || (pair[0] == 0xff && pair[1] >= 0x80);
    let skip = bytes.windows(2).take_while(|pair| redundant(pair)).count();
    bytes.split_off(skip)
}

/// The two's complement bits that a byte string has in an `int<bitwidth>`.
pub fn decode_signed(bytes: &[u8], bitwidth: u32) -> Result<Value, BytesError> {
    let Some(&first) = bytes.first() else {
        return Err(BytesError::Empty);
    };
    let sign: u8 = if first >= 0x80 { 0xff } else { 0 };
    let length = bitwidth.div_ceil(8) as usize;
    let (extension, low) = bytes.split_at(bytes.len().saturating_sub(length));
    let mut all = vec![sign; length - low.len()];
    all.extend(low);
    // Bits before the sign bit must equal it.
    let spare = match bitwidth {
        0 => 0,
        _ => u8::MAX.checked_shl((bitwidth - 1) % 8).unwrap_or(0),
    };
    let is_sign = |byte: &u8| *byte == sign;
    let fits = all.first().is_none_or(|byte| byte & spare == sign & spare);
    if !extension.iter().all(is_sign) || !fits {
        return Err(BytesError::TooWide { bitwidth });
    }
    Ok(&Value::from_be_bytes(&all) & &Value::ones(bitwidth))
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
        assert_eq!(decode(&[0x63], 7), Ok(0x63.into()));
        assert_eq!(decode(&[0, 0, 0x63], 7), Ok(0x63.into()));
        assert_eq!(decode(&[0; 40], 7), Ok(Value::ZERO));
        assert_eq!(decode(&[0xe3], 7), Err(BytesError::TooWide { bitwidth: 7 }));
        assert_eq!(decode(&[], 7), Err(BytesError::Empty));
        assert_eq!(
            decode(&[1; 17], 128),
            Err(BytesError::TooWide { bitwidth: 128 })
        );
        assert_eq!(decode(&[0xff; 16], 128), Ok(u128::MAX.into()));
        assert_eq!(decode(&[0xff; 32], 256), Ok(Value::ones(256)));
        assert_eq!(
            decode(&[0xff; 32], 255),
            Err(BytesError::TooWide { bitwidth: 255 })
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
            let bits = &Value::from(value as u128) & &Value::ones(width);
            assert_eq!(encode_signed(&bits, width), bytes);
            assert_eq!(decode_signed(bytes, width), Ok(bits));
        }
        assert_eq!(decode_signed(&[0xff, 0x9d], 8), Ok(0x9d.into()));
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

    fn value() -> impl Strategy<Value = Value> {
        let bytes = prop_oneof![
            any::<[u8; 40]>().prop_map(|bytes| bytes.to_vec()),
            prop::collection::vec(prop_oneof![Just(0), Just(0xff), any::<u8>()], 0..40),
        ];
        bytes.prop_map(|bytes| Value::from_be_bytes(&bytes))
    }

    proptest! {
        #[test]
        fn signed_round_trip(value in value(), width in 1u32..=320) {
            let bits = &value & &Value::ones(width);
            let mut bytes = encode_signed(&bits, width);
            prop_assert_eq!(decode_signed(&bytes, width), Ok(bits.clone()));
            if let Some(bits) = bits.to_u128().filter(|_| width <= 128) {
                let number = (bits << (128 - width)).cast_signed() >> (128 - width);
                let long = number.to_be_bytes();
                prop_assert!(long.ends_with(&bytes));
                prop_assert_eq!(decode_signed(&long, width), Ok(bits.into()));
            }
            let sign = if bytes[0] >= 0x80 { 0xff } else { 0 };
            bytes.splice(0..0, [sign; 17]);
            prop_assert_eq!(decode_signed(&bytes, width), Ok(bits));
            // The other sign before it needs a bit more than the width where that is used up.
            let beyond = [&[!sign][..], &vec![sign; width.div_ceil(8) as usize]].concat();
            prop_assert_eq!(decode_signed(&beyond, width), Err(BytesError::TooWide { bitwidth: width }));
        }

        #[test]
        fn round_trip(value in value(), width in 1u32..=320, padding in 0usize..8) {
            let value = &value & &Value::ones(width);
            let mut bytes = vec![0; padding];
            bytes.extend(value.to_be_bytes());
            prop_assert_eq!(decode(&bytes, width), Ok(value.clone()));
            prop_assert!(value.to_be_bytes().len() <= (width as usize).div_ceil(8));
            let beyond = Value::prefix(width + 1, 1).to_be_bytes();
            prop_assert_eq!(decode(&beyond, width), Err(BytesError::TooWide { bitwidth: width }));
        }
    }
}
