//! Generates networks of known shapes (fat tree, leaf-spine, rail pods, Jellyfish) from a few numbers in the file.

use planner::Network;
use planner::network::NetworkError;
use planner::network::generate::{
    FatTree, Jellyfish, LeafSpine, Parts, Programmable, RailPods, Uplinks, make_programmable,
};

use super::super::reader::{self, Fields};
use super::super::shape::{Key, Object, Shape, may, needed};
use super::attributes::{
    self, Attributes, ECN, GPUS, LATENCY, LINK_RATE, MEMORY, MTU, POSITIVE_RATE, STAGES, THROUGHPUT,
};
use super::{For, check_made};
use crate::diagnostic::{Code, Sink, Span};
use crate::file::yaml::Node;
use crate::model::topology::{Capacity, DEFAULT_RATE_BPS, Topology};

const SOME: Shape = Shape::Integer(1, u32::MAX as u64);
const ANY: Shape = Shape::Integer(0, u32::MAX as u64);
const WHICH: [&str; 3] = ["all", "racks", "none"];
const PROGRAMMABLE: Key = may(
    "programmable",
    Shape::Word(&WHICH),
    "which switches can sum and inject: all, or those with hosts on them",
)
.or_first();
const UPLINK_RATE: Key = may(
    "uplink_rate",
    POSITIVE_RATE,
    "of each link between switches; the rate",
);
const HOST_RATE: Key = may("rate", POSITIVE_RATE, "of each host's link").or(DEFAULT_RATE_BPS);

pub(super) static FAT_TREE: Object = Object {
    what: "a fat tree as a topology",
    keys: &[needed(
        "fat_tree",
        Shape::Object(&A_FAT_TREE),
        "k pods of two layers, and cores above",
    )],
};

static A_FAT_TREE: Object = Object {
    what: "a fat tree",
    keys: &[
        needed(
            "k",
            Shape::Integer(2, u32::MAX as u64),
            "ports of a switch; even",
        ),
        may("hosts_per_edge", SOME, "hosts on each edge switch; k/2"),
        LINK_RATE,
        LATENCY,
        ECN,
        MTU,
        GPUS,
        THROUGHPUT,
        MEMORY,
        STAGES,
        PROGRAMMABLE,
    ],
};

pub(super) static LEAF_SPINE: Object = Object {
    what: "leaves and spines as a topology",
    keys: &[needed(
        "leaf_spine",
        Shape::Object(&A_LEAF_SPINE),
        "switches with hosts, and each linked to each of those above",
    )],
};

static A_LEAF_SPINE: Object = Object {
    what: "leaves and spines",
    keys: &[
        needed("leaves", SOME, "switches with hosts"),
        needed("spines", SOME, "switches above"),
        needed("hosts_per_leaf", SOME, "hosts on each leaf"),
        HOST_RATE,
        UPLINK_RATE,
        may(
            "oversubscription",
            Shape::Number(f64::MIN, f64::MAX),
            "in place of `uplink_rate`: what a leaf's hosts send, over what its uplinks carry",
        ),
        LATENCY,
        ECN,
        MTU,
        GPUS,
        THROUGHPUT,
        MEMORY,
        STAGES,
        PROGRAMMABLE,
    ],
};

pub(super) static RAIL_PODS: Object = Object {
    what: "pods of rails as a topology",
    keys: &[needed(
        "rail_pods",
        Shape::Object(&PODS_OF_RAILS),
        "hosts of several cards: the r-th card of each goes to the r-th switch of its pod",
    )],
};

static PODS_OF_RAILS: Object = Object {
    what: "pods of rails",
    keys: &[
        needed("pods", SOME, "how many"),
        needed("hosts_per_pod", SOME, "hosts of each"),
        needed("rails", SOME, "cards of a host, and switches of a pod"),
        may(
            "spines",
            ANY,
            "switches that join the pods; 1, of one pod none",
        ),
        may("rate", POSITIVE_RATE, "of each card").or(DEFAULT_RATE_BPS),
        UPLINK_RATE,
        LATENCY,
        ECN,
        MTU,
        may("gpus", ANY, "of each host; one a card"),
        THROUGHPUT,
        MEMORY,
        STAGES,
        PROGRAMMABLE,
    ],
};

