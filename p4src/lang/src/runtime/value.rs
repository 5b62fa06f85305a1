//! Unsigned values of any width, for tables, registers, digests and P4Runtime's byte strings (1.4, section 8.4).
//!
//! Almost all values are below 2¹²⁸: these are stored inline, without allocation.

use num_bigint::BigUint;
use std::cmp::Ordering;
use std::fmt;
use std::ops::BitAnd;

/// An unsigned integer. Equal numbers are equal values, whatever the widths of their fields.
///
/// [`From<u128>`] is the only conversion from Rust's integers, so that a literal needs no suffix.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Value(Limbs);

/// The value's 64-bit words, the least significant first. Each number has one form, so comparison and hashing are derived.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Limbs {
    /// A value below 2¹²⁸.
    Two([u64; 2]),
    /// A value of 2¹²⁸ or more; the last word is not 0.
    Many(Box<[u64]>),
}

impl Value {
    /// The value 0.
    pub const ZERO: Value = Value(Limbs::Two([0; 2]));

    /// Creates a value from words of 64 bits, the least significant first.
    #[must_use]
    #[inline]
    pub fn from_limbs(limbs: &[u64]) -> Value {
        Value(match *limbs {
            [] => Limbs::Two([0, 0]),
            [low] => Limbs::Two([low, 0]),
            [low, high] => Limbs::Two([low, high]),
            [low, high, ref more @ ..] => match more.iter().rposition(|limb| *limb != 0) {
                None => Limbs::Two([low, high]),
                Some(last) => Limbs::Many(limbs[..last + 3].into()),
            },
        })
    }

    /// The largest value of `width` bits: all bits are set.
    #[must_use]
    pub fn ones(width: u32) -> Value {
        if width <= 128 {
            return (u128::MAX.checked_shr(128 - width).unwrap_or(0)).into();
        }
        let mut limbs = vec![u64::MAX; width.div_ceil(64) as usize];
        if let (Some(last), 1..) = (limbs.last_mut(), width % 64) {
            *last >>= 64 - width % 64;
        }
        Value(Limbs::Many(limbs.into()))
    }

    /// A mask of `width` bits whose `len` most significant bits are set; all bits are set if `len` is larger than `width`.
    #[must_use]
    pub fn prefix(width: u32, len: u32) -> Value {
        let host = width.saturating_sub(len);
        let mut mask = Value::ones(width);
        for (i, limb) in mask.limbs_mut().iter_mut().enumerate() {
            let below = host.saturating_sub(i as u32 * 64);
            *limb &= u64::MAX.checked_shl(below).unwrap_or(0);
        }
        // Only for an empty prefix the last word is 0.
        if len == 0 { Value::ZERO } else { mask }
    }

    /// The value's words of 64 bits, the least significant first: two words, or as many as the number needs.
    #[must_use]
    #[inline]
    pub fn limbs(&self) -> &[u64] {
        match &self.0 {
            Limbs::Two(limbs) => limbs,
            Limbs::Many(limbs) => limbs,
        }
    }

    fn limbs_mut(&mut self) -> &mut [u64] {
        match &mut self.0 {
            Limbs::Two(limbs) => limbs,
            Limbs::Many(limbs) => limbs,
        }
    }

    /// The 64-bit word `i` of the value, the least significant first; words beyond [`limbs`](Self::limbs) are 0.
    #[must_use]
    #[inline]
    pub fn limb(&self, i: usize) -> u64 {
        self.limbs().get(i).copied().unwrap_or(0)
    }

    /// Converts to `u128`; `None` if the value does not fit.
    #[must_use]
    pub fn to_u128(&self) -> Option<u128> {
        match self.0 {
            Limbs::Two([low, high]) => Some(u128::from(low) | u128::from(high) << 64),
            Limbs::Many(_) => None,
        }
    }

    /// Converts to a Rust integer; `None` if the value does not fit.
    #[must_use]
    pub fn to<T: TryFrom<u128>>(&self) -> Option<T> {
        T::try_from(self.to_u128()?).ok()
    }

