//! Selections that select packets by ordinal, such as every fifth: they count packets and draw no random words.

use std::fmt;
use std::ops::RangeInclusive;

/// Maximum number of ordinals that [`Counted::is_within`] compares.
const MAX_COMPARED: u64 = 65_536;

/// A selection by ordinal. It is stored as *indexes*: an index is an ordinal less one, and restarts at 0 after `cycle` packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Number of packets after which counting restarts at 0; 0: counting never restarts, but is modulo 2³².
    cycle: u32,
    /// Indexes of the selected packets: ranges that are ascending, disjoint and not adjacent.
    fires: Vec<RangeInclusive<u32>>,
}

impl Counted {
    /// Selects the packet with the ordinal n, and no other packet.
    #[must_use]
    pub fn nth(n: u32) -> Counted {
        Counted::once([n..=n])
    }

    /// Selects the packets with the ordinals n, 2n, 3n …
    #[must_use]
    pub fn every(n: u32) -> Counted {
        Counted::from_ordinals(n, [n..=n])
    }

    /// Selects the first n packets of a flow.
    #[must_use]
    pub fn first(n: u32) -> Counted {
        Counted::once([1..=n])
    }

    /// Selects all packets of a flow except the first n.
    #[must_use]
    pub fn after(n: u32) -> Counted {
        Counted {
            cycle: 0,
            fires: vec![n..=u32::MAX],
        }
    }

    /// Selects the packets with these ordinals; a range `n..=u32::MAX` has no end.
    #[must_use]
    pub fn once(ordinals: impl IntoIterator<Item = RangeInclusive<u32>>) -> Counted {
        Counted::from_ordinals(0, ordinals)
    }

    /// Selects the `length` packets from the ordinal `start` on. This repeats with each further `every` packets, unless `every`
    /// is 0. The first burst must end within `every` packets.
    #[must_use]
    pub fn burst(start: u32, length: u32, every: u32) -> Counted {
        let end = start.saturating_add(length.saturating_sub(1));
        Counted::from_ordinals(every, std::iter::once(start..=end))
    }

    /// Selects the packets whose element in the pattern is true; the pattern repeats.
    #[must_use]
    pub fn pattern(pattern: &[bool]) -> Counted {
        let ordinals = (1..).zip(pattern).filter(|(_, fires)| **fires);
        Counted::from_ordinals(pattern.len() as u32, ordinals.map(|(n, _)| n..=n))
    }

    fn from_ordinals(
        cycle: u32,
        ordinals: impl IntoIterator<Item = RangeInclusive<u32>>,
    ) -> Counted {
        let mut ranges: Vec<(u32, u32)> = ordinals
            .into_iter()
            .filter(|range| *range.end() > 0 && !range.is_empty())
            .map(|range| {
                let has_end = *range.end() < u32::MAX || range.start() == range.end();
                let last = range.end() - u32::from(has_end);
                (range.start().saturating_sub(1), last)
            })
            .collect();
        ranges.sort_unstable();
        let mut fires: Vec<RangeInclusive<u32>> = Vec::new();
        for (low, high) in ranges {
            match fires.last_mut() {
                Some(last) if low <= last.end().saturating_add(1) => {
                    *last = *last.start()..=high.max(*last.end());
                }
                _ => fires.push(low..=high),
            }
        }
        Counted { cycle, fires }
    }

