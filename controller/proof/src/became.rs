//! Follows each frame of a flow along its path, switch by switch.
//!
//! The captures show which frames arrived and left. Where faults changed frames, or several frames
//! have the same bytes, the model says which arrived frame left with which bytes, in how many
//! copies, and when. If fewer frames left than expected, further copies of a frame count as missing
//! before its first copy. If more left, the surplus is frames that a fault had to drop.

use std::collections::{HashMap, VecDeque};

use super::frame::{Identity, Plainly};

/// The frame that a switch had to send for an arrived frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Identity (hash) of the frame that leaves.
    pub leaves_as: Identity,
    /// For each copy that leaves, how long the switch holds it, in nanoseconds; empty where faults drop the frame.
    pub held_ns: Vec<u64>,
}

/// Expected outcomes, at one switch, of the arrived frames that have the same bytes.
#[derive(Debug)]
struct AtSwitch {
    switch: usize,
    /// Time of arrival of each frame, in nanoseconds since 1970, and its outcome; in order of arrival.
    outcomes: VecDeque<(u64, Outcome)>,
}

/// Expected outcomes, by identity and switch, of frames that a fault changes, that have equal frames, or that arrived again.
#[derive(Debug, Default)]
pub struct Changed(HashMap<Identity, Vec<AtSwitch>, Plainly>);

impl Changed {
    /// Adds the outcome that the model expects for a frame that arrived at `switch` as `came` at `came_ns`.
    pub fn push(&mut self, switch: usize, came: Identity, came_ns: u64, outcome: Outcome) {
        let switches = self.0.entry(came).or_default();
        let number = switches.iter().position(|at| at.switch == switch);
        let number = number.unwrap_or_else(|| {
            switches.push(AtSwitch {
                switch,
                outcomes: VecDeque::new(),
            });
            switches.len() - 1
        });
        let outcomes = &mut switches[number].outcomes;
        let behind = outcomes
            .iter()
            .rposition(|(other_ns, _)| *other_ns <= came_ns);
        outcomes.insert(behind.map_or(0, |last| last + 1), (came_ns, outcome));
    }

    /// Whether a frame with this identity may have been changed by a fault, or has equal frames.
    pub fn knows(&self, identity: Identity) -> bool {
        self.0.contains_key(&identity)
    }

    /// Whether some switch has announced the outcome of a frame with this identity that arrived before `before_ns`.
    pub fn knows_before(&self, identity: Identity, before_ns: u64) -> bool {
        let mut outcomes = self.0.get(&identity).into_iter().flatten();
        outcomes.any(|at| at.outcomes.iter().any(|(came_ns, _)| *came_ns < before_ns))
    }

    /// Forgets the outcomes of frames that arrived before `before_ns`.
    pub fn forget(&mut self, before_ns: u64) {
        self.0.retain(|_, switches| {
            for at in switches.iter_mut() {
                at.outcomes.retain(|(came_ns, _)| *came_ns >= before_ns);
            }
            switches.retain(|at| !at.outcomes.is_empty());
            !switches.is_empty()
        });
    }

    /// Number of the next switch on a copy's path, and the copy's outcome there, which is removed; `None` if there is none.
    fn take(&mut self, copy: &InFlight) -> Option<(usize, Outcome)> {
        let switches = self.0.get_mut(&copy.identity)?.iter_mut();
        let ahead = switches.filter(|at| !copy.passed.contains(&at.switch));
        // The copy arrives at the nearest switch first.
        let next = ahead.min_by_key(|at| at.outcomes.front().map_or(u64::MAX, |first| first.0))?;
        let (_, outcome) = next.outcomes.pop_front()?;
        Some((next.switch, outcome))
    }

    /// The copies with which the equal frames `identity`, sent at the times `sent_ns`, may leave the last switch on their path.
    pub fn expected(&mut self, identity: Identity, sent_ns: &[u64]) -> Vec<Expected> {
        let mut expected = Vec::new();
        for (number, sent_ns) in sent_ns.iter().enumerate() {
            let mut in_flight = vec![InFlight {
                identity,
                due_ns: *sent_ns,
                passed: Vec::new(),
            }];
            let mut rank = Rank::Only;
            while let Some(copy) = in_flight.pop() {
                let next = self.take(&copy);
                let (leaves_as, end) = match &next {
                    Some((_, outcome)) if outcome.held_ns.is_empty() => {
                        (outcome.leaves_as, Some(Rank::Dropped))
                    }
                    Some((_, outcome)) => (outcome.leaves_as, None),
                    None => {
                        let rank = std::mem::replace(&mut rank, Rank::Further);
                        (copy.identity, Some(rank))
                    }
                };
                if let Some(rank) = end {
                    expected.push(Expected {
                        identity: leaves_as,
                        number,
                        due_ns: copy.due_ns,
                        rank,
                    });
                }
                let Some((switch, outcome)) = next else {
                    continue;
                };
                let passed: Vec<usize> = copy.passed.into_iter().chain([switch]).collect();
                in_flight.extend(outcome.held_ns.iter().rev().map(|held_ns| InFlight {
                    identity: leaves_as,
                    due_ns: copy.due_ns.saturating_add(*held_ns),
                    passed: passed.clone(),
                }));
            }
        }
        expected
    }
}

