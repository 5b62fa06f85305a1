//! `engine.p4`: the fault engine of one program, with only the units that its faults need.
//!
//! Units are independent: each inspects every packet of its flows, independent of the others, and reports whether it fires.
//! The composition behind them applies all effects to the packet. So a pipeline is as deep as one unit, however many there are.
//! docs/fault-engine.md lists the tables that a control plane writes. `unit.rs` writes a unit, `compose.rs` the composition,
//! `dialect.rs` the architecture-specific parts.

mod compose;
mod dialect;
mod early;
mod keyed;
mod lot;
mod spread;
mod trigger;
mod unit;
mod wait;

use crate::arch::Arch;
use crate::key::PacketKey;
use crate::library::Library;
use crate::options::Options;
use crate::pace::Pace;
use crate::reset;
use crate::rewrite::Rewrite;
use crate::writer::Writer;
use dialect::Dialect;
pub use early::Early;
pub use trigger::{RESETS, Stage, TriggerSpec};

/// Fault engine of a program: the units (faults) of ingress and egress, in declared order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineSpec {
    /// Units that inspect each packet when it arrives.
    pub ingress: Vec<UnitSpec>,
    /// Units that inspect each copy of a packet when it leaves. If there are none, egress neither parses nor classifies.
    pub egress: Vec<UnitSpec>,
    /// Triggers that turn on units of ingress.
    pub triggers: Vec<TriggerSpec>,
    /// Set if ingress has a single unit and runs it before a sum in the same pass, on Tofino.
    pub early: Option<Early>,
}

impl EngineSpec {
    /// Whether some unit makes packets wait for later packets of their flow.
    #[must_use]
    pub fn waits(&self) -> bool {
        wait::waits(&self.ingress)
    }
}

/// Unit of the fault engine, which implements one fault in P4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitSpec {
    /// Description of the fault for people, one line.
    pub about: String,
    /// How the unit selects packets.
    pub select: Select,
    /// Key that distinguishes packets, for [`Select::Share`], which selects by key, or for packets numbered per key.
    pub key: Option<PacketKey>,
    /// Number of register cells for the keys, if packets are numbered per key.
    pub keys: Option<Keys>,
    /// Index of the trigger for which the unit waits: it inspects packets only while the trigger is on.
    pub when: Option<usize>,
    /// Effect of the unit on the packets that it selects.
    pub action: Action,
    /// Number of flows that the unit counts separately; its registers and counter have one cell for each.
    pub cells: usize,
    /// Number of entries in the unit's table `select`.
    pub entries: usize,
    /// Number of entries in the unit's table `outcome`.
    pub outcomes: usize,
}

/// Register cells for the keys of a unit or trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// Logarithm of a way's size: each of the [`crate::key::WAYS`] ways has 2^`bits` cells.
    pub bits: u32,
    /// Whether a TCP packet that begins a connection restarts the numbering of its key's packets, or its key's trigger.
    pub restarts: bool,
}

/// How a unit selects packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Select {
    /// Selects all packets.
    Always,
    /// Selects packets by their ordinal in the flow.
    Counted,
    /// Selects packets at random, independent of each other.
    Probability,
    /// Selects packets at random, by a channel with a good and a bad state.
    GilbertElliott,
    /// Selects all packets of some keys, which are chosen at random, independent of each other.
    Share,
    /// Selects data packets of RDMA connections, by PSN and round. The unit's keys are the connections.
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

/// Effect of a unit on the packets that it selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The packet is counted only; the unit has no effect on it.
    Observe,
    /// The switch drops the packet.
    Drop,
    /// The packet is held until its delay has passed. Ingress only.
    Delay(Hold),
    /// The packet is duplicated. Ingress only.
    Duplicate(Copies),
    /// Header fields of the packet change.
    Rewrite(Rewrite),
    /// The packet becomes the reset of its TCP connection.
    Reset,
    /// The packet waits for later packets of its flow. Not on Tofino.
    Reorder(Reorder),
    /// The packet is cut to this many bytes. Not on Tofino.
    Truncate(u16),
    /// The packet waits for its turn in a queue, and is dropped if it exceeds the queue. Not on Tofino.
    Pace(Pace),
}

/// How a unit holds packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hold {
    /// Whether the delay is drawn for each packet, from the table `lots`.
    pub drawn: bool,
    /// Whether the unit holds a packet at least until the packet that it held before in the same register cell is due.
    pub keeps_order: bool,
}

/// For how many packets, and at most for how long, a packet waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// Number of later packets of the same register cell that must arrive, whatever happens to them.
    pub distance: u32,
    /// Maximum wait of a packet, in nanoseconds.
    pub within_ns: u64,
}

/// How a unit duplicates packets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copies {
    /// Multicast group that contains the recirculation port once for each copy.
    pub group: u16,
    /// Copies that are delayed: (copy's instance number in the multicast group, its delay behind the packet in nanoseconds).
    pub later_ns: Vec<(u16, u64)>,
}

/// Control of a program that holds a fault engine: ingress or egress.
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

/// Writes the text of `engine.p4`.
///
/// `classes`: the match key that distinguishes classes and its number of table rows; `None` if it takes several tables.
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
        w.line("// main.p4 contains an aggregator for frames of this number of values.");
        w.line("#define AGGREGATES");
        w.line(format!("#define NUM_VALUES {}", values.count()));
    }
    if options.sums_roce && arch != Arch::Tna {
        w.blank();
        w.line("// The aggregator also sums frames of RoCEv2.");
        w.line("#define SUMS_ROCE");
    }
    if options.guards_jobs {
        w.blank();
        w.line("// Jobs have leases, rates and ports: main.p4 checks them before it sums.");
        w.line("#define GUARDS_JOBS");
    }
    if options.wire {
        w.blank();
        w.line("// A wire: a frame that arrives at one port leaves by the other.");
        w.line("#define WIRE");
    }
    if options.multipath && arch != Arch::Tna {
        w.blank();
        w.line("// Several paths lead to some hosts.");
        w.line("#define MULTIPATH");
    }
    if let (Some(early), Some((key, rows)), [unit], Arch::Tna) =
        (spec.early, classes, spec.ingress.as_slice(), arch)
    {
        w.blank();
        w.line("// A fault precedes the sum.");
        w.line("#define EARLY_FAULT");
        w.line(format!("#define MAX_ARMED_PORTS {}", early.ports.max(1)));
        w.blank();
        early::write(early, unit, (key, *rows), &mut w);
        return w.finish();
    }
    if !(spec.ingress.is_empty() && spec.egress.is_empty() && spec.triggers.is_empty()) {
        w.blank();
        w.line("// The program contains faults, with the timeline and the classifier.");
        w.line("#define FAULTS");
    }
    if !spec.egress.is_empty() {
        w.blank();
        w.line("// Egress contains faults: main.p4 also parses and classifies there.");
        w.line("#define EGRESS_FAULTS");
    }
    let mut units = spec.ingress.iter();
    if units.any(|unit| matches!(unit.action, Action::Truncate(_))) {
        w.blank();
        w.line("// main.p4 truncates packets when they leave.");
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
                w.line("// The effect's changes of headers.");
                rewrite.write(library, &side.change(number), &mut w);
            }
            if unit.action == Action::Reset {
                w.blank();
                w.line("// Turns the packet into a reset of its connection.");
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
