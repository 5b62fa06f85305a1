//! Reads attributes of a topology's links, hosts and switches, such as rates and capacities.

use super::super::shape::{Key, Object, RATE, Shape, duration, may, needed, rate, size};
use super::super::{reader, reader::Fields};
use crate::diagnostic::{Code, Sink, Span};
use crate::file::yaml::{Kind, Node};
use crate::model::topology::{
    Capacity, DEFAULT_LATENCY_NS, DEFAULT_MTU, DEFAULT_RATE_BPS, Link, MAX_LATENCY_NS,
    MOST_MARK_AT, Machine,
};

pub(super) const POSITIVE_RATE: Shape = rate(1, u64::MAX);
pub(super) const MTU_RANGE: Shape = Shape::Integer(576, 65_535);
pub(super) const FRAMES: Shape = Shape::Integer(1, MOST_MARK_AT as u64);
const STAGE_COUNT: Shape = Shape::Integer(1, 1_000);
const COUNT: Shape = Shape::Integer(0, u32::MAX as u64);
const LOAD: Shape = Shape::Either(&[RATE, Shape::List(&RATE)]);

/// Declares the key for the latency of links, in one direction; `about` is its description.
pub(super) const fn latency(about: &'static str) -> Key {
    may("latency", duration(0, MAX_LATENCY_NS), about)
        .beyond("it counts one way: a round trip takes twice as long")
}

/// Keys of a generated topology that apply to all its links.
pub(super) const LINK_RATE: Key = may("rate", POSITIVE_RATE, "of each link").or(DEFAULT_RATE_BPS);
pub(super) const LATENCY: Key = latency("of each link, one way").or(DEFAULT_LATENCY_NS);
pub(super) const ECN: Key = may("ecn", FRAMES, MARKS);
pub(super) const MTU: Key = may("mtu", MTU_RANGE, "of each link").or(DEFAULT_MTU as u64);
pub(super) const MARKS: &str =
    "queue length at a switch's port, in frames, from which it marks (ECN) further frames";

/// Keys of a generated topology that apply to all its hosts and switches.
pub(super) const GPUS: Key = may("gpus", COUNT, "of each host").or(0);
pub(super) const THROUGHPUT: Key = may(
    "throughput",
    POSITIVE_RATE,
    "what each switch can sum; it does not bind",
);
pub(super) const MEMORY: Key = may(
    "memory",
    size(1, u64::MAX),
    "that each switch has for sums; it does not bind",
);
pub(super) const STAGES: Key = may(
    "stages",
    STAGE_COUNT,
    "of each switch's pipeline; they do not bind",
);

pub(super) static SWITCH: Object = Object {
    what: "a switch",
    keys: &[
        needed("name", Shape::Name("a switch"), "its name"),
        may("programmable", Shape::Bool, "whether it can sum and inject").or_flag(true),
        may(
            "throughput",
            POSITIVE_RATE,
            "what it can sum; it does not bind",
        ),
        may(
            "memory",
            size(1, u64::MAX),
            "that it has for sums; it does not bind",
        ),
        may("stages", STAGE_COUNT, "of its pipeline; they do not bind"),
        may("load", RATE, "what it sums already for others").or(0),
    ],
};

/// Keys of a host in a listed topology.
pub(super) const HOST_GPUS: Key = may("gpus", COUNT, "graphics processors").or(0);
pub(super) const HOST_SLOTS: Key = may("slots", COUNT, "capacity for workers");
pub(super) const HOST_BUSY: Key =
    may("busy", Shape::Bool, "whether it runs something").or_flag(false);
/// Key of a link in a listed topology.
pub(super) const LINK_LOAD: Key = may(
    "load",
    LOAD,
    "what it carries already, in each direction or `[there, back]`; 0bit/s",
);

/// Attributes of links: declared at a link, or in the topology section as defaults for all its links.
#[derive(Clone, Copy)]
pub(super) struct Attributes {
    pub rate_bps: u64,
    pub latency_ns: u64,
    latency_span: Span,
    mark_at: Option<u32>,
    mark_span: Span,
    mtu: u32,
}

