//! Texts as terms: command names and keys, which the parser spreads over several headers.

use std::ops::RangeInclusive;

use super::{Constraint, MatchKey, Term, bit, complement, single, ternary_complement};
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

    /// Value and mask of the pattern in a text of `length` bytes.
    fn bits(&self, pattern: &TextPattern, length: usize) -> (u128, u128) {
        let (mut value, mut mask) = (0, 0);
        for index in 0..length {
            let (byte, bits) = match pattern.bytes.get(index) {
                None => (0, 0u8),
                // The bit that tells ASCII letters' cases apart.
                Some(byte) if self.test.ignore_case && byte.is_ascii_alphabetic() => {
                    (byte & 0xdf, 0xdf)
                }
                Some(byte) => (*byte, 0xff),
            };
            value = value << 8 | u128::from(byte);
            mask = mask << 8 | u128::from(bits);
        }
        (value, mask)
    }
}

impl TextKeys for Command<'_> {
    fn present(&self) -> Term {
        Term::from([bit(MatchKey::Present(self.protocol), true)])
    }

    fn equal(&self, pattern: &TextPattern) -> Vec<Term> {
        self.lengths(pattern)
            .map(|length| {
                let (value, mask) = self.bits(pattern, length);
                let mut term = Term::from([bit(MatchKey::CommandLength(length), true)]);
                if mask != 0 {
                    term.insert(
                        MatchKey::Command(length),
                        Constraint::Ternary { value, mask },
                    );
                }
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
            let (value, mask) = self.bits(pattern, length);
            for constraint in ternary_complement(value, mask) {
                terms.push(Term::from([
                    bit(MatchKey::CommandLength(length), true),
                    (MatchKey::Command(length), constraint),
                ]));
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
                let value = u128::from(*byte);
                for range in complement(&[value..=value], 8) {
                    let (low, high) = (*range.start(), *range.end());
                    let mut term: Term = key_length_bytes(&digits[..index]).collect();
                    term.insert(
                        MatchKey::KeyLengthByte(index),
                        Constraint::Range { low, high },
                    );
                    term.extend([bit(MatchKey::KeyPresent, true)]);
                    terms.push(term);
                }
            }
        }
        // Of a text of the pattern's own length, so that the terms of patterns of several lengths exclude each other.
        for (index, byte) in pattern.bytes.iter().enumerate() {
            for constraint in ternary_complement(u128::from(*byte), 0xff) {
                let mut term = Self::length(pattern);
                term.extend(key_bytes(&pattern.bytes[..index]));
                term.insert(MatchKey::KeyByte(index), constraint);
                terms.push(term);
            }
        }
        terms
    }
}

fn key_bytes(bytes: &[u8]) -> impl Iterator<Item = (MatchKey, Constraint)> {
    bytes.iter().enumerate().map(|(index, byte)| {
        (
            MatchKey::KeyByte(index),
            Constraint::Ternary {
                value: u128::from(*byte),
                mask: 0xff,
            },
        )
    })
}

fn key_length_bytes(digits: &[u8]) -> impl Iterator<Item = (MatchKey, Constraint)> {
    digits
        .iter()
        .enumerate()
        .map(|(index, byte)| (MatchKey::KeyLengthByte(index), single(u128::from(*byte))))
}
