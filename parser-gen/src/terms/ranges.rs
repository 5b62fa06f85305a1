//! Sets of values of one match key: sorted ranges that neither overlap nor touch.

use std::ops::RangeInclusive;

use crate::filter::typing::merged;

/// Values that a term allows for a match key. Never empty; it contains all values of the key only if a filter says so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ranges(Vec<(u128, u128)>);

impl Ranges {
    /// The set of this one value.
    pub fn single(value: u128) -> Ranges {
        Ranges(vec![(value, value)])
    }

    /// Union of ranges; `None` if the union is empty.
    pub fn new(ranges: Vec<RangeInclusive<u128>>) -> Option<Ranges> {
        let ranges: Vec<(u128, u128)> = merged(ranges)
            .iter()
            .map(|range| (*range.start(), *range.end()))
            .collect();
        (!ranges.is_empty()).then_some(Ranges(ranges))
    }

    /// Lowest and highest value of each range of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u128, u128)> {
        self.0.iter().copied()
    }

    pub fn contains(&self, value: u128) -> bool {
        self.iter().any(|(low, high)| (low..=high).contains(&value))
    }

    /// Whether the set contains `value` and no other value.
    pub fn is(&self, value: u128) -> bool {
        self.0 == [(value, value)]
    }

    /// Intersection of both sets; `None` if it is empty.
    pub fn and(&self, other: &Ranges) -> Option<Ranges> {
        let mut both = Vec::new();
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&&(low, high)), Some(&&(from, to))) = (a.peek(), b.peek()) {
            if low.max(from) <= high.min(to) {
                both.push((low.max(from), high.min(to)));
            }
            if high < to {
                a.next();
            } else {
                b.next();
            }
        }
        (!both.is_empty()).then_some(Ranges(both))
    }

    /// Whether `other` contains every value of this set.
    pub fn is_within(&self, other: &Ranges) -> bool {
        self.iter()
            .all(|(low, high)| other.iter().any(|(from, to)| from <= low && high <= to))
    }

    /// Complement of the set, up to the largest value `max` of the key; `None` if it is empty.
    pub fn complement(&self, max: u128) -> Option<Ranges> {
        let mut outside = Vec::new();
        let mut from = Some(0);
        for (low, high) in self.iter() {
            if let Some(from) = from.filter(|from| *from < low) {
                outside.push((from, low - 1));
            }
            from = high.checked_add(1).filter(|next| *next <= max);
        }
        outside.extend(from.map(|from| (from, max)));
        (!outside.is_empty()).then_some(Ranges(outside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(of: &[(u128, u128)]) -> Ranges {
        Ranges::new(of.iter().map(|(low, high)| *low..=*high).collect()).expect("not empty")
    }

    #[test]
    fn sets() {
        let a = ranges(&[(1, 3), (5, 5), (10, 20)]);
        let b = ranges(&[(3, 4), (5, 11), (15, 16), (20, 30)]);
        let both = ranges(&[(3, 3), (5, 5), (10, 11), (15, 16), (20, 20)]);
        assert_eq!(a.and(&b), Some(both.clone()));
        assert_eq!(b.and(&a), Some(both.clone()));
        assert!(both.is_within(&a) && both.is_within(&b) && !a.is_within(&b));
        let outside = a.complement(31).expect("some");
        assert_eq!(outside, ranges(&[(0, 0), (4, 4), (6, 9), (21, 31)]));
        assert_eq!(a.and(&outside), None);
        assert_eq!(ranges(&[(0, 31)]).complement(31), None);
        assert_eq!(ranges(&[(0, u128::MAX)]).complement(u128::MAX), None);
        assert!(a.contains(2) && !a.contains(4));
    }
}
