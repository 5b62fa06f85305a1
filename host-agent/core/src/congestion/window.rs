//! The congestion window: the maximum number of chunks in flight.
//!
//! Three signals show that it is too large. They are evaluated once per round, the time in which a window is sent and answered:
//!
//! - *marks*: a queue on the path was long when the frame passed it. The window shrinks by half of the smoothed share of
//!   marked answers (DCTCP, RFC 8257).
//! - *delay*: even the fastest answer of the round exceeded the fastest of all by more than a target (Swift, LEDBAT). A sum
//!   also waits for the slowest rank; a rank that is ahead by more than the target loses nothing if it sends less at once.
//! - *loss* above the rate of uncongested links, as a policer causes that does not mark. Random loss does not decrease when a
//!   rank sends less, so a lower rate is no signal.

/// Length in nanoseconds of the epochs, for each of which the fastest round trip is kept: a path may become longer with time.
const EPOCH_NS: u64 = 10_000_000_000;
/// Allowed excess, in nanoseconds, of a window's fastest round trip over the fastest of the last two epochs.
const TARGET_NS: u64 = 1_000_000;
/// Initial congestion window in chunks.
const INITIAL: u32 = 32;
/// Lower bound, in chunks, of a window that marks shrink: with fewer chunks in flight, only a timeout detects a loss.
const MARK_FLOOR: u32 = 4;
/// Lower bound, in chunks, of a window that losses shrink: later chunks must be in flight to detect a loss.
const LOSS_FLOOR: u32 = 16;
/// Lower bound, in chunks, of a window that delay shrinks: the delay may be a wait for a processor core, not congestion.
const DELAY_FLOOR: u32 = 32;
/// Gain of the smoothed share of marked answers (RFC 8257: g).
const GAIN: f64 = 1.0 / 16.0;
/// Share of the excess delay corrected per round, and the smallest factor applied to the window (Swift: β, max_mdf).
const BETA: f64 = 0.8;
const LEAST_LEFT: f64 = 0.5;
/// Tolerated smoothed share of lost chunks, and the factor applied to the congestion window above that share.
const TOLERATED_LOSS: f64 = 0.25;
const LEFT_AFTER_LOSS: f64 = 0.7;
/// Number of rounds (windows sent) without a congestion signal, after which the window grows faster (TIMELY: hyperactive).
const CALM_ROUNDS: u32 = 5;
const CALM_GROWTH: f64 = 1.0 / 8.0;

/// An answered chunk, as the congestion window records it.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// Number of one of the chunk's transmissions, in the order of the transmissions of all lanes.
    pub order: u64,
    /// Round-trip time, or `None` if it is unknown.
    pub rtt_ns: Option<u64>,
    /// Congestion mark (ECN) of the answer.
    pub mark: super::Mark,
}

/// Counters of one round, the time in which one window of chunks is sent and answered.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    /// The round ends with the answer to a transmission with this order number or a higher one.
    ends_at: u64,
    answers: u32,
    marks: u32,
    losses: u32,
    fastest_ns: Option<u64>,
    refused: u64,
}

/// Congestion marks (ECN), and their effect on the congestion window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signals {
    /// Number of answers that a queue on the path marked as congested (ECN).
    pub marks: u64,
    /// Current congestion window in chunks.
    pub window: u32,
    /// Smallest congestion window since the start, in chunks.
    pub least_window: u32,
}

/// Congestion window of a rank or a worker.
#[derive(Debug, Clone)]
pub struct CongestionWindow {
    ceiling: f64,
    mark_floor: u32,
    /// Whether the window is fixed: congestion signals do not change it.
    is_fixed: bool,
    chunks: f64,
    least: f64,
    /// Whether the window still doubles each round, as it does until the first congestion signal.
    is_starting: bool,
    calm_rounds: u32,
    /// Smoothed shares of marked answers and of lost chunks, both from 0 to 1.
    marked: f64,
    lost: f64,
    /// Fastest round trips of this epoch (10 s) and of the previous one, and the time at which this epoch began.
    fastest_ns: [u64; 2],
    epoch_ns: u64,
    round: Round,
    marks: u64,
}

impl CongestionWindow {
    /// An initial congestion window that may grow to `ceiling` chunks.
    pub fn new(ceiling: u32) -> Self {
        let chunks = f64::from(ceiling.min(INITIAL));
        Self {
            ceiling: f64::from(ceiling),
            mark_floor: MARK_FLOOR,
            is_fixed: false,
            chunks,
            least: chunks,
            is_starting: true,
            calm_rounds: 0,
            marked: 1.0,
            lost: 0.0,
            fastest_ns: [u64::MAX; 2],
            epoch_ns: 0,
            round: Round::default(),
            marks: 0,
        }
    }

    /// A congestion window that marks can shrink to one chunk: if all workers send to one server, its queue holds all windows.
    pub fn to_one_server(ceiling: u32) -> Self {
        Self {
            mark_floor: 1,
            ..Self::new(ceiling)
        }
    }

