//! Sets of values that a field may have: the values that a test permits, and intersections of such sets.

use std::ops::RangeInclusive;

use parser_gen::filter::{Test, TextPattern, ValueSet};

/// The set of values that a field of a packet may have.
#[derive(Debug, Clone)]
pub(super) enum Values {
    Numbers(Vec<RangeInclusive<u128>>),
    Texts {
        /// The text must match one of these patterns; `None`: any text is permitted.
        any_of: Option<Vec<TextPattern>>,
        none_of: Vec<TextPattern>,
    },
}

impl Values {
    /// The values of a field that a test permits, or its negation if `positive` is false.
    pub(super) fn from_test(test: &Test, positive: bool) -> Values {
        // `!=` requires the field to be present; `!(==)` does not. The sets of values are equal.
        let inside = positive != test.negated;
        match &test.set {
            ValueSet::Numbers(ranges) if inside => Values::Numbers(ranges.clone()),
            ValueSet::Numbers(ranges) => Values::Numbers(complement(ranges)),
            ValueSet::Texts(patterns) => {
                let fold = |pattern: &TextPattern| TextPattern {
                    bytes: if test.ignore_case {
                        pattern.bytes.to_ascii_uppercase()
                    } else {
                        pattern.bytes.clone()
                    },
                    prefix: pattern.prefix,
                };
                let patterns: Vec<_> = patterns.iter().map(fold).collect();
                if inside {
                    Values::Texts {
                        any_of: Some(patterns),
                        none_of: Vec::new(),
                    }
                } else {
                    Values::Texts {
                        any_of: None,
                        none_of: patterns,
                    }
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Numbers(ranges) => ranges.is_empty(),
            Self::Texts { any_of: None, .. } => false,
            Self::Texts {
                any_of: Some(any_of),
                none_of,
            } => any_of
                .iter()
                .all(|pattern| none_of.iter().any(|excluded| covers(excluded, pattern))),
        }
    }

    /// The number, if the set contains exactly one number and nothing else; otherwise `None`.
    pub(super) fn only(&self) -> Option<u128> {
        match self {
            Self::Numbers(ranges) => match ranges.as_slice() {
                [one] if one.start() == one.end() => Some(*one.start()),
                _ => None,
            },
            Self::Texts { .. } => None,
        }
    }

    /// Whether the set may contain this number; always true for a set of texts.
    pub(super) fn may_be(&self, number: u128) -> bool {
        match self {
            Self::Numbers(ranges) => ranges.iter().any(|range| range.contains(&number)),
            Self::Texts { .. } => true,
        }
    }

    /// The values that are in both sets.
    pub(super) fn and(self, other: Values) -> Values {
        match (self, other) {
            (Values::Numbers(a), Values::Numbers(b)) => {
                let pairs = a.iter().flat_map(|a| {
                    b.iter()
                        .map(move |b| (*a.start()).max(*b.start())..=(*a.end()).min(*b.end()))
                });
                Values::Numbers(pairs.filter(|range| !range.is_empty()).collect())
            }
            (
                Values::Texts {
                    any_of: a,
                    none_of: mut c,
                },
                Values::Texts {
                    any_of: b,
                    none_of: d,
                },
            ) => {
                c.extend(d);
                let any_of = match (a, b) {
                    (None, other) | (other, None) => other,
                    (Some(a), Some(b)) => Some(meet(&a, &b)),
                };
                Values::Texts { any_of, none_of: c }
            }
            // A field has one type, so either set serves.
            (a, _) => a,
        }
    }
}

/// The texts that both lists of patterns permit. Of each two patterns that can match the same text, the narrower one is kept.
fn meet(a: &[TextPattern], b: &[TextPattern]) -> Vec<TextPattern> {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
    pairs
        .filter_map(|(a, b)| {
            if covers(a, b) {
                Some(b.clone())
            } else {
                covers(b, a).then(|| a.clone())
            }
        })
        .collect()
}

/// Whether every text that matches the pattern `narrow` also matches `wide`.
fn covers(wide: &TextPattern, narrow: &TextPattern) -> bool {
    if wide.prefix {
        narrow.bytes.starts_with(&wide.bytes)
    } else {
        !narrow.prefix && wide.bytes == narrow.bytes
    }
}

fn complement(ranges: &[RangeInclusive<u128>]) -> Vec<RangeInclusive<u128>> {
    let mut gaps = Vec::new();
    let mut next = Some(0);
    for range in ranges {
        if let Some(start) = next.filter(|start| start < range.start()) {
            gaps.push(start..=range.start() - 1);
        }
        next = range.end().checked_add(1);
    }
    gaps.extend(next.map(|start| start..=u128::MAX));
    gaps
}
