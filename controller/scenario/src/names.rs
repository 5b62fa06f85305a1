//! The names of our P4, and the numbers that it reserves: what a control plane addresses, spelt once.
//!
//! tests/it/p4_names.rs holds them against the P4Info of all three architectures.

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

/// `Lease` in p4src/common/fault.p4.
pub mod lease {
    use super::{Direction, control};

    /// The deadline's parameter of [`until`].
    pub const DEADLINE: &str = "deadline";

    /// The table whose default action says until when faults hold.
    #[must_use]
    pub fn table(direction: Direction) -> String {
        format!("{}.lease.deadline", control(direction))
    }

    /// That action.
    #[must_use]
    pub fn until(direction: Direction) -> String {
        format!("{}.lease.until", control(direction))
    }

    /// Counts packets that came later.
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

    /// The action of the select table: the unit looks at the packet.
    pub const PICK: &str = "pick";
    /// The other action of the select table of a unit that stands before a sum: the packet is none of its.
    pub const PASS: &str = "pass";
    /// The parser's value set of the ports by which packets come that such a unit looks at.
    pub const ARMED: &str = "IngressParserImpl.armed";
    /// The action of the outcome table: the unit fires.
    pub const FIRES: &str = "fires";

    /// The table of RDMA connections of which the switch was told, and its action.
    pub const CONNECTIONS: &str = "connections";
    /// The action of [`CONNECTIONS`].
    pub const BEGAN: &str = "began";
    /// The parameter of [`BEGAN`]: the first sequence number.
    pub const FIRST: &str = "first";
    /// The same: which of the connections that have had the queue pair.
    pub const LIFE: &str = "life";

    /// The table of what the drawn word stands for, and its action.
    pub const LOTS: &str = "lots";
    /// The action of [`LOTS`].
    pub const LOT: &str = "lot";
    /// The parameter of [`LOT`].
    pub const LOT_VALUE: &str = "value";

    /// Parameters of [`PICK`]: docs/fault-engine.md has what they mean.
    pub mod param {
        /// The unit's state cell for this flow.
        pub const CELL: &str = "cell";
        /// Of those that count: the index after which they start again.
        pub const LAST: &str = "last";
        /// Of those that draw: the key of fault and flow.
        pub const KEY: &str = "key";
        /// Of those that hold: for how long.
        pub const DELAY_NS: &str = "delay_ns";
    }

    /// Keys of the outcome table, and of the channel table.
    pub mod key {
        /// The packet's number in its flow, less one.
        pub const INDEX: &str = "index";
        /// The first word drawn.
        pub const U: &str = "u";
        /// The second.
        pub const V: &str = "v";
        /// The upper bits of the third.
        pub const W: &str = "w";
        /// A data packet's number in its RDMA connection, relative to the first.
        pub const RELATIVE: &str = "relative";
        /// In which round of its connection it comes.
        pub const ROUND: &str = "round";
        /// Of the table of connections: an IPv4 source.
        pub const SOURCE: &str = "source";
        /// Its destination.
        pub const DESTINATION: &str = "destination";
        /// The destination's queue pair.
        pub const QP: &str = "qp";
        /// 1, or 2 of responses of a READ.
        pub const DATA: &str = "data";
        /// Whether the channel is bad.
        pub const BAD: &str = "bad";
        /// Of the tables of the decision function.
        pub const BYTE: &str = "byte";
    }

    /// Actions of the channel table.
    pub mod channel {
        /// It is bad from now on.
        pub const TURN_BAD: &str = "turn_bad";
        /// It is good from now on.
        pub const TURN_GOOD: &str = "turn_good";
        /// It is what it was not.
        pub const TURN_OVER: &str = "turn_over";
        /// It stays what it was.
        pub const STAY: &str = "stay";
    }

    /// A table of the decision function, from 0: its name and its action's, behind the unit's.
    #[must_use]
    pub fn words(table: usize) -> (String, String) {
        (format!("t{table}"), format!("words{table}"))
    }

