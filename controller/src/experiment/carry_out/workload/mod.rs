//! The workloads: programs that run in a scenario's hosts while the timeline is followed. One file each.

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

/// Progress of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Unit of `done` and `total`.
    pub unit: &'static str,
    /// Number of units that are done.
    pub done: u64,
    /// Total number of units.
    pub total: u64,
    /// Other information, for readers.
    pub message: String,
}

/// Formats as `12 of 30 iterations, accuracy 87.0 %`.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {}", self.done, self.total, self.unit)?;
        match self.message.is_empty() {
            true => Ok(()),
            false => write!(f, ", {}", self.message),
        }
    }
}

/// A running workload.
pub trait Load: Send {
    /// Begins the workload; the first step of the timeline is in force.
    fn begin(&mut self) -> Result<(), WorkloadError>;

    /// Runs the workload for `most`, or a little longer; breaks when it has finished.
    fn poll(&mut self, most: Duration) -> Result<ControlFlow<()>, WorkloadError>;

    /// Progress of the workload.
    fn position(&self) -> Position;

    /// The workload's process in a host.
    fn process(&mut self, _host: &str) -> Option<&mut Process> {
        None
    }

    /// Begins to carry out an order of a fault on one of its commands.
    fn order(&mut self, command: &str, _order: Order) -> OrderProgress {
        OrderProgress::Absent(format!("it has no command {command}"))
    }

    /// Progress of the last order to a command, while the order is pending.
    fn progress(&mut self, command: &str) -> OrderProgress {
        OrderProgress::Absent(format!("it has no command {command}"))
    }

    /// Begins to notify the workload's programs where gradients are summed from now on; switches have the new plan already.
    fn replan(&mut self, _: &Scenario) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// When the first sum by a plan of `replan` arrived, in nanoseconds since 1970; plans are numbered from 0.
    fn resumed_ns(&self, _replan: usize) -> Option<u64> {
        None
    }

    /// Returns the measurements, once the workload has finished.
    fn finish(self: Box<Self>) -> Result<Measured, WorkloadError>;
}

/// Numbers that a workload measured, each with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// Name of the source and of the values: `client a, latency`.
    pub name: String,
    /// Measure of the values.
    pub measure: Measure,
    /// Time of each value in nanoseconds since 1970, and the value.
    pub points: Vec<(u64, f64)>,
}

/// The measurements of a workload.
#[derive(Debug, Default)]
pub struct Measured {
    /// The values, under the metric names that expectations use.
    pub metrics: Metrics,
    /// The values over time.
    pub timed: Vec<Timed>,
    /// Reports of a training's agents, if the workload is a training.
    pub training: Option<TrainingReports>,
    /// Result of each command, if the workload consists of commands.
    pub commands: Vec<CommandResult>,
    /// Unexpected failures of the workload itself.
    pub failures: Vec<String>,
    /// Remarks that a reader needs to interpret the figures.
    pub remarks: Vec<String>,
}

/// Starts what a scenario's workload needs before it can begin: servers, services, agents.
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
