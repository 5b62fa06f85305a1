//! How long ranks take to go on after something has happened: a switch that has forgotten all, for instance.

use aggregation::rank::Rank;

/// What was under way at a stated time, and when all of it had its sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// That time.
    pub at_ns: u64,
    /// The longest retransmission timeout that a rank had then.
    pub timeout_ns: u64,
    /// How much later every rank had all sums of what it had sent before; `None` if that never was.
    pub took_ns: Option<u64>,
}

impl Recovery {
    /// It is that time.
    pub fn begin<'r>(at_ns: u64, ranks: impl Iterator<Item = &'r Rank>) -> Self {
        Self {
            at_ns,
            timeout_ns: ranks.map(Rank::timeout_now_ns).max().unwrap_or(0),
            took_ns: None,
        }
    }

    /// Something has happened since. A rank that has all that it had sent before may wait for what it has sent after.
    pub fn look<'r>(&mut self, now_ns: u64, mut ranks: impl Iterator<Item = &'r Rank>) {
        let has_gone_on = |rank: &Rank| {
            rank.oldest_since_ns()
                .is_none_or(|since_ns| since_ns >= self.at_ns)
        };
        if self.took_ns.is_none() && ranks.all(has_gone_on) {
            self.took_ns = Some(now_ns - self.at_ns);
        }
    }

    /// The same in timeouts of that moment.
    pub fn in_timeouts(&self) -> Option<f64> {
        Some(self.took_ns? as f64 / self.timeout_ns as f64)
    }
}
