//! `{delay: 20ms}`: the packet recirculates until its deadline; several delays add up. The time may be drawn for each
//! packet; then the file says whether the packets keep their order.

use std::fmt;

use parser_gen::engine::{Action, Hold};

use super::distribution::{self, Distribution, MAX_NS};
use super::{Behaviour, Effect, Fate, Kind};
use crate::diagnostic::{Code, Sink};
use crate::plan::TargetModel;
use crate::schema::reader;
use crate::schema::shape::{DURATION, Object, Shape, may};
use crate::units::{self, Dimension, mended, show_duration};
use crate::yaml::{Kind as NodeKind, Node};

/// Delays the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delay {
    /// The delay.
    pub time: Time,
    /// Whether a packet waits for every packet of its flow that the fault held earlier.
    pub keeps_order: bool,
}

/// The delay of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Time {
    /// The same delay for all packets, in nanoseconds.
    Fixed(u64),
    /// A delay that the packet's drawn word selects.
    Drawn(Distribution),
}

const LATENCY: &str = "latency";

static DELAY: Shape = Shape::Either(&[DURATION, Shape::Object(&BY_CHANCE)]);

static BY_CHANCE: Object = Object {
    what: "`delay`",
    keys: &[
        may(LATENCY, DURATION, "what all wait"),
        may("jitter", DURATION, "by how much that varies"),
        may(
            "distribution",
            Shape::Word(&distribution::JITTERS),
            "what `jitter` is distributed like; `uniform`",
        ),
        may(
            "order",
            Shape::Word(&["kept", "free"]),
            "whether packets keep their order; `free`",
        ),
        may("uniform", Shape::List(&DURATION), "between the two"),
        may(
            "normal",
            Shape::Object(&distribution::NORMAL),
            "with a mean and a deviation",
        ),
        may(
            "pareto",
            Shape::Object(&distribution::PARETO),
            "with a heavy tail",
        ),
        may(
            "quantiles",
            Shape::List(&DURATION),
            "through these, evenly spaced from the least to the most",
        ),
    ],
};

const EXAMPLE: &str = "20ms";

pub(super) const KIND: Kind = Kind {
    word: "delay",
    about: "it leaves so much later",
    shape: Some(&DELAY),
    example: EXAMPLE,
    read: |sink, written| {
        let node = written.needed(sink, EXAMPLE)?;
        if let NodeKind::Map(_) = node.kind {
            return read_map(sink, node).map(Effect::Delay);
        }
        if let Some(hint) = range(node).or_else(|| latency_and_jitter(node)) {
            let message = format!(
                "`delay` is one time or a mapping; found {}",
                node.describe()
            );
            sink.error(Code::WrongType, node.span, message).hint(hint);
            return None;
        }
        Some(Effect::Delay(Delay {
            time: Time::Fixed(fixed(sink, node, "`delay`")?),
            keeps_order: false,
        }))
    },
};

/// The hint for netem's `100ms 10ms`, a latency and its jitter.
fn latency_and_jitter(node: &Node) -> Option<String> {
    let NodeKind::Text { value, .. } = &node.kind else {
        return None;
    };
    let mut words = value.split_whitespace();
    let (latency, jitter) = (words.next()?, words.next()?);
    let (latency, asked) = mended(latency, Dimension::Duration)?;
    let (jitter, _) = mended(jitter, Dimension::Duration)?;
    let asked = asked.map_or_else(String::new, |asked| format!("; {asked}"));
    let rest: Vec<&str> = words.collect();
    let shape = match rest.as_slice() {
        [.., "distribution", shape] => format!(", distribution: {shape}"),
        _ => String::new(),
    };
    Some(format!(
        "write `{{delay: {{latency: {latency}, jitter: {jitter}{shape}}}}}`{asked}"
    ))
}

/// The hint for `10-20ms`, a range whose two ends become a distribution.
fn range(node: &Node) -> Option<String> {
    let NodeKind::Text { value, .. } = &node.kind else {
        return None;
    };
    let [low, high] = units::ends(value, Dimension::Duration)?;
    Some(format!("write `{{delay: {{uniform: [{low}, {high}]}}}}`"))
}