    /// What stands beside the units is behind this prefix.
    #[must_use]
    pub fn engine(direction: Direction) -> String {
        format!("{}.faults.", control(direction))
    }

    /// A unit's instance: the prefix of what follows.
    #[must_use]
    pub fn unit(direction: Direction, unit: usize) -> String {
        format!("{}u{unit}", engine(direction))
    }

    /// The table that says which flows a unit acts on, and when.
    #[must_use]
    pub fn select_table(direction: Direction, number: usize) -> String {
        format!("{}.select", unit(direction, number))
    }

    /// Another table, or an action of one.
    #[must_use]
    pub fn part(direction: Direction, number: usize, name: &str) -> String {
        format!("{}.{name}", unit(direction, number))
    }

    /// The counter of what a unit fires, by cell.
    #[must_use]
    pub fn fired(direction: Direction, number: usize) -> String {
        part(direction, number, "fired")
    }

    /// The counter of packets whose key had no cell, by cell of the flow.
    #[must_use]
    pub fn keyless(direction: Direction, number: usize) -> String {
        part(direction, number, "keyless")
    }

    /// The register of how many packets each cell has met, of a unit that counts or draws.
    #[must_use]
    pub fn ordinals(direction: Direction, number: usize) -> String {
        part(direction, number, "ordinals")
    }
}

/// A trigger of the generated engine.p4: what units wait for.
pub mod trigger {
    use super::INGRESS;

    /// The parameter of [`see`].
    pub const EVENTS: &str = "events";

    /// The table that says which of its events a packet is, by number on the switch.
    #[must_use]
    pub fn table(number: usize) -> String {
        format!("{INGRESS}.faults.trigger{number}")
    }

    /// Its action.
    #[must_use]
    pub fn see(number: usize) -> String {
        format!("{INGRESS}.faults.see{number}")
    }

    /// The register of how many events it has counted.
    #[must_use]
    pub fn progress(number: usize) -> String {
        format!("{INGRESS}.faults.progress{number}")
    }

    /// The counter of how often it came on.
    #[must_use]
    pub fn on(number: usize) -> String {
        format!("{INGRESS}.faults.on{number}")
    }

    /// The counter of packets that it would have counted, and whose key had no cell.
    #[must_use]
    pub fn keyless(number: usize) -> String {
        format!("{INGRESS}.faults.keyless{number}")
    }
}

/// `Forward` in p4src/common/forward.p4.
pub mod forward {
    /// By destination MAC address.
    pub const TABLE: &str = "SwitchIngress.forward.mac";
    /// Its key.
    pub const KEY: &str = "hdr.ethernet.dst";
    /// In a wire: by the port that a packet came in by.
    pub const WIRE: &str = "SwitchIngress.forward.wire";
    /// The key of [`WIRE`].
    pub const WIRE_KEY: &str = "meta.port";
    /// To one port.
    pub const UNICAST: &str = "SwitchIngress.forward.unicast";
    /// The parameter of [`UNICAST`].
    pub const PORT: &str = "port";
    /// To where it came from, once Aggregate has answered it.
    pub const BACK: &str = "SwitchIngress.forward.back";
    /// To one of several ports: [`PORT`] is that of frames without a flow.
    pub const SPREAD: &str = "SwitchIngress.forward.spread";
    /// Parameter of [`SPREAD`] and [`AMONG`]: which list of ports.
    pub const LIST: &str = "list_";
    /// Parameter of [`SPREAD`] and [`AMONG`]: how many ways there are.
    pub const NUM_WAYS: &str = "num_ways_";
    /// Parameter of [`SPREAD`]: by how many bits the hash is turned.
    pub const TURN: &str = "turn_";
    /// By one of several ways from the sender's switch: [`PORT`] is that of the shortest.
    pub const BETWEEN: &str = "SwitchIngress.forward.between";
    /// Parameter of [`BETWEEN`]: the number of the receiver's switch.
    pub const TARGET: &str = "target_";
    /// By source MAC address: the sender's switch.
    pub const ORIGINS: &str = "SwitchIngress.forward.origins";
    /// The key of [`ORIGINS`].
    pub const KEY_SOURCE: &str = "hdr.ethernet.src";
    /// The action of [`ORIGINS`].
    pub const FROM: &str = "SwitchIngress.forward.from";
    /// Parameter of [`FROM`]: its number.
    pub const ORIGIN: &str = "origin_";
    /// By the switches of sender and receiver: the list.
    pub const PAIRS: &str = "SwitchIngress.forward.pairs";
    /// Key of [`PAIRS`].
    pub const KEY_ORIGIN: &str = "origin";
    /// Key of [`PAIRS`].
    pub const KEY_TARGET: &str = "target";
    /// The action of [`PAIRS`].
    pub const AMONG: &str = "SwitchIngress.forward.among";
    /// By list and way: the port, with [`UNICAST`].
    pub const NEXT_HOPS: &str = "SwitchIngress.forward.next_hops";
    /// Key of [`NEXT_HOPS`].
    pub const KEY_LIST: &str = "list";
    /// Key of [`NEXT_HOPS`].
    pub const KEY_WAY: &str = "way";
    /// What [`NEXT_HOPS`] holds.
    pub const MAX_NEXT_HOPS: usize = 16_384;
    /// All of its tables: what leads packets on while a plan is exchanged.
    pub const TABLES: [&str; 5] = [TABLE, WIRE, ORIGINS, PAIRS, NEXT_HOPS];
    /// To a multicast group.
    pub const MULTICAST: &str = "SwitchIngress.forward.multicast";
    /// The parameter of [`MULTICAST`].
    pub const GROUP: &str = "group";
}

