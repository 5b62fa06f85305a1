//! Computes how one plan replaces another on a switch that keeps forwarding.
//!
//! If both plans need the same program, only table entries change. Otherwise the new program takes over entries and counts of
//! the old one (P4Runtime specification 1.4, section 14, RECONCILE_AND_COMMIT). Entries that do not fit the new program are
//! deleted before this, and missing ones are written after it. All faults are disarmed meanwhile, so only forwarding entries
//! matter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use p4lang::p4info::{P4Info, Register};
use p4lang::runtime::{FieldMatch, TableEntry, Value};
use p4rt::translate::CounterValue;
use parser_gen::engine::UnitSpec;
use scenario::model::Direction;
use scenario::plan::names::{self, forward};
use scenario::plan::{Becomes, Injection, Over, Plan, SwitchPlan};
use serde::Serialize;

use crate::program::Program;
use crate::target::{Item, UpdateType};

/// A switch's plan, program and table entries, under the old scenario or under the new one.
#[derive(Clone, Copy)]
pub struct Version<'a> {
    /// The switch's part of the plan.
    pub planned: &'a SwitchPlan,
    /// The P4 program that the switch runs.
    pub program: &'a Program,
    /// All table entries that the switch has before the timeline begins.
    pub entries: &'a [TableEntry],
}

/// The changes on a switch that replace one plan by another.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
    /// Name of the switch.
    pub switch: String,
    /// Why the switch needs another P4 program; empty if it keeps its program.
    pub new_program: Vec<String>,
    /// Number of table entries that stay as they are.
    pub kept: usize,
    /// Number of table entries that are inserted.
    pub inserted: usize,
    /// Number of table entries whose action changes, but whose key stays.
    pub modified: usize,
    /// Number of table entries that are deleted.
    pub deleted: usize,
    #[serde(skip)]
    before: Vec<(UpdateType, Item)>,
    #[serde(skip)]
    after: Vec<(UpdateType, Item)>,
}

type EntryKey<'a> = (&'a str, i32, &'a [FieldMatch]);

fn key_of(entry: &TableEntry) -> EntryKey<'_> {
    (&entry.table, entry.priority, &entry.key)
}

impl Change {
    /// Computes the changes from the old plan of a switch to the new one.
    pub fn between(old: Version<'_>, new: Version<'_>) -> Change {
        let new_program = match is_same_program(old.program, new.program) {
            true => Vec::new(),
            false => reasons(old, new),
        };
        let mut change = Change {
            switch: new.planned.name.clone(),
            new_program,
            kept: 0,
            inserted: 0,
            modified: 0,
            deleted: 0,
            before: Vec::new(),
            after: Vec::new(),
        };
        change.entries(old, new);
        change.replication(old.planned, new.planned);
        if !change.new_program.is_empty() {
            change.defaults(old.planned, new.planned);
        }
        change
    }

    /// Whether the switch keeps its P4 program, so that only table entries change.
    pub fn keeps_program(&self) -> bool {
        self.new_program.is_empty()
    }

    /// Updates that the controller writes before the switch changes its program.
    pub fn before(&self) -> &[(UpdateType, Item)] {
        &self.before
    }

    /// Updates that the controller writes after the switch has changed its program, or all updates if it keeps its program.
    pub fn after(&self) -> &[(UpdateType, Item)] {
        &self.after
    }

    fn entries(&mut self, old: Version<'_>, new: Version<'_>) {
        let had: BTreeMap<EntryKey<'_>, &TableEntry> = old
            .entries
            .iter()
            .map(|entry| (key_of(entry), entry))
            .collect();
        let wanted: BTreeSet<EntryKey<'_>> = new.entries.iter().map(key_of).collect();
        // The switch forwards packets all the time; entries of other tables have no effect while no fault is armed.
        let stays = |entry: &TableEntry| {
            self.new_program.is_empty() || forward::TABLES.contains(&entry.table.as_str())
        };
        let item = |entry: &TableEntry| Item::TableEntry(entry.clone());
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for entry in old.entries {
            let is_kept = new.entries.contains(entry);
            if is_kept || (wanted.contains(&key_of(entry)) && stays(entry)) {
                continue;
            }
            self.deleted += 1;
            let delete = (UpdateType::Delete, item(entry));
            match stays(entry) {
                true => after.push(delete),
                false => before.push(delete),
            }
        }
        for entry in new.entries {
            match had.get(&key_of(entry)) {
                Some(was) if *was == entry => self.kept += 1,
                Some(was) if stays(was) => {
                    self.modified += 1;
                    after.push((UpdateType::Modify, item(entry)));
                }
                _ => {
                    self.inserted += 1;
                    after.push((UpdateType::Insert, item(entry)));
                }
            }
        }
        self.before.extend(before);
        self.after.extend(after);
    }

