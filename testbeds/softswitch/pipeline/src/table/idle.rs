//! Idle timeouts: which entries no packet has found for their time (P4Runtime specification 1.4, section 9.1.7).

use super::{FieldKey, Index, Table, TableError};
use std::collections::BTreeSet;

/// Timeouts below this are kept as written and timed as this: an entry is reported once per timeout.
const SHORTEST_NS: u64 = 1_000_000;

/// The timer of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timer {
    /// As written; 0: none.
    pub timeout_ns: u64,
    /// When a packet found the entry last; at first, when it was written.
    pub hit_ns: u64,
    /// When the control plane was told last.
    told_ns: u64,
    /// Its place in [`Timers`].
    due_ns: Option<u64>,
}

impl Timer {
    /// Of an entry written now.
    pub fn new(timeout_ns: u64, now_ns: u64) -> Timer {
        Timer {
            timeout_ns,
            hit_ns: now_ns,
            told_ns: now_ns,
            due_ns: None,
        }
    }

    /// With another timeout, counted from now.
    pub fn changed(self, timeout_ns: u64, now_ns: u64) -> Timer {
        Timer {
            hit_ns: self.hit_ns,
            ..Timer::new(timeout_ns, now_ns)
        }
    }

    fn expires_ns(&self) -> Option<u64> {
        let timeout = match self.timeout_ns {
            0 => return None,
            timeout => timeout.max(SHORTEST_NS),
        };
        Some(self.hit_ns.max(self.told_ns).saturating_add(timeout))
    }
}

/// Entries by the time at which they are to be looked at; a hit does not move them, the look does.
#[derive(Debug, Clone, Default)]
pub struct Timers(BTreeSet<(u64, u32)>);

impl Table {
    /// A packet has found an entry, if it has.
    #[inline]
    pub fn touch(&mut self, found: Option<Index>, now_ns: u64) {
        if let Some(more) = found.and_then(|row| self.attachments.more_mut(row)) {
            more.timer.hit_ns = now_ns;
        }
    }

    /// When [`Table::expired`] has something to look at.
    pub fn next_idle_ns(&self) -> Option<u64> {
        Some(self.idle.0.first()?.0)
    }

    /// The next entry that was idle for its time, by number; its time begins anew. Looks at no more than `looks`.
    pub fn expired(&mut self, now_ns: u64, looks: &mut u32) -> Option<u32> {
        loop {
            let (due, index) = *self.idle.0.first()?;
            if due > now_ns || *looks == 0 {
                return None;
            }
            *looks -= 1;
            self.stop_timer(index);
            let timer = self.timer(index)?;
            let idle = timer.expires_ns().is_some_and(|at| at <= now_ns);
            if idle {
                timer.told_ns = now_ns;
            }
            self.start_timer(index);
            if idle {
                return Some(index);
            }
        }
    }

    /// No packet could find an entry before now.
    pub fn restart_timers(&mut self, now_ns: u64) {
        for row in 0..self.numbers() {
            self.stop_timer(row);
            if let Some(timer) = self.timer(row) {
                *timer = Timer::new(timer.timeout_ns, now_ns);
            }
            self.start_timer(row);
        }
    }

    /// The timer of an entry of a table that has them.
    pub fn timer_of(&self, index: Index) -> Option<Timer> {
        Some(self.attachments.more(index)?.timer)
    }

    /// Lets an entry's time go on from what it was elsewhere.
    pub fn resume_timer(
        &mut self,
        priority: i32,
        key: &[FieldKey],
        from: Timer,
    ) -> Result<(), TableError> {
        let key = self.whole_key(priority, key)?;
        let row = self.row(&key)?;
        self.stop_timer(row);
        if let Some(timer) = self.timer(row) {
            (timer.hit_ns, timer.told_ns) = (from.hit_ns, from.told_ns);
        }
        self.start_timer(row);
        Ok(())
    }

    fn timer(&mut self, index: Index) -> Option<&mut Timer> {
        Some(&mut self.attachments.more_mut(index)?.timer)
    }

    pub(super) fn start_timer(&mut self, index: Index) {
        let Some(timer) = self.timer(index) else {
            return;
        };
        timer.due_ns = timer.expires_ns();
        if let Some(due) = timer.due_ns {
            self.idle.0.insert((due, index));
        }
    }

    pub(super) fn stop_timer(&mut self, index: Index) {
        if let Some(due) = self.timer(index).and_then(|timer| timer.due_ns.take()) {
            self.idle.0.remove(&(due, index));
        }
    }
}
