//! The congestion window: so many chunks may be under way.
//!
//! Three things tell that it is too large, once a round, which is the time in which a window is sent and answered:
//!
//! - *marks*: a queue on the way was long when it took the frame. The window shrinks by half of the share of marked answers, smoothed
//!   (DCTCP, RFC 8257).
//! - *delay*: even the fastest answer of the round was later than the fastest of all by more than a target (Swift, LEDBAT). A sum
//!   waits for the slowest rank as well; who is ahead of the others by more than the target loses nothing if it sends less at once.
//! - *loss* that is more than links have that are not congested, as a policer's is that marks nothing. What is lost at random
//!   does not become less by sending less, so less than that is no sign.

/// An epoch of the fastest round trip lasts so long: a way that has become longer is no congestion for ever.
const EPOCH_NS: u64 = 10_000_000_000;
/// How much longer than the fastest round trip the fastest one of a round may take.
const TARGET_NS: u64 = 1_000_000;
/// Chunks that it begins with.
const INITIAL: u32 = 32;
/// Fewer are not under way by marks: of fewer, a loss is found out by a timeout.
const MARK_FLOOR: u32 = 4;
/// Fewer are not under way by losses: behind the lost ones there have to be others by which they are found out.
const LOSS_FLOOR: u32 = 16;
/// Fewer are not under way by delay: where processors are few a process waits for its turn, and then has to have something to do.
const DELAY_FLOOR: u32 = 32;
/// How fast the share of marked answers is followed (RFC 8257: g).
const GAIN: f64 = 1.0 / 16.0;
/// How much of the excess delay is answered at once, and the least that is left (Swift: β, max_mdf).
const BETA: f64 = 0.8;
const LEAST_LEFT: f64 = 0.5;
/// Share of a round's chunks that may be lost, smoothed, and what is left of a window of which more is.
const TOLERATED_LOSS: f64 = 0.25;
const LEFT_AFTER_LOSS: f64 = 0.7;
/// After so many rounds without a sign it grows by a share of itself (TIMELY: hyperactive increase).
const CALM_ROUNDS: u32 = 5;
const CALM_GROWTH: f64 = 1.0 / 8.0;

/// An answer.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// The position of a transmission of the chunk among all.
    pub order: u64,
    /// How long it took, if that is known.
    pub rtt_ns: Option<u64>,
    /// Whether a queue has marked it.
    pub mark: super::Mark,
}

/// What a round has told.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    /// It ends with the answer to what is sent at this position, or later.
    ends_at: u64,
    answers: u32,
    marks: u32,
    losses: u32,
    fastest_ns: Option<u64>,
    refused: u64,
}

/// What has shrunk the window, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signals {
    /// Answers that a queue has marked.
    pub marks: u64,
    /// Chunks that may be under way now.
    pub window: u32,
    /// The fewest that it was, since the beginning.
    pub least_window: u32,
}

/// A window of a rank or a worker.
#[derive(Debug, Clone)]
pub struct CongestionWindow {
    ceiling: f64,
    mark_floor: u32,
    /// Nothing that is told changes it.
    is_fixed: bool,
    chunks: f64,
    least: f64,
    /// It doubles each round until something tells that it is too large.
    is_starting: bool,
    calm_rounds: u32,
    /// Share of answers that were marked, and of chunks that were lost; smoothed.
    marked: f64,
    lost: f64,
    /// The fastest round trip of this epoch, of the one before, and when this one began.
    fastest_ns: [u64; 2],
    epoch_ns: u64,
    round: Round,
    marks: u64,
}

impl CongestionWindow {
    /// One that never has more than so many chunks.
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

    /// One that marks make as small as one chunk: where all workers send to one server, a queue there has each one's window.
    pub fn to_one_server(ceiling: u32) -> Self {
        Self {
            mark_floor: 1,
            ..Self::new(ceiling)
        }
    }

    /// It has all its chunks from now on, whatever queues say: for comparison.
    pub fn fix(&mut self) {
        self.is_fixed = true;
        self.chunks = self.ceiling;
    }

    /// So many chunks may be under way.
    pub fn chunks(&self) -> usize {
        self.chunks as usize
    }

    /// What it has come to.
    pub fn signals(&self) -> Signals {
        Signals {
            marks: self.marks,
            window: self.chunks as u32,
            least_window: self.least as u32,
        }
    }

    /// A frame of one's own, or its answer, was lost.
    pub fn lost(&mut self) {
        self.round.losses += 1;
    }

    /// What was under way has timed out, so nothing is known of the way: it begins anew, with the least.
    pub fn timed_out(&mut self) {
        if self.is_fixed {
            return;
        }
        self.chunks = f64::from(self.mark_floor).min(self.chunks);
        self.least = self.least.min(self.chunks);
        self.is_starting = true;
        self.calm_rounds = 0;
    }

    /// A chunk is answered. `next_order` is the position of the next transmission, `refused` how often the window was too small.
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
            // A window that nobody has filled says nothing of a larger one.
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

    /// How much longer than the fastest round trip of all that of the round took; 0 if no answer tells.
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

    /// Someone who always has something to send.
    struct Flow {
        window: CongestionWindow,
        in_flight: usize,
        sent: u64,
        refused: u64,
        answered: u64,
    }

    /// A queue that all share.
    struct Link {
        /// A chunk takes so long.
        serial_ns: u64,
        delay_ns: u64,
        /// As chunks.
        marks_above: usize,
        holds: usize,
    }

    impl Link {
        /// Runs flows for so many chunks in all, and gives the longest queue of the second half.
        fn run(&self, flows: &mut [Flow], chunks: u64) -> usize {
            // Flow, order, when it was sent, and its mark.
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
        /// What an earlier run has left under way is forgotten.
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

    /// Jain's index: 1 if all have the same.
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
        // One has the link for itself at first.
        link.run(&mut jobs[..1], 20_000);
        let longest = link.run_from_idle(&mut jobs, 400_000);
        let fairness = fairness(&jobs);
        let answered: u64 = jobs.iter().map(|job| job.answered).sum();
        println!("Jain {fairness:.4}, {answered} of 200000, queue of {longest}");
        assert!(fairness > 0.98, "{fairness}");
        assert!(answered > 195_000, "{answered}");
        assert!(longest < 512, "{longest}");
    }

    /// A queue that marks nothing is told by its delay, and is as short as the target.
    #[test]
    fn a_long_queue_that_marks_nothing_is_noticed() {
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

    /// Answers with so many losses for each.
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
