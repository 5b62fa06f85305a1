//! What becomes of a packet that units have fired on: a drop stands over all, fields change in declared
//! order, delays add up, a duplicate is made once.

use super::dialect::Dialect;
use super::unit::holds;
use super::{Action, Side, UnitSpec};
use crate::generate::writer::Writer;

/// An action of the composition: its name, and what it does to the packet.
fn action(action: &Action) -> Option<(&'static str, &'static [&'static str])> {
    match action {
        // Of bytes that change, each unit has a control of its own.
        Action::Observe | Action::Rewrite(_) => None,
        Action::Drop => Some(("end", &["meta.verdict = VERDICT_DROP;"])),
        Action::Duplicate => Some(("double", &["meta.detain = 1;", "meta.duplicate = 1;"])),
        Action::Delay(_) => Some(("detain", &["meta.detain = 1;"])),
    }
}

/// In this order the first that fired decides, where one table does: what comes first has in it what comes later.
const ORDER: [&str; 3] = ["end", "double", "detain"];

pub(super) fn write(dialect: Dialect, side: Side, units: &[UnitSpec], w: &mut Writer) {
    w.line(match side {
        Side::Ingress => "// All units of ingress, side by side, and what becomes of the packet.",
        Side::Egress => "// The same of egress, for each copy.",
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
        if let Action::Rewrite(_) = unit.action {
            w.line(format!("{}() change{number};", side.change(number)));
        }
    }
    let acting: Vec<(usize, &'static str, &'static [&'static str])> = units
        .iter()
        .enumerate()
        .filter_map(|(number, unit)| {
            let (name, body) = action(&unit.action)?;
            Some((number, name, body))
        })
        .collect();
    if dialect.is_tna() && !acting.is_empty() {
        w.blank();
        table(&acting, w);
    }
    w.open("apply");
    for (number, unit) in units.iter().enumerate() {
        let mut arguments = vec!["meta".to_owned(), format!("fire{number}")];
        if holds(unit) {
            arguments.push(format!("hold{number}"));
        }
        w.line(format!("u{number}.apply({});", arguments.join(", ")));
    }
    for (number, unit) in units.iter().enumerate() {
        if let Action::Rewrite(_) = unit.action {
            w.open(format!("if (fire{number} == 1)"));
            w.line(format!("change{number}.apply(hdr);"));
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
        for (number, _, body) in &acting {
            w.open(format!("if (fire{number} == 1)"));
            body.iter().for_each(|line| w.line(line));
            w.close();
        }
    }
    w.close();
    w.close();
}

/// Adds up in pairs, then pairs of pairs: on Tofino each addition is a stage, and so they are few.
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

/// One ternary table over what fired, as Tofino wants it.
fn table(acting: &[(usize, &'static str, &'static [&'static str])], w: &mut Writer) {
    let mut names: Vec<&str> = Vec::new();
    for wanted in ORDER {
        if let Some((_, name, body)) = acting.iter().find(|(_, name, _)| *name == wanted) {
            w.open(format!("action {name}()"));
            body.iter().for_each(|line| w.line(line));
            w.close();
            names.push(name);
        }
    }
    w.open("table compose");
    w.open("key =");
    for (number, ..) in acting {
        w.line(format!("fire{number}: ternary;"));
    }
    w.close();
    w.line(format!("actions = {{ {}; NoAction; }}", names.join("; ")));
    w.line("const default_action = NoAction();");
    w.open("const entries =");
    for wanted in names {
        for (position, _) in acting
            .iter()
            .enumerate()
            .filter(|(_, (_, name, _))| *name == wanted)
        {
            let keys: Vec<&str> = (0..acting.len())
                .map(|other| if other == position { "1" } else { "_" })
                .collect();
            let keys = match keys.as_slice() {
                [one] => (*one).to_owned(),
                keys => format!("({})", keys.join(", ")),
            };
            w.line(format!("{keys}: {wanted}();"));
        }
    }
    w.close();
    w.line(format!("size = {};", acting.len().next_power_of_two()));
    w.close();
}