impl Default for Attributes {
    fn default() -> Self {
        let Link {
            rate_bps,
            latency_ns,
            latency_span,
            mark_at,
            mark_span,
            mtu,
            ..
        } = Link::new("", "");
        Self {
            rate_bps,
            latency_ns,
            latency_span,
            mark_at,
            mark_span,
            mtu,
        }
    }
}

impl Attributes {
    pub(super) fn read(self, sink: &mut Sink<'_>, fields: &Fields<'_>) -> Self {
        let mut read = self.read_rate(sink, fields);
        if let Some(node) = fields.get("latency")
            && let Some(latency) = fields.number(sink, "latency")
        {
            read.latency_ns = latency.value;
            read.latency_span = node.span;
        }
        if let Some(frames) = fields.number(sink, "ecn") {
            read.mark_at = Some(frames.value);
            read.mark_span = frames.span;
        }
        if let Some(mtu) = fields.number(sink, "mtu") {
            read.mtu = mtu.value;
        }
        read
    }

    pub(super) fn read_rate(mut self, sink: &mut Sink<'_>, fields: &Fields<'_>) -> Self {
        if let Some(rate) = fields.number(sink, "rate") {
            self.rate_bps = rate.value;
        }
        self
    }

    pub(super) fn link(self, a: &str, b: &str) -> Link {
        Link {
            ends: [a.to_owned(), b.to_owned()],
            rate_bps: self.rate_bps,
            latency_ns: self.latency_ns,
            latency_span: self.latency_span,
            mark_at: self.mark_at,
            mark_span: self.mark_span,
            mtu: self.mtu,
            load_bps: [0, 0],
        }
    }
}

/// Reads the load of a link per direction, which must not exceed its rate: `1Gbit/s`, `[1Gbit/s, 0bit/s]`.
pub(super) fn load(sink: &mut Sink<'_>, node: &Node, rate_bps: u64) -> Option<[u64; 2]> {
    let mut read = |node: &Node| {
        let load = reader::number(sink, node, "`load`", &RATE)?;
        if load.value > rate_bps {
            let message = "`load` is more than the link's `rate`";
            sink.error(Code::OutOfRange, load.span, message);
        }
        Some(load.value)
    };
    match &node.kind {
        Kind::List(items) => {
            if let [there, back] = items.as_slice() {
                return Some([read(there)?, read(back)?]);
            }
            let message = format!(
                "`load` needs two rates, one for each direction; found {}",
                items.len()
            );
            sink.error(Code::Topology, node.span, message).hint(
                "write `load: [1Gbit/s, 2Gbit/s]` for the two directions, or one rate for both",
            );
            None
        }
        _ => read(node).map(|load| [load; 2]),
    }
}

/// Reads the capacity of one switch from the keys of the switch's mapping.
pub(super) fn capacity(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Capacity {
    let shared = shared_capacity(sink, fields);
    Capacity {
        programmable: fields.flag(sink, "programmable").unwrap_or_default(),
        load_bps: fields.number(sink, "load").map_or(0, |load| load.value),
        ..shared
    }
}

/// Reads the capacity that a generated topology gives to all its switches.
pub(super) fn shared_capacity(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Capacity {
    Capacity {
        throughput_bps: count(sink, fields, "throughput"),
        memory_bytes: count(sink, fields, "memory"),
        stages: count(sink, fields, "stages"),
        ..Capacity::default()
    }
}

/// Reads the whole number or quantity at a key, without its position.
pub(super) fn count<T: TryFrom<u64>>(
    sink: &mut Sink<'_>,
    fields: &Fields<'_>,
    key: &str,
) -> Option<T> {
    Some(fields.number(sink, key)?.value)
}

/// Reads the hardware of a host from the keys of the host's mapping.
pub(super) fn machine(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Machine {
    Machine {
        gpus: count(sink, fields, "gpus").unwrap_or(0),
        slots: count(sink, fields, "slots"),
        busy: fields.flag(sink, "busy").unwrap_or_default(),
    }
}
