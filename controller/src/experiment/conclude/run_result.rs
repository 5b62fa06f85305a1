//! The results of a run.

use std::time::Duration;

use scenario::expect::metric::Metrics;

use super::conclusion::Conclusion;
use super::evidence::Evidence;
use super::steps::StepResult;
use crate::experiment::carry_out::guard::Aborted;
use crate::experiment::carry_out::workload::{CommandResult, Timed};
use crate::experiment::carry_out::{ProbeResult, Repair, TrainingResult};
use crate::experiment::observe::hit_log::Mark;
use crate::experiment::observe::machine::MachineLoad;

/// The results of a run.
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// The seed of the run.
    pub seed: u64,
    /// Wall-clock duration of the workload.
    pub wall: Duration,
    /// Results that the evidence proves.
    pub conclusion: Conclusion,
    /// One entry for each new plan of a training's gradients.
    pub repairs: Vec<Repair>,
    /// One entry for each time that a step of the timeline was due.
    pub steps: Vec<StepResult>,
    /// Values that the workload measured over time.
    pub timed: Vec<Timed>,
    /// Times at which faults hit frames.
    pub marks: Vec<Mark>,
    /// All metrics of the run.
    pub metrics: Metrics,
    /// Results of the training, if the workload is one.
    pub training: Option<TrainingResult>,
    /// Results of the workload's commands.
    pub commands: Vec<CommandResult>,
    /// Results of the probes, in declared order.
    pub probes: Vec<ProbeResult>,
    /// Why the run was aborted, if it was. Effects up to the abort are proved nevertheless; the workload has no measurements.
    pub aborted: Option<Aborted>,
    /// Unexpected failures of the workload itself.
    pub failures: Vec<String>,
    /// Remarks of the workload on its figures.
    pub remarks: Vec<String>,
    /// Load of the machine during the run.
    pub strain: MachineLoad,
    /// The evidence that proves the run's faults.
    pub evidence: Evidence,
}
