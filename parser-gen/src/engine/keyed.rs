//! Units that number the packets of each key by themselves: a key's cell is found in one of several ways, by hashes, and is
//! the index of all that the unit holds of it.
//!
//! A packet takes the first cell that is its key's own, or empty. Nothing is taken out of a cell again, so what was found once
//! is found always. A key for which there is no cell is `keyless`: its packets are counted, and spared.

use super::dialect::Dialect;
use super::{Keys, UnitSpec};
use crate::generate::writer::Writer;
use crate::key::{PacketKey, WAYS};

/// Which key the unit's packets are numbered by, and how its cells are found.
pub(super) fn of(unit: &UnitSpec) -> Option<(&PacketKey, Keys)> {
    unit.key.as_ref().zip(unit.keys)
}

/// Registers and variables.
pub(super) fn state(
    dialect: Dialect,
    (key, keys): (&PacketKey, Keys),
    (cell, cells): (&str, usize),
    w: &mut Writer,
) {
    key.write_state(dialect.0, true, w);
    dialect.counter(w, "keyless", cell, cells);
    for way in 0..WAYS {
        let name = format!("keys{way}");
        dialect.register(w, &name, "bit<32>", "bit<32>", 1 << keys.bits);
    }
    if keys.restarts {
        dialect.register(w, "births", "bit<32>", "bit<32>", WAYS << keys.bits);
    }
    w.line("bit<32> print = 0;");
    w.line("bit<32> place = 0;");
    w.line("bit<32> slot_ = 0;");
    w.line("bit<8> is_known = 0;");
}

/// Statements that find the packet's cell: `is_known` is 0 if there is none.
pub(super) fn find(dialect: Dialect, (key, keys): (&PacketKey, Keys), w: &mut Writer) {
    key.write(dialect.0, "print", w);
    key.write_place(dialect.0, "place", w);
    w.line("print = print ^ key_;");
    w.line("place = place ^ key_;");
    let (low, high) = (keys.bits - 1, 32 - keys.bits);
    for (way, of) in ["place", "place", "print", "print"].iter().enumerate() {
        let bits = if way % 2 == 0 { (low, 0) } else { (31, high) };
        w.line(format!(
            "bit<32> at{way} = (bit<32>) {of}[{}:{}];",
            bits.0, bits.1
        ));
    }
    w.line("// 0 is an empty cell's.");
    w.open("if (print == 0)");
    w.line("print = 1;");
    w.close();
    w.line("bit<32> known = 0;");
    w.line("is_known = 0;");
    w.open("@atomic");
    for way in 0..WAYS {
        let register = format!("keys{way}");
        let at = format!("at{way}");
        w.line(dialect.read(&register, "known", &at));
        w.open("if (known == 0 || known == print)");
        w.line(dialect.write(&register, "print", &at));
        w.line(format!("slot_ = {at} + {};", way << keys.bits));
        w.line("is_known = 1;");
        if way + 1 < WAYS {
            w.close_open("else");
        }
    }
    (0..=WAYS).for_each(|_| w.close());
}

/// Statements that begin a key's numbers again with a connection: its SYN has a sequence number that is not the last one's.
pub(super) fn restart(dialect: Dialect, registers: &[&str], w: &mut Writer) {
    w.open("if (hdr.tcp.isValid() && hdr.tcp.syn == 1 && hdr.tcp.ack == 0)");
    w.open("@atomic");
    w.line("bit<32> born;");
    w.line(dialect.read("births", "born", "slot_"));
    w.open("if (born != hdr.tcp.seq)");
    w.line(dialect.write("births", "hdr.tcp.seq", "slot_"));
    for register in registers {
        w.line(dialect.write(register, "0", "slot_"));
    }
    w.close();
    w.close();
    w.close();
}
