//! The names of our P4, and the numbers that it reserves: what a control plane addresses, spelt once.
//!
//! tests/p4_names.rs holds them against the P4Info of all three architectures.

use crate::model::Direction;

/// The control of ingress.
pub const INGRESS: &str = "SwitchIngress";
/// The control of egress.
pub const EGRESS: &str = "SwitchEgress";

/// The control of a direction: the first part of every name in it.
#[must_use]
pub const fn control(direction: Direction) -> &'static str {
    match direction {
        Direction::Ingress => INGRESS,
        Direction::Egress => EGRESS,
    }
}

/// The generated match tables.
pub mod classify {
    use super::Direction;

    /// In ingress.
    pub const INGRESS: &str = "SwitchIngress.classify";
    /// In egress.
    pub const EGRESS: &str = "SwitchEgress.classify";
    /// Counts frames that could not be parsed as deep as the filters ask, by reason.
    pub const NOTES: &str = "SwitchIngress.classify.notes.cells";

    /// The instance that judges a direction's packets: the prefix of its tables.
    #[must_use]
    pub const fn instance(direction: Direction) -> &'static str {
        match direction {
            Direction::Ingress => INGRESS,
            Direction::Egress => EGRESS,
        }
    }
}

/// `Timeline` in p4src/common/fault.p4.
pub mod timeline {
    use super::{Direction, control};

    /// The epoch's parameter of [`set_epoch`].
    pub const EPOCH: &str = "epoch";

    /// The table whose default action says which epoch is in force.
    #[must_use]
    pub fn table(direction: Direction) -> String {
        format!("{}.timeline.epoch", control(direction))
    }

    /// That action.
    #[must_use]
    pub fn set_epoch(direction: Direction) -> String {
        format!("{}.timeline.set_epoch", control(direction))
    }
}

/// `FaultUnit` in p4src/common/fault.p4: one fault of a scenario.
pub mod fault {
    use super::{Direction, control};

    /// Key of the select table.
    pub const KEY_FLOWS: &str = "meta.flows";
    /// Key of the select table.
    pub const KEY_EPOCH: &str = "meta.epoch";

    /// A unit's instance: the prefix of what follows.
    #[must_use]
    pub fn unit(direction: Direction, unit: usize) -> String {
        format!("{}.faults.u{unit}", control(direction))
    }

    /// The table that says which flows a unit acts on, and when.
    #[must_use]
    pub fn select_table(direction: Direction, number: usize) -> String {
        format!("{}.select", unit(direction, number))
    }

    /// One of that table's actions.
    #[must_use]
    pub fn action(direction: Direction, number: usize, name: &str) -> String {
        format!("{}.{name}", unit(direction, number))
    }

    /// The counter of what a unit fires, by cell.
    #[must_use]
    pub fn fired(direction: Direction, number: usize) -> String {
        format!("{}.fired.cells", unit(direction, number))
    }

    /// The register of how many packets each cell has met.
    #[must_use]
    pub fn ordinals(direction: Direction, number: usize) -> String {
        format!("{}.ordinals.ordinals", unit(direction, number))
    }
}

/// `Forward` in p4src/common/forward.p4.
pub mod forward {
    /// By destination MAC address.
    pub const TABLE: &str = "SwitchIngress.forward.mac";
    /// Its key.
    pub const KEY: &str = "hdr.ethernet.dst";
    /// To one port.
    pub const UNICAST: &str = "SwitchIngress.forward.unicast";
    /// Its parameter.
    pub const PORT: &str = "port";
    /// To a multicast group.
    pub const MULTICAST: &str = "SwitchIngress.forward.multicast";
    /// Its parameter.
    pub const GROUP: &str = "group";
}

/// `Aggregate` in p4src/common/aggregate.p4.
pub mod aggregate {
    /// The jobs that a switch sums.
    pub const JOBS: &str = "SwitchIngress.aggregate.jobs";
    /// Its action.
    pub const AGGREGATE_JOB: &str = "SwitchIngress.aggregate.aggregate_job";
    /// The workers of each.
    pub const MEMBERS: &str = "SwitchIngress.aggregate.members";
    /// Its action.
    pub const MEMBER: &str = "SwitchIngress.aggregate.member";
    /// Key of both tables.
    pub const KEY_JOB: &str = "hdr.agg.job";
    /// Key of the members.
    pub const KEY_WORKER: &str = "hdr.agg.worker";
    /// Key of the members.
    pub const KEY_PORT: &str = "meta.port";
    /// The register of the chunk that each slot belongs to.
    pub const OWNERS: &str = "SwitchIngress.aggregate.owner.owners";
    /// The register of who has contributed.
    pub const BITMAPS: &str = "SwitchIngress.aggregate.bitmap.bitmaps";
    /// The register of the first value of each slot.
    pub const FIRST_SUMS: &str = "SwitchIngress.aggregate.sum0.s0.sums";
}

/// Multicast groups.
pub mod group {
    /// Both members are the recirculation port (`DUPLICATE_GROUP` in p4src/common/types.p4).
    pub const DUPLICATE: u32 = 1;
    /// Broadcasts, along a tree.
    pub const FLOOD: u32 = 2;
    /// A job's results to its workers.
    pub const JOB: u32 = 3;
}

/// Recirculation ports.
pub mod port {
    /// `PSA_PORT_RECIRCULATE`.
    pub const PSA_RECIRCULATE: u32 = 0xFFFF_FFFA;
    /// `HOLD_PORT` in p4src/v1model/main.p4.
    pub const V1MODEL_HOLD: u32 = 0;
}

/// The job number of a scenario's training.
pub const JOB: u16 = 1;
