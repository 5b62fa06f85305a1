//! The names of weir's P4 objects, and reserved numbers: every name that a control plane addresses, defined once.
//!
//! tests/it/p4_names.rs compares them with the P4Info of all three architectures.

use crate::model::Direction;

/// Name of the P4 control of ingress.
pub const INGRESS: &str = "SwitchIngress";
/// Name of the P4 control of egress.
pub const EGRESS: &str = "SwitchEgress";

/// Name of the P4 control of a direction, which is the prefix of all names in this control.
#[must_use]
pub const fn control(direction: Direction) -> &'static str {
    match direction {
        Direction::Ingress => INGRESS,
        Direction::Egress => EGRESS,
    }
}

/// Names of the generated tables that determine the flows of a packet.
pub mod classify {
    use super::Direction;

    /// Prefix of the names of these tables in ingress.
    pub const INGRESS: &str = "SwitchIngress.classify";
    /// Prefix of the names of these tables in egress.
    pub const EGRESS: &str = "SwitchEgress.classify";
    /// P4 counter of frames that could not be parsed as deep as the filters require; its index is the reason.
    pub const NOTES: &str = "SwitchIngress.classify.notes.cells";

    /// Name of the P4 control that classifies the packets of a direction, which is the prefix of its tables.
    #[must_use]
    pub const fn instance(direction: Direction) -> &'static str {
        match direction {
            Direction::Ingress => INGRESS,
            Direction::Egress => EGRESS,
        }
    }
}

/// Names in the control `Timeline` of p4src/common/fault.p4.
pub mod timeline {
    use super::{Direction, control};

    /// Parameter of the action [`set_epoch`]: number of the epoch (interval of the timeline).
    pub const EPOCH: &str = "epoch";

    /// Name of the table whose default action sets the epoch in force.
    #[must_use]
    pub fn table(direction: Direction) -> String {
        format!("{}.timeline.epoch", control(direction))
    }

    /// Name of the action that sets the epoch in force.
    #[must_use]
    pub fn set_epoch(direction: Direction) -> String {
        format!("{}.timeline.set_epoch", control(direction))
    }
}

/// Names in the control `Lease` of p4src/common/fault.p4.
pub mod lease {
    use super::{Direction, control};

    /// Parameter of the action [`until`]: the end of the lease.
    pub const DEADLINE: &str = "deadline";

    /// Name of the table whose default action sets the end of the lease.
    #[must_use]
    pub fn table(direction: Direction) -> String {
        format!("{}.lease.deadline", control(direction))
    }

    /// Name of the action that sets the end of the lease.
    #[must_use]
    pub fn until(direction: Direction) -> String {
        format!("{}.lease.until", control(direction))
    }

    /// Name of the counter of packets that came after the end of the lease.
    #[must_use]
    pub fn lapsed(direction: Direction) -> String {
        format!("{}.lease.lapsed.cells", control(direction))
    }
}

pub mod fault;

/// Names of a trigger's objects in the generated engine.p4; a trigger counts events and turns faults on.
pub mod trigger {
    use super::INGRESS;

    /// Parameter of the action [`see`]: bitmap of the trigger's events for which the packet counts.
    pub const EVENTS: &str = "events";

    /// Name of the table that says for which events of a trigger a packet counts. `number`: the trigger's number on the switch.
    #[must_use]
    pub fn table(number: usize) -> String {
        format!("{INGRESS}.faults.trigger{number}")
    }

    /// Name of the action of a trigger's table.
    #[must_use]
    pub fn see(number: usize) -> String {
        format!("{INGRESS}.faults.see{number}")
    }

    /// Name of the register with the number of events that a trigger has counted so far.
    #[must_use]
    pub fn progress(number: usize) -> String {
        format!("{INGRESS}.faults.progress{number}")
    }

    /// Name of the counter of how often a trigger came on.
    #[must_use]
    pub fn on(number: usize) -> String {
        format!("{INGRESS}.faults.on{number}")
    }

    /// Name of the counter of packets that a trigger should count, but whose key had no cell.
    #[must_use]
    pub fn keyless(number: usize) -> String {
        format!("{INGRESS}.faults.keyless{number}")
    }
}

pub mod forward;

pub mod aggregate;

pub mod roce;

pub mod guard;

/// Reserved numbers of multicast groups.
pub mod group {
    /// The group with two replicas to the recirculation port (`DUPLICATE_GROUP` in p4src/common/types.p4).
    pub const DUPLICATE: u32 = 1;
    /// The first number of groups that make several or delayed copies of a packet.
    pub const FIRST_COPIES: u32 = 16;
    /// The group for broadcasts, which follow a tree of links.
    pub const FLOOD: u32 = 2;
    /// The group that sends sums and results to all workers of a job.
    #[must_use]
    pub fn of_job(number: u16) -> u32 {
        // Above the numbers of all other groups.
        1024 + u32::from(number)
    }
}

/// Numbers of the recirculation ports of switches.
pub mod port {
    /// Recirculation port of PSA (`PSA_PORT_RECIRCULATE`).
    pub const PSA_RECIRCULATE: u32 = 0xFFFF_FFFA;
    /// Recirculation port of Tofino's pipe 0 (`RECIRCULATION_PORT` in p4src/tna/main.p4).
    pub const TOFINO_RECIRCULATE: u32 = 68;
    /// Recirculation port of v1model (`HOLD_PORT` in p4src/v1model/main.p4).
    pub const V1MODEL_HOLD: u32 = 0;
}

pub use crate::model::job::JOB;