/// `Aggregate` in p4src/common/aggregate.p4.
pub mod aggregate {
    /// The jobs that a switch sums.
    pub const JOBS: &str = "SwitchIngress.aggregate.jobs";
    /// The action of [`JOBS`].
    pub const AGGREGATE_JOB: &str = "SwitchIngress.aggregate.aggregate_job";
    /// Parameter of [`AGGREGATE_JOB`]: the bitmap of a chunk that is complete.
    pub const ALL_WORKERS: &str = "all_workers_";
    /// Parameter of [`AGGREGATE_JOB`]: the job's first pair of cells.
    pub const BASE: &str = "base_";
    /// Parameter of [`AGGREGATE_JOB`]: how many slots the job has, a power of two.
    pub const WINDOW: &str = "window_";
    /// Parameter of [`AGGREGATE_JOB`]: one less than [`WINDOW`].
    pub const SLOT_MASK: &str = "slot_mask_";
    /// The action of [`JOBS`] at a switch that is not the topmost: [`AGGREGATE_JOB`]'s parameters and these two.
    pub const AGGREGATE_PART: &str = "SwitchIngress.aggregate.aggregate_part";
    /// The action of [`JOBS`] for one with deadlines, with [`AGGREGATE_JOB`]'s parameters; where chunks can be closed.
    pub const AGGREGATE_UNTIL: &str = "SwitchIngress.aggregate.aggregate_until";
    /// Parameter of [`AGGREGATE_PART`]: where the switch above is.
    pub const UP_PORT: &str = "up_port_";
    /// Parameter of [`AGGREGATE_PART`]: what number this switch has among that one's children.
    pub const UP_WORKER: &str = "up_worker_";
    /// The workers of each, and the switches below.
    pub const MEMBERS: &str = "SwitchIngress.aggregate.members";
    /// The action of [`MEMBERS`].
    pub const MEMBER: &str = "SwitchIngress.aggregate.member";
    /// Parameter of [`MEMBER`]: the worker's bit in bitmaps.
    pub const WORKER_BIT: &str = "worker_bit_";
    /// Key of both tables.
    pub const KEY_JOB: &str = "hdr.agg.job";
    /// Key of the members: the worker's rank.
    pub const KEY_WORKER: &str = "hdr.agg.worker";
    /// Key of the members: whether the frame only asks; such an entry has no bit.
    pub const KEY_PROBE: &str = "hdr.agg.probe";
    /// Key of the members: where the frame came in.
    pub const KEY_PORT: &str = "meta.port";
    /// The register of the chunk that each slot belongs to.
    pub const OWNERS: &str = "SwitchIngress.aggregate.owner.owners";
    /// The register of who has contributed.
    pub const BITMAPS: &str = "SwitchIngress.aggregate.bitmap.bitmaps";
    /// TNA has the bitmap twice: one register tells what a packet is, the other who is present.
    pub const ARRIVALS: &str = "SwitchIngress.aggregate.bitmap.arrivals";
    /// The register of which cells are opened, and which closed; where chunks can be closed.
    pub const MARKS: &str = "SwitchIngress.aggregate.marks.marks";
    /// The register of the flags.
    pub const FLAGS: &str = "SwitchIngress.aggregate.flags.flags";
    /// The register of the next scales.
    pub const SCALES: &str = "SwitchIngress.aggregate.scale.scales";
    /// Counts frames by what became of them (`outcome_t` in p4src/common/aggregate_types.p4).
    pub const OUTCOMES: &str = "SwitchIngress.aggregate.outcomes.cells";
    /// Cell of [`OUTCOMES`]: frames that name a rank which is behind another port (p4src/common/aggregate_types.p4).
    pub const OUTCOME_FOREIGN: usize = 5;
    /// Cell of [`OUTCOMES`]: frames whose slot, version or count is not their chunk's.
    pub const OUTCOME_MALFORMED: usize = 6;

