//! The workload of the user's own programs: services first, then drivers, until these have ended.

mod driver;
mod error;
mod measure;
mod service;
mod watch;

use std::ffi::{OsStr, OsString};
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use scenario::Scenario;
use scenario::workload::commands::{Command, CommandLine};
use scenario::workload::{Commands, Template, Variable};
use testbeds::bed::{Bed, BedError};
use testbeds::command::{Missing, Output, Program, User, missing_of_line, missing_of_words};
use testbeds::host::{Host, Process, ProcessError};

use super::{Load, Measured, Order, Position, Progress};
use crate::experiment::ExperimentError;
use crate::experiment::grounds::{self, Grounds, Standing};
use crate::experiment::timeline::Activity;
use driver::Driver;
use service::Service;
use watch::Watch;

pub use error::CommandError;
#[cfg(test)]
pub(crate) use measure::statistics;
pub use measure::{CommandResult, SeriesResult, StreamKept};

/// Returns an error that names every program that is not installed. Called before any program starts.
pub fn check_installed(scenario: &Scenario) -> Result<(), CommandError> {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let mut missing = Vec::new();
    for command in grounds::commands(scenario) {
        let here = grounds::here(command.file.as_ref().unwrap_or(&scenario.file));
        let own = command.env.iter().find(|(name, _)| name == "PATH");
        if own.is_some_and(|(_, path)| !is_known(path)) {
            continue;
        }
        let filled = |path: &Template| path.expand(|_| here.display().to_string());
        let path = own.map(|(_, path)| OsString::from(filled(path)));
        let found = missing_of(&command.run, &here, path.as_ref().unwrap_or(&inherited));
        // A relative path is relative to the folder in which the command starts.
        let is_relative = |program: &str| program.contains('/') && !program.starts_with('/');
        let found = found.filter(|of| command.dir.is_none() || !is_relative(&of.program));
        missing.extend(found.map(|of| (format!("command `{}`", command.name), of)));
    }
    for (probe, run) in grounds::programs(scenario) {
        let here = grounds::here(probe.file.as_ref().unwrap_or(&scenario.file));
        let found = missing_of(run, &here, &inherited);
        missing.extend(found.map(|of| (format!("probe `{}`", probe.name), of)));
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(CommandError::NotInstalled(missing)),
    }
}

/// The program of a command if it is known and not installed.
fn missing_of(run: &CommandLine, here: &Path, path: &OsStr) -> Option<Missing> {
    let filled = |template: &Template| template.expand(|_| here.display().to_string());
    match run {
        CommandLine::Line(line) => missing_of_line(&filled(line), path),
        CommandLine::Words(words) => match words.first() {
            Some(program) if is_known(program) => missing_of_words(&filled(program), path),
            _ => None,
        },
    }
}

/// Whether a program's path is known. The contents of a run's own folder are not known beforehand.
fn is_known(template: &Template) -> bool {
    let mut variables = template.variables().iter();
    variables.all(|(_, variable)| *variable == Variable::Here)
}

/// A command with everything needed to start it.
pub(super) struct Prepared {
    command: Command,
    host: Host,
    ip: Ipv4Addr,
    user: Option<User>,
    standing: Standing,
    grounds: Arc<Grounds>,
    output: Arc<Output>,
    watch: Watch,
    /// The job that has the command's host as a rank.
    of_job: Option<scenario::job::Job>,
    /// Whether `expect` contains the command's exit code.
    end_is_expected: bool,
}

impl Prepared {
    fn name(&self) -> &str {
        &self.command.name
    }

    /// Starts the command for the n-th time.
    fn start(&self, number: u32) -> Result<Program, ProcessError> {
        let run = &self.command.run;
        let mut command = self.grounds.command(run, &self.standing, number);
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

    /// The folder in which the command starts, unless it is the caller's.
    fn folder(&self) -> PathBuf {
        let dir = self.command.dir.as_ref();
        dir.map_or_else(PathBuf::new, |dir| self.expand(dir, 1).into())
    }

    fn expand(&self, template: &Template, number: u32) -> String {
        self.grounds.expand(template, &self.standing, number)
    }

    fn failed(&self, source: ProcessError) -> CommandError {
        CommandError::Process {
            name: self.command.name.clone(),
            source,
        }
    }
}

/// A running command.
enum Named<'j> {
    Service(&'j mut Service),
    Driver(&'j mut Driver),
}

/// The services, which are ready, and the drivers.
pub struct Job {
    // Dropped in this order: drivers use services.
    drivers: Vec<(Arc<Prepared>, Option<Driver>)>,
    services: Vec<Service>,
}

impl Job {
    /// Starts the services, one after the other; the drivers do not start yet.
    pub fn start(
        bed: &Bed,
        scenario: &Scenario,
        commands: &Commands,
        grounds: &Arc<Grounds>,
        out: Option<&Path>,
    ) -> Result<Job, CommandError> {
        let folder = |path: &Path| {
            let path = path.to_owned();
            move |source| CommandError::Folder { path, source }
        };
        let mut job = Job {
            drivers: Vec::new(),
            services: Vec::new(),
        };
        for command in &commands.commands {
            let watch = Watch::new(command);
            let listener = watch.clone();
            let listener = Box::new(move |stream, line: &str| listener.line(stream, line));
            let output = Output::new(&command.name, out, listener);
            let output = output.map_err(folder(out.unwrap_or(Path::new("."))))?;
            let unknown = || BedError::Unknown(format!("host {}", command.host));
            let prepared = Arc::new(Prepared {
                host: bed.host(&command.host).ok_or_else(unknown)?.clone(),
                ip: bed.topology().host(&command.host).ok_or_else(unknown)?.ip,
                user: grounds.user.filter(|_| !command.root),
                standing: grounds.standing(&command.name, command.file.as_deref()),
                grounds: Arc::clone(grounds),
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

impl Activity for Job {
    type Error = ExperimentError;

    fn begin(&mut self) -> Result<(), ExperimentError> {
        for (prepared, driver) in &mut self.drivers {
            let repeat = prepared.command.repeat;
            *driver = Some(Driver::start(Arc::clone(prepared), repeat));
        }
        Ok(())
    }

    fn turn(&mut self, most: Duration) -> Result<ControlFlow<()>, ExperimentError> {
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
}

impl Load for Job {
    /// Position in runs of drivers, if their number is known.
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

    fn process(&mut self, _host: &str) -> Option<&mut Process> {
        None
    }

    fn order(&mut self, command: &str, order: Order) -> Progress {
        match self.named(command) {
            Some(Named::Service(service)) => service.order(order),
            Some(Named::Driver(driver)) => driver.order(order),
            None => Progress::Absent("it does not run yet".to_owned()),
        }
    }

    fn progress(&mut self, command: &str) -> Progress {
        match self.named(command) {
            Some(Named::Service(service)) => service.progress(),
            Some(Named::Driver(driver)) => driver.progress(),
            None => Progress::Absent("it does not run yet".to_owned()),
        }
    }

    fn finish(self: Box<Self>) -> Result<Measured, ExperimentError> {
        Ok(measure::finish(*self)?)
    }
}

impl From<CommandError> for ExperimentError {
    fn from(error: CommandError) -> Self {
        ExperimentError::Commands(error)
    }
}
