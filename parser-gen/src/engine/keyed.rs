//! Packet keys, each with a register cell: hashes give one candidate cell in each of several ways, and the cell that is found
//! indexes all registers of the key. Units number the packets of each key with it, and triggers follow each key separately.
//!
//! A key gets the first candidate that is its own or empty. Cells are never freed, so a key that was found
//! once is always found. A packet whose key has no cell counts as `keyless`, and no fault applies to it.

use super::dialect::Dialect;
use super::{Keys, UnitSpec};
use crate::key::{PacketKey, WAYS};
use crate::writer::Writer;

/// Packet keys of one unit or trigger, to write their P4 text. `tag` is appended to all names: a control can have several keys.
#[derive(Clone, Copy)]
pub(super) struct Keyed<'a> {
    pub dialect: Dialect,
    pub tag: &'a str,
    pub key: &'a PacketKey,
    pub keys: Keys,
}

impl<'a> Keyed<'a> {
    /// Keys of a unit's packets; `None` if the unit does not number packets per key.
    pub fn for_unit(dialect: Dialect, unit: &'a UnitSpec) -> Option<Keyed<'a>> {
        let (key, keys) = unit.key.as_ref().zip(unit.keys)?;
        Some(Keyed {
            dialect,
            tag: "",
            key,
            keys,
        })
    }

    /// Declares the hashes of packet keys.
    pub fn hashes(&self, w: &mut Writer) {
        self.key.write_state(self.dialect.0, self.tag, true, w);
    }

    /// Number of register cells for keys, in all ways together.
    pub fn cells(&self) -> usize {
        WAYS << self.keys.bits
    }

    /// Declares registers and variables for the packets' keys.
    pub fn state(&self, w: &mut Writer) {
        let Keyed { dialect, tag, .. } = self;
        for way in 0..WAYS {
            let cells = 1 << self.keys.bits;
            dialect.register(w, &self.way(way), "bit<32>", "bit<32>", cells);
        }
        if self.keys.restarts {
            dialect.register(w, &self.births(), "bit<32>", "bit<32>", self.cells());
        }
        w.line(format!("bit<32> print{tag} = 0;"));
        w.line(format!("bit<32> place{tag} = 0;"));
        w.line(format!("bit<32> {} = 0;", self.slot()));
    }

    /// Name of the P4 variable that holds the index of the register cell of the packet's key.
    pub fn slot(&self) -> String {
        format!("slot_{}", self.tag.trim_start_matches('_'))
    }

    fn way(&self, way: usize) -> String {
        format!("keys{way}{}", self.tag)
    }

    fn births(&self) -> String {
        format!("births{}", self.tag)
    }

    /// Writes statements that compute the packet's key: `print`, its fingerprint in a register cell, and `place`,
    /// which selects the candidate cells. `salt` is mixed into both if keys of different flows must differ.
    pub fn hash(&self, salt: Option<&str>, w: &mut Writer) {
        let (print, place) = (format!("print{}", self.tag), format!("place{}", self.tag));
        self.key.write(self.dialect.0, self.tag, &print, w);
        self.key.write_place(self.dialect.0, self.tag, &place, w);
        if let Some(salt) = salt {
            w.line(format!("{print} = {print} ^ {salt};"));
            w.line(format!("{place} = {place} ^ {salt};"));
        }
        let (low, high) = (self.keys.bits - 1, 32 - self.keys.bits);
        for (number, of) in [&place, &place, &print, &print].iter().enumerate() {
            let bits = if number % 2 == 0 {
                (low, 0)
            } else {
                (31, high)
            };
            w.line(format!(
                "bit<32> at{number}{} = (bit<32>) {of}[{}:{}];",
                self.tag, bits.0, bits.1
            ));
        }
        w.line("// 0 marks an empty cell.");
        w.open(format!("if ({print} == 0)"));
        w.line(format!("{print} = 1;"));
        w.close();
    }

    /// Writes statements that find the register cell of the packet's key: the first candidate that holds the key or is
    /// empty. They read the content of each candidate into `known`; the statements of `then` run at the cell that is found.
    pub fn find(&self, known: &str, then: impl Fn(&mut Writer, &str, &str), w: &mut Writer) {
        let print = format!("print{}", self.tag);
        w.open("@atomic");
        for way in 0..WAYS {
            let (register, at) = (self.way(way), format!("at{way}{}", self.tag));
            w.line(self.dialect.read(&register, known, &at));
            w.open(format!("if ({known} == 0 || {known} == {print})"));
            then(w, &register, &at);
            w.line(format!(
                "{} = {at} + {};",
                self.slot(),
                way << self.keys.bits
            ));
            w.line(format!("is_known{} = 1;", self.tag));
            if way + 1 < WAYS {
                w.close_open("else");
            }
        }
        (0..=WAYS).for_each(|_| w.close());
    }

    /// Statement that writes the fingerprint of the packet's key to a cell of the way's register.
    pub fn take(&self, register: &str, at: &str) -> String {
        self.dialect
            .write(register, &format!("print{}", self.tag), at)
    }

    /// Writes statements that write the fingerprint of the packet's key to the cell that was found, in whichever way it is.
    pub fn take_found(&self, w: &mut Writer) {
        let slot = self.slot();
        for way in 0..WAYS {
            let (first, beyond) = (way << self.keys.bits, (way + 1) << self.keys.bits);
            let at = match first {
                0 => slot.clone(),
                first => format!("{slot} - {first}"),
            };
            match (way == 0, way + 1 == WAYS) {
                (true, _) => w.open(format!("if ({slot} < {beyond})")),
                (false, false) => w.close_open(&format!("else if ({slot} < {beyond})")),
                (false, true) => w.close_open("else"),
            }
            w.line(self.take(&self.way(way), &format!("({at})")));
        }
        w.close();
    }

    /// Writes statements that set a key's registers to 0 at a new connection: at a SYN with a new sequence number.
    pub fn restart(&self, registers: &[&str], w: &mut Writer) {
        let (births, slot) = (self.births(), self.slot());
        w.open(format!("if ({BEGINS})"));
        w.open("@atomic");
        w.line(format!("bit<32> born{};", self.tag));
        let born = format!("born{}", self.tag);
        w.line(self.dialect.read(&births, &born, &slot));
        w.open(format!("if ({born} != hdr.tcp.seq)"));
        w.line(self.dialect.write(&births, "hdr.tcp.seq", &slot));
        for register in registers {
            w.line(self.dialect.write(register, "0", &slot));
        }
        w.close();
        w.close();
        w.close();
    }

    /// Statement that records, in a new cell, the sequence number `seq` of the SYN that began the key's connection.
    pub fn bear(&self, seq: &str) -> String {
        self.dialect.write(&self.births(), seq, &self.slot())
    }
}

/// P4 condition: the packet begins a TCP connection.
pub(super) const BEGINS: &str = "hdr.tcp.isValid() && hdr.tcp.syn == 1 && hdr.tcp.ack == 0";
