//! The switches of an experiment: sessions with them, their programs, their entries.

pub mod aggregation;
pub mod change;
#[cfg(feature = "testbed")]
pub mod connections;
mod counters;
#[cfg(feature = "testbed")]
pub mod judge_log;
mod lease_keeper;
pub mod replace;
#[cfg(feature = "testbed")]
mod replan;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use p4lang::runtime::{ActionCall, TableEntry};
use scenario::model::lease::Lease;
use scenario::plan::SwitchPlan;
#[cfg(feature = "testbed")]
use scenario::plan::announcement::Announcement;
use tokio::runtime::Runtime;

use self::aggregation::{aggregation_entries, rates};
#[cfg(feature = "testbed")]
use self::judge_log::JudgeLog;
use self::lease_keeper::{LeaseError, LeaseKeeper};
use super::{Planned, Switches};
use crate::program::{Program, ProgramError, build};
use crate::target::bmv2::{self, AttachError};
use crate::target::{Item, Target, TargetError, UpdateType};
#[cfg(feature = "testbed")]
use crate::target::{P4Runtime, Query};

/// Errors of an experiment's switches.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// An error of a switch's program.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// An error of a session with a switch.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A running switch that weir cannot attach to.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The runtime did not start.
    #[error("cannot start a runtime: {0}")]
    Runtime(std::io::Error),
    /// An error of a lease.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The switches cannot take another scenario.
    #[error("{0}")]
    Replace(String),
}

pub use proof::{EpochWrite, TriggerCount};

struct Device {
    target: Box<dyn Target>,
    program: Arc<Program>,
    planned: SwitchPlan,
    /// Entries in the switch's tables, without default actions.
    entries: Vec<TableEntry>,
    /// Announcements of RDMA connections that the switch has received, by table and key.
    #[cfg(feature = "testbed")]
    told: BTreeMap<String, TableEntry>,
    /// Items that limit jobs to their rates.
    rates: Vec<Item>,
    /// Whether a fault has ended the switch's process: no request is answered.
    is_down: bool,
    /// Refreshes the lease of its faults while they are armed.
    lease: Option<LeaseKeeper>,
    /// Time and reason of a failed refresh of its lease.
    lapsed: Option<(Instant, TargetError)>,
}

/// A dying process closes its sessions first. The run notices its death within this time.
const DYING: Duration = Duration::from_millis(300);

impl Device {
    fn set_defaults(&mut self, calls: Vec<(String, ActionCall)>) -> Result<(), FleetError> {
        Ok(self.target.write(&defaults(calls))?)
    }

    /// Keeps the lease of the switch's faults from now on, if it has any: refreshes it once before this returns.
    fn keep_lease(&mut self, lease: Lease, runtime: &Arc<Runtime>) -> Result<(), FleetError> {
        if self.lease.is_some() || self.planned.faulting().is_empty() {
            return Ok(());
        }
        let session = self.target.lease_session(runtime)?;
        let planned = self.planned.clone();
        let set_deadline = move |deadline| defaults(planned.hold_until(deadline));
        self.lease = Some(LeaseKeeper::start(session, lease, Box::new(set_deadline))?);
        Ok(())
    }
}

/// Updates that set default actions.
fn defaults(calls: Vec<(String, ActionCall)>) -> Vec<(UpdateType, Item)> {
    let calls = calls.into_iter().map(|(table, action)| {
        let action = Some(action);
        (UpdateType::Modify, Item::DefaultAction { table, action })
    });
    calls.collect()
}

/// Creates a runtime that one thread drives.
fn new_runtime() -> Result<Arc<Runtime>, FleetError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    Ok(Arc::new(runtime.map_err(FleetError::Runtime)?))
}

/// Entries of a switch's tables before the timeline begins.
fn entries(planned: &Planned, switch: &SwitchPlan, program: &Program) -> Vec<TableEntry> {
    let mut entries: Vec<TableEntry> = program.classify.clone();
    entries.extend(switch.entries.iter().cloned());
    for job in &planned.scenario.jobs {
        if let Some(summing) = job.on(&switch.name) {
            entries.extend(aggregation_entries(&planned.scenario, switch, job, summing));
        }
    }
    entries
}

