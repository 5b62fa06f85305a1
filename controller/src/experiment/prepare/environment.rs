//! Prepares the environment of the user's programs in workloads and probes: the user that they run as, their folders, the
//! hosts' names, and the values of variables.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use scenario::Scenario;
use scenario::model::probe::{Ask, Probe};
use scenario::model::workload::commands::{Command, CommandLine};
use scenario::model::workload::{Template, Variable, Workload};
use testbeds::bed::{Bed, BedError};
use testbeds::command::{CommandOutput, Missing, Program, Scratch, User, open_host, publish_names};
use testbeds::host::{Host, ProcessError};

use crate::experiment::fleet::connections::Connections;

/// The shell that runs command lines.
const SHELL: &str = "/bin/sh";

/// The folders of a user's program, as values of variables.
pub struct ProgramFolders {
    /// Folder for files that the program writes, `{dir}`.
    own: PathBuf,
    /// Folder of the YAML file that declares the program, `{here}`.
    here: PathBuf,
}

/// The environment of the user's programs; its folders are deleted when its last owner is dropped.
#[derive(Default)]
pub struct Environment {
    /// The user that programs run as; `None` for the sandbox's root.
    pub user: Option<User>,
    /// Remarks on limits of the environment, for readers of the report.
    pub remarks: Vec<String>,
    /// Path of the scenario's file.
    file: String,
    /// Name and IPv4 address of each host, for `{host.NAME.ip}`.
    addresses: Vec<(String, Ipv4Addr)>,
    /// Folder that contains the folder of each program; `None` if the scenario has no programs of the user.
    scratch: Option<Scratch>,
    /// Path of the socket at which programs announce RDMA connections; `None` if no fault needs that.
    socket: Option<PathBuf>,
}