    /// The register of a value of each slot: they stand in blocks of 32.
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
    /// Whose address is that of a job that is summed.
    pub const JOBS: &str = "SwitchIngress.roce.jobs";
    /// The key of [`JOBS`].
    pub const KEY_ADDRESS: &str = "hdr.ethernet.dst";
    /// The action of [`JOBS`].
    pub const SUMS: &str = "SwitchIngress.roce.sums";
    /// Parameter of [`SUMS`] and [`SPEAKS`]: the job's number.
    pub const JOB: &str = "job_";
    /// Parameter of [`SUMS`]: how many slots it has.
    pub const WINDOW: &str = "window_";
    /// Which worker a queue pair number is, by the port that its packets come by.
    pub const SENDERS: &str = "SwitchIngress.roce.senders";
    /// Key of [`SENDERS`]: the number.
    pub const KEY_QPN: &str = "hdr.roce.dest_qp";
    /// Key of [`SENDERS`]: the port.
    pub const KEY_PORT: &str = super::aggregate::KEY_PORT;
    /// The action of [`SENDERS`].
    pub const SPEAKS: &str = "SwitchIngress.roce.speaks";
    /// Parameter of [`SPEAKS`]: the worker's number.
    pub const WORKER: &str = "worker_";
    /// Counts frames by what became of them (`ROCE_UPDATED` … in p4src/common/roce_types.p4).
    pub const OUTCOMES: &str = "SwitchIngress.roce.outcomes.cells";
    /// Where a worker is, in egress.
    pub const WORKERS: &str = "SwitchEgress.roce.workers";
    /// Key of [`WORKERS`]: the job.
    pub const KEY_JOB: &str = "job";
    /// Key of [`WORKERS`]: which copy of what goes to all; 0 of what goes to one.
    pub const KEY_COPY: &str = "copy";
    /// Key of [`WORKERS`]: the address that it has so far.
    pub const KEY_ADDRESSED: &str = "addressed";
    /// The action of [`WORKERS`].
    pub const REACHES: &str = "SwitchEgress.roce.reaches";
    /// Parameter of [`REACHES`]: the number of its queue pair in the registers.
    pub const CONTACT: &str = "contact_";
    /// Parameter of [`REACHES`]: its MAC address.
    pub const MAC: &str = "mac_";
    /// Parameter of [`REACHES`]: its IPv4 address.
    pub const IP: &str = "ip_";
    /// Parameter of [`REACHES`]: the bitmap of all workers.
    pub const ALL_WORKERS: &str = "all_workers_";
    /// The register of the workers' queue pair numbers; 0 of those that have not registered.
    pub const QPNS: &str = "SwitchEgress.roce.contacts.qpns";