    /// The index after which counting restarts at 0: `cycle` less one, or `u32::MAX` without a cycle.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.cycle.wrapping_sub(1)
    }

    /// Indexes of the selected packets: ranges that are ascending, disjoint and not adjacent.
    #[must_use]
    pub fn fires(&self) -> &[RangeInclusive<u32>] {
        &self.fires
    }

    /// The index of the selected packet, if exactly one index is selected; otherwise `None`.
    #[must_use]
    pub fn only_index(&self) -> Option<u32> {
        match self.fires.as_slice() {
            [one] if one.start() == one.end() => Some(*one.start()),
            _ => None,
        }
    }

    /// The ordinal of the first selected packet; `None` if no packet is selected.
    #[must_use]
    pub fn first_ordinal(&self) -> Option<u64> {
        self.fires
            .first()
            .map(|range| u64::from(*range.start()) + 1)
    }

    /// Whether every packet is selected.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.fires == [0..=self.last()]
    }

    /// Whether the packet with this index within a cycle is selected.
    #[must_use]
    pub fn fires_at(&self, index: u32) -> bool {
        let after = self.fires.partition_point(|range| *range.end() < index);
        self.fires
            .get(after)
            .is_some_and(|range| range.contains(&index))
    }

    /// The smallest set of ternary keys, each a value and a mask, that matches exactly the selected indexes.
    #[must_use]
    pub fn keys(&self) -> Vec<(u32, u32)> {
        self.fires.iter().cloned().flat_map(prefixes).collect()
    }

    /// Whether the selection `outer` selects every packet that this one selects; may be false if that is expensive to decide.
    #[must_use]
    pub fn is_within(&self, outer: &Counted) -> bool {
        let Some(first) = self.fires.first() else {
            return true;
        };
        if outer.is_all() {
            return true;
        }
        let fits = |ordinal: u64| match outer.cycle {
            0 => u32::try_from(ordinal).is_ok_and(|index| outer.fires_at(index)),
            cycle => outer.fires_at((ordinal % u64::from(cycle)) as u32),
        };
        match (self.cycle, outer.cycle) {
            (0, 0) => self.fires.iter().all(|range| {
                let mut around = outer.fires.iter();
                around.any(|outer| outer.start() <= range.start() && range.end() <= outer.end())
            }),
            // The inner list repeats forever.
            (_, 0) => outer.fires.last() == Some(&(*first.start()..=u32::MAX)),
            (inner, _) => {
                let cycles = match inner {
                    0 => 1,
                    inner => lcm(inner, outer.cycle) / u64::from(inner),
                };
                let sizes = self
                    .fires
                    .iter()
                    .map(|r| u64::from(r.end() - r.start()) + 1);
                let compared = sizes.fold(0, u64::saturating_add).saturating_mul(cycles);
                compared <= MAX_COMPARED
                    && (0..cycles).all(|cycle| {
                        let mut indexes = self.fires.iter().cloned().flatten();
                        indexes.all(|index| fits(cycle * u64::from(inner) + u64::from(index)))
                    })
            }
        }
    }
}

fn lcm(a: u32, b: u32) -> u64 {
    let (mut x, mut y) = (u64::from(a), u64::from(b));
    while y != 0 {
        (x, y) = (y, x % y);
    }
    u64::from(a) / x.max(1) * u64::from(b)
}

/// The smallest set of prefixes, each a value and a mask, that covers a range of indexes, in ascending order.
fn prefixes(range: RangeInclusive<u32>) -> Vec<(u32, u32)> {
    let (mut low, high) = (u64::from(*range.start()), u64::from(*range.end()));
    let mut found = Vec::new();
    while low <= high {
        let aligned = low.trailing_zeros().min(32);
        let fitting = (high - low + 1).ilog2();
        let size = 1_u64 << aligned.min(fitting);
        found.push((low as u32, !((size - 1) as u32)));
        low += size;
    }
    found
}

