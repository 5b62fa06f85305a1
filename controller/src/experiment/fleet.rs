//! The switches of an experiment: their processes, their programs, their counters.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use p4lang::runtime::TableEntry;
use p4rt::translate::CounterValue;
use scenario::Plan;
use scenario::model::Direction;
use testbeds::bed::{Bed, BedError};
use testbeds::host::{Output, Process, ProcessError};

use super::Conditions;
use super::program::{Program, ProgramError, build};
use crate::target::{Item, P4Runtime, PortCount, Query, Target, TargetError, UpdateType};

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
    /// The runtime.
    #[error("cannot start a runtime: {0}")]
    Runtime(std::io::Error),
}

struct Device {
    target: Box<dyn Target>,
    program: Arc<Program>,
    /// Ends the switch when dropped.
    process: Process,
}

/// The switches of an experiment. Dropping them ends their processes.
pub struct Fleet {
    devices: Vec<Device>,
}

impl Fleet {
    /// Starts every switch of the bed, loads its program, and writes what the plan says; no fault is armed.
    pub fn start(bed: &Bed, plan: &Plan, conditions: Conditions<'_>) -> Result<Fleet, FleetError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(FleetError::Runtime)?;
        let runtime = Arc::new(runtime);
        let mut devices = Vec::new();
        for (number, switch) in plan.switches.iter().enumerate() {
            let program = Arc::new(build(&switch.name, &switch.classifier(), conditions.p4src)?);
            let device_id = number as u64 + 1;
            let (process, address) = start_process(bed, &switch.name, device_id)?;
            if conditions.stall_switch {
                process.suspend();
            }
            let mut target =
                P4Runtime::connect(Arc::clone(&runtime), &switch.name, &address, device_id)?;
            target.load(&program.p4info, &program.device_config)?;
            let groups = switch
                .groups
                .iter()
                .cloned()
                .map(|group| (UpdateType::Insert, Item::MulticastGroup(group)));
            let entries = program.classify.iter().chain(&switch.entries).cloned();
            let entries = entries.map(|entry| (UpdateType::Insert, Item::TableEntry(entry)));
            target.write(&groups.chain(entries).collect::<Vec<_>>())?;
            devices.push(Device {
                target: Box::new(target),
                program,
                process,
            });
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
            let status = device.process.try_wait().ok().flatten()?;
            let words = device.process.stderr();
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
