//! Starts the switches' processes in their network namespaces, reads their addresses, and ends them.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use scenario::plan::{port_latencies, port_marks};
use tempfile::TempDir;
use testbeds::bed::{Attachment, Bed, BedError};
use testbeds::host::{Output, Process, ProcessError};

use super::conditions::Conditions;
use crate::experiment::fleet::{Fleet, FleetError};
use crate::experiment::process_end::last_words;
use crate::experiment::{Planned, Switches};
use crate::target::bmv2::{self, StartError};
use crate::target::{Kind, P4Runtime, Target};

// A scenario's maximum mark threshold is that of a ring.
const _: () =
    assert!(scenario::model::topology::MOST_MARK_AT as usize == softswitch::ports::MOST_MARK_AT);

/// Timeout for a started switch to print its address.
pub const START_TIMEOUT: Duration = Duration::from_secs(15);

/// Timeout for switches that were asked to exit; then they are killed.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Why a switch does not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The session with the switch or its P4 program returned an error.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The testbed's network returned an error.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// The switch's process could not be started, read or ended.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The switch ended, or printed no address in time.
    #[error("switch {switch} did not start: {reason}")]
    Start {
        /// Name of the switch.
        switch: String,
        /// The last line of the switch's standard error, or how its process ended.
        reason: String,
    },
    /// BMv2 did not start.
    #[error(transparent)]
    Bmv2(#[from] StartError),
    /// The kind of switch (BMv2) needs interfaces, but the links are sockets.
    #[error("{0} needs interfaces: use --links veth")]
    Wiring(Kind),
}

/// The running process of a switch, which is killed when this value is dropped.
pub struct SwitchProcess {
    name: String,
    process: Process,
    /// Whether a fault has ended the process.
    is_down: bool,
    /// Folder with BMv2's files; `None` for the embedded switch.
    bmv2_files: Option<TempDir>,
}

impl SwitchProcess {
    /// Name of the switch.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kills the process, as a fault requires. [`SwitchProcess::is_gone`] reports when the process has ended.
    pub fn take_down(&mut self) {
        self.is_down = true;
        self.process.strike();
    }

    /// Marks the process as down: it has ended by itself, and the run continues without it.
    pub fn give_up(&mut self) {
        self.is_down = true;
    }

    /// Whether the process is marked as down, by a fault or by [`SwitchProcess::give_up`].
    pub fn is_down(&self) -> bool {
        self.is_down
    }

    /// Whether the process and all processes of its group have ended.
    pub fn is_gone(&mut self) -> Result<bool, LaunchError> {
        Ok(self.process.has_died_with_its_group()?)
    }

    /// Starts a new process for the switch, which prints the address that it listens on.
    pub fn start_again(
        &mut self,
        bed: &Bed,
        weir: &Path,
        device_id: u64,
    ) -> Result<(), LaunchError> {
        self.process = spawn_embedded(bed, weir, &self.name, device_id)?;
        self.is_down = false;
        Ok(())
    }

    /// The P4Runtime address that the switch prints; `None` if it does not print it within `timeout`.
    pub fn address(&mut self, timeout: Duration) -> Result<Option<String>, LaunchError> {
        address(&self.name, &mut self.process, timeout)
    }

    /// Name of the switch, and the last line of its standard error (or its exit status), if its process has ended by itself.
    pub fn ended(&mut self) -> Option<(String, String)> {
        if self.is_down {
            return None;
        }
        let status = self.process.try_wait().ok().flatten()?;
        let reason = last_words(&mut self.process).unwrap_or_else(|| status.to_string());
        Some((self.name.clone(), reason))
    }
}

