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

/// A unit of the generated engine.p4: one fault of a scenario.
pub mod fault {
    use super::{Direction, control};

    /// Key of the select table: the set of flows that a packet belongs to, as a number.
    pub const KEY_CLASS: &str = "meta.class";
    /// Key of the select table: the step of the timeline that is in force.
    pub const KEY_EPOCH: &str = "meta.epoch";

    /// The action of the select table for packets that the unit examines.
    pub const PICK: &str = "pick";
    /// The action for other packets, in the select table of a unit that is placed before a sum.
    pub const PASS: &str = "pass";
    /// The parser's value set of the ingress ports whose packets such a unit examines.
    pub const ARMED: &str = "IngressParserImpl.armed";
    /// The action of the outcome table that makes the unit fire.
    pub const FIRES: &str = "fires";

    /// The table of RDMA connections that were announced to the switch.
    pub const CONNECTIONS: &str = "connections";
    /// The action of [`CONNECTIONS`].
    pub const BEGAN: &str = "began";
    /// Parameter of [`BEGAN`]: the first sequence number.
    pub const FIRST: &str = "first";
    /// Parameter of [`BEGAN`]: the generation of the queue pair.
    pub const LIFE: &str = "life";

    /// The table that maps the drawn word to the effect's value.
    pub const LOTS: &str = "lots";
    /// The action of [`LOTS`].
    pub const LOT: &str = "lot";
    /// The parameter of [`LOT`].
    pub const LOT_VALUE: &str = "value";

    /// Parameters of [`PICK`]; docs/fault-engine.md explains them.
    pub mod param {
        /// The unit's state cell for this flow.
        pub const CELL: &str = "cell";
        /// For units that count: the index after which counting restarts.
        pub const LAST: &str = "last";
        /// For units that draw: the key of fault and flow.
        pub const KEY: &str = "key";
        /// For units that hold packets: the delay in nanoseconds.
        pub const DELAY_NS: &str = "delay_ns";
    }

    /// Keys of the outcome table, and of the channel table.
    pub mod key {
        /// The packet's number in its flow, less one.
        pub const INDEX: &str = "index";
        /// The first drawn word.
        pub const U: &str = "u";
        /// The second drawn word.
        pub const V: &str = "v";
        /// The upper bits of the third drawn word.
        pub const W: &str = "w";
        /// A data packet's number in its RDMA connection, relative to the first.
        pub const RELATIVE: &str = "relative";
        /// The round of the connection that the packet belongs to.
        pub const ROUND: &str = "round";
        /// Key of the table of connections: the IPv4 source.
        pub const SOURCE: &str = "source";
        /// Key of the table of connections: the IPv4 destination.
        pub const DESTINATION: &str = "destination";
        /// Key of the table of connections: the destination's queue pair.
        pub const QP: &str = "qp";
        /// 1; 2 for responses of a READ.
        pub const DATA: &str = "data";
        /// Whether the channel is bad.
        pub const BAD: &str = "bad";
        /// Key of the tables of the decision function: a byte of the word to be hashed.
        pub const BYTE: &str = "byte";
    }

    /// Actions of the channel table.
    pub mod channel {
        /// The channel becomes bad.
        pub const TURN_BAD: &str = "turn_bad";
        /// The channel becomes good.
        pub const TURN_GOOD: &str = "turn_good";
        /// The channel changes its state.
        pub const TURN_OVER: &str = "turn_over";
        /// The channel keeps its state.
        pub const STAY: &str = "stay";
    }

    /// A table of the decision function, counted from 0: the names of table and action, relative to the unit.
    #[must_use]
    pub fn words(table: usize) -> (String, String) {
        (format!("t{table}"), format!("words{table}"))
    }

    /// The prefix of objects beside the units.
    #[must_use]
    pub fn engine(direction: Direction) -> String {
        format!("{}.faults.", control(direction))
    }

    /// The instance of a unit: the prefix of its objects.
    #[must_use]
    pub fn unit(direction: Direction, unit: usize) -> String {
        format!("{}u{unit}", engine(direction))
    }

    /// The table that selects the flows and epochs in which a unit acts.
    #[must_use]
    pub fn select_table(direction: Direction, number: usize) -> String {
        format!("{}.select", unit(direction, number))
    }

    /// Another table of a unit, or an action of one.
    #[must_use]
    pub fn part(direction: Direction, number: usize, name: &str) -> String {
        format!("{}.{name}", unit(direction, number))
    }

    /// The counter of a unit's hits, by cell.
    #[must_use]
    pub fn fired(direction: Direction, number: usize) -> String {
        part(direction, number, "fired")
    }

