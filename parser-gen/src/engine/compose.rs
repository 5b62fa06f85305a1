//! Composition: the joint effect on a packet of all units that fired. A drop takes precedence, fields change in declared order,
//! delays add up, and only the first of several duplicates is made.

use super::dialect::Dialect;
use super::lot;
use super::trigger;
use super::unit::holds;
use super::wait;
use super::{Action, Side, TriggerSpec, UnitSpec};
use crate::pace;
use crate::writer::Writer;

/// Effect of a unit on the packets that it fires on, as an action of the composition.
struct Acting {
    /// Number of the unit in its pipeline.
    number: usize,
    /// Priority in Tofino's table, lowest first: the first match decides, and its effect includes that of units of later ranks.
    rank: u8,
    name: String,
    body: Vec<String>,
    /// Condition that no earlier unit has already decided an effect of this kind. Tofino's table has priorities instead.
    only_if: Option<String>,
}

impl Acting {
    fn for_action(number: usize, action: &Action) -> Option<Acting> {
        let (rank, name, body): (u8, String, Vec<String>) = match action {
            // These actions have controls or statements of their own, or no effect.
            Action::Observe
            | Action::Rewrite(_)
            | Action::Reset
            | Action::Pace(_)
            | Action::Reorder(_) => return None,
            Action::Drop => (0, "end".into(), vec!["meta.verdict = VERDICT_DROP;".into()]),
            Action::Duplicate(copies) => (
                1,
                format!("copy_by_{}", copies.group),
                vec![
                    "meta.detain = 1;".into(),
                    "meta.duplicate = 1;".into(),
                    format!("meta.multicast_group = {};", copies.group),
                ],
            ),
            Action::Delay(_) => (2, "detain".into(), vec!["meta.detain = 1;".into()]),
            Action::Truncate(bytes) => (
                3,
                format!("cut_to_{bytes}"),
                vec!["meta.detain = 1;".into(), format!("meta.cut = {bytes};")],
            ),
        };
        let only_if = match action {
            // The duplicate that is declared first is made.
            Action::Duplicate(_) => Some("meta.duplicate == 0".to_owned()),
            // The shortest of several cuts holds.
            Action::Truncate(bytes) => Some(format!("(meta.cut == 0 || meta.cut > {bytes})")),
            _ => None,
        };
        Some(Acting {
            number,
            rank,
            name,
            body,
            only_if,
        })
    }

    fn condition(&self) -> String {
        let fires = format!("fire{} == 1", self.number);
        match &self.only_if {
            Some(undecided) => format!("{fires} && {undecided}"),
            None => fires,
        }
    }
}

