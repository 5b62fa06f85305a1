//! The switches of an experiment: their processes, their programs, their counters.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use p4lang::runtime::TableEntry;
use p4rt::translate::CounterValue;
use scenario::Plan;
use scenario::model::Direction;
use tempfile::TempDir;
use testbeds::bed::{Attachment, Bed, BedError};
use testbeds::host::{Output, Process, ProcessError};
use tokio::runtime::Runtime;

use super::program::{Program, ProgramError, build};
use super::{Conditions, Switches};
use controller::target::bmv2::{self, StartError};
use controller::target::{
    Item, Kind, P4Runtime, PortCount, Query, Target, TargetError, UpdateType,
};

/// How long a switch may take to say where it listens.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// What can go wrong with the switches.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A program.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A session.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The network.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// A process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// It ended, or said nothing.
    #[error("switch {switch} did not start: {reason}")]
    Start {
        /// Which.
        switch: String,
        /// Its last words.
        reason: String,
    },
    /// BMv2.
    #[error(transparent)]
    Bmv2(#[from] StartError),
    /// BMv2 attaches to interfaces only.
    #[error("{0} needs interfaces: use --links veth")]
    Wiring(Kind),
    /// The runtime.
    #[error("cannot start a runtime: {0}")]
    Runtime(std::io::Error),
}

struct Device {
    target: Box<dyn Target>,
    program: Arc<Program>,
    /// Ends the switch when dropped; none if somebody else has started it.
    process: Option<Process>,
    /// BMv2's files.
    _folder: Option<TempDir>,
}

impl Device {
    /// Starts a switch and loads its program.
    fn start(
        bed: &Bed,
        runtime: &Arc<Runtime>,
        switch: &str,
        device_id: u64,
        program: Arc<Program>,
        conditions: Conditions<'_>,
    ) -> Result<Device, FleetError> {
        if conditions.switches.kind != Kind::Embedded {
            return Device::start_bmv2(bed, runtime, switch, device_id, program, conditions);
        }
        let (process, address) = start_process(bed, switch, device_id)?;
        if conditions.stall_switch {
            process.suspend();
        }
        let mut target = P4Runtime::connect(Arc::clone(runtime), switch, &address, device_id)?;
        target.load(&program.p4info, &program.device_config)?;
        Ok(Device {
            target: Box::new(target),
            program,
            process: Some(process),
            _folder: None,
        })
    }

    fn start_bmv2(
        bed: &Bed,
        runtime: &Arc<Runtime>,
        switch: &str,
        device_id: u64,
        program: Arc<Program>,
        conditions: Conditions<'_>,
    ) -> Result<Device, FleetError> {
        let Switches { kind, tools, logs } = conditions.switches;
        let interface = |(port, attachment)| match attachment {
            Attachment::Interface(name) => Ok((port, name)),
            Attachment::Socket(_) => Err(FleetError::Wiring(*kind)),
        };
        let ports: Result<_, _> = bed.ports(switch).into_iter().map(interface).collect();
        let job = bmv2::Job {
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
        Ok(Device {
            target: running.target,
            process: Some(running.process),
            _folder: Some(running.folder),
            program,
        })
    }
}

/// The switches of an experiment. Dropping them ends their processes.
pub struct Fleet {
    devices: Vec<Device>,
}

impl Fleet {
    /// Starts every switch of the bed, loads its program, and writes what the plan says; no fault is armed.
    pub fn start(bed: &Bed, plan: &Plan, conditions: Conditions<'_>) -> Result<Fleet, FleetError> {
        Fleet::with(plan, conditions, |runtime, switch, device_id, program| {
            Device::start(bed, runtime, switch, device_id, program, conditions)
        })
    }

    /// The same with switches that run already, at these addresses.
    pub fn attach(
        plan: &Plan,
        addresses: &BTreeMap<String, String>,
        conditions: Conditions<'_>,
    ) -> Result<Fleet, FleetError> {
        let Switches { kind, tools, .. } = conditions.switches;
        Fleet::with(plan, conditions, |runtime, switch, device_id, program| {
            let address = addresses.get(switch).map_or("", String::as_str);
            let mut target = bmv2::connect(*kind, runtime, switch, address, device_id)?;
            let preprocessed = &program.device_config;
            let config = bmv2::device_config(*kind, tools, &program.sources, preprocessed)?;
            target.load(&program.p4info, &config)?;
            Ok(Device {
                target,
                program,
                process: None,
                _folder: None,
            })
        })
    }

