//! The results of a run.

use scenario::model::expect::metric::Metrics;

use super::conclusion::Conclusion;
use super::evidence::Evidence;
use super::steps::StepResult;
use crate::experiment::carry_out::CarriedOut;
use crate::experiment::observe::hit_log::Mark;
use crate::experiment::observe::machine::MachineLoad;

/// The results of a run.
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// Actions of the controller, measurements of the workload and the probes, and all metrics of the run.
    pub carried_out: CarriedOut,
    /// Results that the evidence proves.
    pub conclusion: Conclusion,
    /// One entry for each time that a step of the timeline was due.
    pub steps: Vec<StepResult>,
    /// Times at which faults hit frames.
    pub marks: Vec<Mark>,
    /// Load of the machine during the run.
    pub machine_load: MachineLoad,
    /// The evidence that proves the run's faults.
    pub evidence: Evidence,
}

impl RunResult {
    /// All metrics of the run.
    pub fn metrics(&self) -> &Metrics {
        &self.carried_out.measured.metrics
    }
}
