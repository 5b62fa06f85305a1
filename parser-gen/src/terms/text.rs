//! Comparisons of texts as terms: constraints on the bytes of a text, and on where it ends.

use super::{MatchKey, Ranges, Term, bit, max_of, number_before};
use crate::filter::{Test, TextPattern};
use crate::library::{Kind, Library, ProtocolId};

/// Text element of a message, as a filter compares it.
pub(super) struct TextField<'a> {
    id: ProtocolId,
    index: usize,
    kind: &'a Kind,
    ignore_case: bool,
    /// Index of the message's number that holds the text's length, and the number's largest value.
    number: (usize, u128),
}

impl<'a> TextField<'a> {
    pub fn new(library: &'a Library, id: ProtocolId, index: usize, test: &Test) -> TextField<'a> {
        let number = number_before(library, id, index);
        TextField {
            id,
            index,
            kind: &library.protocols[id].elements()[index].kind,
            ignore_case: test.ignore_case,
            number: (number, max_of(library, id, number)),
        }
    }

    /// Terms that hold if a text equals the pattern, given that the packet has the text.
    pub fn equal(&self, pattern: &TextPattern) -> Vec<Term> {
        let length = pattern.bytes.len();
        match self.kind {
            Kind::Fixed(all) if pattern.prefix || length == *all => {
                vec![self.bytes(pattern, *all).collect()]
            }
            Kind::Counted {
                walked: true, max, ..
            } => {
                let last = if pattern.prefix { *max } else { length };
                let term = |all: usize| {
                    let mut term: Term = self.counted(all, all).into_iter().collect();
                    term.extend(self.bytes(pattern, all));
                    term
                };
                (length..=last).map(term).collect()
            }
            Kind::Counted { .. } => {
                let last = if pattern.prefix { usize::MAX } else { length };
                let mut term: Term = self.counted(length, last).into_iter().collect();
                term.extend(self.at_least(length, true));
                term.extend(self.bytes(pattern, 0));
                vec![term]
            }
            Kind::Until { ends, .. } => {
                let mut term: Term = self.bytes(pattern, 0).collect();
                term.extend(self.at_least(length + usize::from(!pattern.prefix), true));
                if !pattern.prefix {
                    term.extend(ends_at(ends).map(|ends| (self.byte(0, length), ends)));
                }
                vec![term]
            }
            _ => Vec::new(),
        }
    }

    /// Terms that hold if a text differs from the pattern, given that the packet has the text.
    pub fn differs(&self, pattern: &TextPattern) -> Vec<Term> {
        let length = pattern.bytes.len();
        let mut terms: Vec<Term> = Vec::new();
        match self.kind {
            Kind::Fixed(all) if pattern.prefix || length == *all => {
                terms.extend(self.other_bytes(pattern, *all));
            }
            Kind::Counted {
                walked: true, max, ..
            } => {
                let last = if pattern.prefix { *max } else { length };
                terms.extend(
                    self.not_counted(length, last)
                        .map(|term| Term::from([term])),
                );
                for all in length..=last {
                    for mut term in self.other_bytes(pattern, all) {
                        term.extend(self.counted(all, all));
                        terms.push(term);
                    }
                }
            }
            Kind::Counted { .. } => {
                let last = if pattern.prefix { usize::MAX } else { length };
                terms.extend(
                    self.not_counted(length, last)
                        .map(|term| Term::from([term])),
                );
                terms.extend(self.at_least(length, false).map(|term| Term::from([term])));
                for mut term in self.other_bytes(pattern, 0) {
                    term.extend(self.at_least(length, true));
                    terms.push(term);
                }
            }
            Kind::Until { ends, .. } => {
                let read = length + usize::from(!pattern.prefix);
                terms.extend(self.at_least(read, false).map(|term| Term::from([term])));
                for mut term in self.other_bytes(pattern, 0) {
                    term.extend(self.at_least(read, true));
                    terms.push(term);
                }
                let goes_on = ends_at(ends).and_then(|ends| ends.complement(0xff));
                if let Some(goes_on) = goes_on.filter(|_| !pattern.prefix) {
                    let mut term: Term = self.bytes(pattern, 0).collect();
                    term.extend(self.at_least(read, true));
                    term.insert(self.byte(0, length), goes_on);
                    terms.push(term);
                }
            }
            _ => terms.push(Term::new()),
        }
        terms
    }

    fn byte(&self, all: usize, index: usize) -> MatchKey {
        MatchKey::Byte(self.id, self.index, all, index)
    }

    /// Constraint that at least `count` bytes of the text are present (`are`) or not; `None` for 0 bytes, which always are.
    fn at_least(&self, count: usize, are: bool) -> Option<(MatchKey, Ranges)> {
        (count > 0).then(|| bit(MatchKey::AtLeast(self.id, self.index, count), are))
    }

    /// Values of the number that holds the text's length, for text lengths from `first` to `last`.
    fn values(&self, first: usize, last: usize) -> Option<Ranges> {
        let less = match self.kind {
            Kind::Counted { less, .. } => u128::from(*less),
            _ => 0,
        };
        let max = self.number.1;
        let last = if last == usize::MAX {
            max
        } else {
            max.min(last as u128 + less)
        };
        let first = first as u128 + less;
        (first <= last)
            .then(|| Ranges::new(vec![first..=last]))
            .flatten()
    }

    fn counted(&self, first: usize, last: usize) -> Option<(MatchKey, Ranges)> {
        let values = self.values(first, last)?;
        Some((MatchKey::Field(self.id, self.number.0), values))
    }

    fn not_counted(&self, first: usize, last: usize) -> Option<(MatchKey, Ranges)> {
        let key = MatchKey::Field(self.id, self.number.0);
        let max = self.number.1;
        match self.values(first, last) {
            Some(values) => values.complement(max).map(|values| (key, values)),
            None => Ranges::new(vec![0..=max]).map(|values| (key, values)),
        }
    }

    /// Constraints by which the bytes of a text of length `all` equal the pattern.
    fn bytes(&self, pattern: &TextPattern, all: usize) -> impl Iterator<Item = (MatchKey, Ranges)> {
        let bytes = pattern.bytes.iter().enumerate();
        bytes
            .map(move |(index, byte)| (self.byte(all, index), either_case(*byte, self.ignore_case)))
    }

    /// Terms for texts of length `all` that equal the pattern up to some byte, and differ from it in that byte.
    fn other_bytes(&self, pattern: &TextPattern, all: usize) -> Vec<Term> {
        let equal: Vec<_> = self.bytes(pattern, all).collect();
        let differs_at = |(index, (key, values)): (usize, &(MatchKey, Ranges))| {
            let mut term: Term = equal[..index].iter().cloned().collect();
            term.insert(*key, values.complement(0xff)?);
            Some(term)
        };
        equal.iter().enumerate().filter_map(differs_at).collect()
    }
}

/// The set of this byte; if the case of letters is ignored, of both cases of a letter.
fn either_case(byte: u8, ignore_case: bool) -> Ranges {
    let (lower, upper) = (byte.to_ascii_lowercase(), byte.to_ascii_uppercase());
    let (lower, upper) = (u128::from(lower), u128::from(upper));
    ignore_case
        .then(|| Ranges::new(vec![upper..=upper, lower..=lower]))
        .flatten()
        .unwrap_or_else(|| Ranges::single(u128::from(byte)))
}

fn ends_at(ends: &[u8]) -> Option<Ranges> {
    Ranges::new(
        ends.iter()
            .map(|end| u128::from(*end)..=u128::from(*end))
            .collect(),
    )
}
