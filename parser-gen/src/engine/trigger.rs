//! Triggers: conditions for which faults wait, as state machines in registers of `FaultEngine`.
//!
//! A trigger counts events, stage by stage: packets of some flows, or packets on which a unit fires. It is on once its last
//! stage is complete. A trigger's state is read before the units and advanced after them, so an event takes effect from the
//! next packet on, and units and triggers need no order. Ingress processes one packet after the other on the switches that have
//! this text, so the two halves need no lock.
//!
//! A trigger with a key is one trigger per key: its registers have a cell for each. Before the units, a packet looks up its
//! key's cell but takes none; after them it takes one if it is an event. So keys whose packets only meet faults that wait
//! occupy no cells.

use super::Keys;
use super::dialect::Dialect;
use super::keyed::{BEGINS, Keyed};
use crate::key::PacketKey;
use crate::writer::Writer;

/// Number of the bit that restarts the trigger, in the word of a packet's events; each lower bit stands for one stage.
pub const RESETS: u32 = 15;

/// Trigger: condition that must hold before some faults act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerSpec {
    /// Description of the trigger for people, one line.
    pub about: String,
    /// Stages, in the order in which they must complete.
    pub stages: Vec<Stage>,
    /// How long the trigger stays on after its last stage, in nanoseconds; `None`: until it is reset.
    pub on_for_ns: Option<u64>,
    /// Indexes of the units that reset the trigger by firing.
    pub resets: Vec<usize>,
    /// Key by which packets follow separate triggers; `None`: all packets follow one.
    pub key: Option<PacketKey>,
    /// Register cells for the keys, if there is a key.
    pub keys: Option<Keys>,
    /// Whether a P4 counter counts how often the trigger came on.
    pub counted: bool,
    /// Number of entries in the trigger's table. If there is a key, they match all packets that the trigger concerns.
    pub entries: usize,
}

/// Stage of a trigger: complete after a number of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Number of events that complete the stage.
    pub count: u32,
    /// Indexes of units whose firing is an event. The trigger's table decides which flows' packets are events.
    pub units: Vec<usize>,
    /// Maximum time in nanoseconds since the previous stage was completed; if it passes, the trigger restarts.
    pub within_ns: Option<u64>,
}

impl TriggerSpec {
    /// Number of events that the trigger has counted at the end of each stage.
    fn ends(&self) -> Vec<u32> {
        let stages = self.stages.iter();
        stages
            .scan(0_u32, |sum, stage| {
                *sum = sum.saturating_add(stage.count);
                Some(*sum)
            })
            .collect()
    }

    /// Ranges of the event count, the end exclusive, that have a time limit: stages with a limit, and the time of being on.
    fn limited(&self) -> Vec<(u32, u32)> {
        let ends = self.ends();
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let stages = begins.zip(&ends).zip(&self.stages);
        let mut limited: Vec<(u32, u32)> = stages
            .filter(|(_, stage)| stage.within_ns.is_some())
            .map(|((begin, end), _)| (begin, *end))
            .collect();
        if let (Some(_), Some(last)) = (self.on_for_ns, ends.last()) {
            limited.push((*last, last.saturating_add(1)));
        }
        limited
    }
}

/// Trigger, with the context for writing its P4 text.
struct Text<'a> {
    dialect: Dialect,
    number: usize,
    trigger: &'a TriggerSpec,
    tag: String,
}

impl<'a> Text<'a> {
    fn all(dialect: Dialect, triggers: &'a [TriggerSpec]) -> impl Iterator<Item = Text<'a>> {
        let numbered = triggers.iter().enumerate();
        numbered.map(move |(number, trigger)| Text {
            dialect,
            number,
            trigger,
            tag: format!("_t{number}"),
        })
    }

    fn keyed(&self) -> Option<Keyed<'_>> {
        let (key, keys) = self.trigger.key.as_ref().zip(self.trigger.keys)?;
        Some(Keyed {
            dialect: self.dialect,
            tag: &self.tag,
            key,
            keys,
        })
    }

    /// P4 expression for the index of the packet's cell in the trigger's registers.
    fn at(&self) -> String {
        self.keyed()
            .map_or_else(|| FIRST.to_owned(), |keyed| keyed.slot())
    }

