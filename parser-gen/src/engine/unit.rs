//! P4 text of one unit (one fault): which packets it inspects, which of them it selects, and the result for these.
//!
//! Its parts are in the order in which a packet passes them, and a unit has only the parts that it needs: `select` (flows and
//! epochs), the ordinal or the position in a connection, the drawn words (`t0` to `t5`), the channel's state, `outcome`.

mod channel;
mod words;

use super::dialect::Dialect;
use super::keyed::Keyed;
use super::lot;
use super::wait;
use super::{Action, Select, Side, UnitSpec};
use crate::key::PacketKey;
use crate::psn;
use crate::writer::Writer;

/// Match key of the table `select` that identifies a packet's flows.
const FLOWS: &str = "meta.class: exact;";

/// Minimum number of entries for which a unit's table is sized, so that one more flow needs no new program.
pub(super) const MIN_ENTRIES: usize = 64;

/// Unit for which P4 text is written, and the parts of the text that it needs.
struct Needs<'a> {
    dialect: Dialect,
    unit: &'a UnitSpec,
    /// P4 type of a register cell's index.
    cell: &'static str,
    /// Names of the random words that the unit draws for a packet.
    words: Vec<char>,
}

impl Needs<'_> {
    fn counts(&self) -> bool {
        self.unit.select == Select::Counted
    }

    /// Keys by which the unit's packets are numbered; `None`: packets are numbered per flow.
    fn keyed(&self) -> Option<Keyed<'_>> {
        Keyed::for_unit(self.dialect, self.unit)
    }

    /// Whether the unit selects packets by their position in an RDMA connection.
    fn places(&self) -> bool {
        self.unit.select == Select::Psn
    }

    /// P4 variable with the index of the packet's register cell.
    fn at(&self) -> &'static str {
        if self.keyed().is_some() {
            "slot_"
        } else {
            "cell_"
        }
    }

    fn read(&self, register: &str, into: &str) -> String {
        self.dialect.read(register, into, self.at())
    }

    fn write(&self, register: &str, value: &str) -> String {
        self.dialect.write(register, value, self.at())
    }

    /// Key whose hash takes the place of the packet count in the random draw; `None` if the unit draws by count.
    fn key(&self) -> Option<&PacketKey> {
        let key = self.unit.key.as_ref();
        key.filter(|_| self.unit.select == Select::Share)
    }

    fn draws(&self) -> bool {
        !self.words.is_empty()
    }

    /// Whether the table `outcome` selects packets; otherwise the unit selects all packets that it inspects.
    fn decides(&self) -> bool {
        self.unit.select != Select::Always
    }

    fn holds(&self) -> bool {
        holds(self.unit)
    }

    /// Name of the register that counts the packets for which the unit has drawn: `turns` if `ordinals` restarts after a cycle.
    fn turns(&self) -> &'static str {
        if self.counts() { "turns" } else { "ordinals" }
    }

    /// Registers of the unit (ordinals, draws, channel state, position in a connection): name and type.
    fn registers(&self) -> Vec<(&'static str, &'static str)> {
        let mut registers = Vec::new();
        if self.counts() {
            registers.push(("ordinals", "bit<32>"));
        }
        if self.draws() && self.key().is_none() {
            registers.push((self.turns(), "bit<32>"));
        }
        if self.unit.select == Select::GilbertElliott {
            registers.push(("states", "bit<8>"));
        }
        if self.places() {
            registers.extend(psn::REGISTERS);
        }
        registers
    }

    fn cells(&self) -> usize {
        self.unit.cells.max(1).next_power_of_two()
    }

    /// Declares a P4 variable, for example `bit<32> u0 = 0;`.
    fn variable(&self, w: &mut Writer, ty: &str, name: &str) {
        w.line(format!("{ty} {name} = 0;"));
    }
}

/// P4 type of the index of a unit's register cells.
pub(super) fn cell_type(unit: &UnitSpec) -> &'static str {
    if unit.cells <= 256 {
        "bit<8>"
    } else {
        "bit<16>"
    }
}

