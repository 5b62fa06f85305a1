//! `Forward` in p4src/common/forward.p4.

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
