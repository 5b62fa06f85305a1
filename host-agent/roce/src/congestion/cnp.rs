//! DCQCN's notification point (section 3.1): a receiver of ECN-marked packets sends CNPs to their sender, at limited intervals.

/// Minimum interval between two CNPs of a queue pair, in nanoseconds: 50 µs.
pub const INTERVAL_NS: u64 = 50_000;

/// Decides when a queue pair sends congestion notification packets (CNPs).
#[derive(Debug, Clone, Copy, Default)]
pub struct CnpTimer {
    sent_ns: Option<u64>,
    due: bool,
}

impl CnpTimer {
    /// Records that a packet with the ECN mark CE arrived. It has no effect within the minimum interval after a CNP.
    pub fn marked(&mut self, now_ns: u64) {
        self.due |= self
            .sent_ns
            .is_none_or(|sent_ns| now_ns >= sent_ns.saturating_add(INTERVAL_NS));
    }

    /// Whether a CNP must be sent now; if so, the timer counts it as sent.
    pub fn take(&mut self, now_ns: u64) -> bool {
        let due = std::mem::take(&mut self.due);
        if due {
            self.sent_ns = Some(now_ns);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_make_one_cnp_an_interval() {
        let mut timer = CnpTimer::default();
        assert!(!timer.take(0));
        let mut sent = Vec::new();
        for now_ns in (0..200_000).step_by(1000) {
            timer.marked(now_ns);
            if timer.take(now_ns) {
                sent.push(now_ns);
            }
        }
        assert_eq!(sent, [0, 50_000, 100_000, 150_000]);
        assert!(!timer.take(10_000_000), "no mark, no CNP");
    }
}
