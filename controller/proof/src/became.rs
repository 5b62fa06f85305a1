//! Follows each frame of a flow on its way, switch by switch.
//!
//! The captures say which frames came and which left. Where faults changed frames, or several frames have the same bytes, the
//! model says which of them left as what, how often, and when. If fewer frames left than that, further copies are missing
//! before the only ones; if more left, they were frames that a fault had to drop.

use std::collections::{HashMap, VecDeque};

use super::frame::{Identity, Plainly};

/// Frames of a flow, counted between its first and its last switch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCount {
    /// Frames that the sender put on its link.
    pub sent: u64,
    /// Of those, frames that came out towards the receiver.
    pub received: u64,
    /// Sent and not received.
    pub lost: u64,
    /// Received more often than sent.
    pub extra: u64,
    /// The longest time between the two.
    pub longest_ns: u64,
}

impl FlowCount {
    /// Counts another flow's frames too.
    pub fn add(&mut self, other: &FlowCount) {
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.extra += other.extra;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// The frame that a switch had to send for one that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The frame that leaves.
    pub leaves_as: Identity,
    /// For how long each copy that leaves is held; empty where faults drop the frame.
    pub held_ns: Vec<u64>,
}

/// Frames with the same bytes at one switch.
#[derive(Debug)]
struct AtSwitch {
    switch: usize,
    /// In the order in which the frames came.
    outcomes: VecDeque<(u64, Outcome)>,
}

/// What faults made of frames: all that came to a switch with the bytes of one that was changed, and frames that came there
/// several times.
#[derive(Debug, Default)]
pub struct Changed(HashMap<Identity, Vec<AtSwitch>, Plainly>);

impl Changed {
    /// Adds a frame that came to a switch.
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

    /// Whether a frame may have been changed, or have its like.
    pub fn knows(&self, identity: Identity) -> bool {
        self.0.contains_key(&identity)
    }

    /// Whether a switch announced an outcome of a frame with this identity that came before a time.
    pub fn knows_before(&self, identity: Identity, before_ns: u64) -> bool {
        let mut outcomes = self.0.get(&identity).into_iter().flatten();
        outcomes.any(|at| at.outcomes.iter().any(|(came_ns, _)| *came_ns < before_ns))
    }

    /// Forgets what came before a time.
    pub fn forget(&mut self, before_ns: u64) {
        self.0.retain(|_, switches| {
            for at in switches.iter_mut() {
                at.outcomes.retain(|(came_ns, _)| *came_ns >= before_ns);
            }
            switches.retain(|at| !at.outcomes.is_empty());
            !switches.is_empty()
        });
    }

    /// Takes the outcome of a copy at the nearest switch.
    fn take(&mut self, copy: &InFlight) -> Option<(usize, Outcome)> {
        let switches = self.0.get_mut(&copy.identity)?.iter_mut();
        let ahead = switches.filter(|at| !copy.passed.contains(&at.switch));
        // It comes to the nearest switch first.
        let next = ahead.min_by_key(|at| at.outcomes.front().map_or(u64::MAX, |first| first.0))?;
        let (_, outcome) = next.outcomes.pop_front()?;
        Some((next.switch, outcome))
    }

    /// As what each of some frames with the same bytes, sent at these times, may come out.
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

/// A copy of a frame on its way.
struct InFlight {
    identity: Identity,
    due_ns: u64,
    passed: Vec<usize>,
}

/// Why a frame may have come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// It had to.
    Only,
    /// A further copy of it had to.
    Further,
    /// It had not: a fault had to drop it.
    Dropped,
}

/// A copy of a frame that may have come out.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// As what.
    pub identity: Identity,
    /// The frame's number, from 0.
    pub number: usize,
    due_ns: u64,
    rank: Rank,
}

impl Expected {
    /// Whether it has to come out.
    pub fn comes_out(&self) -> bool {
        self.rank != Rank::Dropped
    }

    /// The only frame of its kind, which comes out as it was sent.
    pub fn itself(identity: Identity, sent_ns: u64) -> Expected {
        Expected {
            identity,
            number: 0,
            due_ns: sent_ns,
            rank: Rank::Only,
        }
    }
}

/// Which of the frames that may have come out as one did at these times, which are in ascending order.
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

    /// A switch, a frame that comes to it, the frame that leaves, and how many copies of it.
    type Made = (&'static str, u8, u8, usize);
    /// Frames that come out, and how many of each.
    type Left = &'static [(u8, usize)];

    /// On its way through several switches a frame becomes what each makes of it, one after the other.
    #[test]
    fn frames_that_several_switches_change_are_followed() {
        let key = |byte: u8| Identity::from(byte);
        let cases: &[(&[Made], Left, (u64, u64))] = &[
            // Two of four are changed at the first switch, and one of each kind at the second.
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
            // One is doubled at the first, and one copy of it changed at the second; another is dropped there.
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
