//! Keys that have a cell each: it is found in one of several ways, by hashes, and is the index of all that is held of the key.
//! Units number the packets of each key so, and triggers follow each key by itself.
//!
//! A packet takes the first cell that is its key's own, or empty. Nothing is taken out of a cell again, so what was found once
//! is found always. A key for which there is no cell is `keyless`: its packets are counted, and spared.

use super::dialect::Dialect;
use super::{Keys, UnitSpec};
use crate::generate::writer::Writer;
use crate::key::{PacketKey, WAYS};

/// The keys of one unit or trigger, as a writer of P4 text. `tag` ends all names, where one control has several of them.
#[derive(Clone, Copy)]
pub(super) struct Keyed<'a> {
    pub dialect: Dialect,
    pub tag: &'a str,
    pub key: &'a PacketKey,
    pub keys: Keys,
}

impl<'a> Keyed<'a> {
    /// Of a unit, if its packets are numbered key by key.
    pub fn of(dialect: Dialect, unit: &'a UnitSpec) -> Option<Keyed<'a>> {
        let (key, keys) = unit.key.as_ref().zip(unit.keys)?;
        Some(Keyed {
            dialect,
            tag: "",
            key,
            keys,
        })
    }

    /// What the hashes need.
    pub fn hashes(&self, w: &mut Writer) {
        self.key.write_state(self.dialect.0, self.tag, true, w);
    }

    /// How many cells there are in all ways.
    pub fn cells(&self) -> usize {
        WAYS << self.keys.bits
    }

    /// Registers and variables.
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

    /// The packet's cell, once it is found.
    pub fn slot(&self) -> String {
        format!("slot_{}", self.tag.trim_start_matches('_'))
    }

    fn way(&self, way: usize) -> String {
        format!("keys{way}{}", self.tag)
    }

    fn births(&self) -> String {
        format!("births{}", self.tag)
    }

    /// Statements that put the packet's key into `print`, which is what a cell holds, and `place`; `salt` tells keys of different
    /// flows apart, where they are.
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
        w.line("// 0 is an empty cell's.");
        w.open(format!("if ({print} == 0)"));
        w.line(format!("{print} = 1;"));
        w.close();
    }

    /// Statements that find the packet's cell: the first that is its key's own, or empty. Way by way they read what the cell
    /// holds into `known`; `then` stands where it is found.
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

    /// Statement that takes a cell for the packet's key.
    pub fn take(&self, register: &str, at: &str) -> String {
        self.dialect
            .write(register, &format!("print{}", self.tag), at)
    }

    /// Statements that take the cell that was found, whichever way it is in.
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

    /// Statements that begin a key's numbers again with a connection: its SYN has a sequence number that is not the last one's.
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

    /// Statement of a packet that has just taken a cell: with which connection the key begins.
    pub fn bear(&self, seq: &str) -> String {
        self.dialect.write(&self.births(), seq, &self.slot())
    }
}

/// The packet begins a TCP connection.
pub(super) const BEGINS: &str = "hdr.tcp.isValid() && hdr.tcp.syn == 1 && hdr.tcp.ack == 0";
