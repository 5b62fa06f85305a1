//! The reaction point: DCQCN's rate control (Zhu et al., SIGCOMM 2015, section 3.1 and figure 7), and pacing at its rate.
//!
//! ```text
//!               CNP: R_T = R_C, R_C·(1 − α/2), α grows
//!   line rate ───────────────────────────────────▶ fast recovery ──F turns──▶ additive ──both F──▶ hyper increase
//!       ▲             R_C half way to R_T, each turn │   (+ R_AI)    │               (+ i·R_HAI)  │
//!       └────────────────────────────────────────────┴───────────────┴────── R_C is the line rate ┘
//! ```
//!
//! A turn (increase of the rate) occurs after each period T, and after each B bytes. Timers need no wake-up: when the next
//! packet is sent, missed turns are made up for.

/// Parameters of DCQCN under the paper's names; the paper's values are for 40 Gb/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DcqcnConfig {
    /// Initial rate of a flow, and upper bound of its rate, in bits per second.
    pub line_rate_bps: u64,
    /// Lower bound of a flow's rate, in bits per second.
    pub min_rate_bps: u64,
    /// g: weight of one CNP in the estimate α of congestion.
    pub g: f64,
    /// K: time without a CNP after which α decreases, in nanoseconds.
    pub alpha_period_ns: u64,
    /// T: period after which the timer raises the rate, in nanoseconds.
    pub increase_period_ns: u64,
    /// B: number of sent bytes after which the byte counter raises the rate.
    pub increase_bytes: u64,
    /// F: number of rate increases in the phase "fast recovery".
    pub fast_turns: u32,
    /// R_AI: additive rate increase, in bits per second.
    pub additive_bps: u64,
    /// R_HAI: rate increase in the phase "hyper increase", in bits per second.
    pub hyper_bps: u64,
}

impl DcqcnConfig {
    /// The paper's parameters, with its rates scaled from 40 Gb/s to this line rate.
    pub fn new(line_rate_bps: u64) -> Self {
        Self {
            line_rate_bps,
            min_rate_bps: (line_rate_bps / 1000).max(1),
            g: 1.0 / 256.0,
            alpha_period_ns: 55_000,
            increase_period_ns: 55_000,
            increase_bytes: 10_000_000,
            fast_turns: 5,
            additive_bps: line_rate_bps / 1000,
            hyper_bps: line_rate_bps / 100,
        }
    }
}

/// Number of timer periods without transmission or CNP after which a flow again has the line rate, whatever its parameters.
const SILENT_TURNS: u64 = 100_000;

/// Rate limiter of a queue pair, according to DCQCN.
#[derive(Debug, Clone)]
pub struct RateLimiter {
    config: Option<DcqcnConfig>,
    /// Rate limit during congestion; `None` without congestion: then packets are sent at once.
    limit: Option<Limit>,
    /// DCQCN's α, the estimate of congestion (0 to 1): how much the next CNP reduces the rate.
    alpha: f64,
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    /// Current rate R_C and target rate R_T, in bits per second.
    current_bps: f64,
    target_bps: f64,
    /// Times at which α is next decreased and the timer next raises the rate.
    alpha_due_ns: u64,
    increase_due_ns: u64,
    bytes_left: u64,
    timer_turns: u32,
    byte_turns: u32,
    /// Earliest time at which the next packet may be sent.
    next_ns: u64,
}

impl RateLimiter {
    /// Creates a limiter at line rate. Without a configuration, CNPs have no effect.
    pub fn new(config: Option<DcqcnConfig>) -> Self {
        Self {
            config,
            limit: None,
            alpha: 1.0,
        }
    }

    /// Current rate R_C in bits per second; `None` if no limit is in force.
    pub fn rate_bps(&self) -> Option<u64> {
        self.limit.map(|limit| limit.current_bps as u64)
    }

    /// Earliest time at which the next packet may be sent; `None` if no limit is in force.
    pub fn next_ns(&self) -> Option<u64> {
        self.limit.map(|limit| limit.next_ns)
    }

    /// Whether the next packet must wait because of the rate limit.
    pub fn is_paced(&self, now_ns: u64) -> bool {
        self.limit.is_some_and(|limit| limit.next_ns > now_ns)
    }

    /// Reduces the rate after a congestion notification packet (CNP) from the receiver.
    pub fn handle_cnp(&mut self, now_ns: u64) {
        let Some(config) = self.config else {
            return;
        };
        self.catch_up(now_ns);
        let rate_bps = self
            .limit
            .map_or(config.line_rate_bps as f64, |limit| limit.current_bps);
        let cut_bps = rate_bps * (1.0 - self.alpha / 2.0);
        self.alpha = (1.0 - config.g) * self.alpha + config.g;
        self.limit = Some(Limit {
            current_bps: cut_bps.max(config.min_rate_bps as f64),
            target_bps: rate_bps,
            alpha_due_ns: now_ns.saturating_add(config.alpha_period_ns),
            increase_due_ns: now_ns.saturating_add(config.increase_period_ns),
            bytes_left: config.increase_bytes,
            timer_turns: 0,
            byte_turns: 0,
            next_ns: self.limit.map_or(now_ns, |limit| limit.next_ns),
        });
    }