pub(super) static JELLYFISH: Object = Object {
    what: "a jellyfish as a topology",
    keys: &[needed(
        "jellyfish",
        Shape::Object(&A_JELLYFISH),
        "switches linked at random, and hosts on each",
    )],
};

static A_JELLYFISH: Object = Object {
    what: "a jellyfish",
    keys: &[
        needed("switches", SOME, "how many"),
        needed("degree", SOME, "links of each switch to others"),
        needed("hosts_per_switch", ANY, "hosts on each"),
        may("seed", Shape::Integer(0, u64::MAX), "which links").or(0),
        HOST_RATE,
        UPLINK_RATE,
        LATENCY,
        ECN,
        MTU,
        GPUS,
        THROUGHPUT,
        MEMORY,
        STAGES,
        PROGRAMMABLE,
    ],
};

/// Values of the keys that all generated shapes have.
struct Common {
    attributes: Attributes,
    parts: Parts,
    which: Option<Programmable>,
}

impl Common {
    fn read(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Common {
        let attributes = Attributes::default().read(sink, fields);
        let Capacity {
            throughput_bps,
            memory_bytes,
            stages,
            ..
        } = attributes::shared_capacity(sink, fields);
        let mut parts = Parts {
            delay_ns: attributes.latency_ns,
            ..Parts::default()
        };
        parts.host.gpus = attributes::count(sink, fields, "gpus").unwrap_or(0);
        parts.switch.throughput_bps = throughput_bps;
        parts.switch.memory_bytes = memory_bytes;
        parts.switch.stages = stages;
        let which = match fields.word(sink, "programmable") {
            Some("none") => None,
            Some("racks") => Some(Programmable::TopsOfRacks),
            _ => Some(Programmable::All),
        };
        Common {
            attributes,
            parts,
            which,
        }
    }

    fn uplink_rate(&self, sink: &mut Sink<'_>, fields: &Fields<'_>) -> u64 {
        attributes::count(sink, fields, "uplink_rate").unwrap_or(self.attributes.rate_bps)
    }
}

/// A generated network, or the reason why the numbers describe no network.
type Built = Result<Network, NetworkError>;
/// A function that generates a network from a mapping; `None` if the mapping cannot be read, which is reported.
type Build = fn(&mut Sink<'_>, &Fields<'_>, &Common) -> Option<Built>;

/// Generates a network of the shape `key`. Outer `None`: the key is no shape; inner `None`: the network was refused.
pub(super) fn read(
    sink: &mut Sink<'_>,
    key: &str,
    node: &Node,
    what_for: For,
) -> Option<Option<Topology>> {
    let (object, build): (&'static Object, Build) = match key {
        "fat_tree" => (&A_FAT_TREE, fat_tree),
        "leaf_spine" => (&A_LEAF_SPINE, leaf_spine),
        "rail_pods" => (&PODS_OF_RAILS, rail_pods),
        "jellyfish" => (&A_JELLYFISH, jellyfish),
        _ => return None,
    };
    Some(make(sink, node, (object, build), what_for))
}

fn make(
    sink: &mut Sink<'_>,
    node: &Node,
    (object, build): (&'static Object, Build),
    what_for: For,
) -> Option<Topology> {
    let errors = sink.errors();
    let fields = reader::fields(sink, node, object)?;
    let common = Common::read(sink, &fields);
    let built = build(sink, &fields, &common)?;
    if sink.errors() > errors {
        return None;
    }
    let mut network = built
        .map_err(|error| refuse(sink, node.span, &error))
        .ok()?;
    if let Some(which) = common.which
        && let Err(error) = make_programmable(&mut network, which, 0)
    {
        refuse(sink, node.span, &error);
        return None;
    }
    let topology = Topology::from_network(&network, &common.attributes.link("", ""));
    check_made(sink, &topology, node.span, what_for);
    Some(topology)
}

fn refuse(sink: &mut Sink<'_>, span: Span, error: &NetworkError) {
    let code = match error {
        NetworkError::TooMany(..) => Code::Capacity,
        _ => Code::Topology,
    };
    sink.error(code, span, error.to_string());
}

/// Reads the counts at several keys of a mapping; all are read and reported even if some are wrong.
fn counts<const N: usize>(
    sink: &mut Sink<'_>,
    fields: &Fields<'_>,
    keys: [&str; N],
) -> [Option<u32>; N] {
    keys.map(|key| attributes::count(sink, fields, key))
}

fn fat_tree(sink: &mut Sink<'_>, fields: &Fields<'_>, common: &Common) -> Option<Built> {
    let [k, hosts_per_edge] = counts(sink, fields, ["k", "hosts_per_edge"]);
    let shape = FatTree {
        k: k?,
        hosts_per_edge,
        rate_bps: common.attributes.rate_bps,
        parts: common.parts.clone(),
    };
    Some(shape.build())
}

fn leaf_spine(sink: &mut Sink<'_>, fields: &Fields<'_>, common: &Common) -> Option<Built> {
    let uplink_rate = common.uplink_rate(sink, fields);
    let times = fields
        .get("oversubscription")
        .map(|node| (node.span, fields.float(sink, "oversubscription")));
    if let Some((span, _)) = times
        && fields.get("uplink_rate").is_some()
    {
        let message = "`uplink_rate` and `oversubscription` both set the rate of the uplinks";
        sink.error(Code::Topology, span, message)
            .hint("leave one of the two out");
    }
    let keys = ["leaves", "spines", "hosts_per_leaf"];
    let [leaves, spines, hosts_per_leaf] = counts(sink, fields, keys);
    let shape = LeafSpine {
        leaves: leaves?,
        spines: spines?,
        hosts_per_leaf: hosts_per_leaf?,
        host_rate_bps: common.attributes.rate_bps,
        uplinks: match times {
            Some((_, times)) => Uplinks::Oversubscription(times?),
            None => Uplinks::Rate(uplink_rate),
        },
        parts: common.parts.clone(),
    };
    Some(shape.build())
}

fn rail_pods(sink: &mut Sink<'_>, fields: &Fields<'_>, common: &Common) -> Option<Built> {
    let uplink_rate_bps = common.uplink_rate(sink, fields);
    let keys = ["pods", "hosts_per_pod", "rails", "spines"];
    let [pods, hosts_per_pod, rails, spines] = counts(sink, fields, keys);
    let pods = pods?;
    let gpus = common.parts.host.gpus;
    let shape = RailPods {
        pods,
        hosts_per_pod: hosts_per_pod?,
        rails: rails?,
        spines: spines.unwrap_or(u32::from(pods > 1)),
        gpus_per_host: fields.get("gpus").map(|_| gpus),
        nic_rate_bps: common.attributes.rate_bps,
        uplink_rate_bps,
        parts: common.parts.clone(),
    };
    Some(shape.build())
}

fn jellyfish(sink: &mut Sink<'_>, fields: &Fields<'_>, common: &Common) -> Option<Built> {
    let rate_bps = common.uplink_rate(sink, fields);
    let seed = attributes::count(sink, fields, "seed");
    let keys = ["switches", "degree", "hosts_per_switch"];
    let [switches, degree, hosts_per_switch] = counts(sink, fields, keys);
    let shape = Jellyfish {
        switches: switches?,
        degree: degree?,
        hosts_per_switch: hosts_per_switch?,
        host_rate_bps: common.attributes.rate_bps,
        rate_bps,
        seed: seed?,
        parts: common.parts.clone(),
    };
    Some(shape.build())
}
