//! Timing of a rank's registrations at its switch, which precede RDMA WRITEs.
//!
//! ```text
//!           answered                       no word for too long, or SUMs of the other form
//!  ASKING ─────────────▶ REGISTERED ──────────────────────────────────────────────────────▶ ASKING, by a new queue pair
//!    │ ▲
//!    └─┘ again, ever less often; the first time not for ever
//! ```
//!
//! A switch that restarts has forgotten its ranks. Its packets to the previous queue pair are lost, as on any wire.

use aggregation::Retransmission;

/// Silence of the switch, in initial timeouts, after which the rank registers again. By then it has probed the switch in vain.
const SILENT_AFTER: u64 = 3;
/// Maximum number of doublings of this silence: each consecutive silence that led to a new registration doubles it.
const DOUBLINGS: u32 = 3;

/// Action of a rank's registration that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// No action is due.
    Nothing,
    /// Send the registration, perhaps for another time.
    Ask,
    /// Give up, because no registration was ever answered.
    GiveUp {
        /// Number of registrations sent.
        tries: u32,
        /// Time since the first registration, in nanoseconds.
        waited_ns: u64,
    },
    /// Register a new queue pair, since the switch may have forgotten the present one.
    Anew,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Asking {
        since_ns: u64,
        next_ns: u64,
        wait_ns: u64,
        tries: u32,
    },
    Registered,
}

/// State of a rank's registration at its switch.
#[derive(Debug, Clone)]
pub struct Registering {
    pace: Retransmission,
    state: State,
    /// Whether frames for the switch can be sent: the switch has answered once, or the rank continues without it.
    is_ready: bool,
    /// Time of the oldest frame sent since the last packet from the switch; `None` if none was sent.
    owes_ns: Option<u64>,
    /// Number of consecutive silences of the switch that led to a new queue pair.
    silences: u32,
    begun_ns: u64,
}

impl Registering {
    /// The state before the first registration. Intervals follow the rank's retransmission settings (`pace`).
    pub fn new(pace: Retransmission) -> Self {
        Self {
            pace,
            state: Self::asking(0, pace),
            is_ready: false,
            owes_ns: None,
            silences: 0,
            begun_ns: 0,
        }
    }

    fn asking(now_ns: u64, pace: Retransmission) -> State {
        State::Asking {
            since_ns: now_ns,
            next_ns: now_ns,
            wait_ns: pace.floor_ns.max(1),
            tries: 0,
        }
    }

    /// Whether frames for the switch can be sent: it has answered once, or the rank continues without it.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether the switch knows this rank, by its last answer.
    pub fn is_registered(&self) -> bool {
        matches!(self.state, State::Registered)
    }

    /// Restarts the registration with a new queue pair.
    pub fn begin(&mut self, now_ns: u64) {
        self.state = Self::asking(now_ns, self.pace);
        self.owes_ns = None;
        self.begun_ns = now_ns;
    }

    /// Records the switch's answer to the registration.
    pub fn answered(&mut self) {
        self.state = State::Registered;
        self.is_ready = true;
        self.owes_ns = None;
    }

    /// Lets the rank continue without the switch, and keeps sending registrations.
    pub fn go_on(&mut self) {
        self.is_ready = true;
    }

    /// Records a frame to the switch that it should answer.
    pub fn sent(&mut self, now_ns: u64) {
        self.owes_ns.get_or_insert(now_ns);
    }

    /// Records a packet from the switch at the queue pair.
    pub fn note_frame(&mut self) {
        self.owes_ns = None;
        self.silences = 0;
    }

    /// Records a SUM over UDP, which a switch sends to an unregistered rank. Returns whether to register a new queue pair.
    pub fn is_forgotten(&mut self, now_ns: u64) -> bool {
        // A sender that repeats this constantly is not a switch.
        self.is_registered() && now_ns.saturating_sub(self.begun_ns) >= self.pace.initial_ns
    }

    fn patience_ns(&self) -> u64 {
        let first_ns = self.pace.initial_ns.saturating_mul(SILENT_AFTER);
        first_ns.saturating_mul(1 << self.silences.min(DOUBLINGS))
    }

    /// Time at which [`due`](Self::due) must be called next; `None` if never.
    pub fn poll_timeout(&self) -> Option<u64> {
        match self.state {
            State::Asking { next_ns, .. } => Some(next_ns),
            State::Registered => Some(self.owes_ns?.saturating_add(self.patience_ns())),
        }
    }

