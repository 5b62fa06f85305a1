//! Spreads the copies of a packet over time: egress, which can distinguish the copies, moves their deadlines.

use super::{Action, EngineSpec};
use crate::writer::Writer;

pub(super) fn write(spec: &EngineSpec, w: &mut Writer) {
    let units = spec.ingress.iter();
    let copies = units.filter_map(|unit| match &unit.action {
        Action::Duplicate(copies) => Some(&copies.later_ns),
        _ => None,
    });
    let later = copies.flatten().filter(|(_, later_ns)| *later_ns > 0);
    let mut later: Vec<(u16, u64)> = later.copied().collect();
    later.sort_unstable();
    later.dedup();
    if later.is_empty() {
        return;
    }
    w.blank();
    w.line("// Copies are due one after the other: main.p4 moves their deadlines in egress.");
    w.line("#define SPREADS_COPIES");
    w.blank();
    w.open("control SpreadCopies(inout headers_t hdr, in bit<16> instance)");
    w.open("action later(time_ns_t ns)");
    w.line("hdr.hold.deadline = hdr.hold.deadline + ns;");
    w.close();
    w.open("table copies");
    w.open("key =");
    w.line("instance: exact;");
    w.close();
    w.line("actions = { later; NoAction; }");
    w.line("const default_action = NoAction();");
    w.open("const entries =");
    for (instance, later_ns) in &later {
        w.line(format!("{instance}: later({later_ns});"));
    }
    w.close();
    w.line(format!("size = {};", later.len().next_power_of_two()));
    w.close();
    w.open("apply");
    w.line("copies.apply();");
    w.close();
    w.close();
}
