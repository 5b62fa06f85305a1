//! Bit strings, whose bits may be undefined.

use num_bigint::{BigInt, BigUint, Sign};

/// A bit string of known width: `bool` (1), `bit<W>`, `int<W>` in two's complement, `error` and enums (32).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bits {
    /// Width of the bit string in bits.
    pub width: u32,
    /// The value as a number below 2^width.
    pub value: BigUint,
    /// Mask of the bits that the specification leaves undefined; 0 unless undefined bits are marked.
    pub undefined: BigUint,
}

/// The number 2^width − 1, all bits set.
pub fn ones(width: u32) -> BigUint {
    (BigUint::from(1u8) << width) - 1u8
}

impl Bits {
    /// A fully defined value, cut to `width` bits.
    pub fn new(width: u32, value: impl Into<BigUint>) -> Bits {
        let value = value.into();
        Bits {
            width,
            // Most values fit and need no computation.
            value: match value.bits() <= u64::from(width) {
                true => value,
                false => value & ones(width),
            },
            undefined: BigUint::ZERO,
        }
    }

    /// A fully defined value: the integer modulo 2^width.
    pub fn from_int(width: u32, value: &BigInt) -> Bits {
        if value.sign() != Sign::Minus {
            return Bits::new(width, value.magnitude().clone());
        }
        let modulus = BigInt::from(1) << width;
        let positive = ((value % &modulus) + &modulus) % &modulus;
        Bits::new(width, positive.magnitude().clone())
    }

    pub fn bool(value: bool) -> Bits {
        Bits::new(1, u8::from(value))
    }

    /// The decimal digits of the value as `int<W>` if `signed`, else as `bit<W>`.
    pub fn decimal(&self, signed: bool) -> String {
        let negative = signed && self.width > 0 && self.value.bit(u64::from(self.width) - 1);
        match negative {
            true => format!("-{}", (BigUint::from(1u8) << self.width) - &self.value),
            false => self.value.to_string(),
        }
    }

    /// Whether the value is not 0.
    pub fn is_true(&self) -> bool {
        self.value != BigUint::ZERO
    }

    /// The value as a number: as `int<W>` if `signed`, else as `bit<W>`.
    pub fn int(&self, signed: bool) -> BigInt {
        let value = BigInt::from(self.value.clone());
        if signed && self.width > 0 && self.value.bit(u64::from(self.width) - 1) {
            value - (BigInt::from(1) << self.width)
        } else {
            value
        }
    }

    /// The value as an unsigned number; `u64::MAX` if it is larger.
    pub fn u64(&self) -> u64 {
        u64::try_from(&self.value).unwrap_or(u64::MAX)
    }

    /// Bits `hi ..= lo` of the value (P4_16 8.6).
    pub fn slice(&self, hi: u32, lo: u32) -> Bits {
        let width = hi - lo + 1;
        let part = |n: &BigUint| (n >> lo) & ones(width);
        Bits {
            width,
            value: part(&self.value),
            undefined: part(&self.undefined),
        }
    }

    /// The value with its bits from bit `lo` on replaced by `part`.
    pub fn insert(&self, lo: u32, part: &Bits) -> Bits {
        let hole = ones(part.width) << lo;
        let put = |whole: &BigUint, part: &BigUint| {
            let kept = whole & (ones(self.width) ^ (&hole & ones(self.width)));
            (kept | (part << lo)) & ones(self.width)
        };
        Bits {
            width: self.width,
            value: put(&self.value, &part.value),
            undefined: put(&self.undefined, &part.undefined),
        }
    }

    /// Concatenation `self ++ low` (P4_16 8.6).
    pub fn concat(&self, low: &Bits) -> Bits {
        Bits {
            width: self.width + low.width,
            value: (&self.value << low.width) | &low.value,
            undefined: (&self.undefined << low.width) | &low.undefined,
        }
    }

    /// The value as bytes, most significant bit first, with `lead` zero bits in front and the last byte padded with
    /// zeroes.
    pub fn bytes(&self, lead: u32) -> Vec<u8> {
        let n = (lead + self.width).div_ceil(8);
        let shifted = &self.value << (n * 8 - lead - self.width);
        let digits = shifted.to_bytes_be();
        let mut bytes = vec![0; n as usize];
        let from = digits.len().min(bytes.len());
        let start = bytes.len() - from;
        bytes[start..].copy_from_slice(&digits[digits.len() - from..]);
        bytes
    }
}
