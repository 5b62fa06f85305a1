//! Time that ranks take to recover from an event, such as the restart of a switch.

use aggregation::rank::Rank;

/// The chunks in flight at a watched time, and the time until all of them had their sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// The watched time.
    pub at_ns: u64,
    /// The longest retransmission timeout of a rank at that time.
    pub timeout_ns: u64,
    /// Time until every rank had all sums of chunks that it had sent before; `None` if that never happened.
    pub took_ns: Option<u64>,
}

impl Recovery {
    /// Begins at the watched time.
    pub fn begin<'r>(at_ns: u64, ranks: impl Iterator<Item = &'r Rank>) -> Self {
        Self {
            at_ns,
            timeout_ns: ranks.map(Rank::timeout_now_ns).max().unwrap_or(0),
            took_ns: None,
        }
    }

    /// Checks the ranks after an event. A rank that has the sums of all earlier chunks may still wait for later ones.
    pub fn look<'r>(&mut self, now_ns: u64, mut ranks: impl Iterator<Item = &'r Rank>) {
        let has_gone_on = |rank: &Rank| {
            rank.oldest_since_ns()
                .is_none_or(|since_ns| since_ns >= self.at_ns)
        };
        if self.took_ns.is_none() && ranks.all(has_gone_on) {
            self.took_ns = Some(now_ns - self.at_ns);
        }
    }

    /// The recovery time in timeouts of that moment.
    pub fn in_timeouts(&self) -> Option<f64> {
        Some(self.took_ns? as f64 / self.timeout_ns as f64)
    }
}
