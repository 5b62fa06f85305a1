//! Reads the distributions of the effect `delay`.

use crate::diagnostic::{Code, Sink};
use crate::file::schema::reader::{self, Fields};
use crate::file::schema::shape::{Object, Shape, duration, needed};
use crate::file::yaml::Node;
use crate::model::effect::{Distribution, MAX_DELAY_NS, QUANTILES};
use crate::units::show_duration;

/// The keys of `delay` that name a distribution.
pub(super) const SHAPES: [&str; 4] = ["uniform", "normal", "pareto", "quantiles"];
/// netem's words for the distribution of `jitter` around the latency.
pub(super) const JITTERS: [&str; 4] = ["uniform", "normal", "pareto", "paretonormal"];
pub(super) const TIME: Shape = duration(0, MAX_DELAY_NS);

pub(super) static NORMAL: Object = Object {
    what: "`normal`",
    keys: &[
        needed("mean", TIME, "in the middle"),
        needed("sd", TIME, "the standard deviation"),
    ],
};

pub(super) static PARETO: Object = Object {
    what: "`pareto`",
    keys: &[
        needed("scale", TIME, "the least"),
        needed(
            "shape",
            Shape::Number(0.5, 100.0),
            "the less, the heavier the tail",
        ),
    ],
};

/// Maximum number of points by which a file describes a distribution.
const MAX_POINTS: usize = QUANTILES;
/// Reads the distribution in `{delay: …}`: one of [`SHAPES`], or netem's latency and jitter.
pub(super) fn read(sink: &mut Sink<'_>, name: &str, node: &Node) -> Option<Distribution> {
    let times = |sink: &mut Sink<'_>, node: &Node, what: &str| -> Option<Vec<u64>> {
        let items = reader::list(sink, node, what)?;
        let times = items
            .iter()
            .map(|item| reader::number(sink, item, what, &TIME));
        // Reads all of them, so that errors of all are reported.
        let times: Vec<_> = times.collect();
        let times = times.into_iter().map(|time| Some(time?.value));
        let times: Vec<u64> = times.collect::<Option<_>>()?;
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
            let (mean, sd) = (fields.number(sink, "mean"), fields.number(sink, "sd"));
            Distribution::normal(mean?.value, sd?.value)
        }
        "pareto" => {
            let fields = reader::fields(sink, node, &PARETO)?;
            let scale = fields.number(sink, "scale");
            let shape = fields.float(sink, "shape");
            Distribution::pareto(scale?.value, shape?)
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

/// Reads a distribution in netem's words: `{latency: 100ms, jitter: 10ms, distribution: normal}`.
pub(super) fn read_jitter(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Option<Distribution> {
    let (latency, jitter) = (
        fields.number(sink, "latency"),
        fields.number(sink, "jitter"),
    );
    let shape = fields.word(sink, "distribution")?;
    let (latency, jitter) = (latency?, jitter?);
    let distribution = Distribution::jittered(latency.value, jitter.value, shape);
    is_some_delay(sink, fields.get("latency")?, distribution)
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