    /// Whether the value is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Value::ZERO
    }

    /// Number of bits up to the most significant set bit; 0 for the value 0.
    #[must_use]
    pub fn bits(&self) -> u32 {
        match &self.0 {
            Limbs::Two([low, 0]) => 64 - low.leading_zeros(),
            Limbs::Two([_, high]) => 128 - high.leading_zeros(),
            Limbs::Many(limbs) => {
                let unset = limbs.last().map_or(0, |last| last.leading_zeros());
                limbs.len() as u32 * 64 - unset
            }
        }
    }

    /// Whether the value fits into `bit<width>`.
    #[must_use]
    #[inline]
    pub fn fits(&self, width: u32) -> bool {
        self.bits() <= width
    }

    /// Number of bits that are set.
    #[must_use]
    pub fn count_ones(&self) -> u32 {
        self.limbs().iter().map(|limb| limb.count_ones()).sum()
    }

    /// Whether every set bit of the value is also set in `mask`.
    #[must_use]
    pub fn is_within(&self, mask: &Value) -> bool {
        let mut limbs = self.limbs().iter().enumerate();
        limbs.all(|(i, limb)| limb & !mask.limb(i) == 0)
    }

    /// Bytes in big-endian order without leading zeros; zero is one byte. This is P4Runtime's canonical form.
    #[must_use]
    pub fn to_be_bytes(&self) -> Vec<u8> {
        let length = (self.bits().div_ceil(8) as usize).max(1);
        match self.to_u128() {
            Some(number) => number.to_be_bytes()[16 - length..].to_vec(),
            None => {
                let mut bytes = Vec::with_capacity(length.next_multiple_of(8));
                let limbs = self.limbs().iter().rev();
                limbs.for_each(|limb| bytes.extend(limb.to_be_bytes()));
                bytes.split_off(bytes.len() - length)
            }
        }
    }

    /// Creates a value from big-endian bytes; an empty slice means 0.
    #[must_use]
    pub fn from_be_bytes(bytes: &[u8]) -> Value {
        let (mut more, low) = bytes.split_at(bytes.len().saturating_sub(16));
        while let [0, rest @ ..] = more {
            more = rest;
        }
        if more.is_empty() {
            let mut padded = [0; 16];
            padded[16 - low.len()..].copy_from_slice(low);
            return u128::from_be_bytes(padded).into();
        }
        let limb = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |limb, byte| limb << 8 | u64::from(*byte))
        };
        let limbs: Vec<u64> = low.rchunks(8).chain(more.rchunks(8)).map(limb).collect();
        Value::from_limbs(&limbs)
    }

    /// Parses digits without a sign or radix prefix; `None` if a character is not a digit of `radix`.
    ///
    /// Takes time quadratic in the number of digits: a caller with untrusted input has to limit it first.
    #[must_use]
    pub fn from_str_radix(digits: &str, radix: u32) -> Option<Value> {
        // Stricter than the parser below, which accepts a sign and underscores.
        if !digits.chars().all(|c| c.is_digit(radix)) {
            return None;
        }
        match u128::from_str_radix(digits, radix) {
            Ok(number) => Some(number.into()),
            Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => {
                let number = BigUint::parse_bytes(digits.as_bytes(), radix)?;
                Some((&number).into())
            }
            Err(_) => None,
        }
    }

    /// Converts to `BigUint` for printing, which is rare and never happens while packets are processed.
    fn big(&self) -> BigUint {
        BigUint::from_bytes_be(&self.to_be_bytes())
    }
}

impl From<u128> for Value {
    #[inline]
    fn from(number: u128) -> Value {
        Value(Limbs::Two([number as u64, (number >> 64) as u64]))
    }
}

impl From<&BigUint> for Value {
    fn from(number: &BigUint) -> Value {
        Value::from_limbs(&number.to_u64_digits())
    }
}

