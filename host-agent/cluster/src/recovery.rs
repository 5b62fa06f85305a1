//! Measures the time that ranks take to recover from an event, such as the restart of a switch.

use aggregation::rank::Rank;

/// Recovery of the ranks after an event: the time until all chunks that were in flight then have their sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// Time of the event, in virtual nanoseconds.
    pub at_ns: u64,
    /// Longest retransmission timeout that a rank had at the event, in nanoseconds.
    pub timeout_ns: u64,
    /// Nanoseconds from the event until every rank had the sums of all chunks that it had sent before; `None` if never.
    pub took_ns: Option<u64>,
}

impl Recovery {
    /// Begins the measurement at the event, when time is `at_ns`.
    pub fn begin<'r>(at_ns: u64, ranks: impl Iterator<Item = &'r Rank>) -> Self {
        Self {
            at_ns,
            timeout_ns: ranks.map(Rank::timeout_now_ns).max().unwrap_or(0),
            took_ns: None,
        }
    }

    /// Checks whether the ranks have recovered at `now_ns`: each has the sums of all chunks that it had sent before the event.
    pub fn look<'r>(&mut self, now_ns: u64, mut ranks: impl Iterator<Item = &'r Rank>) {
        let has_gone_on = |rank: &Rank| {
            rank.oldest_since_ns()
                .is_none_or(|since_ns| since_ns >= self.at_ns)
        };
        if self.took_ns.is_none() && ranks.all(has_gone_on) {
            self.took_ns = Some(now_ns - self.at_ns);
        }
    }

    /// Recovery time divided by the longest retransmission timeout at the event; `None` if the ranks did not recover.
    pub fn in_timeouts(&self) -> Option<f64> {
        Some(self.took_ns? as f64 / self.timeout_ns as f64)
    }
}
