//! The workload of the user's own programs: weir starts the services, then the drivers, and waits until these finish.

mod driver;
mod measure;
mod service;
mod watch;

use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use scenario::Scenario;
use scenario::model::workload::commands::Command;
use scenario::model::workload::{Commands, Template};
use testbeds::bed::{Bed, BedError};
use testbeds::command::{CommandOutput, Program, User};
use testbeds::host::{Host, ProcessError};

use super::error::CommandError;
use super::{Load, Measured, Order, OrderProgress, Position, WorkloadError};
use crate::experiment::prepare::{Environment, EnvironmentError, ProgramFolders};
use driver::Driver;
use service::Service;
use watch::Watch;

#[cfg(test)]
pub(crate) use measure::statistics;
pub use measure::{CommandResult, SeriesResult, StreamKept};

/// A command of the workload, with its host, environment and folders, ready to be started.
pub(super) struct Prepared {
    command: Command,
    host: Host,
    ip: Ipv4Addr,
    user: Option<User>,
    folders: ProgramFolders,
    environment: Arc<Environment>,
    output: Arc<CommandOutput>,
    watch: Watch,
    /// The scenario's job with a rank on the command's host, whose variables the command gets; `None` if there is no such job.
    of_job: Option<scenario::model::job::Job>,
    /// Whether `expect` contains the command's exit code.
    end_is_expected: bool,
}

impl Prepared {
    fn name(&self) -> &str {
        &self.command.name
    }

    /// Starts the command's program; `number` counts the runs from 1.
    fn start(&self, number: u32) -> Result<Program, ProcessError> {
        let run = &self.command.run;
        let mut command = self.environment.command(run, &self.folders, number);
        if let Some(job) = &self.of_job {
            command.envs(job.environment(&self.command.host));
        }
        for (name, value) in &self.command.env {
            command.env(name, self.expand(value, number));
        }
        if let Some(dir) = &self.command.dir {
            command.current_dir(self.expand(dir, number));
        }
        Program::start(&self.host, command, self.user, &self.output)
    }

    /// The folder in which the command starts, relative to that of `weir`; empty if the command does not name one.
    fn folder(&self) -> PathBuf {
        let dir = self.command.dir.as_ref();
        dir.map_or_else(PathBuf::new, |dir| self.expand(dir, 1).into())
    }

    fn expand(&self, template: &Template, number: u32) -> String {
        self.environment.expand(template, &self.folders, number)
    }

    fn failed(&self, source: ProcessError) -> CommandError {
        CommandError::Process {
            name: self.command.name.clone(),
            source,
        }
    }
}

/// A command of the workload, found by its name: a service or a driver.
enum Named<'j> {
    Service(&'j mut Service),
    Driver(&'j mut Driver),
}

/// The workload of the user's programs: services that are ready, and drivers.
pub struct CommandsLoad {
    // Dropped in this order: drivers use services.
    drivers: Vec<(Arc<Prepared>, Option<Driver>)>,
    services: Vec<Service>,
}

impl CommandsLoad {
    /// Starts the services one after the other, each when the one before is ready; the drivers start later.
    pub fn start(
        bed: &Bed,
        scenario: &Scenario,
        commands: &Commands,
        environment: &Arc<Environment>,
        out: Option<&Path>,
    ) -> Result<CommandsLoad, CommandError> {
        let folder = |path: &Path| {
            let path = path.to_owned();
            move |source| EnvironmentError::Folder { path, source }
        };
        let mut job = CommandsLoad {
            drivers: Vec::new(),
            services: Vec::new(),
        };
        for command in &commands.commands {
            let watch = Watch::new(command);
            let listener = watch.clone();
            let listener = Box::new(move |stream, line: &str| listener.line(stream, line));
            let output = CommandOutput::new(&command.name, out, listener);
            let output = output.map_err(folder(out.unwrap_or(Path::new("."))))?;
            let unknown = || BedError::Unknown(format!("host {}", command.host));
            let prepared = Arc::new(Prepared {
                host: bed.host(&command.host).ok_or_else(unknown)?.clone(),
                ip: bed.topology().host(&command.host).ok_or_else(unknown)?.ip,
                user: environment.user.filter(|_| !command.root),
                folders: environment.folders_of(&command.name, command.file.as_deref()),
                environment: Arc::clone(environment),
                output: Arc::new(output),
                watch,
                end_is_expected: scenario.expects_exit_of(&command.name),
                of_job: scenario
                    .jobs
                    .iter()
                    .find(|job| job.ranks.contains(&command.host))
                    .cloned(),
                command: command.clone(),
            });
            match &command.ready {
                Some(ready) => job.services.push(Service::start(prepared, ready)?),
                None => job.drivers.push((prepared, None)),
            }
        }
        Ok(job)
    }

    fn named(&mut self, command: &str) -> Option<Named<'_>> {
        let mut services = self.services.iter_mut();
        if let Some(service) = services.find(|service| service.prepared.name() == command) {
            return Some(Named::Service(service));
        }
        let mut drivers = self.drivers.iter_mut();
        let (_, driver) = drivers.find(|(prepared, _)| prepared.name() == command)?;
        driver.as_mut().map(Named::Driver)
    }
}

impl Load for CommandsLoad {
    fn begin(&mut self) -> Result<(), WorkloadError> {
        for (prepared, driver) in &mut self.drivers {
            let repeat = prepared.command.repeat;
            *driver = Some(Driver::start(Arc::clone(prepared), repeat));
        }
        Ok(())
    }

    fn poll(&mut self, most: Duration) -> Result<ControlFlow<()>, WorkloadError> {
        // Services first: a driver that lost its server is not the cause.
        for service in &mut self.services {
            service.check()?;
        }
        let mut all_ended = true;
        for (prepared, driver) in &mut self.drivers {
            let Some(driver) = driver else { continue };
            let ended = driver.has_ended().map_err(|error| prepared.failed(error))?;
            all_ended &= ended;
        }
        if all_ended {
            return Ok(ControlFlow::Break(()));
        }
        std::thread::sleep(most);
        Ok(ControlFlow::Continue(()))
    }

    /// Progress in finished drivers; the message names the drivers that still run.
    fn position(&self) -> Position {
        let mut waiting = Vec::new();
        let mut done = 0;
        for (prepared, driver) in &self.drivers {
            let Some(driver) = driver else { continue };
            match driver.is_over() {
                true => done += 1,
                false => waiting.push(format!(
                    "{} ({} runs)",
                    prepared.name(),
                    driver.runs().durations_ns.len()
                )),
            }
        }
        Position {
            unit: "drivers",
            done,
            total: self.drivers.len() as u64,
            message: match waiting.is_empty() {
                true => String::new(),
                false => format!("waiting for {}", waiting.join(", ")),
            },
        }
    }

    fn order(&mut self, command: &str, order: Order) -> OrderProgress {
        match self.named(command) {
            Some(Named::Service(service)) => service.order(order),
            Some(Named::Driver(driver)) => driver.order(order),
            None => OrderProgress::Absent("it does not run yet".to_owned()),
        }
    }

    fn progress(&mut self, command: &str) -> OrderProgress {
        match self.named(command) {
            Some(Named::Service(service)) => service.progress(),
            Some(Named::Driver(driver)) => driver.progress(),
            None => OrderProgress::Absent("it does not run yet".to_owned()),
        }
    }

    fn finish(self: Box<Self>) -> Result<Measured, WorkloadError> {
        Ok(measure::finish(*self)?)
    }
}