pub(super) fn write(
    dialect: Dialect,
    side: Side,
    units: &[UnitSpec],
    triggers: &[TriggerSpec],
    w: &mut Writer,
) {
    w.line(match side {
        Side::Ingress => {
            "// Runs all fault units of ingress and combines their results for the packet."
        }
        Side::Egress => {
            "// Runs all fault units of egress and combines their results, for each copy."
        }
    });
    w.open(format!(
        "control {}(inout headers_t hdr, inout metadata_t meta)",
        side.engine()
    ));
    for (number, unit) in units.iter().enumerate() {
        w.line(format!("{}() u{number};", side.unit(number)));
        w.line(format!("bit<8> fire{number} = 0;"));
        if holds(unit) {
            w.line(format!("time_ns_t hold{number} = 0;"));
        }
        if let Action::Pace(_) = unit.action {
            w.line(format!("bit<8> over{number} = 0;"));
        }
        if let Some(bits) = lot::mask_bits(unit) {
            w.line(format!("bit<{bits}> mask{number} = 0;"));
        }
        if let Action::Rewrite(_) | Action::Reset = unit.action {
            w.line(format!("{}() change{number};", side.change(number)));
        }
    }
    wait::state(dialect, units, w);
    trigger::state(dialect, triggers, w);
    let units_acting = units.iter().enumerate();
    let acting: Vec<Acting> = units_acting
        .filter_map(|(number, unit)| Acting::for_action(number, &unit.action))
        .collect();
    if dialect.is_tna() && !acting.is_empty() {
        w.blank();
        table(&acting, w);
    }
    w.open("apply");
    let waits = wait::waits(units);
    if waits {
        w.open("if (!hdr.hold.isValid())");
    }
    trigger::look(dialect, triggers, w);
    let mut paced = units.iter();
    if paced.any(|unit| matches!(unit.action, Action::Pace(_))) {
        pace::measure(w);
    }
    for (number, unit) in units.iter().enumerate() {
        let mut arguments = vec!["meta".to_owned(), format!("fire{number}")];
        if unit.key.is_some() {
            arguments.insert(0, "hdr".to_owned());
        }
        if holds(unit) {
            arguments.push(format!("hold{number}"));
        }
        if let Action::Pace(_) = unit.action {
            arguments.push("bytes".to_owned());
            arguments.push(format!("over{number}"));
        }
        if lot::mask_bits(unit).is_some() {
            arguments.push(format!("mask{number}"));
        }
        if wait::reorder(unit).is_some() {
            arguments.push(format!("met{number}"));
            arguments.push(format!("cell{number}"));
        }
        let apply = format!("u{number}.apply({});", arguments.join(", "));
        let awaited = unit.when.and_then(|when| Some((when, triggers.get(when)?)));
        if let Some((when, trigger)) = awaited {
            w.open(format!("if ({})", trigger::is_on(when, trigger)));
            w.line(apply);
            w.close();
        } else {
            w.line(apply);
        }
    }
    for (number, unit) in units.iter().enumerate() {
        if let Action::Rewrite(_) | Action::Reset = unit.action {
            w.open(format!("if (fire{number} == 1)"));
            w.line(match lot::mask_bits(unit) {
                Some(_) => format!("change{number}.apply(hdr, mask{number});"),
                None => format!("change{number}.apply(hdr);"),
            });
            w.close();
        }
    }
    let held = units.iter().enumerate().filter(|(_, unit)| holds(unit));
    sum(held.map(|(number, _)| format!("hold{number}")).collect(), w);
    if dialect.is_tna() {
        if !acting.is_empty() {
            w.line("compose.apply();");
        }
    } else {
        for acting in &acting {
            w.open(format!("if ({})", acting.condition()));
            acting.body.iter().for_each(|line| w.line(line));
            w.close();
        }
        for (number, unit) in units.iter().enumerate() {
            if let Action::Pace(pace) = unit.action {
                w.open(format!("if (over{number} == 1)"));
                w.line("meta.verdict = VERDICT_DROP;");
                if pace.holds {
                    w.close_open(&format!("else if (fire{number} == 1)"));
                    w.line("meta.detain = 1;");
                }
                w.close();
            }
        }
    }
    trigger::advance(dialect, triggers, w);
    if waits {
        w.close();
        wait::apply(dialect, units, w);
    }
    w.close();
    w.close();
}

/// Adds the addends in pairs, then the sums in pairs: each level of additions takes a stage on Tofino, so there are few levels.
fn sum(mut addends: Vec<String>, w: &mut Writer) {
    while addends.len() > 2 {
        let mut sums = Vec::new();
        for pair in addends.chunks(2) {
            if let [a, b] = pair {
                w.line(format!("{a} = {a} + {b};"));
            }
            sums.push(pair[0].clone());
        }
        addends = sums;
    }
    if !addends.is_empty() {
        w.line(format!("meta.delay_ns = {};", addends.join(" + ")));
    }
}

/// Writes the composition for Tofino: one ternary table over the units that fired.
fn table(acting: &[Acting], w: &mut Writer) {
    let mut ordered: Vec<(usize, &Acting)> = acting.iter().enumerate().collect();
    ordered.sort_by_key(|(_, acting)| acting.rank);
    let mut names: Vec<&str> = Vec::new();
    for (_, acting) in &ordered {
        if !names.contains(&acting.name.as_str()) {
            w.open(format!("action {}()", acting.name));
            acting.body.iter().for_each(|line| w.line(line));
            w.close();
            names.push(&acting.name);
        }
    }
    w.open("table compose");
    w.open("key =");
    for Acting { number, .. } in acting {
        w.line(format!("fire{number}: ternary;"));
    }
    w.close();
    w.line(format!("actions = {{ {}; NoAction; }}", names.join("; ")));
    w.line("const default_action = NoAction();");
    w.open("const entries =");
    for (position, Acting { name, .. }) in &ordered {
        let keys: Vec<&str> = (0..acting.len())
            .map(|other| if other == *position { "1" } else { "_" })
            .collect();
        let keys = match keys.as_slice() {
            [one] => (*one).to_owned(),
            keys => format!("({})", keys.join(", ")),
        };
        w.line(format!("{keys}: {name}();"));
    }
    w.close();
    w.line(format!("size = {};", acting.len().next_power_of_two()));
    w.close();
}