/// For users: `the 3rd`, `every 5th`, `the first 2`, `all after 10`, `1, 4 to 6`, `3 to 5 of every 10`.
impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ordinal = |index: &u32| u64::from(*index) + 1;
        match (self.cycle, self.fires.as_slice()) {
            (_, []) => return f.write_str("none"),
            (0, [one]) if one.start() == one.end() => {
                let n = ordinal(one.start());
                return write!(f, "the {n}{}", suffix(n));
            }
            (0, [one]) if *one.end() == u32::MAX => return write!(f, "all after {}", one.start()),
            (0, [one]) if *one.start() == 0 => {
                return write!(f, "the first {}", ordinal(one.end()));
            }
            (cycle, [one])
                if cycle != 0 && one.start() == one.end() && *one.end() == self.last() =>
            {
                return write!(f, "every {cycle}{}", suffix(u64::from(cycle)));
            }
            _ => {}
        }
        for (position, range) in self.fires.iter().enumerate() {
            if position == MAX_SHOWN {
                f.write_str(", …")?;
                break;
            }
            let comma = if position == 0 { "" } else { ", " };
            match (ordinal(range.start()), ordinal(range.end())) {
                (low, high) if low == high => write!(f, "{comma}{low}")?,
                (low, high) => write!(f, "{comma}{low} to {high}")?,
            }
        }
        match self.cycle {
            0 => Ok(()),
            cycle => write!(f, " of every {cycle}"),
        }
    }
}

/// Maximum number of ranges of a selection that are shown to users.
pub(super) const MAX_SHOWN: usize = 4;

fn suffix(n: u64) -> &'static str {
    match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_told_in_few_words() {
        for (counted, told) in [
            (Counted::nth(21), "the 21st"),
            (Counted::every(13), "every 13th"),
            (Counted::every(2), "every 2nd"),
            (Counted::first(3), "the first 3"),
            (Counted::after(10), "all after 10"),
            (Counted::once([4..=6, 1..=1]), "1, 4 to 6"),
            (Counted::burst(3, 3, 10), "3 to 5 of every 10"),
            (
                Counted::pattern(&[false, true, true, false]),
                "2 to 3 of every 4",
            ),
            (
                Counted::once([1..=1, 3..=3, 5..=5, 7..=7, 9..=9]),
                "1, 3, 5, 7, …",
            ),
        ] {
            assert_eq!(counted.to_string(), told);
        }
    }

    #[test]
    fn keys_match_what_fires_and_nothing_else() {
        let lists = [
            Counted::once([3..=300, 512..=512, 600..=1000]),
            Counted::after(77),
            Counted::pattern(&[true, false, true, true, true]),
            Counted::first(u32::MAX),
            Counted::once([1..=4, 5..=9]),
        ];
        for counted in lists {
            let keys = counted.keys();
            for index in (0..2000).chain(u32::MAX - 3..=u32::MAX) {
                let matched = keys.iter().filter(|(value, mask)| index & mask == *value);
                assert_eq!(
                    matched.count(),
                    usize::from(counted.fires_at(index)),
                    "{counted}: {index}"
                );
            }
            assert!(keys.len() <= 64 * counted.fires().len());
        }
        assert_eq!(Counted::every(1).keys(), [(0, u32::MAX)]);
        assert_eq!(Counted::after(0).keys(), [(0, 0)]);
    }

    #[test]
    fn what_lies_within_another_list_is_known() {
        let within = |inner: &Counted, outer: &Counted| {
            // Checks the definition over more packets than any pair of cycles here.
            let fires = |counted: &Counted, n: u32| {
                counted.fires_at(if counted.cycle == 0 {
                    n
                } else {
                    n % counted.cycle
                })
            };
            (0..5000).all(|n| !fires(inner, n) || fires(outer, n))
        };
        let lists = [
            Counted::nth(10),
            Counted::every(5),
            Counted::every(10),
            Counted::every(1),
            Counted::first(4),
            Counted::after(9),
            Counted::after(0),
            Counted::once([2..=3, 8..=8]),
            Counted::burst(5, 1, 10),
            Counted::burst(1, 9, 10),
            Counted::pattern(&[false, true]),
        ];
        for inner in &lists {
            for outer in &lists {
                assert_eq!(
                    inner.is_within(outer),
                    within(inner, outer),
                    "{inner} within {outer}"
                );
            }
        }
    }
}