    fn replication(&mut self, old: &SwitchPlan, new: &SwitchPlan) {
        let (mut written, mut gone) = (Vec::new(), Vec::new());
        for group in &new.groups {
            let was = old.groups.iter().find(|was| was.id == group.id);
            let kind = match was {
                Some(was) if was == group => continue,
                Some(_) => UpdateType::Modify,
                None => UpdateType::Insert,
            };
            written.push((kind, Item::MulticastGroup(group.clone())));
        }
        for session in &new.sessions {
            let was = old.sessions.iter().find(|was| was.id == session.id);
            let kind = match was {
                Some(was) if was == session => continue,
                Some(_) => UpdateType::Modify,
                None => UpdateType::Insert,
            };
            written.push((kind, Item::CloneSession(session.clone())));
        }
        for group in &old.groups {
            if !new.groups.iter().any(|now| now.id == group.id) {
                gone.push((UpdateType::Delete, Item::MulticastGroup(group.clone())));
            }
        }
        for session in &old.sessions {
            if !new.sessions.iter().any(|now| now.id == session.id) {
                gone.push((UpdateType::Delete, Item::CloneSession(session.clone())));
            }
        }
        // Entries refer to groups: write new groups first, delete unused groups last.
        let entries = std::mem::take(&mut self.after);
        self.after = written.into_iter().chain(entries).chain(gone).collect();
    }

    /// Resets the default actions of tables that only the old program has; if they are set, the new program cannot take over.
    fn defaults(&mut self, old: &SwitchPlan, new: &SwitchPlan) {
        let stays = new.faulting();
        for direction in old.faulting() {
            if stays.contains(&direction) {
                continue;
            }
            for table in [
                names::timeline::table(direction),
                names::lease::table(direction),
            ] {
                let action = None;
                self.before
                    .push((UpdateType::Modify, Item::DefaultAction { table, action }));
            }
        }
    }
}

/// Whether two programs are the same for the compiler, whatever their comments and `#line` file names are.
fn is_same_program(old: &Program, new: &Program) -> bool {
    let code = |program: &Program| -> Vec<String> {
        let text = String::from_utf8_lossy(&program.device_config);
        let lines = text.lines().map(|line| {
            let line = line.split_once("//").map_or(line, |(code, _)| code);
            line.trim().to_owned()
        });
        lines.filter(|line| !line.is_empty()).collect()
    };
    code(old) == code(new)
}

/// Describes what differs between two programs: headers, fault units and triggers that only one of them has.
fn reasons(old: Version<'_>, new: Version<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    let (had, has) = (headers(old.program), headers(new.program));
    reasons.extend(
        has.difference(&had)
            .map(|name| format!("header {name} is new")),
    );
    reasons.extend(
        had.difference(&has)
            .map(|name| format!("header {name} no longer exists")),
    );
    let engines = [&old.planned.engine, &new.planned.engine];
    let sides = [
        ("ingress", engines.map(|engine| &engine.ingress)),
        ("egress", engines.map(|engine| &engine.egress)),
    ];
    for (side, [had, has]) in sides {
        for unit in 0..had.len().max(has.len()) {
            let what = match (had.get(unit), has.get(unit)) {
                (None, Some(_)) => "is new",
                (Some(_), None) => "no longer exists",
                (Some(was), Some(now)) if shape(was) != shape(now) => "differs",
                _ => continue,
            };
            reasons.push(format!("{side} unit {unit} {what}"));
        }
    }
    if engines[0].triggers != engines[1].triggers {
        reasons.push("its triggers differ".to_owned());
    }
    if reasons.is_empty() {
        reasons.push("its match tables have a different shape".to_owned());
    }
    reasons
}

/// Specification of a fault unit (a table of the P4 program that applies one effect), without its description for readers.
fn shape(unit: &UnitSpec) -> UnitSpec {
    UnitSpec {
        about: String::new(),
        ..unit.clone()
    }
}

/// Names of the header types in the generated part of a program.
fn headers(program: &Program) -> BTreeSet<String> {
    let generated = program
        .sources
        .iter()
        .filter(|(path, _)| path.ends_with("generated.p4"));
    let lines = generated.flat_map(|(_, text)| text.lines());
    let types = lines.filter_map(|line| line.strip_prefix("header ")?.split_once(' '));
    let names = types.map(|(name, _)| match name.strip_suffix("_h").unwrap_or(name) {
        // Each selected message text has its own type, with a name that no user knows.
        name if name.starts_with("message_") => "message text".to_owned(),
        name => name.to_owned(),
    });
    names.collect()
}

/// Register cells that keep their values when a new plan replaces the old one, and registers that are set to 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptRegisters {
    /// Cells whose values are copied, each with its old and its new position: register name and cell index.
    pub cells: Vec<((String, u64), (String, u64))>,
    /// Registers whose cells are all set to 0 before the copied values are written.
    pub cleared: Vec<Register>,
}