    /// The switch's queue pair number for a worker of a job.
    #[must_use]
    pub fn qpn(job: u16, worker: u16) -> u32 {
        0x80_0000 | u32::from(job) << 6 | u32::from(worker & 0x3F)
    }

    /// What becomes of a frame that comes to a job's address.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Outcome {
        /// It is an update.
        Updated,
        /// It is a registration.
        Registered,
        /// Its queue pair number is nobody's, or another port's.
        Stranger,
        /// Its ICRC is wrong.
        WrongIcrc,
        /// It is no update and no registration that can be.
        Malformed,
        /// It is of another operation.
        Other,
    }
}

/// `JobGuard` in p4src/common/job_guard.p4.
pub mod guard {
    /// Until when a job may send.
    pub const LEASES: &str = "SwitchIngress.guard.leases";
    /// Of a job without a lease.
    pub const UNLIMITED: &str = "SwitchIngress.guard.unlimited";
    /// Of one with a lease.
    pub const UNTIL: &str = "SwitchIngress.guard.until";
    /// Parameter of [`UNTIL`]: on the switch's clock.
    pub const DEADLINE: &str = "deadline";
    /// The ports by which frames of a job come.
    pub const SENDERS: &str = "SwitchIngress.guard.senders";
    /// The action of [`SENDERS`].
    pub const SENDER: &str = "SwitchIngress.guard.sender";
    /// Key of both tables.
    pub const KEY_JOB: &str = super::aggregate::KEY_JOB;
    /// Key of [`SENDERS`].
    pub const KEY_PORT: &str = super::aggregate::KEY_PORT;
    /// The meter of each job's frames, in bytes, by [`cell`].
    pub const METERS: &str = "SwitchIngress.guard.rate.meters";
    /// Counts frames by job and what became of them, by [`outcome_cell`].
    pub const OUTCOMES: &str = "SwitchIngress.guard.outcomes.cells";
    /// Counts frames that spoke for a job of others, by port.
    pub const STRANGERS: &str = "SwitchIngress.guard.strangers.ports";

    /// What becomes of a frame (`guarded_t` in p4src/common/aggregate_types.p4).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Guarded {
        /// It goes on.
        Passed,
        /// It came by a port that nobody of the job is behind.
        Stranger,
        /// The job's lease has run out.
        Lapsed,
        /// More than the job's rate.
        OverRate,
    }

    /// A job's cell of [`METERS`].
    #[must_use]
    pub fn cell(job: u16) -> u64 {
        u64::from(job % 256)
    }

    /// Its cell of [`OUTCOMES`].
    #[must_use]
    pub fn outcome_cell(job: u16, outcome: Guarded) -> u64 {
        4 * cell(job) + outcome as u64
    }
}

/// Multicast groups.
pub mod group {
    /// Both members are the recirculation port (`DUPLICATE_GROUP` in p4src/common/types.p4).
    pub const DUPLICATE: u32 = 1;
    /// From here on: what makes more copies, or copies that come later.
    pub const FIRST_COPIES: u32 = 16;
    /// Broadcasts, along a tree.
    pub const FLOOD: u32 = 2;
    /// Results and sums to all of a job.
    #[must_use]
    pub fn of_job(number: u16) -> u32 {
        // Above all others' numbers.
        1024 + u32::from(number)
    }
}

/// Recirculation ports.
pub mod port {
    /// `PSA_PORT_RECIRCULATE`.
    pub const PSA_RECIRCULATE: u32 = 0xFFFF_FFFA;
    /// `RECIRCULATION_PORT` in p4src/tna/main.p4: of pipe 0.
    pub const TOFINO_RECIRCULATE: u32 = 68;
    /// `HOLD_PORT` in p4src/v1model/main.p4.
    pub const V1MODEL_HOLD: u32 = 0;
}

/// The job number of a scenario's training.
pub const JOB: u16 = 1;
