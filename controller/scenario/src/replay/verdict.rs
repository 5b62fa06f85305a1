//! The fate of a frame, as the model computes it.

use std::sync::Arc;

use parser_gen::psn::PsnPosition;
use smallvec::SmallVec;

use crate::model::effect::{Effect, Fate};

/// A unit and its action on a packet.
#[derive(Debug, Clone, Copy)]
pub struct Act<'e> {
    /// The injection that examined the packet; the unit's first if none did.
    pub injection: usize,
    /// The unit's effect.
    pub effect: &'e Effect,
    /// Whether the unit examined the packet.
    pub met: bool,
    /// Whether the unit fired.
    pub hit: bool,
    /// The word that the unit drew; 0 if it drew none.
    pub w: u32,
}

/// Packets that come within this time, in nanoseconds, may overtake a waiting packet before captures could show that it
/// waited.
const TELLING_NS: u64 = 200_000;

impl Act<'_> {
    /// Time in nanoseconds for which the unit holds the packet, or would hold it. A unit that did not examine the packet
    /// drew no word; the longest time is assumed, since a shorter one cannot be distinguished from a slightly late frame.
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

/// The result of one pipeline's units for a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The injections that examined the packet, in declared order. Indexes into [`crate::Plan::injections`].
    pub met: SmallVec<[usize; 2]>,
    /// For each of these, the value that its effect uses: the drawn word, the time that the packet waits for others, or
    /// that a queue was full.
    pub drawn: SmallVec<[u32; 2]>,
    /// The injections that had no cell for the packet's key and did not act on it.
    pub keyless: Vec<usize>,
    /// The injections that confused the packet's key with another one.
    pub conflated: Vec<usize>,
    /// The injections that fired.
    pub hits: Vec<usize>,
    /// The packet's position in its RDMA connection, for injections that select by it.
    pub places: Vec<(usize, PsnPosition)>,
    /// The injections that fired without a visible effect, because another one dropped the packet.
    pub overridden: Vec<usize>,
    /// The packet's fate.
    pub fate: Fate,
}

impl Verdict {
    /// The verdict for a packet that no unit examines.
    #[must_use]
    #[inline]
    pub fn untouched() -> Verdict {
        Verdict {
            met: SmallVec::new(),
            drawn: SmallVec::new(),
            keyless: Vec::new(),
            conflated: Vec::new(),
            hits: Vec::new(),
            places: Vec::new(),
            overridden: Vec::new(),
            fate: Fate::UNTOUCHED,
        }
    }

    /// The packet's position in its RDMA connection, for an injection that selects by it.
    #[must_use]
    #[inline]
    pub fn place_for(&self, injection: usize) -> Option<PsnPosition> {
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

/// A frame's passage through a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Verdict of ingress.
    pub ingress: Verdict,
    /// For each egress port, one egress verdict per copy.
    pub exits: Arc<[(u32, Vec<Verdict>)]>,
    /// Changes of triggers by the frame.
    pub triggered: Triggered,
}

/// Changes of triggers by a packet. Indexes of the scenario's triggers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Triggered {
    /// Triggers that came on.
    pub came_on: Vec<usize>,
    /// Triggers that should count the packet but have no cell for its key.
    pub keyless: Vec<usize>,
    /// Triggers that confused the packet's key with another one.
    pub conflated: Vec<usize>,
}

impl Triggered {
    /// Whether the packet affected no trigger.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.came_on.is_empty() && self.keyless.is_empty() && self.conflated.is_empty()
    }
}

impl Passage {
    /// Number of copies that leave by the port at this index of [`Passage::exits`].
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