/// A copy of a frame on its way between two switches or hosts.
struct InFlight {
    identity: Identity,
    due_ns: u64,
    passed: Vec<usize>,
}

/// Class of a copy that may have left the last switch. If fewer copies left than expected, the last class is missing first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The first copy of a frame that had to reach the receiver.
    Only,
    /// A second or later copy of a frame that had to reach the receiver.
    Further,
    /// A fault had to drop this copy.
    Dropped,
}

/// A copy of a frame that may have left the last switch of its path.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// Identity (hash) with which the copy leaves the last switch.
    pub identity: Identity,
    /// Number of the sent frame, from 0, among the equal frames that were sent.
    pub number: usize,
    due_ns: u64,
    rank: Rank,
}

impl Expected {
    /// Whether the copy has to leave the last switch, since no fault had to drop it.
    pub fn comes_out(&self) -> bool {
        self.rank != Rank::Dropped
    }

    /// The one copy that is expected of a frame without equal frames that no switch changes.
    pub fn itself(identity: Identity, sent_ns: u64) -> Expected {
        Expected {
            identity,
            number: 0,
            due_ns: sent_ns,
            rank: Rank::Only,
        }
    }
}

/// Assigns departure times (ascending) to copies by rank and due time. Returns the frame's number and time of each departure.
pub fn assigned(mut expected: Vec<Expected>, times: &[u64]) -> Vec<(usize, u64)> {
    expected.sort_by_key(|copy| copy.rank);
    expected.truncate(times.len());
    expected.sort_by_key(|copy| copy.due_ns);
    let numbers = expected.into_iter().map(|copy| copy.number);
    numbers.zip(times.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// A switch, the arriving frame, the departing frame, and its number of copies.
    type Made = (&'static str, u8, u8, usize);
    /// Received frames, and the number of each.
    type Left = &'static [(u8, usize)];

    /// Each switch on the path changes a frame that the previous switch has changed already.
    #[test]
    fn frames_that_several_switches_change_are_followed() {
        let key = |byte: u8| Identity::from(byte);
        let cases: &[(&[Made], Left, (u64, u64))] = &[
            // The first switch changes two of four frames; the second changes one frame of each kind.
            (
                &[
                    ("s1", 0, 0, 1),
                    ("s1", 0, 1, 1),
                    ("s1", 0, 0, 1),
                    ("s1", 0, 1, 1),
                    ("s2", 0, 0, 1),
                    ("s2", 0, 2, 1),
                    ("s2", 1, 1, 1),
                    ("s2", 1, 0, 1),
                ],
                &[(0, 2), (1, 1), (2, 1)],
                (4, 0),
            ),
            // The first switch doubles one frame; the second changes one copy of it and drops another frame.
            (
                &[
                    ("s1", 0, 0, 2),
                    ("s1", 0, 0, 1),
                    ("s1", 0, 0, 1),
                    ("s1", 0, 0, 1),
                    ("s2", 0, 1, 1),
                    ("s2", 0, 0, 1),
                    ("s2", 0, 0, 0),
                    ("s2", 0, 0, 1),
                    ("s2", 0, 0, 1),
                ],
                &[(0, 3), (1, 1)],
                (3, 1),
            ),
        ];
        for (outcomes, left, counts) in cases {
            let mut changed = Changed::default();
            for (number, (switch, came, leaves, copies)) in outcomes.iter().enumerate() {
                let outcome = Outcome {
                    leaves_as: key(*leaves),
                    held_ns: vec![0; *copies],
                };
                let switch = usize::from(*switch == "s2");
                changed.push(switch, key(*came), number as u64, outcome);
            }
            let mut expected: BTreeMap<Identity, Vec<Expected>> = BTreeMap::new();
            for copy in changed.expected(key(0), &[0, 1, 2, 3]) {
                expected.entry(copy.identity).or_default().push(copy);
            }
            let mut received = BTreeSet::new();
            for (identity, copies) in expected {
                let times = left.iter().find(|(byte, _)| key(*byte) == identity);
                let times = vec![9; times.map_or(0, |(_, times)| *times)];
                received.extend(
                    assigned(copies, &times)
                        .into_iter()
                        .map(|(number, _)| number),
                );
            }
            let received = received.len() as u64;
            assert_eq!((received, 4 - received), *counts);
        }
    }
}