    /// P4 condition: the packet's key has a register cell, or a candidate cell is empty.
    fn may_have_cell(&self) -> String {
        format!("is_known{} == 1", self.tag)
    }

    /// P4 variable with the key's fingerprint that the cell held when the packet arrived: 0 if the cell was empty.
    fn held(&self) -> String {
        format!("known{}", self.tag)
    }

    fn state(&self, w: &mut Writer) {
        let Text {
            dialect,
            number,
            trigger,
            ..
        } = self;
        w.line(format!("// {}", trigger.about));
        let (index, cells) = match self.keyed() {
            Some(keyed) => ("bit<32>", keyed.cells()),
            None => ("bit<8>", 1),
        };
        if let Some(keyed) = self.keyed() {
            keyed.hashes(w);
            dialect.counter(w, &format!("keyless{number}"), "bit<8>", 1);
            keyed.state(w);
            w.line(format!("bit<32> {} = 0;", self.held()));
            w.line(format!("bit<8> is_known{} = 0;", self.tag));
            w.line(format!("bit<8> meets{number} = 0;"));
            if keyed.keys.restarts {
                w.line(format!("bit<32> seq{number} = 0;"));
            }
        }
        dialect.register(w, &format!("progress{number}"), "bit<32>", index, cells);
        w.line(format!("bit<32> step{number} = 0;"));
        if !trigger.limited().is_empty() {
            dialect.register(w, &format!("limit{number}"), "time_ns_t", index, cells);
            w.line(format!("time_ns_t end{number} = 0;"));
        }
        if trigger.counted {
            dialect.counter(w, &format!("on{number}"), "bit<8>", 1);
        }
        w.line(format!("bit<16> sees{number} = 0;"));
        w.open(format!("action see{number}(bit<16> events)"));
        w.line(format!("sees{number} = events;"));
        w.close();
        w.open(format!("table trigger{number}"));
        w.open("key =");
        w.line("meta.class: exact;");
        w.close();
        w.line(format!("actions = {{ see{number}; NoAction; }}"));
        w.line("const default_action = NoAction();");
        let size = trigger.entries.max(super::unit::MIN_ENTRIES);
        w.line(format!("size = {};", size.next_power_of_two()));
        w.close();
    }

    fn look(&self, w: &mut Writer) {
        let number = self.number;
        let Some(keyed) = self.keyed() else {
            w.line(format!("trigger{number}.apply();"));
            self.read(w);
            return;
        };
        w.open(format!("if (trigger{number}.apply().hit)"));
        w.line(format!("meets{number} = 1;"));
        w.close();
        if keyed.keys.restarts {
            w.open(format!("if ({BEGINS})"));
            w.line(format!("meets{number} = 1;"));
            // Units may change the packet's headers.
            w.line(format!("seq{number} = hdr.tcp.seq;"));
            w.close();
        }
        w.open(format!("if (meets{number} == 1)"));
        keyed.hash(None, w);
        keyed.find(&self.held(), |_, _, _| {}, w);
        w.open(format!(
            "if ({} && {} != 0)",
            self.may_have_cell(),
            self.held()
        ));
        if keyed.keys.restarts {
            keyed.restart(&[&format!("progress{number}")], w);
        }
        self.read(w);
        w.close();
        w.close();
    }

    /// Writes statements that read the trigger's progress (its event count), and reset it if its time limit has passed.
    fn read(&self, w: &mut Writer) {
        let Text {
            dialect,
            number,
            trigger,
            ..
        } = self;
        let (step, at) = (format!("step{number}"), self.at());
        w.line(dialect.read(&format!("progress{number}"), &step, &at));
        let limited = trigger.limited();
        if limited.is_empty() {
            return;
        }
        w.line(dialect.read(&format!("limit{number}"), &format!("end{number}"), &at));
        w.line(format!("time_ns_t left{number} = end{number} - meta.now;"));
        let stretches: Vec<String> = limited
            .iter()
            .map(|(begin, end)| match end - begin {
                1 => format!("{step} == {begin}"),
                _ => format!("({step} >= {begin} && {step} < {end})"),
            })
            .collect();
        w.open(format!(
            "if (left{number}[TIME_SIGN:TIME_SIGN] == 1 && ({}))",
            stretches.join(" || ")
        ));
        w.line(format!("{step} = 0;"));
        if self.keyed().is_some() {
            // Reset the register too: clocks wrap, and the next event may be far off.
            w.line(dialect.write(&format!("progress{number}"), "0", &at));
        }
        w.close();
    }