fn fixed(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<u64> {
    let delay = reader::quantity(sink, node, what, Dimension::Duration)?;
    if !(1..=MAX_NS).contains(&delay.value) {
        let found = show_duration(delay.value);
        let message = format!("{what} lies between 1ns and 140737s; found {found}");
        sink.error(Code::OutOfRange, delay.span, message);
        return None;
    }
    Some(delay.value)
}

/// `{normal: {mean: 20ms, sd: 5ms}, order: kept}`
fn read_map(sink: &mut Sink<'_>, node: &Node) -> Option<Delay> {
    let fields = reader::fields(sink, node, &BY_CHANCE)?;
    let mut shapes = distribution::SHAPES.iter().copied();
    let shape = shapes.find_map(|name| Some((name, fields.get(name)?)));
    let written = distribution::SHAPES.iter().chain([&LATENCY]);
    if written.filter(|name| fields.get(name).is_some()).count() != 1 {
        let message =
            "`delay` needs one of `latency`, `uniform`, `normal`, `pareto` and `quantiles`";
        sink.error(Code::WrongType, node.span, message)
            .hint("write for example `{delay: {latency: 100ms, jitter: 10ms}}`");
        return None;
    }
    for name in ["jitter", "distribution"] {
        let Some(wrong) = fields.get(name) else {
            continue;
        };
        if shape.is_some() {
            let message = format!("`{name}` belongs to `latency`");
            sink.error(Code::WrongType, wrong.span, message)
                .hint(format!(
                    "leave `{name}` out, or write `latency` for the distribution"
                ));
            return None;
        }
        if fields.get("jitter").is_none() {
            let message =
                "`distribution` says how `jitter` is distributed, and there is no `jitter`";
            sink.error(Code::WrongType, wrong.span, message)
                .hint("write `jitter: 10ms` beside it, or leave it out");
            return None;
        }
    }
    let time = match (shape, fields.get(LATENCY), fields.get("jitter")) {
        (Some((name, node)), ..) => Time::Drawn(distribution::read(sink, name, node)?),
        (None, Some(latency), Some(jitter)) => {
            let shape = fields.get("distribution");
            Time::Drawn(distribution::read_jitter(sink, latency, jitter, shape)?)
        }
        (None, latency, None) => Time::Fixed(fixed(sink, latency?, "`latency`")?),
        (None, None, Some(_)) => return None,
    };
    let keeps_order = match fields.get("order") {
        None => false,
        Some(order) if matches!(time, Time::Fixed(_)) => {
            let message = "`order` has no effect: packets that wait equally long keep their order";
            sink.error(Code::Effect, order.span, message)
                .hint("leave `order` out, or write by how much the delay varies: `jitter: 10ms`");
            return None;
        }
        Some(order) => {
            let written = reader::variant(sink, order, "`order`", &["kept", "free"])?;
            written.nothing(sink);
            written.name == "kept"
        }
    };
    Some(Delay { time, keeps_order })
}

impl Behaviour for Delay {
    fn word(&self) -> &'static str {
        KIND.word
    }

    fn verb(&self) -> &'static str {
        "delays"
    }

    fn action(&self) -> Action {
        Action::Delay(Hold {
            drawn: self.draws(),
            keeps_order: self.keeps_order,
        })
    }

    fn compose(&self, w: u32, fate: &mut Fate) {
        fate.delay_ns = fate.delay_ns.saturating_add(self.hold_ns(w));
    }

    fn hold_ns(&self, w: u32) -> u64 {
        match &self.time {
            Time::Fixed(ns) => *ns,
            Time::Drawn(distribution) => distribution.of_word(w),
        }
    }

    fn longest_hold_ns(&self) -> u64 {
        self.hold_ns(u32::MAX)
    }

    fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    fn lots(&self) -> Vec<u128> {
        match &self.time {
            Time::Fixed(_) => Vec::new(),
            Time::Drawn(all) => all.quantiles().iter().map(|ns| u128::from(*ns)).collect(),
        }
    }

    fn draws(&self) -> bool {
        matches!(self.time, Time::Drawn(_))
    }

    fn refused_by(&self, target: &TargetModel) -> Option<&'static str> {
        (self.keeps_order && !target.compares_deadlines).then_some(
            "keep the order of packets that it delays: its registers do not compare deadlines",
        )
    }

    fn recirculates(&self) -> bool {
        true
    }
}

/// `20ms`, `uniform 5ms to 15ms, order kept`
impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.time {
            Time::Fixed(ns) => f.write_str(&show_duration(*ns))?,
            Time::Drawn(distribution) => distribution.fmt(f)?,
        }
        f.write_str(if self.keeps_order { ", order kept" } else { "" })
    }
}
