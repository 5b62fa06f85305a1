//! A unit of the generated engine.p4: one fault of a scenario.

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
