//! The timeline: one write per step puts the step's faults in force on every switch.

use std::time::Duration;

use scenario::model::Epoch;

use super::fleet::{Fleet, FleetError};

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

    /// Puts in force what is due. Called with zero before the workload starts, so that no packet escapes a fault that holds
    /// from the beginning. Steps that were overtaken are skipped.
    pub fn advance(&mut self, elapsed: Duration, fleet: &mut Fleet) -> Result<(), FleetError> {
        let mut due = None;
        while self
            .pending
            .last()
            .is_some_and(|epoch| Duration::from_nanos(epoch.at_ns) <= elapsed)
        {
            due = self.pending.pop();
        }
        match due {
            Some(epoch) => fleet.set_epoch(epoch.epoch),
            None => Ok(()),
        }
    }
}
