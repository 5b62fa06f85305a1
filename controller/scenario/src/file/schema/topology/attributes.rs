//! Attributes of a topology's links, hosts and switches.

use super::super::shape::{DURATION, Key, Object, RATE, SIZE, Shape, may, needed};
use super::super::{reader, reader::Fields};
use crate::diagnostic::{Code, Sink, Span};
use crate::file::yaml::{Kind, Node};
use crate::model::topology::{Capacity, Link, MAX_LATENCY_NS, MOST_MARK_AT, Machine};
use crate::units::Dimension;

const MTU_RANGE: Shape = Shape::Integer(576, 65_535);
const FRAMES: Shape = Shape::Integer(1, MOST_MARK_AT as u64);
const COUNT: Shape = Shape::Integer(0, u32::MAX as u64);
const LOAD: Shape = Shape::Either(&[RATE, Shape::List(&RATE)]);

/// Keys of a generated shape that apply to all its links.
pub(super) const LATENCY: Key = may("latency", DURATION, "of each link, one way; 0s");
pub(super) const ECN: Key = may("ecn", FRAMES, MARKS);
pub(super) const MTU: Key = may("mtu", MTU_RANGE, "of each link; 1500");
pub(super) const MARKS: &str =
    "queue length at a switch's port, in frames, from which it marks (ECN) further frames";

/// Keys of a generated shape that apply to all its hosts and switches.
pub(super) const GPUS: Key = may("gpus", COUNT, "of each host; 0");
pub(super) const THROUGHPUT: Key = may(
    "throughput",
    RATE,
    "what each switch can sum; it does not bind",
);
pub(super) const MEMORY: Key = may(
    "memory",
    SIZE,
    "that each switch has for sums; it does not bind",
);
pub(super) const STAGES: Key = may(
    "stages",
    Shape::Integer(1, 1_000),
    "of each switch's pipeline; they do not bind",
);

pub(super) static SWITCH: Object = Object {
    what: "a switch",
    keys: &[
        needed("name", Shape::Name, "its name"),
        may(
            "programmable",
            Shape::Bool,
            "whether it can sum and inject; true",
        ),
        may("throughput", RATE, "what it can sum; it does not bind"),
        may("memory", SIZE, "that it has for sums; it does not bind"),
        may(
            "stages",
            Shape::Integer(1, 1_000),
            "of its pipeline; they do not bind",
        ),
        may("load", RATE, "what it sums already for others; 0bit/s"),
    ],
};

/// Keys of a host.
pub(super) const HOST_GPUS: Key = may("gpus", COUNT, "graphics processors; 0");
pub(super) const HOST_SLOTS: Key = may("slots", COUNT, "capacity for workers");
pub(super) const HOST_BUSY: Key = may("busy", Shape::Bool, "whether it runs something; false");
/// Keys of a link.
pub(super) const LINK_LOAD: Key = may(
    "load",
    LOAD,
    "what it carries already, in each direction or `[there, back]`; 0bit/s",
);

/// Attributes of a link, and the section's defaults that links inherit.
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
            && let Some(latency) = reader::quantity_within(
                sink,
                node,
                "`latency` (one way)",
                Dimension::Duration,
                0..=MAX_LATENCY_NS,
            )
        {
            read.latency_ns = latency.value;
            read.latency_span = latency.span;
        }
        if let Some(node) = fields.get("ecn")
            && let Some(frames) = reader::integer(sink, node, "`ecn`", 1..=u64::from(MOST_MARK_AT))
        {
            read.mark_at = Some(frames as u32);
            read.mark_span = node.span;
        }
        if let Some(mtu) = fields.read("mtu", |node| {
            reader::integer(sink, node, "`mtu`", 576..=65_535)
        }) {
            read.mtu = mtu as u32;
        }
        read
    }

    pub(super) fn read_rate(mut self, sink: &mut Sink<'_>, fields: &Fields<'_>) -> Self {
        if let Some(rate) = fields.read("rate", |node| above_zero(sink, node, "`rate`")) {
            self.rate_bps = rate;
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

/// Reads a rate, and refuses 0.
pub(super) fn above_zero(sink: &mut Sink<'_>, node: &Node, key: &str) -> Option<u64> {
    let rate = reader::quantity(sink, node, key, Dimension::Rate)?;
    if rate.value == 0 {
        let message = format!("{key} must be more than 0bit/s; found 0bit/s");
        sink.error(Code::OutOfRange, rate.span, message);
    }
    Some(rate.value)
}

/// Reads a link's `load`, which must not exceed its rate: `1Gbit/s`, `[1Gbit/s, 0bit/s]`.
pub(super) fn load(sink: &mut Sink<'_>, node: &Node, rate_bps: u64) -> Option<[u64; 2]> {
    let mut read = |node: &Node| {
        let load = reader::quantity(sink, node, "`load`", Dimension::Rate)?;
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

/// Reads the capacity of a switch from the keys of its mapping.
pub(super) fn capacity(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Capacity {
    let mut capacity = shared_capacity(sink, fields);
    if let Some(programmable) = fields.read("programmable", |node| {
        reader::truth(sink, node, "`programmable`")
    }) {
        capacity.programmable = programmable;
    }
    if let Some(load) = fields.read("load", |node| {
        reader::quantity(sink, node, "`load`", Dimension::Rate)
    }) {
        capacity.load_bps = load.value;
    }
    capacity
}

/// Reads the capacity that a generated shape gives to all its switches.
pub(super) fn shared_capacity(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Capacity {
    let mut capacity = Capacity::default();
    if let Some(node) = fields.get("throughput") {
        capacity.throughput_bps = above_zero(sink, node, "`throughput`");
    }
    if let Some(memory) = fields.read("memory", |node| {
        reader::quantity(sink, node, "`memory`", Dimension::Size)
    }) {
        if memory.value == 0 {
            let message = "`memory` must be more than 0B; found 0B";
            sink.error(Code::OutOfRange, memory.span, message);
        }
        capacity.memory_bytes = Some(memory.value);
    }
    if let Some(node) = fields.get("stages") {
        let stages = reader::integer(sink, node, "`stages`", 1..=1_000);
        capacity.stages = stages.map(|stages| stages as u32);
    }
    capacity
}

/// Reads an integer of 32 bits that is at least `least`.
pub(super) fn count(
    sink: &mut Sink<'_>,
    fields: &Fields<'_>,
    key: &str,
    least: u64,
) -> Option<u32> {
    let node = fields.get(key)?;
    let range = least..=u64::from(u32::MAX);
    let count = reader::integer(sink, node, &format!("`{key}`"), range)?;
    Some(count as u32)
}

/// Reads the machine of a host.
pub(super) fn machine(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Machine {
    let busy = fields.get("busy");
    Machine {
        gpus: count(sink, fields, "gpus", 0).unwrap_or(0),
        slots: count(sink, fields, "slots", 0),
        busy: busy
            .and_then(|node| reader::truth(sink, node, "`busy`"))
            .unwrap_or(false),
    }
}
