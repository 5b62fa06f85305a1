//! How far a trigger is: all packets' or that of each key, and what is assumed of it where that is not known.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Classified;
use super::state::Slots;

/// Frames that come by different ports within this time may be taken in either order: a turn of the packet loop takes what waits
/// port by port.
pub(super) const RACE_NS: u64 = 200_000;

/// One trigger of a switch, as far as packets have led it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Followed {
    /// Where all packets share it.
    pub shared: Progress,
    /// Where each key follows its own.
    pub keyed: Slots<Progress>,
    /// When it came on or went off lately.
    pub turned: Vec<Turned>,
    /// How the next frame is assumed to meet it, whatever it is.
    pub view: Option<bool>,
    /// How the frame that comes now is assumed to have met it.
    pub assumed: Option<bool>,
    /// For which key, and until when, it has to turn, since a frame is assumed to have met it turned.
    pub owed: Vec<(u32, u64)>,
    /// The same, where what it owes has been undone by that frame: the one by which it came on counts for nothing any more.
    pub spent: Vec<(u32, u64)>,
    /// For which key, what a frame was that is assumed to have come only when it had turned off.
    pub late: Vec<(u32, u16)>,
    /// Of keys, when what time ends is over for good, and in which place it is. So states become one again that differ in
    /// nothing else.
    ending: Arc<BTreeSet<(u64, u32)>>,
}

/// That a trigger came on, or went off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Turned {
    /// For which key; 0 is all.
    key: u32,
    /// When, and by which port, the frame came that did it.
    at_ns: u64,
    port: u32,
    /// From when on that was done for sure.
    done_ns: Option<u64>,
}

/// How far it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Progress {
    /// Events that it has counted.
    pub step: u32,
    /// When that is over, if time ends it.
    pub end_ns: Option<u64>,
    /// How near to it it is not known whether it is over.
    pub doubt_ns: u64,
    /// By how much the switch is assumed to be late with that.
    pub slack_ns: u64,
}

impl Progress {
    pub fn start_again(&mut self) {
        *self = Progress::default();
    }

    pub fn is_over(&self, now_ns: u64) -> bool {
        let end_ns = self.end_ns;
        end_ns.is_some_and(|end_ns| now_ns > end_ns.saturating_add(self.slack_ns))
    }

    /// From when on it is over whatever is assumed.
    fn over_for_good_ns(&self) -> Option<u64> {
        let most_ns = self.doubt_ns.max(self.slack_ns);
        self.end_ns.map(|end_ns| end_ns.saturating_add(most_ns))
    }
}

/// Leaves out what keys have: a table takes long to read, and states that differ there alone are compared.
impl Hash for Followed {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.shared.hash(hasher);
        self.turned.hash(hasher);
        (self.view, self.assumed).hash(hasher);
        (&self.owed, &self.spent, &self.late).hash(hasher);
    }
}

impl Followed {
    /// That of a key's place, or that of all packets.
    pub fn at(&mut self, at: Option<u32>) -> &mut Progress {
        match at {
            None => &mut self.shared,
            Some(at) => &mut self.keyed.get_mut(at).cell,
        }
    }

    /// Forgets what makes no difference any more.
    pub fn forget(&mut self, now_ns: u64) {
        self.turned
            .retain(|turned| now_ns.saturating_sub(turned.at_ns) <= RACE_NS);
        while let Some((over_ns, at)) = self.ending.first().copied() {
            if over_ns >= now_ns {
                break;
            }
            Arc::make_mut(&mut self.ending).pop_first();
            let progress = self.keyed.get(at).cell;
            if progress
                .over_for_good_ns()
                .is_some_and(|over_ns| over_ns < now_ns)
            {
                self.keyed.get_mut(at).cell.start_again();
            }
        }
    }

    /// What stands in a key's place has changed: time may end it.
    pub fn ends_in_time(&mut self, at: u32) {
        if let Some(over_ns) = self.keyed.get(at).cell.over_for_good_ns() {
            let ending = (over_ns, at);
            if !self.ending.contains(&ending) {
                Arc::make_mut(&mut self.ending).insert(ending);
            }
        }
    }

    /// It has come on or gone off for a key.
    pub fn turns(&mut self, key: u32, by: &Classified) {
        self.turned.retain(|turned| turned.key != key);
        self.turned.push(Turned {
            key,
            at_ns: by.at_ns,
            port: by.port,
            done_ns: by.left_ns,
        });
        self.owed.retain(|(of, _)| *of != key);
    }

    /// A frame that was assumed to meet it on puts it back: that it turned before is still owed, and undone.
    pub fn undo(&mut self, key: u32) {
        let is_of = |owed: &(u32, u64)| owed.0 == key;
        self.spent.extend(self.owed.iter().copied().filter(is_of));
        self.owed.retain(|owed| !is_of(owed));
    }

    /// That a frame is assumed to have met it off, and it is still to turn: what the frame was counts from then.
    pub fn defers(&self, key: u32) -> bool {
        self.assumed == Some(false) && self.owed.iter().any(|(of, _)| *of == key)
    }

    /// What was to count when it had turned.
    pub fn take_late(&mut self, key: u32) -> Option<u16> {
        let known = self.late.iter().position(|(of, _)| *of == key)?;
        Some(self.late.remove(known).1)
    }

    /// Whether it came on by this frame before one that undid it.
    pub fn is_spent(&mut self, key: u32) -> bool {
        let known = self.spent.iter().position(|(of, _)| *of == key);
        known.map(|known| self.spent.remove(known)).is_some()
    }

    /// Whether it turned just before a frame, which came by another port; it may have been taken first.
    pub fn was_turned(&self, key: u32, frame: &Classified) -> bool {
        let mut turned = self.turned.iter();
        turned.any(|turned| {
            turned.key == key
                && turned.port != frame.port
                && frame.at_ns.saturating_sub(turned.at_ns) <= RACE_NS
                && turned.done_ns.is_none_or(|done_ns| done_ns >= frame.at_ns)
        })
    }
}
