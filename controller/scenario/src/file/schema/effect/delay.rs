//! Reads the effect `delay: 20ms`, or `delay` with a mapping that describes a distribution.

use super::EffectSyntax;
use super::distribution;
use crate::diagnostic::{Code, Sink};
use crate::file::schema::reader;
use crate::file::schema::shape::{DURATION, Object, Shape, duration, may};
use crate::file::yaml::{Kind, Node};
use crate::model::effect::{Delay, DelayTime, Effect, MAX_DELAY_NS};
use crate::units::{self, Dimension, mended};

const LATENCY: &str = "latency";

/// The shape of a delay that is the same for all packets.
const FIXED: Shape = duration(1, MAX_DELAY_NS);

static DELAY: Shape = Shape::Either(&[FIXED, Shape::Object(&BY_CHANCE)]);

static BY_CHANCE: Object = Object {
    what: "`delay`",
    keys: &[
        may(LATENCY, DURATION, "the delay of all packets"),
        may("jitter", duration(1, u64::MAX), "by how much it varies")
            .beyond("leave `jitter` out for a fixed delay"),
        may(
            "distribution",
            Shape::Word(&distribution::JITTERS),
            "what `jitter` is distributed like",
        )
        .or_first(),
        may(
            "order",
            Shape::Word(&["free", "kept"]),
            "whether packets keep their order",
        )
        .or_first(),
        may(
            "uniform",
            Shape::List(&distribution::TIME),
            "between the two",
        ),
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
            Shape::List(&distribution::TIME),
            "through these, evenly spaced from the least to the most",
        ),
    ],
};

const EXAMPLE: &str = "20ms";

pub(super) const KIND: EffectSyntax = EffectSyntax {
    word: "delay",
    about: "it leaves this much later",
    shape: Some(&DELAY),
    example: EXAMPLE,
    read: |sink, _, written| {
        let node = written.needed(sink, EXAMPLE)?;
        if let Kind::Map(_) = node.kind {
            return read_map(sink, node).map(Effect::Delay);
        }
        if let Some(hint) = range(node).or_else(|| latency_and_jitter(node)) {
            let message = format!(
                "`delay` must be one time or a mapping; found {}",
                node.describe()
            );
            sink.error(Code::WrongType, node.span, message).hint(hint);
            return None;
        }
        Some(Effect::Delay(Delay {
            time: DelayTime::Fixed(reader::number(sink, node, "`delay`", &FIXED)?.value),
            keeps_order: false,
        }))
    },
};

/// The hint for netem's `100ms 10ms`, a latency and its jitter; `None` for other values.
fn latency_and_jitter(node: &Node) -> Option<String> {
    let Kind::Text { value, .. } = &node.kind else {
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

/// The hint for a range of delays, `10-20ms`, whose two ends become a distribution; `None` for other values.
fn range(node: &Node) -> Option<String> {
    let Kind::Text { value, .. } = &node.kind else {
        return None;
    };
    let [low, high] = units::ends(value, Dimension::Duration)?;
    Some(format!("write `{{delay: {{uniform: [{low}, {high}]}}}}`"))
}

/// Reads a delay as a mapping: `{normal: {mean: 20ms, sd: 5ms}, order: kept}`
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
            let message = format!("`{name}` is allowed only beside `latency`");
            sink.error(Code::WrongType, wrong.span, message)
                .hint(format!(
                    "leave `{name}` out, or write `latency` for the distribution"
                ));
            return None;
        }
        if fields.get("jitter").is_none() {
            let message = "`distribution` describes `jitter`, but there is no `jitter`";
            sink.error(Code::WrongType, wrong.span, message)
                .hint("write `jitter: 10ms` beside it, or leave `distribution` out");
            return None;
        }
    }
    let time = match (shape, fields.get(LATENCY), fields.get("jitter")) {
        (Some((name, node)), ..) => DelayTime::Drawn(distribution::read(sink, name, node)?),
        (None, Some(_), Some(_)) => DelayTime::Drawn(distribution::read_jitter(sink, &fields)?),
        (None, latency, None) => {
            DelayTime::Fixed(reader::number(sink, latency?, "`latency`", &FIXED)?.value)
        }
        (None, None, Some(_)) => return None,
    };
    if let (Some(order), DelayTime::Fixed(_)) = (fields.get("order"), &time) {
        let message = "`order` has no effect: packets with the same delay keep their order";
        sink.error(Code::Effect, order.span, message)
            .hint("leave `order` out, or let the delay vary: `jitter: 10ms`");
        return None;
    }
    let keeps_order = fields.word(sink, "order")? == "kept";
    Some(Delay { time, keeps_order })
}
