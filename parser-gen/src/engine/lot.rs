//! Random delays or bit masks of a unit: a table of 1,024 values indexed by the drawn word `w`; order of held packets.

use super::dialect::Dialect;
use super::{Action, UnitSpec};
use crate::writer::Writer;

/// Number of upper bits of the drawn word that index the table.
const BITS: usize = 10;

/// Whether the unit's effect draws a random value.
pub(super) fn is_drawn(unit: &UnitSpec) -> bool {
    matches!(&unit.action, Action::Delay(hold) if hold.drawn) || mask_bits(unit).is_some()
}

/// Width in bits of the mask that the unit draws for each packet; `None` if the unit draws no mask.
pub(super) fn mask_bits(unit: &UnitSpec) -> Option<usize> {
    match &unit.action {
        Action::Rewrite(rewrite) => rewrite.drawn_bits(),
        _ => None,
    }
}

/// Whether packets that the unit delays leave in their order of arrival.
pub(super) fn keeps_order(unit: &UnitSpec) -> bool {
    matches!(&unit.action, Action::Delay(hold) if hold.keeps_order)
}

/// Whether the unit has a register with the deadline of the packet that it held last.
pub(super) fn has_deadlines(unit: &UnitSpec) -> bool {
    keeps_order(unit) || matches!(unit.action, Action::Pace(_))
}

/// Writes the table `lots`, which maps the packet's drawn word to a delay or a mask.
pub(super) fn table(dialect: Dialect, unit: &UnitSpec, held: &str, w: &mut Writer) {
    let bits = if dialect.is_tna() { 16 } else { 32 };
    let (ty, into) = match mask_bits(unit) {
        Some(bits) => (format!("bit<{bits}>"), "mask"),
        None => ("time_ns_t".to_owned(), held),
    };
    w.open(format!("action lot({ty} value)"));
    w.line(format!("{into} = value;"));
    w.close();
    w.open("table lots");
    w.open("key =");
    w.line(format!(
        "w[{}:{}]: exact @name(\"w\");",
        bits - 1,
        bits - BITS
    ));
    w.close();
    w.line("actions = { lot; NoAction; }");
    w.line("const default_action = NoAction();");
    w.line(format!("size = {};", 1 << BITS));
    w.close();
}

/// Writes statements that set a packet's deadline by that of earlier packets: the packet waits for its turn at a rate,
/// or until the packet held before it is due, if that is later. A deadline of 0 means that no packet was held.
pub(super) fn keep_order(dialect: Dialect, unit: &UnitSpec, w: &mut Writer) {
    if let Action::Pace(pace) = unit.action {
        pace.write(
            &dialect.read("deadlines", "free", "cell_"),
            &dialect.write("deadlines", "meta.now + wait", "cell_"),
            w,
        );
    }
    if !keeps_order(unit) {
        return;
    }
    w.open("@atomic");
    w.line("time_ns_t before;");
    w.line(dialect.read("deadlines", "before", "cell_"));
    w.line("time_ns_t early = meta.now + hold - before;");
    w.open("if (before != 0 && early[TIME_SIGN:TIME_SIGN] == 1)");
    w.line("hold = before - meta.now;");
    w.close();
    w.line(dialect.write("deadlines", "meta.now + hold", "cell_"));
    w.close();
}
