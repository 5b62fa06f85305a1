//! Triggers: what faults wait for, as a state machine in registers of `FaultEngine`.
//!
//! A trigger counts events, stage by stage: packets of some flows, or packets that a unit fires on. When the last stage is
//! complete it is on. A packet meets the state that those before it have led to: it is read in front of the units and advanced
//! behind them, so what a packet brings about holds from the next one on, and no order among units or triggers is needed.
//! Ingress takes one packet after the other on the switches that have this text, so the two halves need no lock.

use super::dialect::Dialect;
use crate::generate::writer::Writer;

/// The bit of a packet's events that says "start again"; below it, one for each stage.
pub const RESETS: u32 = 15;

/// A trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerSpec {
    /// For people, in one line.
    pub about: String,
    /// What it waits for, one after the other.
    pub stages: Vec<Stage>,
    /// For how long it is then on; until it is reset without.
    pub on_for_ns: Option<u64>,
    /// Units that put it back to the start by firing.
    pub resets: Vec<usize>,
    /// Entries of its table.
    pub entries: usize,
}

/// A stage of a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// So many events complete it.
    pub count: u32,
    /// Units whose firing is one. That a packet is of a flow, the trigger's table says.
    pub units: Vec<usize>,
    /// How long after the stage before it may be complete at the latest: else it all starts again.
    pub within_ns: Option<u64>,
}

impl TriggerSpec {
    /// By stage, how many events complete it and those before it.
    fn ends(&self) -> Vec<u32> {
        let stages = self.stages.iter();
        stages
            .scan(0_u32, |sum, stage| {
                *sum = sum.saturating_add(stage.count);
                Some(*sum)
            })
            .collect()
    }

    /// Stretches of the count that time ends, from the first on and before the second: a stage with a limit, or being on.
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

/// Registers, variables and tables of `FaultEngine`.
pub(super) fn state(dialect: Dialect, triggers: &[TriggerSpec], w: &mut Writer) {
    for (number, trigger) in triggers.iter().enumerate() {
        w.line(format!("// {}", trigger.about));
        dialect.register(w, &format!("progress{number}"), "bit<32>", "bit<8>", 1);
        w.line(format!("bit<32> step{number} = 0;"));
        if !trigger.limited().is_empty() {
            dialect.register(w, &format!("limit{number}"), "time_ns_t", "bit<8>", 1);
            w.line(format!("time_ns_t end{number} = 0;"));
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
}

/// Statements in front of the units: where each trigger stands when the packet comes.
pub(super) fn look(dialect: Dialect, triggers: &[TriggerSpec], w: &mut Writer) {
    for (number, trigger) in triggers.iter().enumerate() {
        w.line(format!("trigger{number}.apply();"));
        let step = format!("step{number}");
        w.line(dialect.read(&format!("progress{number}"), &step, FIRST));
        let limited = trigger.limited();
        if limited.is_empty() {
            continue;
        }
        w.line(dialect.read(&format!("limit{number}"), &format!("end{number}"), FIRST));
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
        w.close();
    }
}

/// Whether a trigger is on.
pub(super) fn is_on(number: usize, trigger: &TriggerSpec) -> String {
    let last = trigger.ends().last().copied().unwrap_or(0);
    format!("step{number} == {last}")
}

/// Statements behind the units: what the packet was.
pub(super) fn advance(dialect: Dialect, triggers: &[TriggerSpec], w: &mut Writer) {
    for (number, trigger) in triggers.iter().enumerate() {
        let (step, sees) = (format!("step{number}"), format!("sees{number}"));
        let mut fires = |unit: usize, bit: u32| {
            w.open(format!("if (fire{unit} == 1)"));
            w.line(format!("{sees} = {sees} | {};", 1_u32 << bit));
            w.close();
        };
        for (stage, bit) in trigger.stages.iter().zip(0..) {
            stage.units.iter().for_each(|unit| fires(*unit, bit));
        }
        trigger.resets.iter().for_each(|unit| fires(*unit, RESETS));
        // What starts it again may be what it then counts first.
        w.open(format!("if ({sees}[{RESETS}:{RESETS}] == 1)"));
        w.line(format!("{step} = 0;"));
        w.close();
        let next = trigger.stages.iter().skip(1);
        let limits = next.map(|stage| stage.within_ns).chain([trigger.on_for_ns]);
        for ((bit, end), limit) in trigger.ends().into_iter().enumerate().zip(limits) {
            let is_in = format!("if ({step} < {end})");
            if bit == 0 {
                w.open(is_in);
            } else {
                w.close_open(&format!("else {is_in}"));
            }
            w.open(format!("if ({sees}[{bit}:{bit}] == 1)"));
            w.line(format!("{step} = {step} + 1;"));
            if let Some(limit_ns) = limit {
                w.open(format!("if ({step} == {end})"));
                w.line(format!("end{number} = meta.now + {limit_ns};"));
                w.close();
            }
            w.close();
        }
        w.close();
        w.line(dialect.write(&format!("progress{number}"), &step, FIRST));
        if !trigger.limited().is_empty() {
            w.line(dialect.write(&format!("limit{number}"), &format!("end{number}"), FIRST));
        }
    }
}

/// A register has one cell.
const FIRST: &str = "0";
