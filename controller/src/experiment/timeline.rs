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

/// Steps that are still to come.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Latest first.
    pending: Vec<Epoch>,
}

impl Timeline {
    /// All steps, in ascending order of time.
    pub fn new(epochs: &[Epoch]) -> Timeline {
        Timeline {
            pending: epochs.iter().rev().cloned().collect(),
        }
    }

    /// Follows the timeline for as long as the activity lasts, and says how long that was. `each_turn` is called often with
    /// the time since the start, and may end it, too. The lease of what is in force is kept meanwhile. What is in force at the end stays so.
    pub fn follow<A: Activity + ?Sized>(
        mut self,
        fleet: &mut Fleet,
        activity: &mut A,
        mut each_turn: impl FnMut(&mut A, &mut Fleet, Duration) -> Result<ControlFlow<()>, A::Error>,
    ) -> Result<Duration, A::Error> {
        // Before the activity begins, so that no packet escapes a fault that holds from the beginning.
        self.advance(Duration::ZERO, fleet)?;
        let start = Instant::now();
        activity.begin()?;
        loop {
            let state = activity.turn(self.until_next(start.elapsed()))?;
            let elapsed = start.elapsed();
            let wanted = each_turn(activity, fleet, elapsed)?;
            if state.is_break() || wanted.is_break() {
                return Ok(elapsed);
            }
            self.advance(elapsed, fleet)?;
            fleet.keep_lease()?;
        }
    }

    /// How long there is nothing to do.
    fn until_next(&self, elapsed: Duration) -> Duration {
        let next = self.pending.last();
        next.map_or(TURN, |epoch| {
            let due = Duration::from_nanos(epoch.at_ns);
            due.saturating_sub(elapsed).min(TURN)
        })
    }

    /// Puts in force what is due. Steps that were overtaken are skipped.
    fn advance(&mut self, elapsed: Duration, fleet: &mut Fleet) -> Result<(), FleetError> {
        let mut due = None;
        while self
            .pending
            .last()
            .is_some_and(|epoch| Duration::from_nanos(epoch.at_ns) <= elapsed)
        {
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