/// Whether the unit's effect sets a delay for packets.
pub(super) fn holds(unit: &UnitSpec) -> bool {
    match unit.action {
        Action::Delay(_) => true,
        Action::Pace(pace) => pace.holds,
        _ => false,
    }
}

pub(super) fn write(dialect: Dialect, side: Side, number: usize, unit: &UnitSpec, w: &mut Writer) {
    let mut words = Vec::new();
    if unit.select.draws() {
        words.push('u');
    }
    if unit.select == Select::GilbertElliott {
        words.push('v');
    }
    if lot::is_drawn(unit) {
        words.push('w');
    }
    let needs = Needs {
        dialect,
        unit,
        cell: cell_type(unit),
        words,
    };
    w.line(format!("// {}", unit.about));
    let mut parameters = vec!["inout metadata_t meta", "out bit<8> fire"];
    if unit.key.is_some() {
        parameters.insert(0, "in headers_t hdr");
    }
    if needs.holds() {
        parameters.push("out time_ns_t hold");
    }
    if let Action::Pace(_) = unit.action {
        parameters.extend(["in bit<32> bytes", "out bit<8> over"]);
    }
    let mask = lot::mask_bits(unit).map(|bits| format!("out bit<{bits}> mask"));
    parameters.extend(mask.as_deref());
    if wait::reorder(unit).is_some() {
        parameters.extend(["out bit<8> met", "out bit<16> at"]);
    }
    if dialect.is_tna() && needs.draws() && needs.key().is_some() && side == Side::Ingress {
        // A hash and its operand need one container: bf-p4c cannot combine them once it has split them in halves.
        w.line(format!(
            "@pa_container_size(\"ingress\", \"faults_u{number}_mixed\", 32)"
        ));
    }
    w.open(format!(
        "control {}({})",
        side.unit(number),
        parameters.join(", ")
    ));
    state(&needs, w);
    variables(&needs, w);
    w.blank();
    select(&needs, w);
    if needs.draws() {
        w.blank();
        words::tables(&needs, w);
    }
    if unit.select == Select::GilbertElliott {
        w.blank();
        channel::table(&needs, w);
    }
    if lot::is_drawn(unit) {
        w.blank();
        lot::table(
            dialect,
            unit,
            if needs.decides() { "hold_" } else { "hold" },
            w,
        );
    }
    if needs.places() {
        w.blank();
        psn::write_table(w);
    }
    if needs.decides() {
        w.blank();
        outcome(&needs, w);
    }
    w.blank();
    apply(&needs, w);
    w.close();
}

/// Declares the unit's counters and registers.
fn state(needs: &Needs<'_>, w: &mut Writer) {
    let (dialect, cell, cells) = (needs.dialect, needs.cell, needs.cells());
    dialect.counter(w, "fired", cell, cells);
    if dialect.is_tna() {
        return;
    }
    if let Some(keyed) = needs.keyed() {
        keyed.hashes(w);
        dialect.counter(w, "keyless", cell, cells);
        keyed.state(w);
        w.line("bit<8> is_known = 0;");
    }
    let (index, cells_of_keys) = match needs.keyed() {
        Some(keyed) => ("bit<32>", keyed.cells()),
        None => (cell, cells),
    };
    for (name, word) in needs.registers() {
        dialect.register(w, name, word, index, cells_of_keys);
    }
    if lot::has_deadlines(needs.unit) {
        dialect.register(w, "deadlines", "time_ns_t", cell, cells);
    }
}

fn variables(needs: &Needs<'_>, w: &mut Writer) {
    needs.variable(w, needs.cell, "cell_");
    if needs.holds() && needs.decides() {
        needs.variable(w, "time_ns_t", "hold_");
    }
    if needs.counts() {
        needs.variable(w, "bit<32>", "last_");
        needs.variable(w, "bit<32>", "index");
    }
    if needs.draws() || needs.keyed().is_some() {
        needs.variable(w, "bit<32>", "key_");
    }
    if needs.draws() {
        words::variables(needs, w);
    }
    if needs.places() {
        for (ty, name) in psn::VARIABLES {
            needs.variable(w, ty, name);
        }
    }
    if needs.unit.select == Select::GilbertElliott {
        needs.variable(w, "bit<8>", "bad");
        if !needs.dialect.is_tna() {
            needs.variable(w, "bit<8>", "change");
        }
    }
}

