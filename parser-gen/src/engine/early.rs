//! Early fault: a fault in one program with a sum on Tofino. It drops by ordinal, in the stage before the sum begins.
//!
//! Sums of 32 values leave room for one table only, in the first stage (docs/tofino.md). It matches the fields that tell flows
//! apart, and its action runs the register that counts. No value can be computed before it, so the parser reports whether
//! faults are armed, and ordinals are constants of the program.

use super::{Side, UnitSpec};
use crate::writer::Writer;

/// Fault before a sum on Tofino, which selects packets of a flow by index: the ordinal less one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Early {
    /// Index of the packet that the fault drops.
    pub fires_at: u32,
    /// Packet index after which the count restarts at 0.
    pub last: u32,
    /// Number of the switch's ports; packets may arrive at any of them.
    pub ports: usize,
}

fn either(index: u32, then: &[&str], otherwise: &[&str], w: &mut Writer) {
    w.open(format!("if (cell_.index == {index})"));
    then.iter().for_each(|line| w.line(line));
    w.close_open("else");
    otherwise.iter().for_each(|line| w.line(line));
    w.close();
}

/// Writes the controls of `engine.p4`. `key` is the match key that distinguishes flows; it takes `rows` table rows.
pub(super) fn write(early: Early, unit: &UnitSpec, (key, rows): (&str, usize), w: &mut Writer) {
    let cells = unit.cells.max(1).next_power_of_two();
    let cell = super::unit::cell_type(unit);
    w.line(format!("// {}", unit.about));
    w.line("// Decided in the first stage, from the parser's results.");
    w.open(format!(
        "control {}(in headers_t hdr, inout metadata_t meta)",
        Side::Ingress.unit(0)
    ));
    w.line(format!(
        "Counter<bit<64>, {cell}>({cells}, CounterType_t.PACKETS) fired;"
    ));
    w.line(format!(
        "Register<countdown_t, {cell}>({cells}, {{ 0, 0 }}) ordinals;"
    ));
    w.open(format!(
        "RegisterAction<countdown_t, {cell}, verdict_t>(ordinals) next ="
    ));
    w.open("void apply(inout countdown_t cell_, out verdict_t now)");
    // A stateful ALU has two comparators only.
    let (hit, miss) = (
        "cell_.verdict = (bit<32>) VERDICT_DROP;",
        "cell_.verdict = (bit<32>) VERDICT_FORWARD;",
    );
    let (again, on) = ("cell_.index = 0;", "cell_.index = cell_.index + 1;");
    if early.fires_at == early.last {
        either(early.last, &[hit, again], &[miss, on], w);
    } else {
        either(early.fires_at, &[hit], &[miss], w);
        either(early.last, &[again], &[on], w);
    }
    w.line("now = cell_.verdict[7:0];");
    w.close();
    w.close_with(";");
    w.line(format!("{cell} cell_ = 0;"));
    w.blank();
    w.open(format!("action pick({cell} cell)"));
    w.line("cell_ = cell;");
    w.line("meta.verdict = next.execute(cell);");
    w.close();
    w.line("// An action sets this: a value set before the table would need an earlier stage.");
    w.open("action pass()");
    w.line("meta.verdict = VERDICT_FORWARD;");
    w.close();
    w.line("@name(\"select\")");
    w.open("table select_fault");
    w.open("key =");
    key.lines().for_each(|line| w.line(line));
    w.line("meta.epoch: exact;");
    w.close();
    w.line("actions = { pick; pass; }");
    w.line("const default_action = pass();");
    w.line(format!(
        "size = {};",
        rows.max(super::unit::MIN_ENTRIES).next_power_of_two()
    ));
    w.close();
    w.open("apply");
    w.line("select_fault.apply();");
    w.open("if (meta.verdict == VERDICT_DROP)");
    w.line("fired.count(cell_);");
    w.close();
    w.close();
    w.close();
    w.blank();
    w.open("control FaultEngine(inout headers_t hdr, inout metadata_t meta)");
    w.line(format!("{}() u0;", Side::Ingress.unit(0)));
    w.open("apply");
    w.line("u0.apply(hdr, meta);");
    w.close();
    w.close();
}
