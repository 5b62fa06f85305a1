//! Lets a switch take over the state of a switch with another program (P4Runtime specification 1.4, section 14,
//! RECONCILE_AND_COMMIT).
//!
//! State written by the control plane is kept or refused: entries with their counters and meters, default actions,
//! members, groups, value sets, multicast groups, clone sessions, notes; a Tofino's packet generator continues. State
//! written by packets, and meters, are kept if the object of the same name has the same shape, and reset otherwise.

use crate::error::{ExternError, ProfileError, ReplicationError, TableError};
use crate::externs::counter::Counter;
use crate::externs::meter::Meter;
use crate::externs::register::{Bank, Info};
use crate::switch::Switch;
use thiserror::Error;

/// The reason why the state of the old program does not fit the new program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReconcileError {
    /// A table entry or default action of the old program does not fit.
    #[error("table {table}: {error}")]
    Table {
        /// Name of the table.
        table: String,
        /// The reason why the entry or default action does not fit.
        error: ProfileError,
    },
    /// A member or group of the old program's action profile does not fit.
    #[error("action profile {profile}: {error}")]
    Profile {
        /// Name of the action profile.
        profile: String,
        /// The reason why the member or group does not fit.
        error: ProfileError,
    },
    /// The members of a parser's value set in the old program do not fit.
    #[error("value set {set}: {error}")]
    ValueSet {
        /// Name of the value set.
        set: String,
        /// The reason why the members do not fit.
        error: ExternError,
    },
    /// A multicast group or clone session of the old program does not fit.
    #[error("replication: {0}")]
    Replication(#[from] ReplicationError),
    /// A packet generator's application does not fit: the new program is for another chip, which makes other packets.
    #[error("packet generator: pipe {pipe}, application {app}: the program is for another chip")]
    Generator {
        /// Number of the application's pipe.
        pipe: u32,
        /// Number of the application within the pipe.
        app: u32,
    },
}

impl Switch {
    /// Takes over the state of the switch `old`, which runs another program. After an error this switch is unusable.
    pub fn reconcile(&mut self, now_ns: u64, old: &Switch) -> Result<(), ReconcileError> {
        self.take_profiles(old)?;
        self.take_tables(now_ns, old)?;
        for set in old.core.state.value_sets.iter() {
            // An empty set needs no change.
            if !set.members.is_empty() {
                self.value_set_take(set)
                    .map_err(|error| ReconcileError::ValueSet {
                        set: set.name.clone(),
                        error,
                    })?;
            }
        }
        for group in old.multicast_groups() {
            self.set_multicast_group(&group)?;
        }
        for session in old.clone_sessions() {
            self.set_clone_session(&session)?;
        }
        self.take_notes(old);
        self.take_cells(old);
        self.take_generator(old)
    }

    fn take_profiles(&mut self, old: &Switch) -> Result<(), ReconcileError> {
        for profile in old.core.state.profiles.iter() {
            let name = &profile.spec.name;
            let refused = |error| ReconcileError::Profile {
                profile: name.clone(),
                error,
            };
            for (id, call) in profile.members() {
                self.insert_member(name, id, &call).map_err(refused)?;
            }
            for (id, group) in profile.groups() {
                self.put_group(name, id, group, false).map_err(refused)?;
            }
        }
        Ok(())
    }

    fn take_tables(&mut self, now_ns: u64, old: &Switch) -> Result<(), ReconcileError> {
        for (from, table) in old.core.state.tables.iter().enumerate() {
            let name = &table.spec.name;
            let refused = |error: ProfileError| ReconcileError::Table {
                table: name.clone(),
                error,
            };
            let to = self.table_index(name);
            if let Ok(to) = to {
                // Entries of the source that were deleted stay deleted.
                self.core.state.tables[to].clear();
            }
            for number in 0..table.numbers() {
                let Some(state) = old.entry_state(now_ns, from, number) else {
                    continue;
                };
                if state.is_const {
                    continue;
                }
                let to = to.clone().map_err(|error| refused(error.into()))?;
                let write = self.core.state.tables[to].translated(table, state);
                let write = write.map_err(|error| refused(error.into()))?;
                let timed = table.timer_of(number);
                let timed = timed.map(|timer| (timer, write.priority, write.key.clone()));
                self.insert_kept(now_ns, to, write).map_err(refused)?;
                if let Some((timer, priority, key)) = timed {
                    let resumed = self.core.state.tables[to].resume_timer(priority, &key, timer);
                    resumed.map_err(|error| refused(error.into()))?;
                }
            }
            if table.default_written() {
                let set = self.set_default_action(name, Some(&table.default_action()));
                set.map_err(|error: TableError| refused(error.into()))?;
            }
            if let Ok(to) = to {
                self.core.state.tables[to].take_default_direct(table);
            }
        }
        Ok(())
    }

    fn take_generator(&mut self, old: &Switch) -> Result<(), ReconcileError> {
        let generator = &old.core.tofino.generator;
        if self.program.arch == old.program.arch {
            self.core.tofino.generator = generator.clone();
            return Ok(());
        }
        match generator.first_app() {
            None => Ok(()),
            Some((pipe, app)) => Err(ReconcileError::Generator { pipe, app }),
        }
    }

    fn take_cells(&mut self, old: &Switch) {
        let Switch {
            registers, core, ..
        } = self;
        let same = |info: &&Info, of: &Info| {
            info.name == of.name && info.size == of.size && info.widths == of.widths
        };
        let registers: Vec<(&Info, &Info)> = old
            .registers
            .iter()
            .filter_map(|of| Some((registers.iter().find(|info| same(info, of))?, of)))
            .collect();
        let (state, was) = (&mut core.state, &old.core.state);
        take_registers(&registers, &mut state.cells.banks, &was.cells.banks);
        take_counters(&mut state.cells.counters, &was.cells.counters);
        take_meters(&mut state.cells.meters, &was.cells.meters);
        for (local, was) in core.tofino.pipes.beside(&old.core.tofino.pipes) {
            take_registers(&registers, &mut local.banks, &was.banks);
            take_counters(&mut local.counters, &was.counters);
            take_meters(&mut local.meters, &was.meters);
        }
    }
}

fn take_registers(registers: &[(&Info, &Info)], to: &mut [Bank], from: &[Bank]) {
    for (info, of) in registers {
        let mut cell = vec![0; of.words() as usize];
        for row in 0..of.size {
            from[of.bank as usize].read(row, of.offset, &mut cell);
            to[info.bank as usize].write(row, info.offset, &cell);
        }
    }
}

fn take_counters(to: &mut [Counter], from: &[Counter]) {
    for counter in from {
        let same =
            |c: &&mut Counter| c.name == counter.name && c.cells.len() == counter.cells.len();
        if let Some(mine) = to.iter_mut().find(same) {
            mine.cells.clone_from(&counter.cells);
        }
    }
}

fn take_meters(to: &mut [Meter], from: &[Meter]) {
    for meter in from {
        let same = |m: &&mut Meter| {
            m.name == meter.name && m.size() == meter.size() && m.bytes == meter.bytes
        };
        if let Some(mine) = to.iter_mut().find(same) {
            mine.take_cells(meter);
        }
    }
}
