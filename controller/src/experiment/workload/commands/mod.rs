//! The workload of the user's own programs: services first, then drivers, until these have ended.

mod driver;
mod error;
mod measure;
mod service;
mod watch;

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::time::Duration;

use scenario::Scenario;
use scenario::workload::commands::{Command, Run};
use scenario::workload::{Commands, Template, Variable, Workload};
use testbeds::bed::{Bed, BedError};
use testbeds::command::{
    Output, Program, Scratch, User, missing_of_line, missing_of_words, open_host, publish_names,
};
use testbeds::host::{Host, Process, ProcessError};

use super::{Load, Measured, Order, Position, Progress};
use crate::experiment::ExperimentError;
use crate::experiment::timeline::Activity;
use driver::Driver;
use service::Service;
use watch::Watch;

pub use error::CommandError;
pub use measure::{CommandResult, SeriesResult, StreamKept};

/// The shell of lines.
const SHELL: &str = "/bin/sh";

/// An error that names every program that is not installed. Before anything is started.
pub fn check_installed(scenario: &Scenario) -> Result<(), CommandError> {
    let Some(Workload::Commands(commands)) = &scenario.workload else {
        return Ok(());
    };
    let here = here(&scenario.file);
    let mut missing = Vec::new();
    for command in &commands.commands {
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let own = command.env.iter().find(|(name, _)| name == "PATH");
        // What a folder of the run's own will hold is not known.
        let knows = |template: &Template| {
            let mut variables = template.variables().iter();
            variables.all(|(_, variable)| *variable == Variable::Here)
        };
        let filled = |template: &Template| template.expand(|_| here.display().to_string());
        if own.is_some_and(|(_, path)| !knows(path)) {
            continue;
        }
        let path = own.map_or(inherited, |(_, path)| OsString::from(filled(path)));
        let found = match &command.run {
            Run::Line(line) => missing_of_line(&filled(line), &path),
            Run::Words(words) => match words.first() {
                Some(program) if knows(program) => missing_of_words(&filled(program), &path),
                _ => None,
            },
        };
        // A relative path is meant from the folder that the command starts in.
        let is_relative = |program: &str| program.contains('/') && !program.starts_with('/');
        let found = found.filter(|of| command.dir.is_none() || !is_relative(&of.program));
        missing.extend(found.map(|of| (command.name.clone(), of)));
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(CommandError::NotInstalled(missing)),
    }
}

/// A command with all that it needs to be started.
pub(super) struct Prepared {
    command: Command,
    host: Host,
    ip: Ipv4Addr,
    user: Option<User>,
    /// `{dir}`
    own: PathBuf,
    /// `{here}`
    here: PathBuf,
    /// For `{host.NAME.ip}`.
    addresses: Arc<Vec<(String, Ipv4Addr)>>,
    output: Arc<Output>,
    watch: Watch,
    /// Whether `expect` says what its exit code is to be.
    end_is_expected: bool,
}

impl Prepared {
    fn name(&self) -> &str {
        &self.command.name
    }

    /// Starts it for the n-th time.
    fn start(&self, number: u32) -> Result<Program, ProcessError> {
        let mut words: Vec<String> = match &self.command.run {
            Run::Line(line) => vec![
                SHELL.to_owned(),
                "-c".to_owned(),
                self.expand(line, number),
            ],
            Run::Words(words) => words.iter().map(|word| self.expand(word, number)).collect(),
        };
        let mut command = process::Command::new(words.remove(0));
        command.args(words).env("TMPDIR", &self.own);
        for (name, value) in &self.command.env {
            command.env(name, self.expand(value, number));
        }
        if let Some(dir) = &self.command.dir {
            command.current_dir(self.expand(dir, number));
        }
        Program::start(&self.host, command, self.user, &self.output)
    }

    /// The folder it starts in, as far as that is not the caller's.
    fn folder(&self) -> PathBuf {
        let dir = self.command.dir.as_ref();
        dir.map_or_else(PathBuf::new, |dir| self.expand(dir, 1).into())
    }

    fn expand(&self, template: &Template, number: u32) -> String {
        template.expand(|variable| match variable {
            Variable::Dir => self.own.display().to_string(),
            // Beside ours.
            Variable::DirOf(command) => self.own.with_file_name(command).display().to_string(),
            Variable::Here => self.here.display().to_string(),
            Variable::Number => number.to_string(),
            Variable::Ip(host) => {
                let mut addresses = self.addresses.iter();
                let found = addresses.find(|(name, _)| name == host);
                found.map_or_else(String::new, |(_, ip)| ip.to_string())
            }
        })
    }