impl KeptRegisters {
    /// Determines these cells and registers for a switch. `over`: which faults continue. `had`: P4Info of the old program.
    pub fn new(over: &Over, plan: &Plan, new: Version<'_>, had: &P4Info) -> KeptRegisters {
        let has = &new.program.p4info;
        let mut carried = KeptRegisters::default();
        // Registers beside the units, such as the progress of a trigger, restart at 0.
        let prefixes = [Direction::Ingress, Direction::Egress].map(names::fault::engine);
        let beside = has.registers.iter().filter(|register| {
            let name = register.preamble.name.as_str();
            let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
            rest.is_some_and(|rest| !rest.contains('.'))
        });
        carried.cleared.extend(beside.cloned());
        for unit in &new.planned.units {
            let here: Vec<(&Injection, &Becomes)> = plan
                .injections
                .iter()
                .zip(&over.fates)
                .filter(|(at, _)| {
                    (&at.switch, at.direction, at.unit)
                        == (&new.planned.name, unit.direction, unit.unit)
                })
                .map(|(at, fate)| (at, &fate.becomes))
                .collect();
            let is_keyed = here.iter().any(|(at, _)| at.keyless.is_some());
            let goes_on = |becomes: &Becomes| matches!(becomes, Becomes::GoesOn { .. });
            if is_keyed && here.iter().all(|(_, becomes)| goes_on(becomes)) {
                // The keys stay in their cells: plan::over allows no other fault to continue.
                continue;
            }
            for register in registers(has, unit.direction, unit.unit) {
                carried.cleared.push(register.clone());
                let name = &register.preamble.name;
                let part = name.rsplit('.').next().unwrap_or(name);
                for (at, becomes) in here.iter().filter(|_| !is_keyed) {
                    let Becomes::GoesOn { unit: was, cell } = becomes else {
                        continue;
                    };
                    let from = names::fault::part(unit.direction, *was, part);
                    let known = had.registers.iter().find(|had| had.preamble.name == from);
                    if known.is_some_and(|known| known.data_type == register.data_type) {
                        carried
                            .cells
                            .push(((from, *cell as u64), (name.clone(), at.cell as u64)));
                    }
                }
            }
        }
        carried
    }

    /// Reads of the copied cells, which the controller performs before the change.
    pub fn queries(&self) -> Vec<crate::target::Query> {
        let from = self
            .cells
            .iter()
            .map(|((name, index), _)| crate::target::Query::Register {
                name: name.clone(),
                index: Some(*index),
            });
        from.collect()
    }

    /// Writes of cleared registers and copied cells, to perform after the change. `read`: results of `queries`, in order.
    pub fn writes(&self, read: &[Vec<Value>]) -> Vec<(UpdateType, Item)> {
        let zero = |register: &Register| Item::Register {
            name: register.preamble.name.clone(),
            index: None,
            fields: register
                .element
                .iter()
                .map(|_| Value::from(0_u128))
                .collect(),
        };
        let cell =
            |((_, (name, index)), fields): (&(_, (String, u64)), &Vec<Value>)| Item::Register {
                name: name.clone(),
                index: Some(*index),
                fields: fields.clone(),
            };
        let cleared = self.cleared.iter().map(zero);
        let cells = self.cells.iter().zip(read).map(cell);
        cleared
            .chain(cells)
            .map(|item| (UpdateType::Modify, item))
            .collect()
    }
}

fn registers(info: &P4Info, direction: Direction, unit: usize) -> impl Iterator<Item = &Register> {
    let prefix = format!("{}.", names::fault::unit(direction, unit));
    let registers = info.registers.iter();
    registers.filter(move |register| register.preamble.name.starts_with(&prefix))
}

/// Writes that set all counters of faults to 0, as each scenario counts from 0.
pub fn cleared_counters(info: &P4Info) -> Vec<(UpdateType, Item)> {
    let of_faults = |name: &str| {
        let lapsed = [Direction::Ingress, Direction::Egress].map(names::lease::lapsed);
        name.contains(".faults.") || lapsed.iter().any(|lapsed| lapsed == name)
    };
    let counters = info.counters.iter().map(|counter| &counter.preamble.name);
    counters
        .filter(|name| of_faults(name))
        .map(|name| {
            let item = Item::Counter {
                name: name.clone(),
                index: None,
                value: Some(CounterValue::default()),
            };
            (UpdateType::Modify, item)
        })
        .collect()
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.new_program.as_slice() {
            [] => write!(f, "only entries change")?,
            reasons => write!(f, "another program: {}", reasons.join(", "))?,
        }
        let Change {
            kept,
            inserted,
            modified,
            deleted,
            ..
        } = self;
        write!(
            f,
            "; entries: {inserted} new, {modified} changed, {deleted} gone, {kept} stay"
        )
    }
}
