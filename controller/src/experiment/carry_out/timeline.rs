//! Follows a scenario's timeline: for each step, one write to each switch activates the step's faults, while an activity runs.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use scenario::model::Epoch;

use crate::experiment::fleet::{Fleet, FleetError};

/// Maximum time of one iteration of an activity, unless a step is due earlier.
const ITERATION: Duration = Duration::from_millis(5);

/// An activity that runs while a timeline is followed: a scenario's workload, or traffic of machines that weir does not run.
pub trait Activity {
    /// Error that ends the activity early.
    type Error: From<FleetError>;

    /// Begins the activity, after the first step has been put in force.
    fn begin(&mut self) -> Result<(), Self::Error>;

    /// Runs the activity for `most`, or a little longer; returns `Break` when the activity has finished.
    fn poll(&mut self, most: Duration) -> Result<ControlFlow<()>, Self::Error>;
}

/// Decision, after an iteration of the activity, on how the timeline goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proceed {
    /// The timeline continues.
    GoOn,
    /// The condition that the next step waits for holds, so the step begins now.
    Holds,
    /// The run is aborted: the timeline ends before the activity has finished.
    End,
}

/// The steps of a scenario's timeline that are not in force yet.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Steps that are not in force yet, the last one of the timeline first.
    pending: Vec<Epoch>,
    /// Time, since the activity began, at which the clock of the pending steps starts: 0, or when a condition last held.
    base: Duration,
    /// Number of steps whose condition has held.
    held: usize,
}

impl Timeline {
    /// Creates a timeline of all steps, given in the order in which they are due.
    pub fn new(epochs: &[Epoch]) -> Timeline {
        Timeline {
            pending: epochs.iter().rev().cloned().collect(),
            base: Duration::ZERO,
            held: 0,
        }
    }

    /// Follows the timeline until the activity finishes; returns how long that took. Every few milliseconds, `each_iteration`
    /// gets the time since the start, and the index (from 0) of the condition that the next step waits for (`None` if it waits
    /// for none). It returns whether the condition holds, or whether the timeline ends. The last step stays in force.
    pub fn follow<A: Activity + ?Sized>(
        mut self,
        fleet: &mut Fleet,
        activity: &mut A,
        mut each_iteration: impl FnMut(
            &mut A,
            &mut Fleet,
            Duration,
            Option<usize>,
        ) -> Result<Proceed, A::Error>,
    ) -> Result<Duration, A::Error> {
        // Before the activity begins, so that no packet escapes a fault that holds from the beginning.
        self.advance(Duration::ZERO, fleet)?;
        let start = Instant::now();
        activity.begin()?;
        let mut in_force = None;
        loop {
            // An observer has to learn of a new step at once.
            let is_new = in_force.replace(fleet.epoch()) != Some(fleet.epoch());
            let most = if is_new {
                Duration::ZERO
            } else {
                self.until_next(start.elapsed())
            };
            let state = activity.poll(most)?;
            let elapsed = start.elapsed();
            let proceed = each_iteration(activity, fleet, elapsed, self.awaited())?;
            if state.is_break() || proceed == Proceed::End {
                return Ok(elapsed);
            }
            if proceed == Proceed::Holds {
                self.hold(start.elapsed());
            }
            self.advance(start.elapsed(), fleet)?;
            fleet.check_leases()?;
        }
    }

    /// Time until the next step is due, at most `ITERATION` (5 ms).
    fn until_next(&self, elapsed: Duration) -> Duration {
        let next = self.pending.last();
        next.map_or(ITERATION, |epoch| {
            let due = self.due(epoch);
            due.map_or(ITERATION, |due| due.saturating_sub(elapsed).min(ITERATION))
        })
    }

    /// When a step is due, since the activity began; `None` if the step waits for a condition.
    fn due(&self, epoch: &Epoch) -> Option<Duration> {
        let since = Duration::from_nanos(epoch.at_ns);
        epoch.on.is_none().then(|| self.base.saturating_add(since))
    }

    /// Index (from 0) of the condition that the next step waits for; `None` if the next step waits for none.
    fn awaited(&self) -> Option<usize> {
        let next = self.pending.last()?;
        next.on.is_some().then_some(self.held)
    }

    /// Makes the next step due now, because its condition holds; the times of later steps count from now on.
    fn hold(&mut self, elapsed: Duration) {
        if let Some(next) = self.pending.last_mut().filter(|next| next.on.is_some()) {
            next.on = None;
            self.base = elapsed;
            self.held += 1;
        }
    }

    /// Puts the latest step that is due in force; earlier steps that are due are skipped.
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
