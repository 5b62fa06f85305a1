//! The results of a run: measurements, proved results, and the evidence that proves them.

use scenario::model::expect::metric::Metrics;

use super::conclusion::Conclusion;
use super::evidence::Evidence;
use super::steps::StepResult;
use crate::experiment::carry_out::CarriedOut;
use crate::experiment::observe::hit_log::Mark;
use crate::experiment::observe::machine::MachineLoad;

/// The results of a run: measurements, proved results, and the evidence that proves them.
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// Actions of the controller, measurements of the workload and its probes, and all metrics of the run.
    pub carried_out: CarriedOut,
    /// Results of faults and triggers that the evidence proves.
    pub conclusion: Conclusion,
    /// One result for each time that a step of the timeline was due.
    pub steps: Vec<StepResult>,
    /// Hits of faults over time; hits that are close together are merged into one mark.
    pub marks: Vec<Mark>,
    /// Load of the machine during the run.
    pub machine_load: MachineLoad,
    /// Counts and logs, besides the captured frames, that prove the run's faults.
    pub evidence: Evidence,
}

impl RunResult {
    /// All metrics of the run, by the names that `expect` uses.
    pub fn metrics(&self) -> &Metrics {
        &self.carried_out.measured.metrics
    }
}