    /// Fixes the congestion window at its ceiling, whatever signals arrive: for comparison.
    pub fn fix(&mut self) {
        self.is_fixed = true;
        self.chunks = self.ceiling;
    }

    /// Current congestion window in chunks.
    pub fn chunks(&self) -> usize {
        self.chunks as usize
    }

    /// Number of marks so far, current window and smallest window.
    pub fn signals(&self) -> Signals {
        Signals {
            marks: self.marks,
            window: self.chunks as u32,
            least_window: self.least as u32,
        }
    }

    /// Records the loss of a frame that this rank or worker sent, or of its answer.
    pub fn lost(&mut self) {
        self.round.losses += 1;
    }

    /// Restarts from the smallest window after the chunks in flight timed out, when the state of the path is unknown.
    pub fn timed_out(&mut self) {
        if self.is_fixed {
            return;
        }
        self.chunks = f64::from(self.mark_floor).min(self.chunks);
        self.least = self.least.min(self.chunks);
        self.is_starting = true;
        self.calm_rounds = 0;
    }

    /// Records an answered chunk. `next_order`: order number of the next transmission; `refused`: times the window was full.
    pub fn answered(&mut self, now_ns: u64, answer: Answered, next_order: u64, refused: u64) {
        let is_marked = answer.mark == super::Mark::Congested;
        self.marks += u64::from(is_marked);
        self.round.answers += 1;
        self.round.marks += u32::from(is_marked);
        if let Some(rtt_ns) = answer.rtt_ns {
            let fastest_ns = self.round.fastest_ns.unwrap_or(u64::MAX);
            self.round.fastest_ns = Some(fastest_ns.min(rtt_ns));
        }
        if answer.order >= self.round.ends_at {
            self.end_round(now_ns, refused);
            self.round = Round {
                ends_at: next_order,
                refused,
                ..Round::default()
            };
        }
    }

    fn end_round(&mut self, now_ns: u64, refused: u64) {
        let Round {
            answers,
            marks,
            losses,
            ..
        } = self.round;
        let share = |count: u32| f64::from(count) / f64::from(answers.max(1));
        self.marked += GAIN * (share(marks) - self.marked);
        self.lost += GAIN * (share(losses).min(1.0) - self.lost);
        if self.is_fixed {
            return;
        }
        let queued_ns = self.queued_ns(now_ns);
        let (left, floor) = if marks > 0 {
            (1.0 - self.marked / 2.0, self.mark_floor)
        } else if queued_ns > TARGET_NS {
            let excess = (queued_ns - TARGET_NS) as f64 / queued_ns as f64;
            ((1.0 - BETA * excess).max(LEAST_LEFT), DELAY_FLOOR)
        } else if self.lost > TOLERATED_LOSS {
            (LEFT_AFTER_LOSS, LOSS_FLOOR)
        } else {
            // A window that was never full gives no evidence for a larger one.
            if refused > self.round.refused {
                self.grow();
            }
            return;
        };
        self.is_starting = false;
        self.calm_rounds = 0;
        let floor = f64::from(floor).min(self.chunks);
        self.chunks = (self.chunks * left).max(floor);
        self.least = self.least.min(self.chunks);
    }

    fn grow(&mut self) {
        self.calm_rounds += 1;
        let by = match self.is_starting {
            true => self.chunks,
            false if self.calm_rounds > CALM_ROUNDS => (self.chunks * CALM_GROWTH).max(1.0),
            false => 1.0,
        };
        self.chunks = (self.chunks + by).min(self.ceiling);
    }

