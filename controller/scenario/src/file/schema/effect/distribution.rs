//! The distributions of `delay`.

use crate::diagnostic::{Code, Sink};
use crate::file::schema::reader;
use crate::file::schema::shape::{DURATION, Object, Shape, needed};
use crate::file::yaml::{Kind, Node};
use crate::model::effect::{Distribution, MAX_DELAY_NS, QUANTILES};
use crate::units::{Dimension, show_duration};

/// The keys of the distributions' shapes.
pub(super) const SHAPES: [&str; 4] = ["uniform", "normal", "pareto", "quantiles"];
/// netem's words for the distribution of `jitter`.
pub(super) const JITTERS: [&str; 4] = ["uniform", "normal", "pareto", "paretonormal"];
pub(super) static NORMAL: Object = Object {
    what: "`normal`",
    keys: &[
        needed("mean", DURATION, "in the middle"),
        needed("sd", DURATION, "the standard deviation"),
    ],
};

pub(super) static PARETO: Object = Object {
    what: "`pareto`",
    keys: &[
        needed("scale", DURATION, "the least"),
        needed(
            "shape",
            Shape::Number,
            "0.5 to 100: the less, the heavier the tail",
        ),
    ],
};

/// Maximum number of points of a distribution in a file.
const MAX_POINTS: usize = QUANTILES;
/// Reads the keys beside `order` in `{delay: …}`: one of the shapes, or netem's words.
pub(super) fn read(sink: &mut Sink<'_>, name: &str, node: &Node) -> Option<Distribution> {
    let time = |sink: &mut Sink<'_>, node: &Node, what: &str| {
        let range = 0..=MAX_DELAY_NS;
        Some(reader::quantity_within(sink, node, what, Dimension::Duration, range)?.value)
    };
    let times = |sink: &mut Sink<'_>, node: &Node, what: &str| -> Option<Vec<u64>> {
        let items = reader::list(sink, node, what)?;
        let times = items.iter().map(|item| time(sink, item, what));
        let times: Vec<Option<u64>> = times.collect();
        let times: Vec<u64> = times.into_iter().collect::<Option<_>>()?;
        if times.windows(2).any(|pair| pair[0] > pair[1]) {
            let message = format!("{what} must be in ascending order");
            sink.error(Code::OutOfRange, node.span, message);
            return None;
        }
        Some(times)
    };
    let distribution = match name {
        "uniform" => {
            let ends = times(sink, node, "`uniform`")?;
            let [least, most] = ends[..] else {
                let message = "`uniform` needs two times: the shortest and the longest delay";
                sink.error(Code::OutOfRange, node.span, message)
                    .hint("write for example `uniform: [5ms, 15ms]`");
                return None;
            };
            Distribution::uniform(least, most)
        }
        "normal" => {
            let fields = reader::fields(sink, node, &NORMAL)?;
            let mean = time(sink, fields.get("mean")?, "`mean`")?;
            let sd = time(sink, fields.get("sd")?, "`sd`")?;
            Distribution::normal(mean, sd)
        }
        "pareto" => {
            let fields = reader::fields(sink, node, &PARETO)?;
            let scale = time(sink, fields.get("scale")?, "`scale`")?;
            let shape = number(sink, fields.get("shape")?, "`shape`", 0.5..=100.0)?;
            Distribution::pareto(scale, shape)
        }
        _ => {
            let points = times(sink, node, "`quantiles`")?;
            if !(2..=MAX_POINTS).contains(&points.len()) {
                let message = format!(
                    "`quantiles` must list 2 to {MAX_POINTS} times; found {}",
                    points.len()
                );
                sink.error(Code::OutOfRange, node.span, message);
                return None;
            }
            Distribution::through(&points)
        }
    };
    is_some_delay(sink, node, distribution)
}

/// Reads netem's words: `{latency: 100ms, jitter: 10ms, distribution: normal}`.
pub(super) fn read_jitter(
    sink: &mut Sink<'_>,
    latency: &Node,
    jitter: &Node,
    shape: Option<&Node>,
) -> Option<Distribution> {
    let latency_ns = reader::quantity(sink, latency, "`latency`", Dimension::Duration)?.value;
    let jitter_ns = reader::quantity(sink, jitter, "`jitter`", Dimension::Duration)?.value;
    let shape = match shape {
        None => "uniform".to_owned(),
        Some(node) => reader::choice(sink, node, "`distribution`", &JITTERS)?.to_owned(),
    };
    if jitter_ns == 0 {
        sink.error(
            Code::OutOfRange,
            jitter.span,
            "`jitter` must be longer than 0s; found 0s",
        )
        .hint("leave `jitter` out for a fixed delay");
        return None;
    }
    is_some_delay(
        sink,
        latency,
        Distribution::jittered(latency_ns, jitter_ns, &shape),
    )
}

fn is_some_delay(
    sink: &mut Sink<'_>,
    node: &Node,
    distribution: Distribution,
) -> Option<Distribution> {
    if distribution.least() == distribution.most() {
        sink.error(
            Code::OutOfRange,
            node.span,
            "all delays of this distribution are equal",
        )
        .hint("write a fixed delay as `{delay: 20ms}`");
        return None;
    }
    if distribution.most() > MAX_DELAY_NS {
        let message = format!(
            "this distribution has delays of up to {}; the longest possible delay is 140737s",
            show_duration(distribution.most())
        );
        sink.error(Code::OutOfRange, node.span, message);
        return None;
    }
    Some(distribution)
}

/// Reads a number within bounds.
fn number(
    sink: &mut Sink<'_>,
    node: &Node,
    what: &str,
    range: std::ops::RangeInclusive<f64>,
) -> Option<f64> {
    let Kind::Number { value, .. } = node.kind else {
        return reader::wrong_type(sink, node, &format!("{what} must be a number"));
    };
    if !range.contains(&value) {
        let message = format!(
            "{what} must lie between {} and {}; found {value}",
            range.start(),
            range.end()
        );
        sink.error(Code::OutOfRange, node.span, message);
        return None;
    }
    Some(value)
}
