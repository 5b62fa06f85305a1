//! How far a trigger has come: the events counted so far, in total or for each key, and assumptions where captures leave doubt.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Classified;
use super::slots::Slots;

/// Maximum time, in nanoseconds, between frames from different ports that a switch may process in either order: one iteration
/// of its packet loop takes waiting frames port by port.
pub(super) const RACE_NS: u64 = 200_000;

/// The model's state of one trigger of a switch, after all frames so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Followed {
    /// Progress shared by all packets, for a trigger without keys.
    pub shared: Progress,
    /// Progress for each key (such as a connection), if the trigger counts separately for each key.
    pub keyed: Slots<Progress>,
    /// Changes of the trigger to on or off in the last [`RACE_NS`].
    pub turned: Vec<Turned>,
    /// Whether the trigger is assumed to be on when the next frame comes; `None`: no assumption, its progress decides.
    pub view: Option<bool>,
    /// Whether the trigger is assumed to be on for the current frame; `None`: no assumption, its progress decides.
    pub assumed: Option<bool>,
    /// Changes that are still to come, but that an earlier frame was assumed to have seen: key, and deadline in nanoseconds.
    pub owed: Vec<(u32, u64)>,
    /// As `owed`, for changes to "on" that a frame has already undone by a reset: when they come, they have no further effect.
    pub spent: Vec<(u32, u64)>,
    /// Frames that are assumed to come after a pending change to "off": key, and the events to count after the change.
    pub late: Vec<(u32, u16)>,
    /// For keys with a time limit: time in nanoseconds after which the limit has certainly ended, and index of the key's cell.
    /// The cell is then cleared, so that states which differ only in ended progress become equal.
    ending: Arc<BTreeSet<(u64, u32)>>,
}

/// A change of a trigger from off to on or from on to off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Turned {
    /// Fingerprint (short hash) of the key whose progress changed; 0 for a trigger without keys.
    key: u32,
    /// Arrival time in nanoseconds of the frame that caused the change; `port` is the frame's ingress port.
    at_ns: u64,
    port: u32,
    /// Time in nanoseconds by which the change had certainly happened; `None` if unknown.
    done_ns: Option<u64>,
}

/// How far a trigger has come: the events counted so far, and its time limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Progress {
    /// Number of events counted so far, over all stages.
    pub step: u32,
    /// Time in nanoseconds at which the current stage, or the time for which the trigger is on, ends; `None`: no limit.
    pub end_ns: Option<u64>,
    /// Time in nanoseconds before and after `end_ns` in which it is unknown whether the switch has noticed the end.
    pub doubt_ns: u64,
    /// Time in nanoseconds after `end_ns` at which the switch is assumed to notice the end.
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

    /// Time in nanoseconds after which the time limit has ended under every assumption; `None` if there is no time limit.
    fn over_for_good_ns(&self) -> Option<u64> {
        let most_ns = self.doubt_ns.max(self.slack_ns);
        self.end_ns.map(|end_ns| end_ns.saturating_add(most_ns))
    }
}

/// The hash leaves out the cells of keys, because hashing a whole table takes long. Equality does compare them.
impl Hash for Followed {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.shared.hash(hasher);
        self.turned.hash(hasher);
        (self.view, self.assumed).hash(hasher);
        (&self.owed, &self.spent, &self.late).hash(hasher);
    }
}

impl Followed {
    /// The progress in the cell with index `at`; `None`: the progress that all packets share.
    pub fn at(&mut self, at: Option<u32>) -> &mut Progress {
        match at {
            None => &mut self.shared,
            Some(at) => &mut self.keyed.get_mut(at).cell,
        }
    }

    /// Drops changes that are older than [`RACE_NS`], and clears cells of keys whose time limit has ended.
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

    /// Records when the progress in a key's cell ends, if it has a time limit, so that [`Followed::forget`] clears the cell.
    pub fn ends_in_time(&mut self, at: u32) {
        if let Some(over_ns) = self.keyed.get(at).cell.over_for_good_ns() {
            let ending = (over_ns, at);
            if !self.ending.contains(&ending) {
                Arc::make_mut(&mut self.ending).insert(ending);
            }
        }
    }

    /// Records that the frame `by` turned the trigger on or off for a key.
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

    /// Marks the key's pending changes as undone: a frame that was assumed to see the trigger on has already reset it.
    pub fn undo(&mut self, key: u32) {
        let is_of = |owed: &(u32, u64)| owed.0 == key;
        self.spent.extend(self.owed.iter().copied().filter(is_of));
        self.owed.retain(|owed| !is_of(owed));
    }

    /// Whether the current frame is assumed to come after a pending change to "off", so that its events count after that
    /// change.
    pub fn defers(&self, key: u32) -> bool {
        self.assumed == Some(false) && self.owed.iter().any(|(of, _)| *of == key)
    }

    /// Removes and returns the key's events that wait to be counted after a change; `None` if there are none.
    pub fn take_late(&mut self, key: u32) -> Option<u16> {
        let known = self.late.iter().position(|(of, _)| *of == key)?;
        Some(self.late.remove(known).1)
    }

    /// Whether the change of this key that the current frame makes was already undone by a reset. Removes the record of that.
    pub fn is_spent(&mut self, key: u32) -> bool {
        let known = self.spent.iter().position(|(of, _)| *of == key);
        known.map(|known| self.spent.remove(known)).is_some()
    }

    /// Whether a frame from another port changed the trigger so recently that the switch may have processed this frame first.
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
