//! Names in a fault unit of the generated engine.p4: a unit injects one fault of a scenario.

use super::{Direction, control};

/// Key of the unit's `select` table: the number of the set of flows that a packet belongs to.
pub const KEY_CLASS: &str = "meta.class";
/// Key of the unit's `select` table: the number of the epoch (interval of the timeline) in force.
pub const KEY_EPOCH: &str = "meta.epoch";

/// The action of a fault unit's `select` table for packets that the unit examines.
pub const PICK: &str = "pick";
/// The action of a fault unit's `select` table for all other packets; only in a unit in front of a sum.
pub const PASS: &str = "pass";
/// The parser's set of ingress ports (a P4 value set) whose packets a unit in front of a sum examines.
pub const ARMED: &str = "IngressParserImpl.armed";
/// The action of a fault unit's `outcome` table that makes the unit apply its effect to the packet.
pub const FIRES: &str = "fires";

/// The unit's table of RDMA connections that endpoints announced to the switch.
pub const CONNECTIONS: &str = "connections";
/// The action of the table [`CONNECTIONS`].
pub const BEGAN: &str = "began";
/// Parameter of [`BEGAN`]: the first sequence number of the connection.
pub const FIRST: &str = "first";
/// Parameter of [`BEGAN`]: the generation of the destination's queue pair.
pub const LIFE: &str = "life";

/// The unit's table that maps the drawn random word to the effect's value, such as a delay.
pub const LOTS: &str = "lots";
/// The action of the table [`LOTS`].
pub const LOT: &str = "lot";
/// Parameter of [`LOT`]: the effect's value, such as a delay.
pub const LOT_VALUE: &str = "value";

/// Names of the parameters of the action [`PICK`]; docs/fault-engine.md explains them.
pub mod param {
    /// Index of the unit's register cell for this flow.
    pub const CELL: &str = "cell";
    /// For units that count packets: index (ordinal less one) of the packet after which the count restarts.
    pub const LAST: &str = "last";
    /// For units that draw random words: the decision key of fault and flow, from which the words are computed.
    pub const KEY: &str = "key";
    /// For units that hold packets: the time for which a packet is held, in nanoseconds.
    pub const DELAY_NS: &str = "delay_ns";
}

/// Names of the key fields of a unit's tables `outcome`, `channel` and `connections`.
pub mod key {
    /// Key field: the packet's ordinal in its flow, less one.
    pub const INDEX: &str = "index";
    /// Key field: the first drawn random word.
    pub const U: &str = "u";
    /// Key field: the second drawn random word.
    pub const V: &str = "v";
    /// Key field: the upper bits of the third drawn random word.
    pub const W: &str = "w";
    /// Key field: a data packet's sequence number, relative to the first one of its RDMA connection.
    pub const RELATIVE: &str = "relative";
    /// Key field: the round of the RDMA connection to which the packet belongs.
    pub const ROUND: &str = "round";
    /// Key field of the table `connections`: the IPv4 source address.
    pub const SOURCE: &str = "source";
    /// Key field of the table `connections`: the IPv4 destination address.
    pub const DESTINATION: &str = "destination";
    /// Key field of the table `connections`: the destination's queue pair number.
    pub const QP: &str = "qp";
    /// Key field of the table `connections`: 2 for responses to a READ, 1 for other data.
    pub const DATA: &str = "data";
    /// Key field: whether the Gilbert-Elliott channel is in its bad state.
    pub const BAD: &str = "bad";
    /// Key field of the decision function's tables: a byte of the number to be hashed.
    pub const BYTE: &str = "byte";
}

/// Actions of the `channel` table: transitions of the two-state Gilbert-Elliott channel.
pub mod channel {
    /// The channel goes to the bad state.
    pub const TURN_BAD: &str = "turn_bad";
    /// The channel goes to the good state.
    pub const TURN_GOOD: &str = "turn_good";
    /// The channel goes from its current state to the other one.
    pub const TURN_OVER: &str = "turn_over";
    /// The channel stays in its current state.
    pub const STAY: &str = "stay";
}

/// Names of the decision function's table number `table`, from 0, and of the table's action; without the unit's prefix.
#[must_use]
pub fn words(table: usize) -> (String, String) {
    (format!("t{table}"), format!("words{table}"))
}

/// Prefix of the names of objects that the fault units of a pipeline share.
#[must_use]
pub fn engine(direction: Direction) -> String {
    format!("{}.faults.", control(direction))
}

/// Name of a unit in P4, which is the prefix of its objects.
#[must_use]
pub fn unit(direction: Direction, unit: usize) -> String {
    format!("{}u{unit}", engine(direction))
}

/// Name of the table that selects the flows and epochs in which a unit acts.
#[must_use]
pub fn select_table(direction: Direction, number: usize) -> String {
    format!("{}.select", unit(direction, number))
}

/// Full name of the table or action `name` of a unit.
#[must_use]
pub fn part(direction: Direction, number: usize, name: &str) -> String {
    format!("{}.{name}", unit(direction, number))
}

/// Name of the counter of a fault unit's hits; its index is that of the flow's register cell.
#[must_use]
pub fn fired(direction: Direction, number: usize) -> String {
    part(direction, number, "fired")
}

/// Name of the counter of packets whose key (such as a connection) had no cell; its index is that of the flow's cell.
#[must_use]
pub fn keyless(direction: Direction, number: usize) -> String {
    part(direction, number, "keyless")
}

/// Name of the register in which each cell has the number of packets counted so far; only in units that count or draw.
#[must_use]
pub fn ordinals(direction: Direction, number: usize) -> String {
    part(direction, number, "ordinals")
}
