//! `engine.p4`: the fault engine of one program, with just the units that its faults need.
//!
//! Units stand side by side: each looks at every packet of its flows, whatever the others do, and says whether it fires; what
//! becomes of the packet is composed behind them. So a pipeline is as deep as one unit, however many there are.
//! docs/fault-engine.md has the tables that a control plane writes; `unit.rs` writes one unit, `compose.rs` what follows,
//! `dialect.rs` what the three architectures spell differently.

mod compose;
mod dialect;
mod early;
mod keyed;
mod lot;
mod spread;
mod trigger;
mod unit;
mod wait;

use crate::generate::Options;
use crate::generate::writer::Writer;
use crate::key::PacketKey;
use crate::library::Library;
use crate::pace::Pace;
use crate::program::Arch;
use crate::reset;
use crate::rewrite::Rewrite;
use dialect::Dialect;
pub use early::Early;
pub use trigger::{RESETS, Stage, TriggerSpec};

/// The fault engine of a program: the units of each pipeline, in declared order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineSpec {
    /// Where packets come in.
    pub ingress: Vec<UnitSpec>,
    /// Where copies go out. Nothing is parsed or classified there if this is empty.
    pub egress: Vec<UnitSpec>,
    /// What units of ingress wait for.
    pub triggers: Vec<TriggerSpec>,
    /// On Tofino the one unit of ingress stands before a sum, in the same pass.
    pub early: Option<Early>,
}

impl EngineSpec {
    /// Whether packets wait for others.
    #[must_use]
    pub fn waits(&self) -> bool {
        wait::waits(&self.ingress)
    }
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitSpec {
    /// For people, in one line: which fault it is.
    pub about: String,
    /// How it selects packets.
    pub select: Select,
    /// What tells the keys apart of which [`Select::Share`] selects some, or whose packets are numbered each for itself.
    pub key: Option<PacketKey>,
    /// Where keys are numbered, how many there may be.
    pub keys: Option<Keys>,
    /// The trigger that it waits for: it looks at packets while that is on.
    pub when: Option<usize>,
    /// What it does to those.
    pub action: Action,
    /// How many flows it counts apart: its registers and its counter have room for as many.
    pub cells: usize,
    /// Entries of its table `select`.
    pub entries: usize,
    /// Entries of its table `outcome`.
    pub outcomes: usize,
}

/// How the keys of a unit, or of a trigger, find their cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// Each of [`crate::key::WAYS`] ways has 2 to the power of this cells.
    pub bits: u32,
    /// A TCP packet that begins a connection begins its key's numbers, or its trigger, again.
    pub restarts: bool,
}

/// How a unit selects packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Select {
    /// All of them.
    Always,
    /// By their number in the flow.
    Counted,
    /// By chance, each for itself.
    Probability,
    /// By chance, in a channel of two states.
    GilbertElliott,
    /// All packets of some keys: by chance, each key for itself.
    Share,
    /// Data packets of RDMA connections, by sequence number and round. Its keys are the connections.
    Psn,
}

impl Select {
    fn draws(self) -> bool {
        matches!(
            self,
            Select::Probability | Select::GilbertElliott | Select::Share
        )
    }
}

/// What a unit does to a packet that it selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing: it is counted.
    Observe,
    /// The packet ends.
    Drop,
    /// The packet is held. Ingress alone can do that.
    Delay(Hold),
    /// The packet comes twice. Ingress alone can do that.
    Duplicate(Copies),
    /// Fields change.
    Rewrite(Rewrite),
    /// It becomes the reset of its TCP connection.
    Reset,
    /// It waits for others of its flow. Tofino has no text of it.
    Reorder(Reorder),
    /// So many bytes of it are left. Tofino has no text of it.
    Truncate(u16),
    /// It waits for its turn in a queue, or ends beyond it. Tofino has no text of it.
    Pace(Pace),
}

/// How a unit holds packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hold {
    /// For how long is drawn for each packet: it stands in the table `lots`.
    pub drawn: bool,
    /// No packet is due before the one that the unit held before, of the same cell.
    pub keeps_order: bool,
}

/// For what a packet waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// So many packets of its cell come after it, whatever becomes of them.
    pub distance: u32,
    /// But no longer than this.
    pub within_ns: u64,
}