    /// Records that `bytes` bytes were sent, and sets the time of the next packet.
    pub fn sent(&mut self, now_ns: u64, bytes: usize) {
        self.catch_up(now_ns);
        let Some(config) = self.config else {
            return;
        };
        let Some(limit) = &mut self.limit else {
            return;
        };
        let takes_ns = bytes as f64 * 8e9 / limit.current_bps;
        limit.next_ns = limit.next_ns.max(now_ns).saturating_add(takes_ns as u64);
        match limit.bytes_left.checked_sub(bytes as u64) {
            Some(left) => limit.bytes_left = left,
            None => {
                limit.bytes_left = config.increase_bytes;
                limit.byte_turns += 1;
                limit.increase(&config);
                self.end_at_line_rate();
            }
        }
    }

    /// Applies all timer periods that have passed until `now_ns`.
    fn catch_up(&mut self, now_ns: u64) {
        let Some(config) = self.config else {
            return;
        };
        let silent_ns = config.increase_period_ns.saturating_mul(SILENT_TURNS);
        let is_over = |limit: &Limit| now_ns.saturating_sub(limit.increase_due_ns) > silent_ns;
        if self.limit.as_ref().is_some_and(is_over) {
            self.limit = None;
            self.alpha = 0.0;
        }
        while let Some(limit) = &mut self.limit {
            let due_ns = limit.alpha_due_ns.min(limit.increase_due_ns);
            if due_ns > now_ns {
                return;
            }
            if limit.alpha_due_ns == due_ns {
                self.alpha *= 1.0 - config.g;
                limit.alpha_due_ns = due_ns.saturating_add(config.alpha_period_ns.max(1));
            } else {
                limit.timer_turns += 1;
                limit.increase_due_ns = due_ns.saturating_add(config.increase_period_ns.max(1));
                limit.increase(&config);
                self.end_at_line_rate();
            }
        }
    }

    fn end_at_line_rate(&mut self) {
        let line_bps = self
            .config
            .map_or(0.0, |config| config.line_rate_bps as f64);
        // Recovery only halves the distance to the line rate, so 99.9 % of it counts as reached.
        self.limit = self
            .limit
            .filter(|limit| limit.current_bps < line_bps * 0.999);
    }
}

impl Limit {
    fn increase(&mut self, config: &DcqcnConfig) {
        let (timer, bytes, fast) = (self.timer_turns, self.byte_turns, config.fast_turns);
        if timer.min(bytes) > fast {
            let turns = timer.min(bytes) - fast;
            self.target_bps += f64::from(turns) * config.hyper_bps as f64;
        } else if timer.max(bytes) > fast {
            self.target_bps += config.additive_bps as f64;
        }
        self.target_bps = self.target_bps.min(config.line_rate_bps as f64);
        self.current_bps = (self.current_bps + self.target_bps) / 2.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = 40_000_000_000;

    #[test]
    fn the_first_cnp_halves_the_rate_and_five_turns_bring_it_back() {
        let mut limiter = RateLimiter::new(Some(DcqcnConfig::new(LINE)));
        limiter.sent(0, 4096);
        assert_eq!(limiter.rate_bps(), None);
        limiter.handle_cnp(1000);
        assert_eq!(limiter.rate_bps(), Some(LINE / 2), "α begins at 1");
        let mut rates = Vec::new();
        for turn in 1..=4 {
            limiter.sent(1000 + turn * 55_000, 0);
            rates.push(limiter.rate_bps().unwrap() as f64 / LINE as f64);
        }
        assert_eq!(rates, [0.75, 0.875, 0.9375, 0.96875]);
        limiter.sent(1000 + 20 * 55_000, 0);
        assert_eq!(limiter.rate_bps(), None, "at line rate again");
    }

    #[test]
    fn packets_are_spaced_by_the_rate() {
        let mut limiter = RateLimiter::new(Some(DcqcnConfig::new(LINE)));
        limiter.handle_cnp(0);
        assert!(!limiter.is_paced(0));
        limiter.sent(0, 4096);
        // 4,096 bytes at 20 Gb/s.
        assert_eq!(limiter.next_ns(), Some(1638));
        assert!(limiter.is_paced(1637) && !limiter.is_paced(1638));
    }

    #[test]
    fn the_rate_has_a_minimum_and_recovers_after_idle_years() {
        let mut limiter = RateLimiter::new(Some(DcqcnConfig::new(LINE)));
        for at in 0..1000 {
            limiter.handle_cnp(at);
        }
        assert_eq!(limiter.rate_bps(), Some(LINE / 1000));
        limiter.handle_cnp(u64::MAX - 1);
        assert!(limiter.rate_bps().unwrap() > LINE / 2, "α has shrunk");
    }

    #[test]
    fn useless_parameters_do_not_loop_forever() {
        let mut limiter = RateLimiter::new(Some(DcqcnConfig {
            additive_bps: 0,
            hyper_bps: 0,
            increase_period_ns: 0,
            ..DcqcnConfig::new(LINE)
        }));
        for at in 0..3 {
            limiter.handle_cnp(at);
        }
        limiter.sent(u64::MAX, 0);
        assert_eq!(limiter.rate_bps(), None);
    }

    #[test]
    fn without_parameters_packets_are_not_paced() {
        let mut limiter = RateLimiter::new(None);
        limiter.handle_cnp(0);
        limiter.sent(0, 4096);
        assert_eq!((limiter.rate_bps(), limiter.next_ns()), (None, None));
    }
}
