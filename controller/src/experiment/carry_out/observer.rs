//! Observers of an experiment that is being carried out.

use std::time::Duration;

use testbeds::host::Process;

use super::error::ExperimentError;
use super::workload::{Load, Position};
use crate::experiment::fleet::Fleet;

/// Observes an experiment while it is carried out. All methods do nothing by default.
///
/// A method may change its arguments: tests do so to check that the run notices the change.
pub trait Observer {
    /// A switch's process has started; the controller has not connected to it yet.
    fn switch_started(&mut self, _switch: &str, _process: &mut Process) {}

    /// The workload of a scenario begins.
    fn begins(&mut self, _scenario: &str, _position: &Position) {}

    /// Called often while the workload runs.
    fn iteration(&mut self, _now: &mut Iteration<'_>) -> Result<(), ExperimentError> {
        Ok(())
    }

    /// Receives the number of frames that the switches counted for each injection, before the comparison with the captures.
    fn counted(&mut self, _fired: &mut [u64]) {}

    /// The run has finished, and its results are known: the duration of the workload, and the accuracy of a training.
    fn ends(&mut self, _wall: Duration, _accuracy: Option<f64>) {}
}

/// An observer that does nothing.
impl Observer for () {}

/// A moment of an experiment.
pub struct Iteration<'a> {
    /// Time since the workload began.
    pub elapsed: Duration,
    /// Progress of the workload.
    pub position: Position,
    /// Number of packets that faults have hit so far, as the judge saw them.
    pub hits: u64,
    /// The switches.
    pub fleet: &'a mut Fleet,
    pub(super) load: &'a mut dyn Load,
}

impl Iteration<'_> {
    /// The workload's process in a host.
    pub fn process(&mut self, host: &str) -> Option<&mut Process> {
        self.load.process(host)
    }
}
