//! Names of our P4 objects, and reserved numbers: everything that a control plane addresses, defined once.
//!
//! tests/it/p4_names.rs compares them with the P4Info of all three architectures.

use crate::model::Direction;

/// The control of ingress.
pub const INGRESS: &str = "SwitchIngress";
/// The control of egress.
pub const EGRESS: &str = "SwitchEgress";

/// The control of a direction: the prefix of every name in it.
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

    /// The tables' prefix in ingress.
    pub const INGRESS: &str = "SwitchIngress.classify";
    /// The tables' prefix in egress.
    pub const EGRESS: &str = "SwitchEgress.classify";
    /// Counter of frames that could not be parsed as deep as the filters require, by reason.
    pub const NOTES: &str = "SwitchIngress.classify.notes.cells";

    /// The instance that classifies the packets of a direction: the prefix of its tables.
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

    /// Parameter of [`set_epoch`]: the epoch.
    pub const EPOCH: &str = "epoch";

    /// The table whose default action sets the epoch in force.
    #[must_use]
    pub fn table(direction: Direction) -> String {
        format!("{}.timeline.epoch", control(direction))
    }

    /// The action that sets the epoch.
    #[must_use]
    pub fn set_epoch(direction: Direction) -> String {
        format!("{}.timeline.set_epoch", control(direction))
    }
}

/// `Lease` in p4src/common/fault.p4.
pub mod lease {
    use super::{Direction, control};

    /// Parameter of [`until`]: the deadline.
    pub const DEADLINE: &str = "deadline";

    /// The table whose default action sets the end of the lease.
    #[must_use]
    pub fn table(direction: Direction) -> String {
        format!("{}.lease.deadline", control(direction))
    }

    /// The action that sets the end of the lease.
    #[must_use]
    pub fn until(direction: Direction) -> String {
        format!("{}.lease.until", control(direction))
    }

    /// The counter of packets that came after the end of the lease.
    #[must_use]
    pub fn lapsed(direction: Direction) -> String {
        format!("{}.lease.lapsed.cells", control(direction))
    }
}

pub mod fault;

/// A trigger of the generated engine.p4: the event counter that enables units.
pub mod trigger {
    use super::INGRESS;

    /// The parameter of [`see`].
    pub const EVENTS: &str = "events";

    /// The table that says which events of the trigger a packet is. `number`: the trigger's number on the switch.
    #[must_use]
    pub fn table(number: usize) -> String {
        format!("{INGRESS}.faults.trigger{number}")
    }

    /// The action of a trigger's table.
    #[must_use]
    pub fn see(number: usize) -> String {
        format!("{INGRESS}.faults.see{number}")
    }

    /// The register with the number of events counted so far.
    #[must_use]
    pub fn progress(number: usize) -> String {
        format!("{INGRESS}.faults.progress{number}")
    }

    /// The counter of how often the trigger came on.
    #[must_use]
    pub fn on(number: usize) -> String {
        format!("{INGRESS}.faults.on{number}")
    }

    /// The counter of packets that the trigger would have counted, but whose key had no cell.
    #[must_use]
    pub fn keyless(number: usize) -> String {
        format!("{INGRESS}.faults.keyless{number}")
    }
}

pub mod forward;

pub mod aggregate;

pub mod roce;

pub mod guard;

/// Multicast groups.
pub mod group {
    /// The group whose two members are the recirculation port (`DUPLICATE_GROUP` in p4src/common/types.p4).
    pub const DUPLICATE: u32 = 1;
    /// The first group for more than one copy, or for delayed copies.
    pub const FIRST_COPIES: u32 = 16;
    /// The group for broadcasts, along a tree.
    pub const FLOOD: u32 = 2;
    /// The group for results and sums to all workers of a job.
    #[must_use]
    pub fn of_job(number: u16) -> u32 {
        // Above the numbers of all other groups.
        1024 + u32::from(number)
    }
}

/// Recirculation ports.
pub mod port {
    /// `PSA_PORT_RECIRCULATE`.
    pub const PSA_RECIRCULATE: u32 = 0xFFFF_FFFA;
    /// `RECIRCULATION_PORT` in p4src/tna/main.p4: the port of pipe 0.
    pub const TOFINO_RECIRCULATE: u32 = 68;
    /// `HOLD_PORT` in p4src/v1model/main.p4.
    pub const V1MODEL_HOLD: u32 = 0;
}

pub use crate::model::job::JOB;