/// How a unit multiplies packets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copies {
    /// The multicast group that has the recirculation port once for each copy.
    pub group: u16,
    /// How much later than the packet the copy of each of the group's instances is due.
    pub later_ns: Vec<(u16, u64)>,
}

/// Which control of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ingress,
    Egress,
}

impl Side {
    fn unit(self, number: usize) -> String {
        match self {
            Side::Ingress => format!("FaultUnit{number}"),
            Side::Egress => format!("EgressFaultUnit{number}"),
        }
    }

    fn change(self, number: usize) -> String {
        match self {
            Side::Ingress => format!("FaultChange{number}"),
            Side::Egress => format!("EgressFaultChange{number}"),
        }
    }

    fn engine(self) -> &'static str {
        match self {
            Side::Ingress => "FaultEngine",
            Side::Egress => "EgressFaultEngine",
        }
    }
}

/// The text of `engine.p4`.
///
/// `classes` is what tells classes apart as a table's key, and in how many rows, if that is one table.
pub(crate) fn text(
    arch: Arch,
    library: &Library,
    spec: &EngineSpec,
    options: &Options,
    classes: Option<&(String, usize)>,
) -> String {
    let dialect = Dialect(arch);
    let mut w = Writer::default();
    w.line(
        "// Generated by parser-gen: do not edit. docs/fault-engine.md describes units and tables.",
    );
    if let Some(values) = options.aggregate {
        w.blank();
        w.line("// Something is summed: main.p4 has an aggregator, of frames of so many values.");
        w.line("#define AGGREGATES");
        w.line(format!("#define NUM_VALUES {}", values.count()));
    }
    if options.sums_roce && arch != Arch::Tna {
        w.blank();
        w.line("// Frames of RoCEv2 are summed, too.");
        w.line("#define SUMS_ROCE");
    }
    if options.guards_jobs {
        w.blank();
        w.line("// Jobs have leases, rates, and ports of their own: main.p4 asks before it sums.");
        w.line("#define GUARDS_JOBS");
    }
    if options.wire {
        w.blank();
        w.line("// A wire: what comes in by one port leaves by the other.");
        w.line("#define WIRE");
    }
    if options.multipath && arch != Arch::Tna {
        w.blank();
        w.line("// Several ways lead to some hosts.");
        w.line("#define MULTIPATH");
    }
    if let (Some(early), Some((key, rows)), [unit], Arch::Tna) =
        (spec.early, classes, spec.ingress.as_slice(), arch)
    {
        w.blank();
        w.line("// A fault stands before the sum.");
        w.line("#define EARLY_FAULT");
        w.line(format!("#define MAX_ARMED_PORTS {}", early.ports.max(1)));
        w.blank();
        early::write(early, unit, (key, *rows), &mut w);
        return w.finish();
    }
    if !(spec.ingress.is_empty() && spec.egress.is_empty() && spec.triggers.is_empty()) {
        w.blank();
        w.line("// There are faults: what a packet meets on its way to them is there.");
        w.line("#define FAULTS");
    }
    if !spec.egress.is_empty() {
        w.blank();
        w.line("// There are faults in egress: main.p4 parses and classifies there, too.");
        w.line("#define EGRESS_FAULTS");
    }
    let mut units = spec.ingress.iter();
    if units.any(|unit| matches!(unit.action, Action::Truncate(_))) {
        w.blank();
        w.line("// Packets are cut short: main.p4 does it when they leave.");
        w.line("#define TRUNCATES");
    }
    wait::write_gate(spec, &mut w);
    spread::write(spec, &mut w);
    for (side, units) in [(Side::Ingress, &spec.ingress), (Side::Egress, &spec.egress)] {
        for (number, unit) in units.iter().enumerate() {
            w.blank();
            unit::write(dialect, side, number, unit, &mut w);
            if let Action::Rewrite(rewrite) = &unit.action {
                w.blank();
                w.line("// What it does to the headers.");
                rewrite.write(library, &side.change(number), &mut w);
            }
            if unit.action == Action::Reset {
                w.blank();
                w.line("// It becomes the reset of its connection.");
                reset::write(&side.change(number), &mut w);
            }
        }
        if side == Side::Ingress || !units.is_empty() {
            w.blank();
            let triggers = match side {
                Side::Ingress => spec.triggers.as_slice(),
                Side::Egress => &[],
            };
            compose::write(dialect, side, units, triggers, &mut w);
        }
    }
    w.finish()
}
