//! Sessions with all switches of an experiment: loads their programs, writes their entries, arms faults and reads counters.

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

/// Errors of the switches of an experiment.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The P4 program of a switch could not be built.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A session with a switch returned an error.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Weir cannot attach to a running switch.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The asynchronous runtime for the sessions did not start.
    #[error("cannot start a runtime: {0}")]
    Runtime(std::io::Error),
    /// The lease of a switch's faults could not be kept.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The switches cannot take another scenario; contains the reason.
    #[error("{0}")]
    Replace(String),
}

pub use proof::{EpochWrite, TriggerCount};

struct Device {
    target: Box<dyn Target>,
    program: Arc<Program>,
    planned: SwitchPlan,
    /// Table entries that the switch has, without default actions.
    entries: Vec<TableEntry>,
    /// Table entries for announced RDMA connections that the switch has, by the text of their table and key.
    #[cfg(feature = "testbed")]
    told: BTreeMap<String, TableEntry>,
    /// Meter configurations that limit jobs to their rates.
    rates: Vec<Item>,
    /// Whether the switch's process has ended, by a fault or by itself: then the controller sends it nothing.
    is_down: bool,
    /// Refreshes the lease of the switch's faults; `None` while no fault is armed.
    lease: Option<LeaseKeeper>,
    /// Time and error of a refresh of the lease that failed; `None` if none did.
    lapsed: Option<(Instant, TargetError)>,
}

/// Time after a failed refresh in which the run may find that the switch has died: a dying process closes its sessions first.
const DYING: Duration = Duration::from_millis(300);

impl Device {
    fn set_defaults(&mut self, calls: Vec<(String, ActionCall)>) -> Result<(), FleetError> {
        Ok(self.target.write(&defaults(calls))?)
    }

    /// Refreshes the lease of the switch's faults once, and then keeps refreshing it in a thread; does nothing without faults.
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

/// Updates that set the default actions of tables; each call names the table and the action.
fn defaults(calls: Vec<(String, ActionCall)>) -> Vec<(UpdateType, Item)> {
    let calls = calls.into_iter().map(|(table, action)| {
        let action = Some(action);
        (UpdateType::Modify, Item::DefaultAction { table, action })
    });
    calls.collect()
}

/// Creates an asynchronous runtime with one thread.
fn new_runtime() -> Result<Arc<Runtime>, FleetError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    Ok(Arc::new(runtime.map_err(FleetError::Runtime)?))
}

/// All table entries that a switch has before the timeline begins.
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

/// Updates that write a switch's multicast groups, clone sessions and table entries before the timeline begins.
fn updates(switch: &SwitchPlan, held: &[TableEntry]) -> Vec<(UpdateType, Item)> {
    let groups = switch.groups.iter().cloned().map(Item::MulticastGroup);
    let sessions = switch.sessions.iter().cloned().map(Item::CloneSession);
    let entries = held.iter().cloned().map(Item::TableEntry);
    let all = groups.chain(sessions).chain(entries);
    all.map(|item| (UpdateType::Insert, item)).collect()
}

/// Updates of items that always exist, such as meter cells: they are modified, never inserted.
fn set(cells: &[Item]) -> Vec<(UpdateType, Item)> {
    let cells = cells.iter().cloned();
    cells.map(|cell| (UpdateType::Modify, cell)).collect()
}

/// Calls `act` for all running switches, each in a separate thread, and waits for all of them.
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

/// The sessions with all switches of an experiment, and the state that the controller has written to them.
pub struct Fleet {
    devices: Vec<Device>,
    epoch_writes: Vec<EpochWrite>,
    /// Announcements of RDMA connections that the switches have received, in order.
    #[cfg(feature = "testbed")]
    announcements: Vec<Announcement>,
    /// Log of writes, announcements and outages, which the judge's thread reads during the run.
    #[cfg(feature = "testbed")]
    pub(super) log: Arc<JudgeLog>,
    lease: Option<Lease>,
    /// Runtime of the sessions that refresh leases, which nothing else uses; `None` before the first lease.
    lease_runtime: Option<Arc<Runtime>>,
    /// Number of the step of the timeline (epoch) that was put in force last; 0 if no fault is armed.
    epoch: u16,
    /// Runtime of the new sessions with switches that are restarted.
    #[cfg(feature = "testbed")]
    runtime: Arc<Runtime>,
}

impl Fleet {
    /// Attaches to running switches: loads each switch's program and writes the plan without arming faults. `addresses`: by
    /// switch name. If its kind supports it, a switch forwards its former traffic until all is written.
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

    /// Builds each switch's program, calls `ready` to start the switch with it, and writes the plan. `ready` receives the
    /// runtime for the session, the switch's name, its device id and its program.
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

    /// The session with a switch, by the switch's name; `None` if the switch is down or unknown.
    fn running(&mut self, switch: &str) -> Option<&mut Device> {
        self.device(switch).filter(|device| !device.is_down)
    }

    /// Calls `act` for all running switches at once, and waits for all of them.
    #[cfg(feature = "testbed")]
    fn each<T: Send>(
        &mut self,
        act: impl Fn(&mut Device) -> Result<T, FleetError> + Sync,
    ) -> Vec<Result<T, FleetError>> {
        at_once(&mut self.devices, act)
    }

    /// The session with a switch, by the switch's name, even if the switch is down; `None` for an unknown name.
    pub fn target(&mut self, switch: &str) -> Option<&mut dyn Target> {
        self.device(switch)
            .map(|device| &mut *device.target as &mut dyn Target)
    }

    /// The P4 program of a switch; `None` for an unknown name.
    pub fn program(&mut self, switch: &str) -> Option<Arc<Program>> {
        self.device(switch)
            .map(|device| Arc::clone(&device.program))
    }

    /// Puts an epoch (a step of the timeline) in force on every switch, in each pipeline that has faults; epoch 0 disarms them.
    /// All switches are written at once, so a slow one delays no other. Also keeps refreshing the faults' lease, until epoch 0.
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

    /// Disarms all faults on all switches (epoch 0), unless they are disarmed already.
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

    /// Refreshes the leases of all running switches once, and then keeps refreshing them in threads.
    fn keep_leases(&mut self) -> Result<(), FleetError> {
        let Some((lease, runtime)) = self.leased()? else {
            return Ok(());
        };
        let keep = |device: &mut Device| device.keep_lease(lease, &runtime);
        at_once(&mut self.devices, keep).into_iter().collect()
    }

    /// The scenario's lease and the runtime for sessions that refresh it; `None` if the scenario has no lease.
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

    /// Stops refreshing the leases. Returns the first error that ended a refresh and was not returned before.
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

    /// Number of the step of the timeline (epoch) that is in force on every switch; 0 if no fault is armed.
    pub fn epoch(&self) -> u16 {
        self.epoch
    }

    /// Marks a switch as down because its process ends: the fleet sends it nothing until [`Fleet::bring_up`].
    #[cfg(feature = "testbed")]
    pub(super) fn take_down(&mut self, switch: &str) {
        if let Some(device) = self.device(switch) {
            device.is_down = true;
            device.lease = None;
            device.lapsed = None;
        }
    }

    /// Connects to the new process of a restarted switch, and writes everything that its former process had, with the step and
    /// the lease in force. Returns how many of the written items the switch then has, and how many were written.
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

    /// When each switch confirmed each step of the timeline (epoch), in the order in which the steps were sent.
    pub fn epoch_writes(&self) -> &[EpochWrite] {
        &self.epoch_writes
    }
}

/// The current time on the clock of captures: nanoseconds since 1970.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