    /// Returns the action that is due at `now_ns`, and records it as done.
    pub fn due(&mut self, now_ns: u64) -> Due {
        let is_silent = self.poll_timeout().is_some_and(|due_ns| due_ns <= now_ns);
        if !is_silent {
            return Due::Nothing;
        }
        let State::Asking {
            since_ns,
            next_ns,
            wait_ns,
            tries,
        } = &mut self.state
        else {
            self.silences = self.silences.saturating_add(1);
            return Due::Anew;
        };
        let waited_ns = now_ns.saturating_sub(*since_ns);
        if !self.is_ready
            && waited_ns
                >= self
                    .pace
                    .initial_ns
                    .saturating_mul(self.pace.max_timeouts.into())
        {
            return Due::GiveUp {
                tries: *tries,
                waited_ns,
            };
        }
        *next_ns = now_ns.saturating_add(*wait_ns);
        let most_ns = match self.is_ready {
            true => self.pace.ceiling_ns,
            false => self.pace.initial_ns,
        };
        *wait_ns = wait_ns.saturating_mul(2).min(most_ns);
        *tries = tries.saturating_add(1);
        Due::Ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn pace() -> Retransmission {
        Retransmission {
            floor_ns: 10 * MS,
            initial_ns: 100 * MS,
            ceiling_ns: 1000 * MS,
            max_timeouts: 10,
            ..Retransmission::of_ranks()
        }
    }

    /// The times of registrations, until another action is due.
    fn asks(registering: &mut Registering) -> (Vec<u64>, Due) {
        let mut asked = Vec::new();
        loop {
            let at_ns = registering.poll_timeout().unwrap();
            match registering.due(at_ns) {
                Due::Ask if asked.len() < 40 => asked.push(at_ns / MS),
                other => return (asked, other),
            }
        }
    }

    #[test]
    fn unanswered_registrations_back_off_and_give_up() {
        let mut registering = Registering::new(pace());
        registering.begin(0);
        let (asked, end) = asks(&mut registering);
        assert_eq!(asked[..6], [0, 10, 30, 70, 150, 250]);
        let waited_ns = 1050 * MS;
        assert_eq!(
            end,
            Due::GiveUp {
                tries: 13,
                waited_ns
            }
        );
        assert!(!registering.is_ready());
        // Without the switch, the rank keeps sending registrations.
        registering.go_on();
        let (asked, end) = asks(&mut registering);
        assert_eq!(
            (asked.len(), end, registering.is_ready()),
            (40, Due::Ask, true)
        );
        assert_eq!(asked[39] - asked[38], 1000);
    }

    #[test]
    fn silence_counts_only_after_a_frame() {
        let mut registering = Registering::new(pace());
        registering.begin(0);
        assert_eq!(registering.due(0), Due::Ask);
        registering.answered();
        assert_eq!(
            (registering.is_ready(), registering.poll_timeout()),
            (true, None)
        );
        registering.sent(5 * MS);
        registering.sent(6 * MS);
        assert_eq!(registering.poll_timeout(), Some(305 * MS));
        registering.note_frame();
        assert_eq!(registering.poll_timeout(), None);
        registering.sent(7 * MS);
        assert_eq!(registering.due(306 * MS), Due::Nothing);
        assert_eq!(registering.due(307 * MS), Due::Anew);
        // The switch had not forgotten the rank: the next silence is tolerated for twice as long.
        registering.begin(307 * MS);
        assert_eq!(registering.due(307 * MS), Due::Ask);
        registering.answered();
        registering.sent(400 * MS);
        assert_eq!(registering.poll_timeout(), Some(1000 * MS));
        registering.note_frame();
        registering.sent(400 * MS);
        assert_eq!(registering.poll_timeout(), Some(700 * MS));
    }

    #[test]
    fn forged_frames_cannot_cause_endless_registrations() {
        let mut registering = Registering::new(pace());
        registering.begin(0);
        assert!(!registering.is_forgotten(500 * MS), "it is not registered");
        registering.answered();
        assert!(!registering.is_forgotten(99 * MS));
        assert!(registering.is_forgotten(100 * MS));
        registering.begin(100 * MS);
        registering.answered();
        assert!(!registering.is_forgotten(150 * MS));
    }
}