    fn failed(&self, source: ProcessError) -> CommandError {
        CommandError::Process {
            name: self.command.name.clone(),
            source,
        }
    }
}

/// A command that runs.
enum Named<'j> {
    Service(&'j mut Service),
    Driver(&'j mut Driver),
}

/// The services, ready, and the drivers.
pub struct Job {
    // Dropped in this order: drivers use services, and all use their folders.
    drivers: Vec<(Arc<Prepared>, Option<Driver>)>,
    services: Vec<Service>,
    remarks: Vec<String>,
    _scratch: Scratch,
}

impl Job {
    /// Starts the services, one after the other; the drivers wait.
    pub fn start(
        bed: &Bed,
        scenario: &Scenario,
        commands: &Commands,
        out: Option<&Path>,
    ) -> Result<Job, CommandError> {
        let folder = |path: &Path| {
            let path = path.to_owned();
            move |source| CommandError::Folder { path, source }
        };
        let scratch = Scratch::new().map_err(folder(&std::env::temp_dir()))?;
        let mut job = Job {
            drivers: Vec::new(),
            services: Vec::new(),
            remarks: Vec::new(),
            _scratch: scratch,
        };
        let user = job.open(bed, commands)?;
        let addresses: Vec<(String, Ipv4Addr)> = bed
            .topology()
            .hosts
            .iter()
            .map(|host| (host.name.clone(), host.ip))
            .collect();
        let addresses = Arc::new(addresses);
        let here = here(&scenario.file);
        for command in &commands.commands {
            // All of them at first: one may use another's.
            let own = job._scratch.folder(&command.name);
            own.map_err(folder(&job._scratch.path().join(&command.name)))?;
        }
        for command in &commands.commands {
            let own = job._scratch.path().join(&command.name);
            let watch = Watch::new(command);
            let listener = watch.clone();
            let listener = Box::new(move |stream, line: &str| listener.line(stream, line));
            let output = Output::new(&command.name, out, listener);
            let output = output.map_err(folder(out.unwrap_or(Path::new("."))))?;
            let unknown = || BedError::Unknown(format!("host {}", command.host));
            let prepared = Arc::new(Prepared {
                host: bed.host(&command.host).ok_or_else(unknown)?.clone(),
                ip: bed.topology().host(&command.host).ok_or_else(unknown)?.ip,
                user: user.filter(|_| !command.root),
                own,
                here: here.clone(),
                addresses: Arc::clone(&addresses),
                output: Arc::new(output),
                watch,
                end_is_expected: scenario.expects_exit_of(&command.name),
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

    /// Makes the hosts ready for programs; the user that these run as.
    fn open(&mut self, bed: &Bed, commands: &Commands) -> Result<Option<User>, CommandError> {
        if let Err(error) = publish_names(bed.topology(), &self._scratch) {
            self.remarks.push(format!(
                "programs do not know the hosts by their names, only by {{host.NAME.ip}}: {error}"
            ));
        }
        for host in bed.topology().hosts.iter() {
            let Some(host) = bed.host(&host.name) else {
                return Err(BedError::NoKernelIp.into());
            };
            if let Err(error) = open_host(host) {
                self.remarks.push(format!(
                    "host {}: ports below 1024 and ping need `root: true`: {error}",
                    host.name()
                ));
            }
        }
        let Some(host) = commands.commands.first().and_then(|first| bed.host(&first.host)) else {
            return Ok(None);
        };
        let user = User::caller();
        match is_possible(host, user) {
            Ok(()) => Ok(Some(user)),
            Err(error) => {
                self.remarks
                    .push(format!("programs ran as the root of their hosts: {error}"));
                Ok(None)
            }
        }
    }
}

/// Whether a program can be somebody else than the sandbox's root.
fn is_possible(host: &Host, user: User) -> Result<(), ProcessError> {
    let output = Output::new("", None, Box::new(|_, _| {}));
    let output = output.map_err(|source| ProcessError::Spawn {
        host: host.name().to_owned(),
        program: SHELL.to_owned(),
        source,
    })?;
    let mut nothing = process::Command::new(SHELL);
    nothing.args(["-c", ":"]);
    Program::start(host, nothing, Some(user), &Arc::new(output))?.wait()?;
    Ok(())
}

/// The folder of the scenario file; ours, if that is the standard input.
fn here(file: &str) -> PathBuf {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    std::path::absolute(if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    })
    .unwrap_or_else(|_| folder.to_owned())
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
        // The services first: a driver that has lost its server is not to blame.
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
    /// In runs of drivers, as far as it is known how many there will be.
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
