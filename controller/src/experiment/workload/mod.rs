//! The workloads: what runs in a scenario's hosts while its timeline is followed. One file each.

mod commands;
mod disrupt;
mod idle;
mod redis;
mod training;

use std::fmt;
use std::sync::Arc;

use scenario::expect::{Measure, Metrics};
use scenario::model::Scenario;
use scenario::workload::Workload;
use testbeds::bed::Bed;
use testbeds::host::Process;

use super::grounds::Grounds;
use super::timeline::Activity;
use super::{Conditions, ExperimentError, Passing, Planned};

#[cfg(test)]
pub(crate) use commands::statistics;
pub use commands::{CommandError, CommandResult, SeriesResult, StreamKept, check_installed};
pub use disrupt::{Order, Progress};
pub use redis::RedisError;
pub use training::{Outcome as TrainingOutcome, TrainingError};

/// How far a workload is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Of these.
    pub unit: &'static str,
    /// So many are done.
    pub done: u64,
    /// So many are to be done.
    pub total: u64,
    /// What else there is to say.
    pub message: String,
}

/// `12 of 30 iterations, accuracy 87.0 %`
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {}", self.done, self.total, self.unit)?;
        match self.message.is_empty() {
            true => Ok(()),
            false => write!(f, ", {}", self.message),
        }
    }
}

/// A workload that runs.
pub trait Load: Activity<Error = ExperimentError> + Send {
    /// How far it is.
    fn position(&self) -> Position;

    /// Its process in a host.
    fn process(&mut self, host: &str) -> Option<&mut Process>;

    /// Begins to carry out what a fault does to one of its commands.
    fn order(&mut self, command: &str, _order: Order) -> Progress {
        Progress::Absent(format!("it has no command {command}"))
    }

    /// How far the last order to a command is, while that is pending.
    fn progress(&mut self, command: &str) -> Progress {
        Progress::Absent(format!("it has no command {command}"))
    }

    /// Begins to tell its programs where gradients are summed from now on; switches know it already.
    fn replan(&mut self, _: &Scenario) -> Result<(), ExperimentError> {
        Ok(())
    }

    /// When the first sum came of the plan that was told then, from 0 on, in nanoseconds since 1970.
    fn resumed_ns(&self, _replan: usize) -> Option<u64> {
        None
    }

    /// What it measured, once it is over.
    fn finish(self: Box<Self>) -> Result<Measured, ExperimentError>;
}

/// Numbers that a workload measured, each with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// Whose, and what they are: `client a, latency`.
    pub name: String,
    /// What they measure.
    pub measure: Measure,
    /// When, in nanoseconds since 1970, and what.
    pub points: Vec<(u64, f64)>,
}

/// What a workload measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Under the names of expectations.
    pub metrics: Metrics,
    /// The same over time.
    pub timed: Vec<Timed>,
    /// Of a training: what its agents reported.
    pub training: Option<TrainingOutcome>,
    /// Of commands: what became of each.
    pub commands: Vec<CommandResult>,
    /// What of the workload itself failed, and was not expected to.
    pub failures: Vec<String>,
    /// What else a reader has to know to take the figures for what they are.
    pub remarks: Vec<String>,
}

/// Gets a scenario's workload ready to begin.
pub fn ready(
    bed: &Bed,
    planned: &Planned,
    conditions: Conditions<'_>,
    grounds: &Arc<Grounds>,
) -> Result<Box<dyn Load>, ExperimentError> {
    let scenario = &planned.scenario;
    Ok(match &scenario.workload {
        Some(Workload::Commands(commands)) => Box::new(commands::Job::start(
            bed,
            scenario,
            commands,
            grounds,
            conditions.out,
        )?),
        Some(Workload::Redis(redis)) => {
            Box::new(redis::Job::start(bed, scenario, redis, conditions.weir)?)
        }
        Some(Workload::Training(training)) => Box::new(training::Job::start(
            bed,
            scenario,
            training,
            conditions.weir,
        )?),
        Some(Workload::Idle { for_ns }) => Box::new(idle::Idle::new(*for_ns)),
        None if scenario.topology.wire => {
            let between = conditions.between.ok_or(ExperimentError::NoEnds)?;
            Box::new(Passing::new(between)?)
        }
        None => Box::new(idle::Idle::new(0)),
    })
}