    /// The counter of packets whose key had no cell, by cell of the flow.
    #[must_use]
    pub fn keyless(direction: Direction, number: usize) -> String {
        part(direction, number, "keyless")
    }

    /// The register with the number of packets per cell, in a unit that counts or draws.
    #[must_use]
    pub fn ordinals(direction: Direction, number: usize) -> String {
        part(direction, number, "ordinals")
    }
}

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

/// `Forward` in p4src/common/forward.p4.
pub mod forward {
    /// The table that forwards by destination MAC address.
    pub const TABLE: &str = "SwitchIngress.forward.mac";
    /// The key of [`TABLE`].
    pub const KEY: &str = "hdr.ethernet.dst";
    /// The table of a wire, which forwards by ingress port.
    pub const WIRE: &str = "SwitchIngress.forward.wire";
    /// The key of [`WIRE`].
    pub const WIRE_KEY: &str = "meta.port";
    /// The action that forwards to one port.
    pub const UNICAST: &str = "SwitchIngress.forward.unicast";
    /// The parameter of [`UNICAST`].
    pub const PORT: &str = "port";
    /// The action that returns a packet to its ingress port, once Aggregate has answered it.
    pub const BACK: &str = "SwitchIngress.forward.back";
    /// The action that forwards to one of several ports. [`PORT`] is the port of frames without a flow.
    pub const SPREAD: &str = "SwitchIngress.forward.spread";
    /// Parameter of [`SPREAD`] and [`AMONG`]: the number of the list of ports.
    pub const LIST: &str = "list_";
    /// Parameter of [`SPREAD`] and [`AMONG`]: the number of paths.
    pub const NUM_WAYS: &str = "num_ways_";
    /// Parameter of [`SPREAD`]: the number of bits by which the hash is rotated.
    pub const TURN: &str = "turn_";
    /// The action that forwards on one of several paths from the sender's switch. [`PORT`] is that of the shortest path.
    pub const BETWEEN: &str = "SwitchIngress.forward.between";
    /// Parameter of [`BETWEEN`]: the number of the receiver's switch.
    pub const TARGET: &str = "target_";
    /// The table that maps a source MAC address to the sender's switch.
    pub const ORIGINS: &str = "SwitchIngress.forward.origins";
    /// The key of [`ORIGINS`].
    pub const KEY_SOURCE: &str = "hdr.ethernet.src";
    /// The action of [`ORIGINS`].
    pub const FROM: &str = "SwitchIngress.forward.from";
    /// Parameter of [`FROM`]: the number of the sender's switch.
    pub const ORIGIN: &str = "origin_";
    /// The table that maps the switches of sender and receiver to a list of ports.
    pub const PAIRS: &str = "SwitchIngress.forward.pairs";
    /// Key of [`PAIRS`]: the sender's switch.
    pub const KEY_ORIGIN: &str = "origin";
    /// Key of [`PAIRS`]: the receiver's switch.
    pub const KEY_TARGET: &str = "target";
    /// The action of [`PAIRS`].
    pub const AMONG: &str = "SwitchIngress.forward.among";
    /// The table that maps list and path to a port, with [`UNICAST`].
    pub const NEXT_HOPS: &str = "SwitchIngress.forward.next_hops";
    /// Key of [`NEXT_HOPS`]: the list.
    pub const KEY_LIST: &str = "list";
    /// Key of [`NEXT_HOPS`]: the path.
    pub const KEY_WAY: &str = "way";
    /// Capacity of [`NEXT_HOPS`], in entries.
    pub const MAX_NEXT_HOPS: usize = 16_384;
    /// All tables of the control: they keep forwarding packets while a plan is replaced.
    pub const TABLES: [&str; 5] = [TABLE, WIRE, ORIGINS, PAIRS, NEXT_HOPS];
    /// The action that sends to a multicast group.
    pub const MULTICAST: &str = "SwitchIngress.forward.multicast";
    /// The parameter of [`MULTICAST`].
    pub const GROUP: &str = "group";
}