/// Writes the table `select`: which packets the unit inspects, and with which parameters.
fn select(needs: &Needs<'_>, w: &mut Writer) {
    let mut parameters = vec![format!("{} cell", needs.cell)];
    let mut body = vec!["cell_ = cell;".to_owned()];
    let mut take = |ty: &str, name: &str, variable: &str| {
        parameters.push(format!("{ty} {name}"));
        body.push(format!("{variable} = {name};"));
    };
    if needs.counts() {
        take("bit<32>", "last", "last_");
    }
    if needs.draws() || needs.keyed().is_some() {
        take("bit<32>", "key", "key_");
    }
    let is_paced = matches!(needs.unit.action, Action::Pace(_));
    if needs.holds() && !lot::is_drawn(needs.unit) && !is_paced {
        take(
            "time_ns_t",
            "delay_ns",
            if needs.decides() { "hold_" } else { "hold" },
        );
    }
    if !needs.decides() {
        body.push("fire = 1;".to_owned());
        if needs.dialect.is_tna() {
            // The index comes with the entry and takes no hash.
            body.push(needs.dialect.count("fired").replace("cell_", "cell"));
        }
    }
    w.open(format!("action pick({})", parameters.join(", ")));
    body.iter().for_each(|line| w.line(line));
    w.close();
    w.line("@name(\"select\")");
    w.open("table select_fault");
    w.open("key =");
    w.line(FLOWS);
    w.line("meta.epoch: range;");
    w.close();
    w.line("actions = { pick; NoAction; }");
    w.line("const default_action = NoAction();");
    let size = needs.unit.entries.max(MIN_ENTRIES).next_power_of_two();
    w.line(format!("size = {size};"));
    w.close();
}

/// Writes the table `outcome`: whether the unit fires on a packet.
fn outcome(needs: &Needs<'_>, w: &mut Writer) {
    w.open("action fires()");
    w.line("fire = 1;");
    if needs.holds() {
        w.line("hold = hold_;");
    }
    if needs.dialect.is_tna() {
        w.line(needs.dialect.count("fired"));
    }
    w.close();
    w.open("table outcome");
    w.open("key =");
    match needs.unit.select {
        Select::Always | Select::Counted => w.line("index: ternary @name(\"index\");"),
        Select::Probability | Select::Share => w.line("u: range @name(\"u\");"),
        Select::GilbertElliott => {
            w.line("bad: exact @name(\"bad\");");
            w.line("v: range @name(\"v\");");
        }
        Select::Psn => {
            w.line("relative: range @name(\"relative\");");
            w.line("round: range @name(\"round\");");
        }
    }
    w.close();
    w.line("actions = { fires; NoAction; }");
    w.line("const default_action = NoAction();");
    w.line(format!(
        "size = {};",
        needs.unit.outcomes.max(8).next_power_of_two()
    ));
    w.close();
}

