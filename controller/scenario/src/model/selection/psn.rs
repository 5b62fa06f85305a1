//! `psn: {at: 3, round: 1}`: selects data packets of RDMA connections by sequence number and round.

use std::fmt;
use std::ops::RangeInclusive;

use parser_gen::psn::PsnPosition;

/// A selection of RDMA data packets by their position in their connection: sequence number and round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Psn {
    /// The selected sequence numbers, relative to the first one of the connection.
    pub at: Ranges,
    /// The selected rounds. A round is an unbroken run of sequence numbers in the connection; rounds are counted from 1.
    pub rounds: Ranges,
}

impl Psn {
    /// Whether the packet at this position is selected.
    #[must_use]
    pub fn fires_at(&self, place: PsnPosition) -> bool {
        self.at.contains(place.relative) && self.rounds.contains(place.round)
    }

    /// Whether another selection selects every packet that this one selects.
    #[must_use]
    pub fn is_within(&self, outer: &Psn) -> bool {
        self.at.is_within(&outer.at) && self.rounds.is_within(&outer.rounds)
    }

    /// Number of selected packets among a connection's first 2²⁴, without READ responses; `None` if the rounds have no end.
    #[must_use]
    pub fn packets(&self) -> Option<u64> {
        let packets = self.at.count()?.checked_mul(self.rounds.count()?);
        Some(packets.unwrap_or(u64::MAX))
    }
}

/// A set of numbers, as ascending, disjoint, non-adjacent ranges. A range that ends with `u32::MAX` has no end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges(Vec<RangeInclusive<u32>>);

impl Ranges {
    /// Builds the set from ranges in any order.
    #[must_use]
    pub fn new(ranges: impl IntoIterator<Item = RangeInclusive<u32>>) -> Ranges {
        let mut ranges: Vec<RangeInclusive<u32>> = ranges.into_iter().collect();
        ranges.sort_unstable_by_key(|range| *range.start());
        let mut joined: Vec<RangeInclusive<u32>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*range.end().max(last.end());
                }
                _ => joined.push(range),
            }
        }
        Ranges(joined)
    }

    /// The ranges of numbers, ascending.
    #[must_use]
    pub fn as_slice(&self) -> &[RangeInclusive<u32>] {
        &self.0
    }

    /// Whether the set contains a number.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        let after = self.0.partition_point(|range| *range.end() < number);
        self.0
            .get(after)
            .is_some_and(|range| range.contains(&number))
    }

    fn is_within(&self, outer: &Ranges) -> bool {
        self.0.iter().all(|range| {
            let mut around = outer.0.iter();
            around.any(|outer| outer.start() <= range.start() && range.end() <= outer.end())
        })
    }

    /// How many numbers the set contains; `None` if the last range has no end.
    fn count(&self) -> Option<u64> {
        let has_end = self.0.last().is_none_or(|range| *range.end() < u32::MAX);
        let counts = self.0.iter();
        has_end.then(|| {
            counts
                .map(|range| u64::from(range.end() - range.start()) + 1)
                .sum()
        })
    }

    fn is_one(&self) -> bool {
        self.count() == Some(1)
    }
}

/// For users: `3`, `0 to 2, 7`, `from 2 on`.
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, range) in self.0.iter().enumerate() {
            if position == super::counted::MAX_SHOWN {
                return f.write_str(", …");
            }
            let comma = if position == 0 { "" } else { ", " };
            match (*range.start(), *range.end()) {
                (low, high) if low == high => write!(f, "{comma}{low}")?,
                (low, u32::MAX) => write!(f, "{comma}from {low} on")?,
                (low, high) => write!(f, "{comma}{low} to {high}")?,
            }
        }
        Ok(())
    }
}

/// For users: `PSN 3 in round 1`, `PSNs 0 to 4, 9 in rounds from 2 on`.
impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |ranges: &Ranges| if ranges.is_one() { "" } else { "s" };
        let (psns, rounds) = (plural(&self.at), plural(&self.rounds));
        write!(f, "PSN{psns} {} in round{rounds} {}", self.at, self.rounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn psn(at: &[RangeInclusive<u32>], rounds: &[RangeInclusive<u32>]) -> Psn {
        Psn {
            at: Ranges::new(at.iter().cloned()),
            rounds: Ranges::new(rounds.iter().cloned()),
        }
    }

    #[test]
    fn places_are_told_in_few_words() {
        let one = psn(&[3..=3], &[1..=1]);
        assert_eq!(one.to_string(), "PSN 3 in round 1");
        assert_eq!(one.packets(), Some(1));
        let many = psn(&[9..=9, 0..=2, 3..=4], &[2..=u32::MAX]);
        assert_eq!(many.to_string(), "PSNs 0 to 4, 9 in rounds from 2 on");
        assert_eq!(many.packets(), None);
    }

    #[test]
    fn both_have_to_fit() {
        let some = psn(&[3..=5, 9..=9], &[1..=2]);
        let fires = |relative, round| some.fires_at(PsnPosition { relative, round });
        assert!(fires(3, 1) && fires(9, 2));
        assert!(!fires(6, 1) && !fires(3, 3) && !fires(0, 1));
        assert!(psn(&[4..=5], &[2..=2]).is_within(&some));
        assert!(!psn(&[5..=9], &[2..=2]).is_within(&some));
        assert!(!psn(&[4..=5], &[2..=3]).is_within(&some));
    }
}