impl PartialEq<u128> for Value {
    fn eq(&self, other: &u128) -> bool {
        self.to_u128() == Some(*other)
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        let (a, b) = (self.limbs(), other.limbs());
        let by_length = a.len().cmp(&b.len());
        by_length.then_with(|| a.iter().rev().cmp(b.iter().rev()))
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl BitAnd for &Value {
    type Output = Value;

    fn bitand(self, mask: &Value) -> Value {
        match (&self.0, &mask.0) {
            (Limbs::Two([a, b]), Limbs::Two([c, d])) => Value(Limbs::Two([a & c, b & d])),
            _ => {
                let limbs = self.limbs().iter().zip(mask.limbs());
                let limbs: Vec<u64> = limbs.map(|(a, b)| a & b).collect();
                Value::from_limbs(&limbs)
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_u128() {
            Some(number) => fmt::Display::fmt(&number, f),
            None => fmt::Display::fmt(&self.big(), f),
        }
    }
}

impl fmt::LowerHex for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_u128() {
            Some(number) => fmt::LowerHex::fmt(&number, f),
            None => fmt::LowerHex::fmt(&self.big(), f),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_u128() {
            Some(number) => fmt::Debug::fmt(&number, f),
            None => write!(f, "{self:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::hash_map::DefaultHasher;
    use std::hash::{BuildHasher, BuildHasherDefault};

    /// Numbers of up to 320 bits: often with few set bits, often equal, often at the border between the two forms.
    fn number() -> impl Strategy<Value = BigUint> {
        prop_oneof![
            (0u8..4, 0u32..320).prop_map(|(n, at)| BigUint::from(n) << at),
            (124u32..132, 0u8..3).prop_map(|(at, less)| (BigUint::from(1u8) << at) - less),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(|b| BigUint::from_bytes_be(&b)),
        ]
    }

    fn ones(width: u32) -> BigUint {
        (BigUint::from(1u8) << width) - 1u8
    }

    #[test]
    fn numbers_that_fit_have_one_form_whatever_they_are_made_from() {
        let value = Value::from(5);
        assert_eq!(Value::from_limbs(&[5, 0, 0, 0]), value);
        assert_eq!(Value::from_be_bytes(&[0; 40]), Value::ZERO);
        assert_eq!(Value::from_be_bytes(&[]), Value::ZERO);
        assert_eq!(value, 5);
        assert_eq!(Value::ones(129).limbs(), [u64::MAX, u64::MAX, 1]);
        assert_eq!(Value::ones(128), u128::MAX);
        assert_eq!(Value::prefix(200, 0), Value::ZERO);
        assert_eq!(Value::prefix(200, 200), Value::ones(200));
        assert_eq!(size_of::<Value>(), 24);
    }

    #[test]
    fn digits_are_read_and_written() {
        for (digits, radix) in [("1f", 16), ("10", 2), ("4294967296", 10)] {
            let expected = u128::from_str_radix(digits, radix).unwrap();
            assert_eq!(Value::from_str_radix(digits, radix), Some(expected.into()));
        }
        let wide = Value::from_str_radix(&"f".repeat(64), 16).unwrap();
        assert_eq!(wide, Value::ones(256));
        assert_eq!(format!("{wide:#x}"), format!("0x{}", "f".repeat(64)));
        assert_eq!(Value::from_str_radix(&wide.to_string(), 10), Some(wide));
        let with = |end: &str| "9".repeat(60) + end;
        let signed = "+".to_owned() + &with("");
        for wrong in [
            "",
            "g",
            "1_0",
            "+5",
            "-5",
            "+",
            &signed,
            &with("_0"),
            &with("x"),
            &with("-"),
        ] {
            assert_eq!(Value::from_str_radix(wrong, 10), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_value_is_the_number_that_it_says(a in number(), b in number(), width in 0u32..320, len in 0u32..320) {
            let (x, y) = (Value::from(&a), Value::from(&b));
            prop_assert_eq!(x == y, a == b);
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            let state = BuildHasherDefault::<DefaultHasher>::default();
            prop_assert_eq!(state.hash_one(&x), state.hash_one(Value::from_be_bytes(&a.to_bytes_be())));
            prop_assert_eq!(u64::from(x.bits()), a.bits());
            prop_assert_eq!(x.fits(width), a <= ones(width));
            prop_assert_eq!(x.is_zero(), a == BigUint::ZERO);
            prop_assert_eq!(u64::from(x.count_ones()), a.count_ones());
            prop_assert_eq!(&x & &y, Value::from(&(&a & &b)));
            prop_assert_eq!(x.is_within(&y), &a & &b == a);
            prop_assert_eq!(x.to_u128(), u128::try_from(&a).ok());
            prop_assert_eq!(x.to::<u16>(), u16::try_from(&a).ok());
            prop_assert_eq!(x.to_be_bytes(), a.to_bytes_be());
            let padded = [&[0; 9][..], &a.to_bytes_be()].concat();
            prop_assert_eq!(&Value::from_be_bytes(&padded), &x);
            prop_assert_eq!(&Value::from_limbs(x.limbs()), &x);
            prop_assert_eq!(x.limb(2), a.iter_u64_digits().nth(2).unwrap_or(0));
            prop_assert_eq!(x.to_string(), a.to_string());
            prop_assert_eq!(format!("{x:x}"), format!("{a:x}"));
            prop_assert_eq!(Value::from_str_radix(&a.to_str_radix(16), 16), Some(x));
            prop_assert_eq!(Value::ones(width), Value::from(&ones(width)));
            let len = len.min(width);
            let prefix = ones(width) - ones(width - len);
            prop_assert_eq!(Value::prefix(width, len), Value::from(&prefix));
        }
    }
}