/// `Aggregate` in p4src/common/aggregate.p4.
pub mod aggregate {
    /// The table of jobs that the switch sums.
    pub const JOBS: &str = "SwitchIngress.aggregate.jobs";
    /// The action of [`JOBS`].
    pub const AGGREGATE_JOB: &str = "SwitchIngress.aggregate.aggregate_job";
    /// Parameter of [`AGGREGATE_JOB`]: the bitmap of a complete chunk.
    pub const ALL_WORKERS: &str = "all_workers_";
    /// Parameter of [`AGGREGATE_JOB`]: the job's first pair of cells.
    pub const BASE: &str = "base_";
    /// Parameter of [`AGGREGATE_JOB`]: the job's number of slots, a power of two.
    pub const WINDOW: &str = "window_";
    /// Parameter of [`AGGREGATE_JOB`]: one less than [`WINDOW`].
    pub const SLOT_MASK: &str = "slot_mask_";
    /// The action of [`JOBS`] at a switch below the root: [`AGGREGATE_JOB`]'s parameters, [`UP_PORT`] and [`UP_WORKER`].
    pub const AGGREGATE_PART: &str = "SwitchIngress.aggregate.aggregate_part";
    /// The action of [`JOBS`] for a job with deadlines, with [`AGGREGATE_JOB`]'s parameters; in programs that can close
    /// chunks.
    pub const AGGREGATE_UNTIL: &str = "SwitchIngress.aggregate.aggregate_until";
    /// Parameter of [`AGGREGATE_PART`]: the port of the parent switch.
    pub const UP_PORT: &str = "up_port_";
    /// Parameter of [`AGGREGATE_PART`]: this switch's number among the children of its parent.
    pub const UP_WORKER: &str = "up_worker_";
    /// The table of each job's workers and child switches.
    pub const MEMBERS: &str = "SwitchIngress.aggregate.members";
    /// The action of [`MEMBERS`].
    pub const MEMBER: &str = "SwitchIngress.aggregate.member";
    /// Parameter of [`MEMBER`]: the worker's bit in bitmaps.
    pub const WORKER_BIT: &str = "worker_bit_";
    /// Key of [`JOBS`] and [`MEMBERS`]: the job.
    pub const KEY_JOB: &str = "hdr.agg.job";
    /// Key of [`MEMBERS`]: the worker's rank.
    pub const KEY_WORKER: &str = "hdr.agg.worker";
    /// Key of [`MEMBERS`]: whether the frame is a probe; the entry for probes has no worker bit.
    pub const KEY_PROBE: &str = "hdr.agg.probe";
    /// Key of [`MEMBERS`]: the ingress port.
    pub const KEY_PORT: &str = "meta.port";
    /// The register of the chunk that each slot belongs to.
    pub const OWNERS: &str = "SwitchIngress.aggregate.owner.owners";
    /// The register of the workers that have contributed to each slot.
    pub const BITMAPS: &str = "SwitchIngress.aggregate.bitmap.bitmaps";
    /// A second bitmap in TNA: one register classifies a packet, the other records the workers present.
    pub const ARRIVALS: &str = "SwitchIngress.aggregate.bitmap.arrivals";
    /// The register of opened and closed cells; in programs that can close chunks.
    pub const MARKS: &str = "SwitchIngress.aggregate.marks.marks";
    /// The register of a chunk's flags.
    pub const FLAGS: &str = "SwitchIngress.aggregate.flags.flags";
    /// The register of the next scales.
    pub const SCALES: &str = "SwitchIngress.aggregate.scale.scales";
    /// Counter of frames by outcome (`outcome_t` in p4src/common/aggregate_types.p4).
    pub const OUTCOMES: &str = "SwitchIngress.aggregate.outcomes.cells";
    /// Cell of [`OUTCOMES`]: frames that name a rank behind another port (p4src/common/aggregate_types.p4).
    pub const OUTCOME_FOREIGN: usize = 5;
    /// Cell of [`OUTCOMES`]: frames whose slot, version or count does not fit their chunk.
    pub const OUTCOME_MALFORMED: usize = 6;

    /// The register of one value of each slot; values are in blocks of 32.
    #[must_use]
    pub fn sums(value: usize) -> String {
        format!(
            "SwitchIngress.aggregate.sum{}.s{}.sums",
            value / 32,
            value % 32
        )
    }
}