/// Why the environment of a scenario's programs cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// Programs are not installed; contains each with the command or probe that needs it.
    #[error("{}", .0.iter().map(|(whose, missing)| format!("{whose}: {missing}")).collect::<Vec<_>>().join("\n      "))]
    NotInstalled(Vec<(String, Missing)>),
    /// The testbed's network returned an error.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// A folder or file for the programs could not be created.
    #[error("cannot make {}: {source}", .path.display())]
    Folder {
        /// Path of the folder or file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

impl Environment {
    /// Prepares the folders and hosts for the programs of a scenario, if it has any. Also returns the listener for
    /// announcements of RDMA connections, if a fault needs them.
    pub fn prepare(
        bed: &Bed,
        scenario: &Scenario,
    ) -> Result<(Arc<Environment>, Option<Connections>), EnvironmentError> {
        let hosts = bed.topology().hosts.iter();
        let mut environment = Environment {
            file: scenario.file.clone(),
            addresses: hosts.map(|host| (host.name.clone(), host.ip)).collect(),
            ..Environment::default()
        };
        let folders: Vec<String> = commands(scenario)
            .iter()
            .map(|command| command.name.clone())
            .chain(programs(scenario).map(|(probe, _)| folder_of(probe)))
            .collect();
        if folders.is_empty() {
            return Ok((Arc::new(environment), None));
        }
        let failed = |path: PathBuf| move |source| EnvironmentError::Folder { path, source };
        let scratch = Scratch::new().map_err(failed(std::env::temp_dir()))?;
        // Creates all folders first: a program may use another one's folder.
        for name in &folders {
            let made = scratch.folder(name);
            made.map_err(failed(scratch.path().join(name)))?;
        }
        environment.open(bed, &scratch)?;
        let connections = match Connections::are_wanted(scenario) {
            true => environment.listen(scratch.path()),
            false => None,
        };
        environment.scratch = Some(scratch);
        Ok((Arc::new(environment), connections))
    }

    /// Publishes the hosts' names, allows ports below 1024 on each host, and determines the user that programs run as.
    fn open(&mut self, bed: &Bed, scratch: &Scratch) -> Result<(), EnvironmentError> {
        if let Err(error) = publish_names(bed.topology(), scratch) {
            self.remarks.push(format!(
                "programs cannot use the hosts' names, only {{host.NAME.ip}}: {error}"
            ));
        }
        let mut first = None;
        for host in bed.topology().hosts.iter() {
            let host = bed.host(&host.name).ok_or(BedError::NoKernelIp)?;
            if let Err(error) = open_host(host) {
                self.remarks.push(format!(
                    "host {}: ports below 1024 and ping need `root: true`: {error}",
                    host.name()
                ));
            }
            first = first.or(Some(host));
        }
        let Some(host) = first else {
            return Ok(());
        };
        let user = User::caller();
        match is_possible(host, user) {
            Ok(()) => self.user = Some(user),
            Err(error) => self
                .remarks
                .push(format!("programs ran as the root of their hosts: {error}")),
        }
        Ok(())
    }

    fn listen(&mut self, folder: &Path) -> Option<Connections> {
        match Connections::listen(folder) {
            Ok(connections) => {
                self.socket = Some(connections.path().to_owned());
                Some(connections)
            }
            Err(error) => {
                self.remarks.push(format!(
                    "no program could announce RDMA connections: {error}; their sequence numbers count from the first packet \
                     that a switch saw"
                ));
                None
            }
        }
    }

    /// Folder of the command of this name, `{dir}`.
    fn folder(&self, name: &str) -> PathBuf {
        let scratch = self.scratch.as_ref();
        scratch.map_or_else(PathBuf::new, |scratch| scratch.path().join(name))
    }

    /// The folders of a program: `name` is the name of its own folder; `file` is the workload file that declares it, if any.
    pub fn folders_of(&self, name: &str, file: Option<&str>) -> ProgramFolders {
        ProgramFolders {
            own: self.folder(name),
            here: here(file.unwrap_or(&self.file)),
        }
    }

    /// Builds the process that starts a program; `number` counts the program's starts from 1.
    pub fn command(
        &self,
        run: &CommandLine,
        folders: &ProgramFolders,
        number: u32,
    ) -> process::Command {
        let mut words: Vec<String> = match run {
            CommandLine::Line(line) => vec![
                SHELL.to_owned(),
                "-c".to_owned(),
                self.expand(line, folders, number),
            ],
            CommandLine::Words(words) => {
                let words = words.iter();
                words
                    .map(|word| self.expand(word, folders, number))
                    .collect()
            }
        };
        let mut command = process::Command::new(words.remove(0));
        command.args(words).env("TMPDIR", &folders.own);
        if let Some(socket) = &self.socket {
            command.env(host_agent::connections::VARIABLE, socket);
        }
        command
    }

    /// Replaces the variables in a text of the scenario by their values; `number` counts the program's starts from 1.
    pub fn expand(&self, template: &Template, folders: &ProgramFolders, number: u32) -> String {
        template.expand(|variable| match variable {
            Variable::Dir => folders.own.display().to_string(),
            Variable::DirOf(command) => self.folder(command).display().to_string(),
            Variable::Here => folders.here.display().to_string(),
            Variable::Number => number.to_string(),
            Variable::Ip(host) => {
                let mut addresses = self.addresses.iter();
                let found = addresses.find(|(name, _)| name == host);
                found.map_or_else(String::new, |(_, ip)| ip.to_string())
            }
            Variable::Name(host) => host.clone(),
        })
    }

    /// Returns a function that builds the process of a probe's program for a request, by the request's number.
    pub fn asker(
        self: &Arc<Self>,
        probe: &Probe,
        run: &CommandLine,
    ) -> Arc<dyn Fn(u32) -> process::Command + Send + Sync> {
        let (environment, run) = (Arc::clone(self), run.clone());
        let folders = self.folders_of(&folder_of(probe), probe.file.as_deref());
        Arc::new(move |number| environment.command(&run, &folders, number))
    }
}

/// The user's commands that are the scenario's workload; empty for another workload.
pub fn commands(scenario: &Scenario) -> &[Command] {
    match &scenario.workload {
        Some(Workload::Commands(commands)) => &commands.commands,
        _ => &[],
    }
}

/// The scenario's probes that run a program of the user, each with its command line.
pub fn programs(scenario: &Scenario) -> impl Iterator<Item = (&Probe, &CommandLine)> {
    scenario.probes.iter().filter_map(|probe| match &probe.ask {
        Ask::Run(run) => Some((probe, run)),
        _ => None,
    })
}

/// Name of the folder of a probe's program. No command has this name, as command names have no `@`.
fn folder_of(probe: &Probe) -> String {
    format!("{}@probe", probe.name)
}

/// Returns an error if a program on the host cannot run as this user, who is not the sandbox's root.
fn is_possible(host: &Host, user: User) -> Result<(), ProcessError> {
    let output = CommandOutput::new("", None, Box::new(|_, _| {}));
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

/// Absolute path of the folder of a file; the current folder for the standard input.
pub fn here(file: &str) -> PathBuf {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    std::path::absolute(if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    })
    .unwrap_or_else(|_| folder.to_owned())
}
