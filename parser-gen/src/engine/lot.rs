//! What a unit's effect makes of the word `w` that it draws: a table of 1,024 values, and the order of what is held.

use super::dialect::Dialect;
use super::{Action, UnitSpec};
use crate::generate::writer::Writer;

/// So many of the upper bits of the word choose one.
const BITS: usize = 10;

/// Whether the unit's effect draws.
pub(super) fn is_drawn(unit: &UnitSpec) -> bool {
    matches!(&unit.action, Action::Delay(hold) if hold.drawn) || mask_bits(unit).is_some()
}

/// Bits of the mask that it draws, if it does.
pub(super) fn mask_bits(unit: &UnitSpec) -> Option<usize> {
    match &unit.action {
        Action::Rewrite(rewrite) => rewrite.drawn_bits(),
        _ => None,
    }
}

/// Whether what it holds keeps its order.
pub(super) fn keeps_order(unit: &UnitSpec) -> bool {
    matches!(&unit.action, Action::Delay(hold) if hold.keeps_order)
}

/// Whether it has a register of times.
pub(super) fn has_deadlines(unit: &UnitSpec) -> bool {
    keeps_order(unit) || matches!(unit.action, Action::Pace(_))
}

/// `lots`: the value that the packet's word stands for.
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

/// What the time of others makes of the packet: it waits for its turn at a rate; or it is due when the one is that was held
/// before it, if that is later. A register that is 0 has held none.
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
