//! Reads the effects `rate: {limit: 10Mbit/s, queue: 64kB}` and `police: {rate: 10Mbit/s, burst: 64kB}`.

use parser_gen::pace::Pace;

use super::EffectSyntax;
use crate::diagnostic::{Code, Sink, Spanned};
use crate::file::schema::reader;
use crate::file::schema::shape::{DURATION, Object, SIZE, Shape, needed, rate};
use crate::file::yaml::Node;
use crate::model::effect::{Effect, Rate};
use crate::units::{self, Dimension, show_duration, show_rate};

/// Range of rates, in bits per second, that the switch's fixed-point numbers represent well: a byte takes 8 ms to 0.08 ns.
const RATES: Shape = rate(1_000, 100_000_000_000);
/// Maximum time for which a packet may queue, in nanoseconds.
const MAX_NS: u64 = 3_600_000_000_000;
/// Minimum size of a queue, in bytes: a full Ethernet frame, which a shorter queue would never let pass.
const FRAME_BYTES: u32 = 1514;

static OF_RATE: Object = Object {
    what: "`rate`",
    keys: &[
        needed("limit", RATES, "how much leaves"),
        needed(
            "queue",
            Shape::Either(&[SIZE, DURATION]),
            "what may wait, in bytes or time",
        ),
    ],
};

static OF_POLICE: Object = Object {
    what: "`police`",
    keys: &[
        needed("rate", RATES, "how much passes"),
        needed("burst", SIZE, "what passes at once"),
    ],
};

const RATE_EXAMPLE: &str = "{limit: 10Mbit/s, queue: 64kB}";
const POLICE_EXAMPLE: &str = "{rate: 10Mbit/s, burst: 64kB}";

pub(super) const RATE: EffectSyntax = EffectSyntax {
    word: "rate",
    about: "it waits for its turn at a rate",
    shape: Some(&Shape::Object(&OF_RATE)),
    example: RATE_EXAMPLE,
    read: |sink, _, written| {
        let (_, fields) = written.mapping(sink, &OF_RATE, RATE_EXAMPLE)?;
        let rate = fields.number(sink, "limit")?;
        read(sink, rate, fields.get("queue")?, true).map(Effect::Rate)
    },
};

pub(super) const POLICE: EffectSyntax = EffectSyntax {
    word: "police",
    about: "it ends if it is beyond a token bucket",
    shape: Some(&Shape::Object(&OF_POLICE)),
    example: POLICE_EXAMPLE,
    read: |sink, _, written| {
        let (_, fields) = written.mapping(sink, &OF_POLICE, POLICE_EXAMPLE)?;
        let rate = fields.number(sink, "rate")?;
        read(sink, rate, fields.get("burst")?, false).map(Effect::Police)
    },
};

fn read(sink: &mut Sink<'_>, rate: Spanned<u64>, queue: &Node, holds: bool) -> Option<Rate> {
    let mut pace = Pace {
        step: ((8_000_000_000_u128 << 16) / u128::from(rate.value)) as u64,
        most_ns: 0,
        holds,
    };
    let most = most_ns(sink, queue, &pace)?;
    pace.most_ns = most.value;
    if pace.most_ns < pace.cost_ns(FRAME_BYTES) || pace.most_ns > MAX_NS {
        let least = show_duration(pace.cost_ns(FRAME_BYTES));
        let message = format!(
            "{} {} is {} at {}; it must lie between {least} and 1h",
            if holds { "`queue`" } else { "`burst`" },
            sink.source()
                .text
                .get(most.span.start..most.span.end)
                .unwrap_or(""),
            show_duration(pace.most_ns),
            show_rate(rate.value),
        );
        let room = format!("write {FRAME_BYTES}B or more, so that a full Ethernet frame fits");
        sink.error(Code::OutOfRange, most.span, message)
            .hint(match pace.most_ns > MAX_NS {
                true => "write a smaller size, or a higher rate".to_owned(),
                false => room,
            });
        return None;
    }
    Some(Rate {
        rate_bps: rate.value,
        pace,
    })
}

/// Reads a queue (a size or a time) or a burst (a size) as the longest time for which a packet may queue, in nanoseconds.
fn most_ns(sink: &mut Sink<'_>, node: &Node, pace: &Pace) -> Option<Spanned<u64>> {
    let text = sink.source().text;
    let text = text.get(node.span.start..node.span.end).unwrap_or("");
    if pace.holds
        && let Ok(ns) = units::parse(text, Dimension::Duration)
    {
        return Some(Spanned::new(ns, node.span));
    }
    let what = if pace.holds { "`queue`" } else { "`burst`" };
    let size = reader::number(sink, node, what, &SIZE)?;
    let ns = pace.cost_ns(u32::try_from(size.value).unwrap_or(u32::MAX));
    Some(Spanned::new(ns, size.span))
}
