//! Names of the tables, actions and keys of the control `Forward` (p4src/common/forward.p4), which chooses the egress port.

/// The table that forwards by destination MAC address.
pub const TABLE: &str = "SwitchIngress.forward.mac";
/// Key of the table [`TABLE`]: the destination MAC address.
pub const KEY: &str = "hdr.ethernet.dst";
/// The table of a wire (a switch with two ports), which forwards by ingress port.
pub const WIRE: &str = "SwitchIngress.forward.wire";
/// Key of the table [`WIRE`]: the ingress port.
pub const WIRE_KEY: &str = "meta.port";
/// The action that forwards to one port.
pub const UNICAST: &str = "SwitchIngress.forward.unicast";
/// Parameter of [`UNICAST`]: the egress port.
pub const PORT: &str = "port";
/// The action that returns a packet to its ingress port, after the control Aggregate has turned it into an answer.
pub const BACK: &str = "SwitchIngress.forward.back";
/// The action that forwards to one port of a list, selected by the flow's hash. [`PORT`] is the port of frames without a flow.
pub const SPREAD: &str = "SwitchIngress.forward.spread";
/// Parameter of [`SPREAD`] and [`AMONG`]: the number of a list of ports.
pub const LIST: &str = "list_";
/// Parameter of [`SPREAD`] and [`AMONG`]: the number of ports in the list.
pub const NUM_WAYS: &str = "num_ways_";
/// Parameter of [`SPREAD`]: the number of bits by which the flow's hash is rotated.
pub const TURN: &str = "turn_";
/// The action that forwards on one of several paths from the sender's switch. [`PORT`] is the port of the shortest path.
pub const BETWEEN: &str = "SwitchIngress.forward.between";
/// Parameter of [`BETWEEN`]: the number of the receiver's switch.
pub const TARGET: &str = "target_";
/// The table that maps a source MAC address to the sender's switch.
pub const ORIGINS: &str = "SwitchIngress.forward.origins";
/// Key of the table [`ORIGINS`]: the source MAC address.
pub const KEY_SOURCE: &str = "hdr.ethernet.src";
/// The action of the table [`ORIGINS`].
pub const FROM: &str = "SwitchIngress.forward.from";
/// Parameter of [`FROM`]: the number of the sender's switch.
pub const ORIGIN: &str = "origin_";
/// The table that maps the sender's and the receiver's switch to a list of ports.
pub const PAIRS: &str = "SwitchIngress.forward.pairs";
/// Key of [`PAIRS`]: the number of the sender's switch.
pub const KEY_ORIGIN: &str = "origin";
/// Key of [`PAIRS`]: the number of the receiver's switch.
pub const KEY_TARGET: &str = "target";
/// The action of the table [`PAIRS`].
pub const AMONG: &str = "SwitchIngress.forward.among";
/// The table that maps a list and the index of a path to an egress port, with the action [`UNICAST`].
pub const NEXT_HOPS: &str = "SwitchIngress.forward.next_hops";
/// Key of [`NEXT_HOPS`]: the number of the list of ports.
pub const KEY_LIST: &str = "list";
/// Key of [`NEXT_HOPS`]: the index of the path in the list.
pub const KEY_WAY: &str = "way";
/// Maximum number of table entries in [`NEXT_HOPS`].
pub const MAX_NEXT_HOPS: usize = 16_384;
/// All tables of the control `Forward`: they keep forwarding packets while a plan is replaced.
pub const TABLES: [&str; 5] = [TABLE, WIRE, ORIGINS, PAIRS, NEXT_HOPS];
/// The action that sends to a multicast group.
pub const MULTICAST: &str = "SwitchIngress.forward.multicast";
/// Parameter of [`MULTICAST`]: the number of the multicast group.
pub const GROUP: &str = "group";
