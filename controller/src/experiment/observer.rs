//! Who looks on while an experiment is carried out.

use std::time::Duration;

use testbeds::host::Process;

use super::fleet::Fleet;
use super::workload::{Load, Position};
use super::{ExperimentError, Run};

/// Looks on while an experiment is carried out. All methods do nothing unless they are written.
///
/// What is passed could be changed: that is for tests, which do so to see that it is noticed.
pub trait Observer {
    /// A switch's process has started; nobody has spoken to it.
    fn switch_started(&mut self, _switch: &str, _process: &mut Process) {}

    /// The workload of a scenario begins.
    fn begins(&mut self, _scenario: &str, _position: &Position) {}

    /// Called often while the workload runs.
    fn turn(&mut self, _turn: &mut Turn<'_>) -> Result<(), ExperimentError> {
        Ok(())
    }

    /// What the switches have counted for each injection, before it is held against the captures.
    fn counted(&mut self, _fired: &mut [u64]) {}

    /// All is over, and was measured.
    fn ends(&mut self, _run: &Run) {}
}

/// Nobody.
impl Observer for () {}

/// A moment of an experiment.
pub struct Turn<'a> {
    /// Since the workload began.
    pub elapsed: Duration,
    /// How far the workload is.
    pub position: Position,
    /// How many packets the judge has seen faults hit so far.
    pub hits: u64,
    /// The switches.
    pub fleet: &'a mut Fleet,
    pub(super) load: &'a mut dyn Load,
}

impl Turn<'_> {
    /// The workload's process in a host.
    pub fn process(&mut self, host: &str) -> Option<&mut Process> {
        self.load.process(host)
    }
}
