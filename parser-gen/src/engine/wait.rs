//! Packets that wait for later packets of their flow: each unit with waiting packets counts the packets
//! that it inspects, and a waiting packet, when it returns over the recirculation port, reads the count.

use super::dialect::Dialect;
use super::{Action, EngineSpec, Reorder, UnitSpec};
use crate::arch::Arch;
use crate::writer::Writer;

/// How long the packets that the unit fires on wait for later packets; `None` if they do not wait.
pub(super) fn reorder(unit: &UnitSpec) -> Option<Reorder> {
    match unit.action {
        Action::Reorder(reorder) => Some(reorder),
        _ => None,
    }
}

/// Whether any of the units makes packets wait for later packets.
pub(super) fn waits(units: &[UnitSpec]) -> bool {
    units.iter().any(|unit| reorder(unit).is_some())
}

/// Writes the P4 definitions with which main.p4 handles packets that return from the recirculation port.
pub(super) fn write_gate(spec: &EngineSpec, w: &mut Writer) {
    if !waits(&spec.ingress) {
        return;
    }
    w.blank();
    w.line("// Packets wait for others: returning packets pass the engine again, which counts.");
    w.line("#define REORDERS");
    w.blank();
    w.line("// A packet whose waiting time is over waits no longer.");
    w.open("control WaitLimit(inout headers_t hdr, in time_ns_t now)");
    w.open("apply");
    w.line("time_ns_t late = now - hdr.wait.limit;");
    w.open("if (late[TIME_SIGN:TIME_SIGN] == 0)");
    w.line("hdr.wait.unit = WAIT_NONE;");
    w.close();
    w.close();
    w.close();
}

/// Declares the registers in `FaultEngine` that count packets for waiting packets.
pub(super) fn state(dialect: Dialect, units: &[UnitSpec], w: &mut Writer) {
    for (number, unit) in units.iter().enumerate() {
        if reorder(unit).is_some() {
            let cells = unit.cells.max(1).next_power_of_two();
            dialect.register(w, &format!("passed{number}"), "bit<32>", "bit<16>", cells);
            w.line(format!("bit<8> met{number} = 0;"));
            w.line(format!("bit<16> cell{number} = 0;"));
        }
    }
}

/// Writes statements after the composition: they count an arriving packet, and release a waiting packet that may leave.
pub(super) fn apply(dialect: Dialect, units: &[UnitSpec], w: &mut Writer) {
    for (number, unit) in units.iter().enumerate() {
        let Some(Reorder {
            distance,
            within_ns,
        }) = reorder(unit)
        else {
            continue;
        };
        let register = format!("passed{number}");
        let (read, write) = match dialect.0 {
            Arch::V1model => (
                format!("{register}.read(passed, (bit<32>) at);"),
                format!("{register}.write((bit<32>) at, passed);"),
            ),
            Arch::Psa | Arch::Tna => (
                format!("passed = {register}.read(at);"),
                format!("{register}.write(at, passed);"),
            ),
        };
        w.open("@atomic");
        w.line("bit<32> passed = 0;");
        w.line(format!("bit<16> at = cell{number};"));
        w.open(format!("if (met{number} == 1)"));
        w.line(&read);
        w.line("passed = passed + 1;");
        w.line(write);
        w.open(format!("if (fire{number} == 1)"));
        w.line("meta.detain = 1;");
        w.line("hdr.wait.setValid();");
        w.line(format!("hdr.wait.unit = {number};"));
        w.line("hdr.wait.cell = at;");
        w.line(format!("hdr.wait.until = passed + {distance};"));
        w.line(format!("hdr.wait.limit = meta.now + {within_ns};"));
        w.close();
        w.close_open(&format!(
            "else if (hdr.hold.isValid() && hdr.wait.unit == {number})"
        ));
        w.line("at = hdr.wait.cell;");
        w.line(read);
        w.line("bit<32> missing = passed - hdr.wait.until;");
        w.open("if (missing[31:31] == 0)");
        w.line("hdr.wait.unit = WAIT_NONE;");
        w.close();
        w.close();
        w.close();
    }
}
