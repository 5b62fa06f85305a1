//! Texts as terms: command names and keys, which the parser spreads over several headers.

use std::ops::RangeInclusive;

use super::{MatchKey, Ranges, Term, bit};
use crate::filter::{Test, TextPattern};
use crate::library::ProtocolId;

/// How a text field's patterns become terms.
pub(super) trait TextKeys {
    /// The field is there.
    fn present(&self) -> Term;
    /// The text is the pattern's.
    fn equal(&self, pattern: &TextPattern) -> Vec<Term>;
    /// Given that the field is there, the text is not the pattern's.
    fn differs(&self, pattern: &TextPattern) -> Vec<Term>;
}

/// Command names: one header per length.
pub(super) struct Command<'a> {
    pub protocol: ProtocolId,
    /// Longest name read, in bytes.
    pub max: usize,
    pub test: &'a Test,
}

impl Command<'_> {
    fn lengths(&self, pattern: &TextPattern) -> RangeInclusive<usize> {
        let length = pattern.bytes.len();
        // No command name is empty.
        length.max(1)..=if pattern.prefix { self.max } else { length }
    }

    /// What the first `count` bytes of a name of `length` bytes have to be.
    fn bytes(
        &self,
        pattern: &TextPattern,
        length: usize,
        count: usize,
    ) -> impl Iterator<Item = (MatchKey, Ranges)> {
        let bytes = pattern.bytes.iter().take(count.min(length)).enumerate();
        bytes.map(move |(index, byte)| {
            let values = either_case(*byte, self.test.ignore_case);
            (MatchKey::CommandByte(length, index), values)
        })
    }
}

/// The byte; or, if letters' cases do not count, both of a letter.
fn either_case(byte: u8, ignore_case: bool) -> Ranges {
    let (lower, upper) = (byte.to_ascii_lowercase(), byte.to_ascii_uppercase());
    let (lower, upper) = (u128::from(lower), u128::from(upper));
    ignore_case
        .then(|| Ranges::of(vec![upper..=upper, lower..=lower]))
        .flatten()
        .unwrap_or_else(|| Ranges::single(u128::from(byte)))
}

impl TextKeys for Command<'_> {
    fn present(&self) -> Term {
        Term::from([bit(MatchKey::Present(self.protocol), true)])
    }

    fn equal(&self, pattern: &TextPattern) -> Vec<Term> {
        self.lengths(pattern)
            .map(|length| {
                let mut term = Term::from([bit(MatchKey::CommandLength(length), true)]);
                term.extend(self.bytes(pattern, length, pattern.bytes.len()));
                term
            })
            .collect()
    }

    fn differs(&self, pattern: &TextPattern) -> Vec<Term> {
        let mut other_length = Term::new();
        let mut terms = Vec::new();
        for length in self.lengths(pattern) {
            let (key, absent) = bit(MatchKey::CommandLength(length), false);
            other_length.insert(key, absent);
            // Equal up to a byte, and different there.
            let equal: Vec<_> = self.bytes(pattern, length, pattern.bytes.len()).collect();
            for (index, (key, values)) in equal.iter().enumerate() {
                let mut term = Term::from([bit(MatchKey::CommandLength(length), true)]);
                term.extend(equal[..index].iter().cloned());
                term.extend(values.complement(8).map(|values| (*key, values)));
                terms.push(term);
            }
        }
        terms.insert(0, other_length);
        terms
    }
}

/// Keys: as many bytes as a pattern has, and the length as it is written.
pub(super) struct RespKey {
    pub protocol: ProtocolId,
}

impl RespKey {
    /// The key has the pattern's length, or at least that.
    fn length(pattern: &TextPattern) -> Term {
        let length = pattern.bytes.len();
        let long_enough = if length == 0 {
            MatchKey::KeyPresent
        } else {
            MatchKey::KeyAtLeast(length)
        };
        let mut term = Term::from([bit(long_enough, true)]);
        if !pattern.prefix {
            term.extend(key_length_bytes(&length_bytes(length)));
        }
        term
    }
}

/// The bytes after the marker: the digits and, as far as there is room in three bytes, CR LF.
fn length_bytes(length: usize) -> Vec<u8> {
    let mut bytes = format!("{length}\r\n").into_bytes();
    bytes.truncate(3);
    bytes
}

impl TextKeys for RespKey {
    fn present(&self) -> Term {
        Term::from([
            bit(MatchKey::Present(self.protocol), true),
            bit(MatchKey::KeyPresent, true),
        ])
    }

    fn equal(&self, pattern: &TextPattern) -> Vec<Term> {
        let mut term = Self::length(pattern);
        term.extend(key_bytes(&pattern.bytes));
        vec![term]
    }

    fn differs(&self, pattern: &TextPattern) -> Vec<Term> {
        let length = pattern.bytes.len();
        let mut terms = Vec::new();
        if length > 0 {
            terms.push(Term::from([bit(MatchKey::KeyAtLeast(length), false)]));
        }
        if !pattern.prefix {
            let digits = length_bytes(length);
            for (index, byte) in digits.iter().enumerate() {
                let mut term: Term = key_length_bytes(&digits[..index]).collect();
                let other = Ranges::single(u128::from(*byte)).complement(8);
                term.extend(other.map(|values| (MatchKey::KeyLengthByte(index), values)));
                term.extend([bit(MatchKey::KeyPresent, true)]);
                terms.push(term);
            }
        }
        // Of a text of the pattern's own length, so that the terms of patterns of several lengths exclude each other.
        for (index, byte) in pattern.bytes.iter().enumerate() {
            let mut term = Self::length(pattern);
            term.extend(key_bytes(&pattern.bytes[..index]));
            let other = Ranges::single(u128::from(*byte)).complement(8);
            term.extend(other.map(|values| (MatchKey::KeyByte(index), values)));
            terms.push(term);
        }
        terms
    }
}

fn key_bytes(bytes: &[u8]) -> impl Iterator<Item = (MatchKey, Ranges)> {
    let keys = (0..).map(MatchKey::KeyByte);
    keys.zip(bytes.iter().map(|byte| Ranges::single(u128::from(*byte))))
}

fn key_length_bytes(digits: &[u8]) -> impl Iterator<Item = (MatchKey, Ranges)> {
    let keys = (0..).map(MatchKey::KeyLengthByte);
    keys.zip(digits.iter().map(|byte| Ranges::single(u128::from(*byte))))
}
