//! The fate of a frame in a switch, as the model computes it: which units examine it, which fire, and what leaves.

use std::sync::Arc;

use parser_gen::psn::PsnPosition;
use smallvec::SmallVec;

use crate::model::effect::{Effect, Fate};

/// A fault unit and what it did to a packet.
#[derive(Debug, Clone, Copy)]
pub struct Act<'e> {
    /// Index of the injection (fault and flow) that examined the packet; if none did, of the unit's first injection.
    pub injection: usize,
    /// The effect of the unit's fault.
    pub effect: &'e Effect,
    /// Whether the unit examined the packet: the packet is in one of the fault's flows, and came in one of its epochs.
    pub met: bool,
    /// Whether the unit fired on the packet, so that its effect applies.
    pub hit: bool,
    /// The random word that the unit drew for the packet; 0 if it drew none.
    pub w: u32,
}

/// A wait for later packets that is shorter than this (ns) counts as no wait, because captures may not show it.
const TELLING_NS: u64 = 200_000;

impl Act<'_> {
    /// Time in nanoseconds for which the unit holds the packet, or would hold it. If the unit did not examine it, no word was
    /// drawn; then the longest time is assumed, since a shorter one cannot be distinguished from a slightly late frame.
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

/// The effect of the fault units of one pipeline, ingress or egress, on a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The injections that examined the packet, in declared order, as indexes into [`crate::Plan::injections`].
    pub met: SmallVec<[usize; 2]>,
    /// For each injection in `met`, the value that its effect uses: the drawn random word, the time (ns) for which the packet
    /// waits for others, or whether a queue was full.
    pub drawn: SmallVec<[u32; 2]>,
    /// The injections that did not act on the packet because the fault unit had no state cell for the packet's key.
    pub keyless: Vec<usize>,
    /// The injections whose fault unit confused the packet's key (such as its connection) with another key.
    pub conflated: Vec<usize>,
    /// The injections (fault and flow) that fired on the packet.
    pub hits: Vec<usize>,
    /// For injections that select by sequence number: the injection, and the packet's position in its RDMA connection.
    pub places: Vec<(usize, PsnPosition)>,
    /// The injections that fired without a visible effect, because another fault dropped the packet.
    pub overridden: Vec<usize>,
    /// The packet's fate: the copies that leave, and when.
    pub fate: Fate,
}

impl Verdict {
    /// The verdict on a packet that no unit examines.
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

    /// The packet's position in its RDMA connection, for an injection that selects by it; `None` for other injections.
    #[must_use]
    #[inline]
    pub fn place_for(&self, injection: usize) -> Option<PsnPosition> {
        let mut places = self.places.iter();
        let found = places.find(|(by, _)| *by == injection)?;
        Some(found.1)
    }

    /// The random word that an injection drew for the packet; 0 if it drew none.
    #[must_use]
    #[inline]
    pub fn drawn_by(&self, injection: usize) -> u32 {
        let met = self.met.iter().position(|met| *met == injection);
        met.and_then(|position| self.drawn.get(position).copied())
            .unwrap_or(0)
    }
}

/// The verdicts on one frame that passes a switch, in ingress and egress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The verdict on the frame in ingress.
    pub ingress: Verdict,
    /// For each egress port, one egress verdict for each copy of the frame.
    pub exits: Arc<[(u32, Vec<Verdict>)]>,
    /// The triggers that the frame changes.
    pub triggered: Triggered,
}

/// The triggers that a packet changes, as indexes into the scenario's list of triggers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Triggered {
    /// Triggers that the packet turned on.
    pub came_on: Vec<usize>,
    /// Triggers that should count the packet, but whose table has no cell for its key.
    pub keyless: Vec<usize>,
    /// Triggers that confused the packet's key (such as its connection) with another key.
    pub conflated: Vec<usize>,
}

impl Triggered {
    /// Whether all three lists are empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.came_on.is_empty() && self.keyless.is_empty() && self.conflated.is_empty()
    }
}

impl Passage {
    /// Number of copies that leave by the egress port at this index of [`Passage::exits`].
    #[must_use]
    #[inline]
    pub fn leaving(&self, exit: usize) -> usize {
        let (_, copies) = &self.exits[exit];
        copies.iter().filter(|copy| !copy.fate.is_dropped()).count()
    }

    /// Whether the switch's table entries forward the frame to any port.
    #[must_use]
    #[inline]
    pub fn has_exit(&self) -> bool {
        !self.exits.is_empty()
    }

    /// All verdicts on the frame: that of ingress, and that of each copy in egress.
    #[inline]
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        let copies = self.exits.iter().flat_map(|(_, copies)| copies);
        std::iter::once(&self.ingress).chain(copies)
    }
}