/// Starts every switch of the testbed, loads its program, and writes the plan without arming faults. Calls `started` for the
/// process of each embedded switch, before the controller connects to it.
pub fn start_all(
    bed: &Bed,
    planned: &Planned,
    conditions: Conditions<'_>,
    started: &mut dyn FnMut(&str, &mut Process),
) -> Result<(Fleet, Vec<SwitchProcess>), LaunchError> {
    let Switches { kind, tools, logs } = conditions.switches;
    let mut processes = Vec::new();
    let ready = |runtime: &_, switch: &str, device_id, program: &crate::program::Program| {
        let target: Box<dyn Target>;
        let (mut process, folder);
        if *kind == Kind::Embedded {
            let address;
            (process, address) = start_embedded(bed, conditions.weir, switch, device_id)?;
            folder = None;
            started(switch, &mut process);
            let connected =
                P4Runtime::connect(std::sync::Arc::clone(runtime), switch, &address, device_id);
            let mut session = connected.map_err(FleetError::Target)?;
            session
                .load(&program.p4info, &program.device_config)
                .map_err(FleetError::Target)?;
            target = Box::new(session);
        } else {
            let interface = |(port, attachment)| match attachment {
                Attachment::Interface(name) => Ok((port, name)),
                Attachment::Socket(_) => Err(LaunchError::Wiring(*kind)),
            };
            let ports: Result<_, _> = bed.ports(switch).into_iter().map(interface).collect();
            let job = bmv2::Launch {
                kind: *kind,
                switch,
                device_id,
                ports: ports?,
                p4info: &program.p4info,
                sources: &program.sources,
                log: logs.as_ref().map(|folder| folder.join(switch)),
            };
            let running = bmv2::start(tools, runtime, &job, |command| {
                Ok(Process::spawn(switch, command)?)
            })?;
            (target, process, folder) = (running.target, running.process, Some(running.folder));
        }
        tracing::debug!(switch, pid = process.id(), "process has started");
        processes.push(SwitchProcess {
            name: switch.to_owned(),
            process,
            is_down: false,
            bmv2_files: folder,
        });
        Ok(target)
    };
    let fleet = Fleet::with::<LaunchError>(planned, conditions.switches, conditions.p4src, ready)?;
    Ok((fleet, processes))
}

/// The processes of all switches. When this value is dropped, the embedded switches are asked to exit all together.
pub struct SwitchProcesses(pub Vec<SwitchProcess>);

impl Drop for SwitchProcesses {
    /// Asks all embedded switches that run to exit, then waits for all of them.
    fn drop(&mut self) {
        // The kernel closes the ports of a killed process one by one; a switch that exits closes them in parallel. BMv2 is killed.
        let embedded = |switch: &&mut SwitchProcess| switch.bmv2_files.is_none();
        let mut asked = Vec::new();
        for switch in self.0.iter_mut().filter(embedded) {
            switch.process.terminate();
            // A suspended process would not see the signal.
            switch.process.resume();
            asked.push(&mut switch.process);
        }
        let deadline = Instant::now() + ENDS_WITHIN;
        for process in asked {
            // A switch that does not exit in time is killed when its process is dropped.
            let _ = process.wait(deadline.saturating_duration_since(Instant::now()));
        }
    }
}

/// Parses the address in the line `device 1: P4Runtime at 127.0.0.1:9559, ports …`, which `weir switch` prints when it serves.
fn listening(line: &str) -> Option<&str> {
    line.split_once("P4Runtime at ")?.1.split(',').next()
}

fn start_embedded(
    bed: &Bed,
    weir: &Path,
    switch: &str,
    device_id: u64,
) -> Result<(Process, String), LaunchError> {
    let mut process = spawn_embedded(bed, weir, switch, device_id)?;
    match address(switch, &mut process, START_TIMEOUT)? {
        Some(address) => Ok((process, address)),
        None => Err(LaunchError::Start {
            switch: switch.to_owned(),
            reason: format!("it printed no address within {} s", START_TIMEOUT.as_secs()),
        }),
    }
}

fn spawn_embedded(
    bed: &Bed,
    weir: &Path,
    switch: &str,
    device_id: u64,
) -> Result<Process, LaunchError> {
    let mut command = Command::new(weir);
    command.args(["switch", "--no-p4", "--device-id", &device_id.to_string()]);
    command.args(["--grpc-server-addr", "127.0.0.1:0"]);
    for (port, attachment) in bed.ports(switch) {
        let bundles = match bed.port_takes_bundles(switch, port) {
            true => ",bundles",
            false => "",
        };
        command.args(["-i", &format!("{port}@{attachment}{bundles}")]);
    }
    for held in port_latencies(bed.topology(), switch) {
        for (flag, ns) in [("--latency-in", held.in_ns), ("--latency-out", held.out_ns)] {
            if ns > 0 {
                command.args([flag, &format!("{}@{ns}ns", held.port)]);
            }
        }
    }
    for (port, frames) in port_marks(bed.topology(), switch) {
        command.args(["--ecn", &format!("{port}@{frames}")]);
    }
    Ok(bed.spawn_switch(switch, command)?)
}

/// Reads the address that a switch prints; `None` if the switch does not print it within `timeout`.
fn address(
    switch: &str,
    process: &mut Process,
    timeout: Duration,
) -> Result<Option<String>, LaunchError> {
    loop {
        match process.next_line(timeout) {
            Output::Line(line) => {
                if let Some(address) = listening(&line) {
                    return Ok(Some(address.to_owned()));
                }
            }
            Output::TimedOut => return Ok(None),
            Output::End => {
                process.wait(Duration::from_secs(1))?;
                return Err(LaunchError::Start {
                    switch: switch.to_owned(),
                    reason: process.stderr().trim().to_owned(),
                });
            }
        }
    }
}
