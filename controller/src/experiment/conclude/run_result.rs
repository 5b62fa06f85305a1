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
    /// Actions of the controller, and measurements of the workload and the probes.
    pub carried_out: CarriedOut,
    /// Results that the evidence proves.
    pub conclusion: Conclusion,
    /// One entry for each time that a step of the timeline was due.
    pub steps: Vec<StepResult>,
    /// Times at which faults hit frames.
    pub marks: Vec<Mark>,
    /// All metrics of the run.
    pub metrics: Metrics,
    /// Load of the machine during the run.
    pub machine_load: MachineLoad,
    /// The evidence that proves the run's faults.
    pub evidence: Evidence,
}