/// `RoceIn` and `RoceOut` in p4src/common/roce_sum.p4.
pub mod roce {
    /// The table of addresses of jobs that the switch sums.
    pub const JOBS: &str = "SwitchIngress.roce.jobs";
    /// The key of [`JOBS`].
    pub const KEY_ADDRESS: &str = "hdr.ethernet.dst";
    /// The action of [`JOBS`].
    pub const SUMS: &str = "SwitchIngress.roce.sums";
    /// Parameter of [`SUMS`] and [`SPEAKS`]: the job's number.
    pub const JOB: &str = "job_";
    /// Parameter of [`SUMS`]: the job's number of slots.
    pub const WINDOW: &str = "window_";
    /// The table that maps a queue pair number and an ingress port to a worker.
    pub const SENDERS: &str = "SwitchIngress.roce.senders";
    /// Key of [`SENDERS`]: the queue pair number.
    pub const KEY_QPN: &str = "hdr.roce.dest_qp";
    /// Key of [`SENDERS`]: the ingress port.
    pub const KEY_PORT: &str = super::aggregate::KEY_PORT;
    /// The action of [`SENDERS`].
    pub const SPEAKS: &str = "SwitchIngress.roce.speaks";
    /// Parameter of [`SPEAKS`]: the worker's number.
    pub const WORKER: &str = "worker_";
    /// Counter of frames by outcome (`ROCE_UPDATED` … in p4src/common/roce_types.p4).
    pub const OUTCOMES: &str = "SwitchIngress.roce.outcomes.cells";
    /// The egress table of the workers' addresses.
    pub const WORKERS: &str = "SwitchEgress.roce.workers";
    /// Key of [`WORKERS`]: the job.
    pub const KEY_JOB: &str = "job";
    /// Key of [`WORKERS`]: the copy's number, for frames to all workers; 0 for frames to one.
    pub const KEY_COPY: &str = "copy";
    /// Key of [`WORKERS`]: the address of the frame before this table.
    pub const KEY_ADDRESSED: &str = "addressed";
    /// The action of [`WORKERS`].
    pub const REACHES: &str = "SwitchEgress.roce.reaches";
    /// Parameter of [`REACHES`]: the index of the worker's queue pair in the registers.
    pub const CONTACT: &str = "contact_";
    /// Parameter of [`REACHES`]: the worker's MAC address.
    pub const MAC: &str = "mac_";
    /// Parameter of [`REACHES`]: the worker's IPv4 address.
    pub const IP: &str = "ip_";
    /// Parameter of [`REACHES`]: the bitmap of all workers.
    pub const ALL_WORKERS: &str = "all_workers_";
    /// The register of the workers' queue pair numbers; 0 for workers that have not registered.
    pub const QPNS: &str = "SwitchEgress.roce.contacts.qpns";

    /// The switch's queue pair number for a worker of a job.
    #[must_use]
    pub fn qpn(job: u16, worker: u16) -> u32 {
        0x80_0000 | u32::from(job) << 6 | u32::from(worker & 0x3F)
    }

    /// The outcome of a frame to a job's address.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Outcome {
        /// The frame is an update.
        Updated,
        /// The frame is a registration.
        Registered,
        /// The frame's queue pair number is unknown, or belongs to another port.
        Stranger,
        /// The frame's ICRC is wrong.
        WrongIcrc,
        /// The frame is neither a valid update nor a valid registration.
        Malformed,
        /// The frame carries another operation.
        Other,
    }
}

/// `JobGuard` in p4src/common/job_guard.p4.
pub mod guard {
    /// The table of the jobs' leases.
    pub const LEASES: &str = "SwitchIngress.guard.leases";
    /// The action for a job without a lease.
    pub const UNLIMITED: &str = "SwitchIngress.guard.unlimited";
    /// The action for a job with a lease.
    pub const UNTIL: &str = "SwitchIngress.guard.until";
    /// Parameter of [`UNTIL`]: the end of the lease, on the switch's clock.
    pub const DEADLINE: &str = "deadline";
    /// The table of the ports by which frames of a job come.
    pub const SENDERS: &str = "SwitchIngress.guard.senders";
    /// The action of [`SENDERS`].
    pub const SENDER: &str = "SwitchIngress.guard.sender";
    /// Key of [`LEASES`] and [`SENDERS`]: the job.
    pub const KEY_JOB: &str = super::aggregate::KEY_JOB;
    /// Key of [`SENDERS`]: the ingress port.
    pub const KEY_PORT: &str = super::aggregate::KEY_PORT;
    /// The meter of each job's frames, in bytes; indexed by [`cell`].
    pub const METERS: &str = "SwitchIngress.guard.rate.meters";
    /// Counter of frames by job and outcome; indexed by [`outcome_cell`].
    pub const OUTCOMES: &str = "SwitchIngress.guard.outcomes.cells";
    /// Counter of frames with a job number that their port may not use, by port.
    pub const STRANGERS: &str = "SwitchIngress.guard.strangers.ports";

    /// The guard's verdict on a frame (`guarded_t` in p4src/common/aggregate_types.p4).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Guarded {
        /// The frame passes.
        Passed,
        /// The frame came by a port that leads to no worker of the job.
        Stranger,
        /// The job's lease has expired.
        Lapsed,
        /// The frame exceeds the job's rate.
        OverRate,
    }

    /// The cell of a job in [`METERS`].
    #[must_use]
    pub fn cell(job: u16) -> u64 {
        u64::from(job % 256)
    }

    /// The cell of a job and a verdict in [`OUTCOMES`].
    #[must_use]
    pub fn outcome_cell(job: u16, outcome: Guarded) -> u64 {
        4 * cell(job) + outcome as u64
    }
}

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
