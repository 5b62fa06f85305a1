//! Follows each frame of a flow on its way, switch by switch.
//!
//! The captures say which frames came and which left. Where faults changed frames, or several frames have the same bytes, the
//! model says which of them left as what, how often, and when. If fewer frames left than that, further copies are missing
//! before the only ones; if more left, they were frames that a fault had to drop.

use std::collections::HashMap;

use testbeds::capture::Seen;

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

/// A frame's bytes as far as they were recorded, and its length on the wire.
pub type FrameKey = (Box<[u8]>, u32);

/// What a switch had to make of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The frame that leaves.
    pub key: FrameKey,
    /// For how long each copy that leaves is held; empty where faults drop the frame.
    pub held_ns: Vec<u64>,
}

/// Frames with the same bytes at one switch.
#[derive(Debug)]
struct AtSwitch {
    switch: String,
    first_came_ns: u64,
    /// In the order in which the frames came.
    outcomes: Vec<Outcome>,
}

/// What faults made of frames: all that came to a switch with the bytes of one that was changed, and frames that came there
/// several times.
#[derive(Debug, Default)]
pub struct Changed(HashMap<FrameKey, Vec<AtSwitch>>);

impl Changed {
    /// Adds the next frame that came to a switch.
    pub fn push(&mut self, switch: &str, came: FrameKey, came_ns: u64, outcome: Outcome) {
        let switches = self.0.entry(came).or_default();
        let number = switches.iter().position(|at| at.switch == switch);
        let number = number.unwrap_or_else(|| {
            switches.push(AtSwitch {
                switch: switch.to_owned(),
                first_came_ns: came_ns,
                outcomes: Vec::new(),
            });
            switches.len() - 1
        });
        let at = &mut switches[number];
        at.first_came_ns = at.first_came_ns.min(came_ns);
        at.outcomes.push(outcome);
    }
}

/// A copy of a frame on its way.
struct InFlight<'a> {
    key: &'a FrameKey,
    due_ns: u64,
    passed: Vec<&'a str>,
}

/// Why a frame may have come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It had to.
    Only,
    /// A further copy of it had to.
    Further,
    /// It had not: a fault had to drop it.
    Dropped,
}

/// A copy of a frame that may have come out.
struct Expected {
    /// Which frame of the flow, from 0.
    number: usize,
    due_ns: u64,
    rank: Rank,
}

/// The frames of a flow, and as which frames they had to come out.
pub struct Sent<'a> {
    frames: &'a [Seen<FrameKey>],
    expected: HashMap<&'a FrameKey, Vec<Expected>>,
}

impl<'a> Sent<'a> {
    /// Frames that were sent, in the order of time.
    pub fn new(frames: &'a [Seen<FrameKey>], changed: &'a Changed) -> Sent<'a> {
        let mut expected: HashMap<&FrameKey, Vec<Expected>> = HashMap::new();
        // How many outcomes of a switch and key are dealt out.
        let mut dealt: HashMap<(&str, &FrameKey), usize> = HashMap::new();
        for (number, frame) in frames.iter().enumerate() {
            let mut in_flight = vec![InFlight {
                key: &frame.key,
                due_ns: frame.at_ns,
                passed: Vec::new(),
            }];
            let mut rank = Rank::Only;
            while let Some(copy) = in_flight.pop() {
                let switches = changed.0.get(copy.key).into_iter().flatten();
                let ahead = switches.filter(|at| !copy.passed.contains(&at.switch.as_str()));
                // It comes to the nearest switch first.
                let next = ahead.min_by_key(|at| at.first_came_ns).and_then(|at| {
                    let dealt = dealt.entry((&at.switch, copy.key)).or_default();
                    let outcome = at.outcomes.get(*dealt)?;
                    *dealt += 1;
                    Some((at.switch.as_str(), outcome))
                });
                let (key, end) = match next {
                    Some((_, outcome)) if outcome.held_ns.is_empty() => {
                        (&outcome.key, Some(Rank::Dropped))
                    }
                    Some((_, outcome)) => (&outcome.key, None),
                    None => (copy.key, Some(std::mem::replace(&mut rank, Rank::Further))),
                };
                if let Some(rank) = end {
                    expected.entry(key).or_default().push(Expected {
                        number,
                        due_ns: copy.due_ns,
                        rank,
                    });
                }
                let Some((switch, outcome)) = next else {
                    continue;
                };
                let passed: Vec<&str> = copy.passed.into_iter().chain([switch]).collect();
                in_flight.extend(outcome.held_ns.iter().rev().map(|held_ns| InFlight {
                    key,
                    due_ns: copy.due_ns.saturating_add(*held_ns),
                    passed: passed.clone(),
                }));
            }
        }
        Sent { frames, expected }
    }

    /// Whether a frame of the flow may come out as this one.
    pub fn may_become(&self, key: &FrameKey) -> bool {
        self.expected.contains_key(key)
    }

    /// Counts the flow. `left` has the times at which frames came out.
    pub fn count(&self, mut left: HashMap<FrameKey, Vec<u64>>) -> FlowCount {
        let mut took_ns: Vec<Option<u64>> = vec![None; self.frames.len()];
        let mut out = 0;
        for (key, expected) in &self.expected {
            let mut times = left.remove(*key).unwrap_or_default();
            times.sort_unstable();
            out += times.len();
            let mut leaving: Vec<&Expected> = expected.iter().collect();
            leaving.sort_by_key(|copy| copy.rank);
            leaving.truncate(times.len());
            leaving.sort_by_key(|copy| copy.due_ns);
            for (copy, left_ns) in leaving.into_iter().zip(times) {
                let sent_ns = self.frames[copy.number].at_ns;
                let took = took_ns[copy.number].get_or_insert(u64::MAX);
                *took = left_ns.saturating_sub(sent_ns).min(*took);
            }
        }
        let received = took_ns.iter().flatten().count();
        FlowCount {
            sent: self.frames.len() as u64,
            received: received as u64,
            lost: (self.frames.len() - received) as u64,
            extra: (out - received) as u64,
            longest_ns: took_ns.iter().flatten().copied().max().unwrap_or(0),
        }
    }
}