/// All updates that a switch receives before the timeline begins.
fn updates(switch: &SwitchPlan, held: &[TableEntry]) -> Vec<(UpdateType, Item)> {
    let groups = switch.groups.iter().cloned().map(Item::MulticastGroup);
    let sessions = switch.sessions.iter().cloned().map(Item::CloneSession);
    let entries = held.iter().cloned().map(Item::TableEntry);
    let all = groups.chain(sessions).chain(entries);
    all.map(|item| (UpdateType::Insert, item)).collect()
}

/// Updates for cells that exist in any case.
fn set(cells: &[Item]) -> Vec<(UpdateType, Item)> {
    let cells = cells.iter().cloned();
    cells.map(|cell| (UpdateType::Modify, cell)).collect()
}

/// Calls a function for all running switches, each in a separate thread, and waits for all.
fn at_once<T: Send>(
    devices: &mut [Device],
    act: impl Fn(&mut Device) -> Result<T, FleetError> + Sync,
) -> Vec<Result<T, FleetError>> {
    let mut running = devices.iter_mut().filter(|device| !device.is_down);
    let Some(first) = running.next() else {
        return Vec::new();
    };
    std::thread::scope(|scope| {
        let act = &act;
        let others: Vec<_> = running
            .map(|device| scope.spawn(move || act(device)))
            .collect();
        let mut done = vec![act(first)];
        done.extend(others.into_iter().map(|other| match other.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        done
    })
}

/// The switches of an experiment.
pub struct Fleet {
    devices: Vec<Device>,
    epoch_writes: Vec<EpochWrite>,
    /// Announcements of RDMA connections that the switches received.
    #[cfg(feature = "testbed")]
    announcements: Vec<Announcement>,
    /// Log of epoch writes and announcements, for the judge of a run in progress.
    #[cfg(feature = "testbed")]
    pub(super) log: Arc<JudgeLog>,
    lease: Option<Lease>,
    /// Drives the sessions that refresh leases, and nothing else.
    lease_runtime: Option<Arc<Runtime>>,
    /// The epoch that was put in force last.
    epoch: u16,
    /// Runtime for sessions with switches that restart.
    #[cfg(feature = "testbed")]
    runtime: Arc<Runtime>,
}

impl Fleet {
    /// Attaches to switches that run already, at these addresses: loads each one's program and writes the plan; no fault is
    /// armed. If the kind of switch supports it, the switch keeps forwarding its former traffic until all is written.
    pub fn attach(
        planned: &Planned,
        addresses: &BTreeMap<String, String>,
        switches: &Switches,
        p4src: Option<&Path>,
    ) -> Result<Fleet, FleetError> {
        let Switches { kind, tools, .. } = switches;
        let mut fleet = Fleet::with(planned, switches, p4src, |runtime, switch, id, program| {
            let address = addresses.get(switch).map_or("", String::as_str);
            let mut target = bmv2::connect(*kind, runtime, switch, address, id)?;
            let preprocessed = &program.device_config;
            let config = bmv2::device_config(*kind, tools, &program.sources, preprocessed)?;
            target.save(&program.p4info, &config)?;
            Ok::<_, FleetError>(target)
        })?;
        for device in &mut fleet.devices {
            device.target.commit()?;
        }
        Ok(fleet)
    }

    /// Builds each switch's program, has `ready` bring the switch up with it, and writes the plan. `ready` receives the
    /// switch's name and its device id.
    pub fn with<E: From<FleetError>>(
        planned: &Planned,
        switches: &Switches,
        p4src: Option<&Path>,
        mut ready: impl FnMut(&Arc<Runtime>, &str, u64, &Program) -> Result<Box<dyn Target>, E>,
    ) -> Result<Fleet, E> {
        let runtime = new_runtime()?;
        let mut fleet = Fleet {
            devices: Vec::new(),
            epoch_writes: Vec::new(),
            #[cfg(feature = "testbed")]
            announcements: Vec::new(),
            #[cfg(feature = "testbed")]
            log: Arc::default(),
            lease: planned.plan.lease.lease(),
            lease_runtime: None,
            epoch: 0,
            #[cfg(feature = "testbed")]
            runtime: Arc::clone(&runtime),
        };
        for (device_id, switch) in (1..).zip(&planned.plan.switches) {
            let arch = switches.kind.arch();
            let program = build(arch, switch, p4src).map_err(FleetError::Program)?;
            let mut target = ready(&runtime, &switch.name, device_id, &program)?;
            let held = entries(planned, switch, &program);
            let updates = updates(switch, &held);
            target.write(&updates).map_err(FleetError::Target)?;
            let rates = rates(&planned.scenario, switch);
            target.write(&set(&rates)).map_err(FleetError::Target)?;
            tracing::info!(
                switch = switch.name,
                updates = updates.len(),
                "switch is up"
            );
            fleet.devices.push(Device {
                target,
                program: Arc::new(program),
                planned: switch.clone(),
                entries: held,
                #[cfg(feature = "testbed")]
                told: BTreeMap::new(),
                rates,
                is_down: false,
                lease: None,
                lapsed: None,
            });
        }
        Ok(fleet)
    }

    fn device(&mut self, switch: &str) -> Option<&mut Device> {
        self.devices
            .iter_mut()
            .find(|device| device.target.name() == switch)
    }

    /// Finds a switch by name, unless a fault has taken it down.
    fn running(&mut self, switch: &str) -> Option<&mut Device> {
        self.device(switch).filter(|device| !device.is_down)
    }

    /// Calls a function for all running switches at once.
    #[cfg(feature = "testbed")]
    fn each<T: Send>(
        &mut self,
        act: impl Fn(&mut Device) -> Result<T, FleetError> + Sync,
    ) -> Vec<Result<T, FleetError>> {
        at_once(&mut self.devices, act)
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

    /// Puts an epoch in force on every switch, in each pipeline that has faults; 0 disarms. Writes to all switches at once; a
    /// switch that does not answer does not delay the others. The lease of the faults in force is kept from then on.
    pub fn set_epoch(&mut self, epoch: u16) -> Result<(), FleetError> {
        self.epoch = epoch;
        match epoch {
            0 => self.leases().for_each(LeaseKeeper::begin_end),
            _ => self.keep_leases()?,
        }
        let write = |device: &mut Device| {
            let sent_ns = now_ns();
            device.set_defaults(device.planned.set_epoch(epoch))?;
            Ok(EpochWrite {
                switch: device.target.name().to_owned(),
                epoch,
                sent_ns,
                confirmed_ns: now_ns(),
            })
        };
        #[cfg(feature = "testbed")]
        let (log, before) = (Arc::clone(&self.log), self.epoch_writes.len());
        #[cfg(feature = "testbed")]
        log.begin();
        let mut failed = None;
        for written in at_once(&mut self.devices, write) {
            match written {
                Ok(written) => self.epoch_writes.push(written),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        #[cfg(feature = "testbed")]
        log.end(&self.epoch_writes[before..]);
        if epoch == 0 {
            let ended = self.end_leases();
            failed = failed.or(ended.err());
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Disarms all faults, unless they are disarmed already.
    pub fn disarm(&mut self) -> Result<(), FleetError> {
        match self.epoch_writes.last() {
            Some(last) if last.epoch == 0 => Ok(()),
            _ => self.set_epoch(0),
        }
    }

    /// Returns an error if a refresh of a switch's lease failed and the switch is still alive after 300 ms.
    pub fn check_leases(&mut self) -> Result<(), FleetError> {
        for device in &mut self.devices {
            if let Some(Err(error)) = device.lease.as_mut().map(LeaseKeeper::check) {
                device.lapsed = Some((Instant::now(), error));
            }
            let is_over = |(since, _): &mut (Instant, _)| since.elapsed() >= DYING;
            match device.is_down {
                true => device.lapsed = None,
                false => {
                    if let Some((_, error)) = device.lapsed.take_if(is_over) {
                        return Err(error.into());
                    }
                }
            }
        }
        Ok(())
    }

    fn leases(&mut self) -> impl Iterator<Item = &mut LeaseKeeper> {
        let devices = self.devices.iter_mut();
        devices.filter_map(|device| device.lease.as_mut())
    }

    /// Keeps the leases of all running switches from now on: refreshes them once before this returns.
    fn keep_leases(&mut self) -> Result<(), FleetError> {
        let Some((lease, runtime)) = self.leased()? else {
            return Ok(());
        };
        let keep = |device: &mut Device| device.keep_lease(lease, &runtime);
        at_once(&mut self.devices, keep).into_iter().collect()
    }

    /// The lease of the scenario's faults, if they have one, and the runtime of the sessions that refresh it.
    fn leased(&mut self) -> Result<Option<(Lease, Arc<Runtime>)>, FleetError> {
        let Some(lease) = self.lease else {
            return Ok(None);
        };
        let runtime = match &self.lease_runtime {
            Some(runtime) => Arc::clone(runtime),
            None => new_runtime()?,
        };
        self.lease_runtime = Some(Arc::clone(&runtime));
        Ok(Some((lease, runtime)))
    }

    /// Stops refreshing the leases. Returns the first error that ended a refresh before, unless it was returned already.
    fn end_leases(&mut self) -> Result<(), FleetError> {
        let mut ended = Ok(());
        for device in &mut self.devices {
            if let Some((_, error)) = device.lapsed.take().filter(|_| !device.is_down) {
                ended = ended.and(Err(error));
            }
            if let Some(lease) = device.lease.take() {
                ended = ended.and(lease.end());
            }
        }
        Ok(ended?)
    }

    /// The epoch that is in force on every switch.
    pub fn epoch(&self) -> u16 {
        self.epoch
    }

    /// Marks a switch as down because a fault ends its process: the fleet ignores it until [`Fleet::bring_up`].
    #[cfg(feature = "testbed")]
    pub(super) fn take_down(&mut self, switch: &str) {
        if let Some(device) = self.device(switch) {
            device.is_down = true;
            device.lease = None;
            device.lapsed = None;
        }
    }

    /// Connects to the new process of a switch: writes everything that the former process had received, with the step and the
    /// lease in force. Returns how many items the switch shows when it is read, and out of how many.
    #[cfg(feature = "testbed")]
    pub(super) fn bring_up(
        &mut self,
        switch: &str,
        address: &str,
    ) -> Result<(usize, usize), FleetError> {
        let (epoch, leased) = (self.epoch, self.leased()?);
        let runtime = Arc::clone(&self.runtime);
        let numbered = (1..).zip(&mut self.devices);
        let mut named = numbered.filter(|(_, device)| device.target.name() == switch);
        let Some((device_id, device)) = named.next() else {
            return Ok((0, 0));
        };
        let mut target = P4Runtime::connect(runtime, switch, address, device_id)?;
        let program = Arc::clone(&device.program);
        target.load(&program.p4info, &program.device_config)?;
        let updates = updates(&device.planned, &device.entries);
        target.write(&updates)?;
        target.write(&set(&device.rates))?;
        device.target = Box::new(target);
        device.is_down = false;
        if let Some((lease, runtime)) = leased.filter(|_| epoch != 0) {
            device.keep_lease(lease, &runtime)?;
        }
        device.set_defaults(device.planned.set_epoch(epoch))?;
        let told = device.target.read(&[
            Query::Entries { table: None },
            Query::MulticastGroups { id: None },
            Query::CloneSessions { id: None },
        ])?;
        let shown = updates.iter().filter(|(_, item)| told.contains(item));
        Ok((shown.count(), updates.len()))
    }

    /// The writes of epochs so far, in the order in which they were sent.
    pub fn epoch_writes(&self) -> &[EpochWrite] {
        &self.epoch_writes
    }
}

/// The current time on the clock of captures: nanoseconds since 1970.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