    fn advance(&self, w: &mut Writer) {
        let Text {
            dialect,
            number,
            trigger,
            ..
        } = self;
        let sees = format!("sees{number}");
        let mut fires = |unit: usize, bit: u32| {
            w.open(format!("if (fire{unit} == 1)"));
            w.line(format!("{sees} = {sees} | {};", 1_u32 << bit));
            w.close();
        };
        for (stage, bit) in trigger.stages.iter().zip(0..) {
            stage.units.iter().for_each(|unit| fires(*unit, bit));
        }
        trigger.resets.iter().for_each(|unit| fires(*unit, RESETS));
        let Some(keyed) = self.keyed() else {
            self.count(w);
            return;
        };
        w.open(format!("if ({sees} != 0)"));
        w.open(format!(
            "if ({} && {} == 0)",
            self.may_have_cell(),
            self.held()
        ));
        keyed.take_found(w);
        if keyed.keys.restarts {
            w.line(keyed.bear(&format!("seq{number}")));
        }
        w.close();
        w.open(format!("if ({})", self.may_have_cell()));
        self.count(w);
        w.close_open("else");
        w.line(dialect.count_once(&format!("keyless{number}")));
        w.close();
        w.close();
    }

    /// Writes statements that add the packet's events to the trigger's progress (its event count).
    fn count(&self, w: &mut Writer) {
        let Text {
            dialect,
            number,
            trigger,
            ..
        } = self;
        let (step, sees, at) = (format!("step{number}"), format!("sees{number}"), self.at());
        // The event that restarts the trigger may be its first event as well.
        w.open(format!("if ({sees}[{RESETS}:{RESETS}] == 1)"));
        w.line(format!("{step} = 0;"));
        w.close();
        let next = trigger.stages.iter().skip(1);
        let limits = next.map(|stage| stage.within_ns).chain([trigger.on_for_ns]);
        let last = trigger.stages.len().saturating_sub(1);
        for ((bit, end), limit) in trigger.ends().into_iter().enumerate().zip(limits) {
            let is_in = format!("if ({step} < {end})");
            if bit == 0 {
                w.open(is_in);
            } else {
                w.close_open(&format!("else {is_in}"));
            }
            w.open(format!("if ({sees}[{bit}:{bit}] == 1)"));
            w.line(format!("{step} = {step} + 1;"));
            let limit = limit.map(|limit_ns| format!("end{number} = meta.now + {limit_ns};"));
            let counts = trigger.counted && bit == last;
            let on = counts.then(|| dialect.count_once(&format!("on{number}")));
            if limit.is_some() || on.is_some() {
                w.open(format!("if ({step} == {end})"));
                limit.iter().chain(&on).for_each(|line| w.line(line));
                w.close();
            }
            w.close();
        }
        w.close();
        w.line(dialect.write(&format!("progress{number}"), &step, &at));
        if !trigger.limited().is_empty() {
            w.line(dialect.write(&format!("limit{number}"), &format!("end{number}"), &at));
        }
    }
}

/// Writes the triggers' registers, variables and tables, which `FaultEngine` declares.
pub(super) fn state(dialect: Dialect, triggers: &[TriggerSpec], w: &mut Writer) {
    Text::all(dialect, triggers).for_each(|text| text.state(w));
}

/// Writes the statements that read each trigger's state; they stand before the units.
pub(super) fn look(dialect: Dialect, triggers: &[TriggerSpec], w: &mut Writer) {
    Text::all(dialect, triggers).for_each(|text| text.look(w));
}

/// Writes the statements that advance each trigger by the packet's events; they stand after the units.
pub(super) fn advance(dialect: Dialect, triggers: &[TriggerSpec], w: &mut Writer) {
    Text::all(dialect, triggers).for_each(|text| text.advance(w));
}

/// P4 condition: the trigger is on.
pub(super) fn is_on(number: usize, trigger: &TriggerSpec) -> String {
    let last = trigger.ends().last().copied().unwrap_or(0);
    format!("step{number} == {last}")
}

/// Index of the register cell that all packets share, if the trigger has no key.
const FIRST: &str = "0";
