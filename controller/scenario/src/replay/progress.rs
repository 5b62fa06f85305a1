//! Progress of a trigger, shared or per key, and assumptions about it where the captures do not determine it.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Classified;
use super::slots::Slots;

/// Frames from different ports within this time, in nanoseconds, may be taken in either order: one iteration of the
/// packet loop takes waiting frames port by port.
pub(super) const RACE_NS: u64 = 200_000;

/// The state of one trigger of a switch after the frames so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Followed {
    /// Progress shared by all packets, for a trigger without keys.
    pub shared: Progress,
    /// Progress of each key, for a trigger with keys.
    pub keyed: Slots<Progress>,
    /// Recent changes of the trigger between on and off.
    pub turned: Vec<Turned>,
    /// The assumption with which the next frame meets the trigger, whatever frame it is.
    pub view: Option<bool>,
    /// The assumption with which the current frame met the trigger.
    pub assumed: Option<bool>,
    /// Pending changes, by key, with their deadlines: a frame was assumed to have come after such a change.
    pub owed: Vec<(u32, u64)>,
    /// Pending changes that the assuming frame has undone: the frame that turns the trigger on then has no further
    /// effect.
    pub spent: Vec<(u32, u64)>,
    /// By key, the events of a frame that is assumed to have come only after the trigger turned off.
    pub late: Vec<(u32, u16)>,
    /// For keys: the time after which a timed progress has certainly ended, and its cell. Clearing the cell then makes
    /// states equal again that differ in nothing else.
    ending: Arc<BTreeSet<(u64, u32)>>,
}

/// A change of a trigger between on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Turned {
    /// Key; 0 means all packets.
    key: u32,
    /// Arrival time, in nanoseconds, and ingress port of the frame that caused the change.
    at_ns: u64,
    port: u32,
    /// The time by which the change had certainly happened, in nanoseconds.
    done_ns: Option<u64>,
}

/// Progress of a trigger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Progress {
    /// Number of counted events.
    pub step: u32,
    /// End of this progress, in nanoseconds, if it is limited in time.
    pub end_ns: Option<u64>,
    /// Margin around the end, in nanoseconds, in which it is unknown whether the switch has reached it.
    pub doubt_ns: u64,
    /// Assumed lateness of the switch at this end, in nanoseconds.
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

    /// The time after which the progress has ended under any assumption, in nanoseconds.
    fn over_for_good_ns(&self) -> Option<u64> {
        let most_ns = self.doubt_ns.max(self.slack_ns);
        self.end_ns.map(|end_ns| end_ns.saturating_add(most_ns))
    }
}

/// The hash omits the keys' cells: hashing a table takes long, and states that differ only there are compared by value.
impl Hash for Followed {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.shared.hash(hasher);
        self.turned.hash(hasher);
        (self.view, self.assumed).hash(hasher);
        (&self.owed, &self.spent, &self.late).hash(hasher);
    }
}

impl Followed {
    /// The progress in a key's cell, or that of all packets.
    pub fn at(&mut self, at: Option<u32>) -> &mut Progress {
        match at {
            None => &mut self.shared,
            Some(at) => &mut self.keyed.get_mut(at).cell,
        }
    }

    /// Drops records that no longer make a difference.
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

    /// Records that a key's cell has changed and may end in time.
    pub fn ends_in_time(&mut self, at: u32) {
        if let Some(over_ns) = self.keyed.get(at).cell.over_for_good_ns() {
            let ending = (over_ns, at);
            if !self.ending.contains(&ending) {
                Arc::make_mut(&mut self.ending).insert(ending);
            }
        }
    }

    /// Records that the trigger turned on or off for a key.
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

    /// A frame that was assumed to meet the trigger on resets it: the earlier change is still pending, but undone.
    pub fn undo(&mut self, key: u32) {
        let is_of = |owed: &(u32, u64)| owed.0 == key;
        self.spent.extend(self.owed.iter().copied().filter(is_of));
        self.owed.retain(|owed| !is_of(owed));
    }

    /// Whether a frame is assumed to have met the trigger off while its change is pending: the frame's events then count
    /// after it.
    pub fn defers(&self, key: u32) -> bool {
        self.assumed == Some(false) && self.owed.iter().any(|(of, _)| *of == key)
    }

    /// Takes the events that count after the trigger's change.
    pub fn take_late(&mut self, key: u32) -> Option<u16> {
        let known = self.late.iter().position(|(of, _)| *of == key)?;
        Some(self.late.remove(known).1)
    }

    /// Whether this frame turns the trigger on before a frame that has already undone it.
    pub fn is_spent(&mut self, key: u32) -> bool {
        let known = self.spent.iter().position(|(of, _)| *of == key);
        known.map(|known| self.spent.remove(known)).is_some()
    }

    /// Whether the trigger changed just before a frame from another port; the switch may have taken that frame first.
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
