//! The timeline: one write per step puts the step's faults in force on every switch, while something goes on.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use scenario::model::Epoch;

use super::fleet::{Fleet, FleetError};

/// How long an activity may keep the timeline waiting, where no step is due before.
const TURN: Duration = Duration::from_millis(5);

/// What goes on while a timeline is followed: a workload, or somebody else's.
pub trait Activity {
    /// Why it may come to an early end.
    type Error: From<FleetError>;

    /// The first step is in force: let it begin.
    fn begin(&mut self) -> Result<(), Self::Error>;

    /// Looks after it for as long as this, or a little longer; breaks when it is over.
    fn turn(&mut self, most: Duration) -> Result<ControlFlow<()>, Self::Error>;
}

/// What is to become of the timeline, by whoever looks after it each turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turned {
    /// It goes on.
    GoOn,
    /// What it waits for holds.
    Holds,
    /// It ends.
    End,
}

/// Steps that are still to come.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Latest first.
    pending: Vec<Epoch>,
    /// Since the start, from when the times of the next ones count.
    base: Duration,
    /// How many conditions have held.
    held: usize,
}

impl Timeline {
    /// All steps, in ascending order of time.
    pub fn new(epochs: &[Epoch]) -> Timeline {
        Timeline {
            pending: epochs.iter().rev().cloned().collect(),
            base: Duration::ZERO,
            held: 0,
        }
    }

    /// Follows the timeline for as long as the activity lasts, and says how long that was. `each_turn` is called often with
    /// the time since the start and the number of the condition that the next step waits for, if it does, and says whether that
    /// holds, or ends it all. What is in force at the end stays so.
    pub fn follow<A: Activity + ?Sized>(
        mut self,
        fleet: &mut Fleet,
        activity: &mut A,
        mut each_turn: impl FnMut(
            &mut A,
            &mut Fleet,
            Duration,
            Option<usize>,
        ) -> Result<Turned, A::Error>,
    ) -> Result<Duration, A::Error> {
        // Before the activity begins, so that no packet escapes a fault that holds from the beginning.
        self.advance(Duration::ZERO, fleet)?;
        let start = Instant::now();
        activity.begin()?;
        let mut in_force = None;
        loop {
            // Who looks on has to hear of a new step at once.
            let is_new = in_force.replace(fleet.epoch()) != Some(fleet.epoch());
            let most = if is_new {
                Duration::ZERO
            } else {
                self.until_next(start.elapsed())
            };
            let state = activity.turn(most)?;
            let elapsed = start.elapsed();
            let turned = each_turn(activity, fleet, elapsed, self.awaited())?;
            if state.is_break() || turned == Turned::End {
                return Ok(elapsed);
            }
            if turned == Turned::Holds {
                self.hold(start.elapsed());
            }
            self.advance(start.elapsed(), fleet)?;
            fleet.check_leases()?;
        }
    }

    /// How long there is nothing to do.
    fn until_next(&self, elapsed: Duration) -> Duration {
        let next = self.pending.last();
        next.map_or(TURN, |epoch| {
            let due = self.due(epoch);
            due.map_or(TURN, |due| due.saturating_sub(elapsed).min(TURN))
        })
    }

    /// When an epoch is due, since the start; `None` if it waits for something.
    fn due(&self, epoch: &Epoch) -> Option<Duration> {
        let since = Duration::from_nanos(epoch.at_ns);
        epoch.on.is_none().then(|| self.base.saturating_add(since))
    }

    /// Which condition the next epoch waits for.
    fn awaited(&self) -> Option<usize> {
        let next = self.pending.last()?;
        next.on.is_some().then_some(self.held)
    }

    /// What the next epoch waits for holds: it is due now, and the times of those behind it count from here.
    fn hold(&mut self, elapsed: Duration) {
        if let Some(next) = self.pending.last_mut().filter(|next| next.on.is_some()) {
            next.on = None;
            self.base = elapsed;
            self.held += 1;
        }
    }

    /// Puts in force what is due. Steps that were overtaken are skipped.
    fn advance(&mut self, elapsed: Duration, fleet: &mut Fleet) -> Result<(), FleetError> {
        let mut due = None;
        let is_due = |epoch: &Epoch| self.due(epoch).is_some_and(|due| due <= elapsed);
        let count = self
            .pending
            .iter()
            .rev()
            .take_while(|epoch| is_due(epoch))
            .count();
        for _ in 0..count {
            due = self.pending.pop();
        }
        let Some(epoch) = due else {
            return Ok(());
        };
        fleet.set_epoch(epoch.epoch)?;
        tracing::info!(
            epoch = epoch.epoch,
            step = epoch.step.as_deref().unwrap_or("between steps"),
            at_ms = elapsed.as_millis() as u64,
            "faults are in force"
        );
        Ok(())
    }
}
