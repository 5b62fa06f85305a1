//! The interface through which the command line and tests follow a running experiment.

use std::time::Duration;

use testbeds::host::Process;

use super::error::ExperimentError;
use super::workload::{Load, Position};
use crate::experiment::fleet::Fleet;

/// Receives events of an experiment while it is carried out; by default, all methods do nothing.
///
/// A method may change its arguments: tests do so to check that the run notices the change.
pub trait Observer {
    /// Called when a switch's process has started, before the controller connects to it.
    fn switch_started(&mut self, _switch: &str, _process: &mut Process) {}

    /// Called when the workload of a scenario begins, with the scenario's name and the workload's progress.
    fn begins(&mut self, _scenario: &str, _position: &Position) {}

    /// Called in each iteration, every few milliseconds, while the workload runs; an error ends the run.
    fn iteration(&mut self, _now: &mut Iteration<'_>) -> Result<(), ExperimentError> {
        Ok(())
    }

    /// Receives the switches' counts of hits, one per injection of the plan (a fault on a flow), before their comparison.
    fn counted(&mut self, _fired: &mut [u64]) {}

    /// Called after the run, with the duration of the workload and, for a training, its accuracy.
    fn ends(&mut self, _wall: Duration, _accuracy: Option<f64>) {}
}

/// Ignores all events.
impl Observer for () {}

/// State of a running experiment in one iteration.
pub struct Iteration<'a> {
    /// Time since the workload began.
    pub elapsed: Duration,
    /// Progress of the workload.
    pub position: Position,
    /// Number of packets that faults have hit so far, as the judge of the captured frames found.
    pub hits: u64,
    /// Sessions with all switches.
    pub fleet: &'a mut Fleet,
    pub(super) load: &'a mut dyn Load,
}

impl Iteration<'_> {
    /// The workload's process on a host; `None` if it has none there.
    pub fn process(&mut self, host: &str) -> Option<&mut Process> {
        self.load.process(host)
    }
}
