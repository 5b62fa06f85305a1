//! Replaces the running scenario by another one on switches that keep forwarding.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use scenario::plan::Over;

use super::aggregation::rates;
use super::change::{Change, KeptRegisters, Version, cleared_counters};
use super::{Device, Fleet, FleetError, entries, set};
use crate::experiment::Planned;
use crate::program::{Program, build};
use crate::target::{Item, Kind};

/// How long at most to wait for packets that faults hold; a packet that is held longer is lost.
const LONGEST_STAY: Duration = Duration::from_secs(10);
/// Additional wait, for a switch that releases a held packet late.
const GRACE: Duration = Duration::from_millis(10);

/// A scenario that is ready to replace the running one: it is planned, and its P4 programs are built.
pub struct Replacement {
    /// The new scenario with its plan.
    pub planned: Planned,
    programs: Vec<Program>,
    /// Which faults of the running scenario continue, and which do not.
    pub over: Over,
    /// How long to wait for packets that the running scenario's faults hold.
    held: Duration,
}

impl Replacement {
    /// Prepares `new` to replace the running scenario `old`; sends nothing to switches. `p4src`: folder with replaced P4 files.
    pub fn prepare(
        old: &Planned,
        new: Planned,
        kind: Kind,
        p4src: Option<&Path>,
    ) -> Result<Replacement, FleetError> {
        if kind != Kind::Embedded {
            return Err(FleetError::Replace(format!(
                "{kind} cannot replace a scenario while it runs: end `weir control` and start it again"
            )));
        }
        let names = |planned: &Planned| -> Vec<String> {
            let switches = planned.plan.switches.iter();
            switches.map(|switch| switch.name.clone()).collect()
        };
        let (have, want) = (names(old), names(&new));
        if have != want {
            return Err(FleetError::Replace(format!(
                "{}: its switches are {}, but the running ones are {}",
                new.scenario.file,
                want.join(", "),
                have.join(", ")
            )));
        }
        let mut programs = Vec::new();
        for planned in &new.plan.switches {
            programs.push(build(kind.arch(), planned, p4src)?);
        }
        let held = Duration::from_nanos(old.scenario.longest_stay_ns());
        Ok(Replacement {
            programs,
            over: Over::new((&old.scenario, &old.plan), (&new.scenario, &new.plan)),
            held: match held.is_zero() {
                true => held,
                false => held.min(LONGEST_STAY) + GRACE,
            },
            planned: new,
        })
    }

    /// The changes on each switch on which `old` runs.
    pub fn changes(&self, old: &Planned, kind: Kind) -> Result<Vec<Change>, FleetError> {
        let mut changes = Vec::new();
        for (planned, program) in self.planned.plan.switches.iter().zip(&self.programs) {
            let Some(was) = old.plan.switch(&planned.name) else {
                continue;
            };
            let old_program = build(kind.arch(), was, None)?;
            changes.push(Change::between(
                Version {
                    planned: was,
                    program: &old_program,
                    entries: &entries(old, was, &old_program),
                },
                Version {
                    planned,
                    program,
                    entries: &entries(&self.planned, planned, program),
                },
            ));
        }
        Ok(changes)
    }
}

impl Fleet {
    /// Replaces the running scenario: disarms all faults, waits for held packets, and changes each switch between two frames.
    /// Afterwards no fault is armed. Returns the changes on each switch.
    pub fn replace(&mut self, next: &Replacement) -> Result<Vec<Change>, FleetError> {
        self.disarm()?;
        std::thread::sleep(next.held);
        let mut changes = Vec::new();
        for (device, program) in self.devices.iter_mut().zip(&next.programs) {
            changes.push(device.replace(&next.planned, &next.over, program)?);
        }
        self.lease = next.planned.plan.lease.lease();
        Ok(changes)
    }
}

impl Device {
    fn replace(
        &mut self,
        planned: &Planned,
        over: &Over,
        program: &Program,
    ) -> Result<Change, FleetError> {
        let Some(switch) = planned.plan.switch(&self.planned.name) else {
            let name = &self.planned.name;
            return Err(FleetError::Replace(format!("it has no switch {name}")));
        };
        let held = entries(planned, switch, program);
        let new = Version {
            planned: switch,
            program,
            entries: &held,
        };
        let old = Version {
            planned: &self.planned,
            program: &self.program,
            entries: &self.entries,
        };
        let change = Change::between(old, new);
        let carried = KeptRegisters::new(over, &planned.plan, new, &self.program.p4info);
        let mut cells = Vec::new();
        let queries = carried.queries();
        if !queries.is_empty() {
            for item in self.target.read(&queries)? {
                if let Item::Register { fields, .. } = item {
                    cells.push(fields);
                }
            }
        }
        self.target.write(change.before())?;
        if !change.keeps_program() {
            self.target
                .reconcile(&program.p4info, &program.device_config)?;
        }
        let mut updates = change.after().to_vec();
        updates.extend(carried.writes(&cells));
        updates.extend(cleared_counters(&program.p4info));
        let rates = rates(&planned.scenario, switch);
        updates.extend(set(&rates));
        self.target.write(&updates)?;
        self.rates = rates;
        self.program = Arc::new(program.clone());
        self.planned = switch.clone();
        self.entries = held;
        Ok(change)
    }
}
