//! Operations of the control plane.
//!
//! ```text
//! batch        writes that are taken back as a whole
//! entries      entries in full and by position, as the P4Runtime server writes and reads them; idle entries
//! tables       entries, default actions, direct counters and meters by name
//! profiles     members and groups of action profiles
//! undo         the inverse of each write of a batch
//! notes        data that clients attach to default entries, groups and sessions
//! cells        registers, indexed counters and meters
//! value_sets   parsers' value sets
//! replication  multicast groups and clone sessions
//! ```
//!
//! Operations for a Tofino's further objects are in `switch/tofino.rs`.

mod batch;
mod cells;
mod entries;
mod notes;
mod profiles;
mod replication;
mod tables;
mod undo;
mod value_sets;

pub use crate::table::DirectChange;
pub use cells::RegisterCells;
pub use entries::EntryRef;
pub(crate) use undo::Undo;

use crate::externs::register::Info;
use crate::state::State;
use hashbrown::HashMap;

/// Positions of tables, externs, profiles and value sets in the state, by fully qualified name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    tables: HashMap<String, usize>,
    registers: HashMap<String, usize>,
    counters: HashMap<String, usize>,
    direct_counters: HashMap<String, usize>,
    direct_meters: HashMap<String, usize>,
    meters: HashMap<String, usize>,
    value_sets: HashMap<String, usize>,
}

impl Names {
    pub fn new(state: &State, registers: &[Info]) -> Names {
        fn index<'a>(names: impl Iterator<Item = &'a String>) -> HashMap<String, usize> {
            names.enumerate().map(|(i, n)| (n.clone(), i)).collect()
        }
        let direct = state.tables.iter().enumerate();
        let metered = state.tables.iter().enumerate();
        Names {
            tables: index(state.tables.iter().map(|t| &t.spec.name)),
            registers: index(registers.iter().map(|r| &r.name)),
            counters: index(state.cells.counters.iter().map(|c| &c.name)),
            direct_counters: direct
                .filter_map(|(i, t)| Some((t.spec.direct_counter.as_ref()?.0.clone(), i)))
                .collect(),
            direct_meters: metered
                .filter_map(|(i, t)| Some((t.spec.direct_meter.as_ref()?.name.clone(), i)))
                .collect(),
            meters: index(state.cells.meters.iter().map(|m| &m.name)),
            value_sets: index(state.value_sets.iter().map(|v| &v.name)),
        }
    }
}
