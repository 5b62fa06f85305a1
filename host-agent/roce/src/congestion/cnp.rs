//! The notification point (DCQCN, section 3.1): a receiver of marked packets notifies their sender at limited intervals.

/// Minimum interval between two CNPs of a queue pair.
pub const INTERVAL_NS: u64 = 50_000;

/// Decides when a queue pair sends CNPs.
#[derive(Debug, Clone, Copy, Default)]
pub struct CnpTimer {
    sent_ns: Option<u64>,
    due: bool,
}

impl CnpTimer {
    /// Records a packet with CE. Within the interval after a CNP it has no effect.
    pub fn marked(&mut self, now_ns: u64) {
        self.due |= self
            .sent_ns
            .is_none_or(|sent_ns| now_ns >= sent_ns.saturating_add(INTERVAL_NS));
    }

    /// Whether a CNP must be sent now; if so, it counts as sent.
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
