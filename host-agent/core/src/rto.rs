//! The retransmission timeout (RFC 6298's estimator with Karn's rule), and the limits on retries.

/// Settings of retransmission timeouts, and of when a worker or server gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retransmission {
    /// Lower bound of the retransmission timeout. Workers that share few cores reach a chunk at different times, and an answer
    /// waits for the last of them, so the bound covers their skew.
    pub floor_ns: u64,
    /// Minimum difference between timeout and smoothed round trip (RFC 6298: G). Without it, nearly constant round trips would
    /// leave no margin for a slower one.
    pub granularity_ns: u64,
    /// Retransmission timeout before the first round trip was measured (RFC 6298: 1 s).
    pub initial_ns: u64,
    /// Upper bound of the retransmission timeout when it doubles.
    pub ceiling_ns: u64,
    /// Number of timeouts of one chunk after which a worker gives up. A server waits longer than any worker retries.
    pub max_timeouts: u32,
    /// Number of timeouts of a closing chunk (one that ends the job) after which a worker stops without an answer to it.
    pub max_closing_timeouts: u32,
    /// Number of later chunks that must be answered before a chunk is retransmitted ahead of its timeout; 0: never.
    pub fast_threshold: u32,
    /// Number of answers "other contributions are missing" that a rank receives before it asks the missing ranks.
    pub ask_after: u32,
}

impl Default for Retransmission {
    fn default() -> Self {
        Self {
            floor_ns: 200_000_000,
            granularity_ns: 0,
            initial_ns: 1_000_000_000,
            ceiling_ns: 2_000_000_000,
            max_timeouts: 10,
            max_closing_timeouts: 4,
            fast_threshold: 8,
            ask_after: 3,
        }
    }
}

impl Retransmission {
    /// Settings for ranks of an all-reduce, whose probes are short frames: they probe early, and often before they give up.
    pub fn of_ranks() -> Self {
        Self {
            floor_ns: 10_000_000,
            granularity_ns: 10_000_000,
            initial_ns: 200_000_000,
            max_timeouts: 15,
            ..Self::default()
        }
    }

    /// Maximum time that a worker waits for a chunk: all its timeouts, plus one for the delay that a fast retransmission adds.
    pub fn patience_ns(&self) -> u64 {
        self.ceiling_ns
            .saturating_mul(u64::from(self.max_timeouts) + 1)
    }
}

/// Estimates the round-trip time (RFC 6298, section 2).
#[derive(Debug, Clone)]
pub struct RttEstimator {
    config: Retransmission,
    /// Smoothed round-trip time and its variation, in nanoseconds; `None` before the first sample.
    smoothed: Option<(u64, u64)>,
    /// Number of times that the timeout has doubled since the last round-trip sample (section 5.5).
    backoff: u32,
    backed_off_at_ns: u64,
}

impl RttEstimator {
    /// An estimator without any round-trip sample.
    pub fn new(config: Retransmission) -> Self {
        Self {
            config,
            smoothed: None,
            backoff: 0,
            backed_off_at_ns: 0,
        }
    }

    /// Records the round trip of a chunk that was sent once. Karn's rule (section 3) excludes retransmitted chunks: nobody
    /// knows which of their transmissions was answered.
    pub fn sample(&mut self, rtt_ns: u64) {
        let rtt_ns = rtt_ns.min(1 << 60); // keeps the sums below from overflowing
        self.smoothed = Some(match self.smoothed {
            None => (rtt_ns, rtt_ns / 2),
            Some((srtt, rttvar)) => (
                (7 * srtt + rtt_ns) / 8,
                (3 * rttvar + srtt.abs_diff(rtt_ns)) / 4,
            ),
        });
        self.backoff = 0;
    }

    /// Records that a chunk sent at `sent_at_ns` timed out.
    ///
    /// The doubled timeout also applies to later chunks. Otherwise a round trip longer than the timeout would never be
    /// measured: every chunk would be retransmitted, and every sample ambiguous. Chunks that time out together double it once.
    pub fn timed_out(&mut self, now_ns: u64, sent_at_ns: u64) {
        if self.backoff == 0 || sent_at_ns >= self.backed_off_at_ns {
            self.backoff += 1;
            self.backed_off_at_ns = now_ns;
        }
    }

    /// The retransmission timeout without doubling.
    pub fn base_ns(&self) -> u64 {
        let Retransmission {
            floor_ns,
            granularity_ns,
            initial_ns,
            ..
        } = self.config;
        let base_ns = match self.smoothed {
            None => initial_ns,
            Some((srtt, rttvar)) => {
                srtt.saturating_add(granularity_ns.max(rttvar.saturating_mul(4)))
            }
        };
        base_ns.max(floor_ns)
    }

    /// The retransmission timeout of a chunk that has already timed out `timeouts` times.
    pub fn timeout_ns(&self, timeouts: u32) -> u64 {
        let doublings = timeouts.max(self.backoff).min(63);
        let doubled = u128::from(self.base_ns()) << doublings;
        let longest_ns = self.config.ceiling_ns;
        u64::try_from(doubled).unwrap_or(u64::MAX).min(longest_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn config() -> Retransmission {
        Retransmission {
            floor_ns: MS,
            initial_ns: 1000 * MS,
            ceiling_ns: 60_000 * MS,
            ..Retransmission::default()
        }
    }

    #[test]
    fn the_first_samples_follow_the_rfc() {
        let mut rtt = RttEstimator::new(config());
        assert_eq!(rtt.timeout_ns(0), 1000 * MS);
        rtt.sample(100 * MS); // SRTT 100, RTTVAR 50
        assert_eq!(rtt.timeout_ns(0), 300 * MS);
        rtt.sample(180 * MS); // RTTVAR = 3/4·50 + 1/4·80 = 57.5, SRTT = 7/8·100 + 1/8·180 = 110
        assert_eq!(rtt.timeout_ns(0), 340 * MS);
    }

    #[test]
    fn floor_and_ceiling_hold() {
        let mut rtt = RttEstimator::new(config());
        rtt.sample(1000);
        assert_eq!(rtt.timeout_ns(0), MS);
        assert_eq!(rtt.timeout_ns(3), 8 * MS);
        assert_eq!(rtt.timeout_ns(500), 60_000 * MS);
        rtt.sample(u64::MAX / 16);
        assert_eq!(rtt.timeout_ns(0), 60_000 * MS);
    }

    #[test]
    fn a_window_that_times_out_together_doubles_once() {
        let mut rtt = RttEstimator::new(config());
        for _ in 0..64 {
            rtt.timed_out(1000 * MS, 0);
        }
        assert_eq!(rtt.timeout_ns(0), 2000 * MS);
        rtt.timed_out(3000 * MS, 1000 * MS);
        assert_eq!(rtt.timeout_ns(0), 4000 * MS);
        rtt.sample(10 * MS);
        assert_eq!(rtt.timeout_ns(0), 30 * MS, "a sample ends the doubling");
    }

    /// Karn's rule alone would never learn a round trip above the timeout.
    #[test]
    fn a_round_trip_longer_than_the_timeout_is_learnt() {
        let mut rtt = RttEstimator::new(Retransmission {
            initial_ns: MS,
            ..config()
        });
        let rtt_ns = 50 * MS;
        let mut now = 0;
        for _ in 0..20 {
            let timeout = rtt.timeout_ns(0);
            if timeout >= rtt_ns {
                rtt.sample(rtt_ns);
                assert!(rtt.timeout_ns(0) > rtt_ns);
                return;
            }
            rtt.timed_out(now + timeout, now);
            now += rtt_ns;
        }
        panic!("never learnt");
    }
}
