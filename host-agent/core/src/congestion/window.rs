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
    /// The position of the chunk's first transmission among all.
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
        let queued_ns = self.queued_ns(now_ns);
        let (left, floor) = if marks > 0 {
            (1.0 - self.marked / 2.0, MARK_FLOOR)
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