    fn with(
        plan: &Plan,
        conditions: Conditions<'_>,
        ready: impl Fn(&Arc<Runtime>, &str, u64, Arc<Program>) -> Result<Device, FleetError>,
    ) -> Result<Fleet, FleetError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(FleetError::Runtime)?;
        let runtime = Arc::new(runtime);
        let mut devices = Vec::new();
        for (number, switch) in plan.switches.iter().enumerate() {
            let arch = conditions.switches.kind.arch();
            let program = build(arch, &switch.name, &switch.classifier(), conditions.p4src)?;
            let program = Arc::new(program);
            let mut device = ready(&runtime, &switch.name, number as u64 + 1, program)?;
            let groups = switch
                .groups
                .iter()
                .cloned()
                .map(|group| (UpdateType::Insert, Item::MulticastGroup(group)));
            let program = Arc::clone(&device.program);
            let entries = program.classify.iter().chain(&switch.entries).cloned();
            let entries = entries.map(|entry| (UpdateType::Insert, Item::TableEntry(entry)));
            let updates: Vec<_> = groups.chain(entries).collect();
            device.target.write(&updates)?;
            devices.push(device);
        }
        Ok(Fleet { devices })
    }

    fn device(&mut self, switch: &str) -> Option<&mut Device> {
        self.devices
            .iter_mut()
            .find(|device| device.target.name() == switch)
    }

    /// A switch by name.
    pub fn target(&mut self, switch: &str) -> Option<&mut dyn Target> {
        self.device(switch)
            .map(|device| &mut *device.target as &mut dyn Target)
    }

    /// The program of a switch.
    pub fn program(&mut self, switch: &str) -> Option<Arc<Program>> {
        self.device(switch)
            .map(|device| Arc::clone(&device.program))
    }

    /// Adds entries to a switch.
    pub fn insert(&mut self, switch: &str, entries: Vec<TableEntry>) -> Result<(), FleetError> {
        let Some(device) = self.device(switch) else {
            return Ok(());
        };
        let updates: Vec<_> = entries
            .into_iter()
            .map(|entry| (UpdateType::Insert, Item::TableEntry(entry)))
            .collect();
        Ok(device.target.write(&updates)?)
    }

    /// Puts an epoch in force on every switch, in both pipelines; 0 disarms.
    pub fn set_epoch(&mut self, epoch: u16) -> Result<(), FleetError> {
        let updates: Vec<_> = [Direction::Ingress, Direction::Egress]
            .map(|direction| {
                let (table, action) = Plan::set_epoch(direction, epoch);
                (
                    UpdateType::Modify,
                    Item::DefaultAction {
                        table,
                        action: Some(action),
                    },
                )
            })
            .into();
        for device in &mut self.devices {
            device.target.write(&updates)?;
        }
        Ok(())
    }

    /// Cells of a counter that a switch has.
    pub fn counter(&mut self, switch: &str, name: &str) -> Result<Vec<CounterValue>, FleetError> {
        let Some(device) = self.device(switch) else {
            return Ok(Vec::new());
        };
        let items = device.target.read(&[Query::Counter {
            name: name.to_owned(),
            index: None,
        }])?;
        let value = |item: Item| match item {
            Item::Counter { value, .. } => value.unwrap_or_default(),
            _ => CounterValue::default(),
        };
        Ok(items.into_iter().map(value).collect())
    }

    /// The counters of a switch's ports.
    pub fn port_counts(&mut self, switch: &str) -> Result<Vec<PortCount>, FleetError> {
        let Some(device) = self.device(switch) else {
            return Ok(Vec::new());
        };
        Ok(device.target.port_counts()?)
    }

    /// The first switch that has ended, with its last words.
    pub fn ended(&mut self) -> Option<(String, String)> {
        self.devices.iter_mut().find_map(|device| {
            let process = device.process.as_mut()?;
            let status = process.try_wait().ok().flatten()?;
            let words = process.stderr();
            let reason = words
                .lines()
                .last()
                .map_or_else(|| status.to_string(), str::to_owned);
            Some((device.target.name().to_owned(), reason))
        })
    }
}

/// The address in `device 1: P4Runtime at 127.0.0.1:9559, ports …`, which `weir switch` prints once it serves.
fn listening(line: &str) -> Option<&str> {
    line.split_once("P4Runtime at ")?.1.split(',').next()
}

fn start_process(bed: &Bed, switch: &str, device_id: u64) -> Result<(Process, String), FleetError> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["switch", "--no-p4", "--device-id", &device_id.to_string()]);
    command.args(["--grpc-server-addr", "127.0.0.1:0"]);
    for (port, attachment) in bed.ports(switch) {
        command.args(["-i", &format!("{port}@{attachment}")]);
    }
    let mut process = bed.spawn_switch(switch, command)?;
    loop {
        match process.next_line(START_TIMEOUT) {
            Output::Line(line) => {
                if let Some(address) = listening(&line) {
                    return Ok((process, address.to_owned()));
                }
            }
            Output::TimedOut => {
                let reason = format!("nothing heard for {} s", START_TIMEOUT.as_secs());
                return Err(FleetError::Start {
                    switch: switch.to_owned(),
                    reason,
                });
            }
            Output::End => {
                process.wait(Duration::from_secs(1))?;
                return Err(FleetError::Start {
                    switch: switch.to_owned(),
                    reason: process.stderr().trim().to_owned(),
                });
            }
        }
    }
}
