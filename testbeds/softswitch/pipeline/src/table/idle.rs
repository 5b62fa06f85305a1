//! Idle timeouts: finds table entries that no packet has matched within their timeout (P4Runtime specification 1.4, section
//! 9.1.7).

use super::{FieldKey, Index, Table, TableError};
use std::collections::BTreeSet;

/// Minimum effective idle timeout, in nanoseconds. A shorter one is stored as written, but takes this long.
const SHORTEST_NS: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timer {
    /// Idle timeout as written, in nanoseconds; 0: none.
    pub timeout_ns: u64,
    /// Time of the last packet that matched the entry, in nanoseconds; before the first packet, time of the write.
    pub hit_ns: u64,
    /// Time of the last report of the entry to the control plane, in nanoseconds.
    told_ns: u64,
    /// Time of the next check, the timer's key in [`Timers`], in nanoseconds; `None`: no check.
    due_ns: Option<u64>,
}

impl Timer {
    /// Creates the timer of a table entry that is written at `now_ns`.
    pub fn new(timeout_ns: u64, now_ns: u64) -> Timer {
        Timer {
            timeout_ns,
            hit_ns: now_ns,
            told_ns: now_ns,
            due_ns: None,
        }
    }

    /// The timer with another idle timeout, counted from `now_ns`.
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

/// Entries by time of their next check in nanoseconds, and row number. A match does not move an entry here, its check does.
#[derive(Debug, Clone, Default)]
pub struct Timers(BTreeSet<(u64, u32)>);

impl Table {
    /// Records that a packet has matched the found entry, if there is one.
    #[inline]
    pub fn touch(&mut self, found: Option<Index>, now_ns: u64) {
        if let Some(more) = found.and_then(|row| self.attachments.more_mut(row)) {
            more.timer.hit_ns = now_ns;
        }
    }

    /// Time of the next check by [`Table::expired`], in nanoseconds; `None`: no entry has an idle timeout.
    pub fn next_idle_ns(&self) -> Option<u64> {
        Some(self.idle.0.first()?.0)
    }

    /// Takes the number of the next entry whose idle timeout has passed, which restarts. `None`: none among `looks` entries.
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

    /// Restarts the idle timers of all entries at `now_ns`, because no packet could match an entry earlier.
    pub fn restart_timers(&mut self, now_ns: u64) {
        for row in 0..self.numbers() {
            self.stop_timer(row);
            if let Some(timer) = self.timer(row) {
                *timer = Timer::new(timer.timeout_ns, now_ns);
            }
            self.start_timer(row);
        }
    }

    /// The idle timer of an entry; `None` if its table has no timers.
    pub fn timer_of(&self, index: Index) -> Option<Timer> {
        Some(self.attachments.more(index)?.timer)
    }

    /// Continues the idle timer of an entry with the times that it had in another program.
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