    /// Excess of this round's fastest round trip over the fastest of the last two epochs; 0 without a sample in this round.
    fn queued_ns(&mut self, now_ns: u64) -> u64 {
        let Some(fastest_ns) = self.round.fastest_ns else {
            return 0;
        };
        if now_ns.saturating_sub(self.epoch_ns) > EPOCH_NS {
            self.epoch_ns = now_ns;
            self.fastest_ns = [u64::MAX, self.fastest_ns[0]];
        }
        self.fastest_ns[0] = self.fastest_ns[0].min(fastest_ns);
        fastest_ns - self.fastest_ns[0].min(self.fastest_ns[1])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::Mark;

    const US: u64 = 1_000;

    /// A sender that always has something to send.
    struct Flow {
        window: CongestionWindow,
        in_flight: usize,
        sent: u64,
        refused: u64,
        answered: u64,
    }

    /// A queue that all flows share.
    struct Link {
        /// Time to transmit one chunk.
        serial_ns: u64,
        delay_ns: u64,
        /// Queue length in chunks above which the link marks.
        marks_above: usize,
        holds: usize,
    }

    impl Link {
        /// Runs the flows until `chunks` chunks have passed, and returns the longest queue of the second half.
        fn run(&self, flows: &mut [Flow], chunks: u64) -> usize {
            // Flow, order, time of transmission, mark.
            let mut queue: VecDeque<(usize, u64, u64, Mark)> = VecDeque::new();
            let mut back: VecDeque<(u64, usize, u64, u64, Mark)> = VecDeque::new();
            let mut longest = 0;
            for turn in 0..chunks {
                let now_ns = turn * self.serial_ns;
                while back.front().is_some_and(|answer| answer.0 <= now_ns) {
                    let (_, flow, order, sent_ns, mark) = back.pop_front().expect("seen");
                    let flow = &mut flows[flow];
                    flow.in_flight -= 1;
                    flow.answered += u64::from(turn > chunks / 2);
                    let answered = Answered {
                        order,
                        rtt_ns: Some(now_ns - sent_ns),
                        mark,
                    };
                    flow.window
                        .answered(now_ns, answered, flow.sent, flow.refused);
                }
                let count = flows.len();
                for at in (0..count).map(|at| (at + turn as usize) % count) {
                    let flow = &mut flows[at];
                    while flow.in_flight < flow.window.chunks() && queue.len() < self.holds {
                        let mark = match queue.len() > self.marks_above {
                            true => Mark::Congested,
                            false => Mark::None,
                        };
                        queue.push_back((at, flow.sent, now_ns, mark));
                        flow.in_flight += 1;
                        flow.sent += 1;
                    }
                    flow.refused += 1;
                }
                if turn > chunks / 2 {
                    longest = longest.max(queue.len());
                }
                if let Some((flow, order, sent_ns, mark)) = queue.pop_front() {
                    back.push_back((now_ns + self.delay_ns, flow, order, sent_ns, mark));
                }
            }
            longest
        }
    }

    impl Link {
        /// Runs the flows without the chunks that an earlier run left in flight.
        fn run_from_idle(&self, flows: &mut [Flow], chunks: u64) -> usize {
            for flow in &mut *flows {
                flow.in_flight = 0;
                flow.answered = 0;
            }
            self.run(flows, chunks)
        }
    }

    fn flows(count: usize) -> Vec<Flow> {
        let flow = || Flow {
            window: CongestionWindow::new(256),
            in_flight: 0,
            sent: 0,
            refused: 0,
            answered: 0,
        };
        std::iter::repeat_with(flow).take(count).collect()
    }

    /// Jain's fairness index: 1 if all flows have an equal share.
    fn fairness(flows: &[Flow]) -> f64 {
        let shares = || flows.iter().map(|flow| flow.answered as f64);
        let sum: f64 = shares().sum();
        sum * sum / (flows.len() as f64 * shares().map(|share| share * share).sum::<f64>())
    }

    #[test]
    fn sixteen_jobs_share_a_link_that_marks() {
        let link = Link {
            serial_ns: 9 * US,
            delay_ns: 1_000 * US,
            marks_above: 60,
            holds: 4096,
        };
        let mut jobs = flows(16);
        // One job has the link to itself at first.
        link.run(&mut jobs[..1], 20_000);
        let longest = link.run_from_idle(&mut jobs, 400_000);
        let fairness = fairness(&jobs);
        let answered: u64 = jobs.iter().map(|job| job.answered).sum();
        println!("Jain {fairness:.4}, {answered} of 200000, queue of {longest}");
        assert!(fairness > 0.98, "{fairness}");
        assert!(answered > 195_000, "{answered}");
        assert!(longest < 512, "{longest}");
    }

    /// Delay reveals a queue that does not mark, and keeps it as short as the target.
    #[test]
    fn a_long_queue_without_marks_is_noticed() {
        let link = Link {
            serial_ns: 40 * US,
            delay_ns: 100 * US,
            marks_above: usize::MAX,
            holds: 4096,
        };
        let mut one = flows(1);
        let longest = link.run(&mut one, 50_000);
        let signals = one[0].window.signals();
        println!("queue of {longest}, {signals:?}");
        assert!(one[0].answered > 24_000, "{}", one[0].answered);
        assert!((DELAY_FLOOR..64).contains(&signals.window), "{signals:?}");
        assert_eq!(signals.marks, 0);
    }

    /// The window after 100,000 answers, each with `share` losses.
    fn after_losses(share: f64) -> Signals {
        let mut window = CongestionWindow::new(256);
        let mut owed = 0.0;
        for order in 0..100_000 {
            owed += share;
            while owed >= 1.0 {
                window.lost();
                owed -= 1.0;
            }
            let answered = Answered {
                order,
                rtt_ns: Some(100 * US),
                mark: Mark::None,
            };
            window.answered(order * US, answered, order + 100, order);
        }
        window.signals()
    }

    #[test]
    fn losses_at_random_are_no_congestion_and_those_of_a_policer_are() {
        // 5 % are lost each way.
        let random = after_losses(0.1);
        assert_eq!((random.window, random.least_window), (256, INITIAL));
        let policed = after_losses(0.5);
        assert_eq!(policed.window, LOSS_FLOOR);
    }

    #[test]
    fn a_window_that_is_not_filled_does_not_grow() {
        let mut window = CongestionWindow::new(256);
        for order in 0..1000 {
            let answered = Answered {
                order,
                rtt_ns: Some(100 * US),
                mark: Mark::None,
            };
            window.answered(order * US, answered, order + 4, 0);
        }
        assert_eq!(window.signals().window, INITIAL);
    }
}
