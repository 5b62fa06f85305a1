//! What becomes of a frame.

use std::sync::Arc;

use parser_gen::psn::Place;

use crate::effect::{Effect, Fate};

/// A unit and what it did to a packet.
#[derive(Debug, Clone, Copy)]
pub struct Act<'e> {
    /// The injection that looked at the packet; if none did, the unit's first.
    pub injection: usize,
    /// What the unit does.
    pub effect: &'e Effect,
    /// Whether it looked at the packet.
    pub met: bool,
    /// Whether it fired.
    pub hit: bool,
    /// The word that it drew; 0 if it drew none.
    pub w: u32,
}

/// Packets that come within this time pass one that waits for them before anybody could tell that it did.
const TELLING_NS: u64 = 200_000;

impl Act<'_> {
    /// For how long it holds the packet, or would have. One that did not look at it drew no word: the longest is assumed, since
    /// what is shorter cannot be told from a frame that was a little late.
    #[must_use]
    #[inline]
    pub fn hold_ns(&self) -> u64 {
        match self.met {
            true if self.effect.distance().is_some() => match self.effect.hold_ns(self.w) {
                near if near < TELLING_NS => 0,
                hold_ns => hold_ns,
            },
            true => self.effect.hold_ns(self.w),
            false => self.effect.longest_hold_ns(),
        }
    }
}

/// What one pipeline's units do to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The injections that looked at it, in declared order. Indexes into [`crate::Plan::injections`].
    pub met: Vec<usize>,
    /// What each of those goes by, where its effect goes by anything: the word that it drew, the time that a packet waits for
    /// others, or that a queue was full.
    pub drawn: Vec<u32>,
    /// Those of them that had no cell for the packet's key, and so spared it.
    pub keyless: Vec<usize>,
    /// Those that took the packet for one of another key.
    pub conflated: Vec<usize>,
    /// Those of them that fired.
    pub hits: Vec<usize>,
    /// Where it stands in its RDMA connection, for those that select by that.
    pub places: Vec<(usize, Place)>,
    /// Those that fired and of which nothing is to be seen, since another one dropped the packet.
    pub overridden: Vec<usize>,
    /// What becomes of it.
    pub fate: Fate,
}

impl Verdict {
    /// Of a packet that no unit looks at.
    #[must_use]
    #[inline]
    pub fn untouched() -> Verdict {
        Verdict {
            met: Vec::new(),
            drawn: Vec::new(),
            keyless: Vec::new(),
            conflated: Vec::new(),
            hits: Vec::new(),
            places: Vec::new(),
            overridden: Vec::new(),
            fate: Fate::UNTOUCHED,
        }
    }

    /// Where the packet stands in its RDMA connection, by an injection that selects by that.
    #[must_use]
    #[inline]
    pub fn place_for(&self, injection: usize) -> Option<Place> {
        let mut places = self.places.iter();
        let found = places.find(|(by, _)| *by == injection)?;
        Some(found.1)
    }

    /// The word that an injection drew for the packet; 0 if it drew none.
    #[must_use]
    #[inline]
    pub fn drawn_by(&self, injection: usize) -> u32 {
        let met = self.met.iter().position(|met| *met == injection);
        met.and_then(|position| self.drawn.get(position).copied())
            .unwrap_or(0)
    }
}

/// What a switch does to a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// In ingress.
    pub ingress: Verdict,
    /// For each port that it is forwarded to, in egress: one verdict per copy.
    pub exits: Arc<[(u32, Vec<Verdict>)]>,
    /// What it brings about for those behind it.
    pub triggered: Triggered,
}

/// What a packet brings about. Indexes of the scenario's triggers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Triggered {
    /// Those that come on by it.
    pub came_on: Vec<usize>,
    /// Those that would count it, and have no cell for its key.
    pub keyless: Vec<usize>,
    /// Those that take it for one of another key.
    pub conflated: Vec<usize>,
}

impl Triggered {
    /// Whether it is nothing.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.came_on.is_empty() && self.keyless.is_empty() && self.conflated.is_empty()
    }
}

impl Passage {
    /// How many copies leave by the port at this position of [`Passage::exits`].
    #[must_use]
    #[inline]
    pub fn leaving(&self, exit: usize) -> usize {
        let (_, copies) = &self.exits[exit];
        copies.iter().filter(|copy| !copy.fate.is_dropped()).count()
    }

    /// Whether the switch's entries forward the frame anywhere.
    #[must_use]
    #[inline]
    pub fn has_exit(&self) -> bool {
        !self.exits.is_empty()
    }

    /// All verdicts: of ingress, and of each copy in egress.
    #[inline]
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        let copies = self.exits.iter().flat_map(|(_, copies)| copies);
        std::iter::once(&self.ingress).chain(copies)
    }
}