fn apply(needs: &Needs<'_>, w: &mut Writer) {
    if needs.dialect.is_tna() {
        register_actions(needs, w);
        w.blank();
    }
    w.open("apply");
    w.line("fire = 0;");
    if needs.holds() {
        w.line("hold = 0;");
    }
    if let Action::Pace(_) = needs.unit.action {
        w.line("over = 0;");
    }
    if lot::mask_bits(needs.unit).is_some() {
        w.line("mask = 0;");
    }
    if wait::reorder(needs.unit).is_some() {
        w.line("met = 0;");
        w.line("at = 0;");
    }
    let only_looks = !needs.decides() && !needs.draws() && needs.dialect.is_tna();
    if only_looks {
        w.line("select_fault.apply();");
        w.close();
        return;
    }
    w.open("if (select_fault.apply().hit)");
    if wait::reorder(needs.unit).is_some() {
        w.line("met = 1;");
        w.line("at = (bit<16>) cell_;");
    }
    if needs.places() {
        psn::write_kind(w);
        w.open("if (data != 0)");
        w.open("if (data == 2)");
        w.line(format!("key_ = key_ ^ {};", psn::RESPONSES));
        w.close();
        w.line("connections.apply();");
    }
    if let Some(keyed) = needs.keyed() {
        keyed.hash(Some("key_"), w);
        w.line("bit<32> known = 0;");
        w.line("is_known = 0;");
        let take = |w: &mut Writer, register: &str, at: &str| w.line(keyed.take(register, at));
        keyed.find("known", take, w);
        w.open("if (is_known == 0)");
        w.line(needs.dialect.count("keyless"));
        if !needs.decides() {
            w.line("fire = 0;");
        }
        w.close_open("else");
        if keyed.keys.restarts {
            let registers = needs.registers();
            let names: Vec<&str> = registers.iter().map(|(name, _)| *name).collect();
            keyed.restart(&names, w);
        }
    }
    if needs.counts() {
        count(needs, w);
    }
    if needs.places() {
        let read = |register: &str, into: &str| needs.read(register, into);
        let write = |register: &str, value: &str| needs.write(register, value);
        psn::write_place(read, write, w);
    }
    if needs.draws() {
        words::draw(needs, w);
    }
    if lot::is_drawn(needs.unit) {
        w.line("lots.apply();");
    }
    if needs.unit.select == Select::GilbertElliott {
        w.line("channel.apply();");
        if !needs.dialect.is_tna() {
            channel::change(needs, w);
        }
    }
    if needs.decides() {
        w.line("outcome.apply();");
    }
    if !needs.dialect.is_tna() {
        if needs.decides() {
            w.open("if (fire == 1)");
            w.line(needs.dialect.count("fired"));
            lot::keep_order(needs.dialect, needs.unit, w);
            w.close();
        } else {
            w.line(needs.dialect.count("fired"));
            lot::keep_order(needs.dialect, needs.unit, w);
        }
    }
    if needs.keyed().is_some() {
        w.close();
    }
    if needs.places() {
        w.close();
    }
    w.close();
    w.close();
}

/// Writes the actions of the unit's registers for Tofino: each executes once per packet.
fn register_actions(needs: &Needs<'_>, w: &mut Writer) {
    let (cell, cells) = (needs.cell, needs.cells());
    if needs.counts() {
        w.line(format!("Register<bit<32>, {cell}>({cells}, 0) ordinals;"));
        w.open(format!(
            "RegisterAction<bit<32>, {cell}, bit<32>>(ordinals) next ="
        ));
        w.open("void apply(inout bit<32> count, out bit<32> now)");
        w.line("now = count;");
        w.line("if (count == last_) { count = 0; } else { count = count + 1; }");
        w.close();
        w.close_with(";");
        w.line("action number() { index = next.execute(cell_); }");
    }
    if needs.draws() && needs.key().is_none() {
        let turns = needs.turns();
        w.line(format!(
            "Register<turn_t, {cell}>({cells}, {{ 0, 0 }}) {turns};"
        ));
        w.open(format!(
            "RegisterAction<turn_t, {cell}, bit<32>>({turns}) turn ="
        ));
        w.open("void apply(inout turn_t turn, out bit<32> now)");
        w.line("turn.mixed = turn.count ^ key_;");
        w.line("turn.count = turn.count + 1;");
        w.line("now = turn.mixed;");
        w.close();
        w.close_with(";");
        w.line("action mix() { mixed = turn.execute(cell_); }");
    }
}

/// Writes statements that read the packet's ordinal from its register and advance the count.
fn count(needs: &Needs<'_>, w: &mut Writer) {
    if needs.dialect.is_tna() {
        w.line("number();");
        return;
    }
    w.open("@atomic");
    w.line(needs.read("ordinals", "index"));
    w.open("if (index == last_)");
    w.line(needs.write("ordinals", "0"));
    w.close_open("else");
    w.line(needs.write("ordinals", "index + 1"));
    w.close();
    w.close();
}
