//! Runs the programs of a scenario's workload while the timeline is followed; each kind of workload has its own file.

mod commands;
mod error;
mod idle;
mod order;
mod redis;
mod training;
mod wire;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use scenario::model::Scenario;
use scenario::model::expect::{Measure, Metrics};
use scenario::model::workload::Workload;
use testbeds::bed::Bed;
use testbeds::host::Process;

use crate::experiment::Planned;
use crate::experiment::prepare::{Conditions, Environment};

#[cfg(test)]
pub(crate) use commands::statistics;
pub use commands::{CommandResult, SeriesResult, StreamKept};
pub use error::WorkloadError;
pub use order::{Order, OrderProgress};
pub use training::TrainingReports;

/// Progress of a workload, such as 12 of 30 iterations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Unit of `done` and `total`, such as `iterations`.
    pub unit: &'static str,
    /// Number of units that are finished.
    pub done: u64,
    /// Number of units of the whole workload.
    pub total: u64,
    /// Other information for readers, such as the accuracy of a training; may be empty.
    pub message: String,
}

/// Formats the progress: `12 of 30 iterations, accuracy 87.0 %`.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {}", self.done, self.total, self.unit)?;
        match self.message.is_empty() {
            true => Ok(()),
            false => write!(f, ", {}", self.message),
        }
    }
}

/// A workload whose programs are prepared or running.
pub trait Load: Send {
    /// Begins the workload, after the first step of the timeline has been put in force.
    fn begin(&mut self) -> Result<(), WorkloadError>;

    /// Runs the workload for `most`, or a little longer; returns `Break` when the workload has finished.
    fn poll(&mut self, most: Duration) -> Result<ControlFlow<()>, WorkloadError>;

    /// Progress of the workload.
    fn position(&self) -> Position;

    /// The workload's process on a host; `None` if it has none there.
    fn process(&mut self, _host: &str) -> Option<&mut Process> {
        None
    }

    /// Begins to carry out an order of a fault on a command of the workload.
    fn order(&mut self, command: &str, _order: Order) -> OrderProgress {
        OrderProgress::Absent(format!("it has no command {command}"))
    }

    /// Progress of the last order on a command; called as long as the order is pending.
    fn progress(&mut self, command: &str) -> OrderProgress {
        OrderProgress::Absent(format!("it has no command {command}"))
    }

    /// Begins to notify the server and the workers of a new plan of their gradients, which the switches have received already.
    fn replan(&mut self, _: &Scenario) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// When the server received the first sum by the plan of the n-th `replan` call (from 0), in ns since 1970; `None`: not
    /// yet.
    fn resumed_ns(&self, _replan: usize) -> Option<u64> {
        None
    }

    /// Ends the workload's programs, once it has finished, and returns the measurements.
    fn finish(self: Box<Self>) -> Result<Measured, WorkloadError>;
}

/// Values that a workload measured at different times, such as the latencies of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// Name of the program and of the values: `client a, latency`.
    pub name: String,
    /// Measure of the values, which gives their unit.
    pub measure: Measure,
    /// Time in nanoseconds since 1970, and value.
    pub points: Vec<(u64, f64)>,
}

/// The measurements of a finished workload.
#[derive(Debug, Default)]
pub struct Measured {
    /// Measured values, under the metric names that `expect` uses.
    pub metrics: Metrics,
    /// Measured values over time, for drawings.
    pub timed: Vec<Timed>,
    /// Reports of the server and the workers, if the workload is a training.
    pub training: Option<TrainingReports>,
    /// Result of each command, if the workload consists of the user's commands; otherwise empty.
    pub commands: Vec<CommandResult>,
    /// Failures of the workload's programs that no fault explains; they fail the run.
    pub failures: Vec<String>,
    /// Remarks that a reader needs to interpret the measurements.
    pub remarks: Vec<String>,
}

/// Starts the programs that must run before the workload begins: servers, services, agents.
pub fn start(
    bed: &Bed,
    planned: &Planned,
    conditions: Conditions<'_>,
    environment: &Arc<Environment>,
) -> Result<Box<dyn Load>, WorkloadError> {
    let scenario = &planned.scenario;
    Ok(match &scenario.workload {
        Some(Workload::Commands(commands)) => Box::new(commands::CommandsLoad::start(
            bed,
            scenario,
            commands,
            environment,
            conditions.out,
        )?),
        Some(Workload::Redis(redis)) => Box::new(redis::RedisLoad::start(
            bed,
            scenario,
            redis,
            conditions.weir,
        )?),
        Some(Workload::Training(training)) => Box::new(training::TrainingLoad::start(
            bed,
            scenario,
            training,
            conditions.weir,
        )?),
        Some(Workload::Idle { for_ns }) => Box::new(idle::Idle::new(*for_ns)),
        None if scenario.topology.wire => {
            let between = conditions.between.ok_or(WorkloadError::NoEnds)?;
            Box::new(wire::Wire::new(between)?)
        }
        None => Box::new(idle::Idle::new(0)),
    })
}
