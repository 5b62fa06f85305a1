//! `jobs`: jobs whose values switches sum.

use parser_gen::FrameValues;

use super::reader::{self, Fields};
use super::shape::{DURATION, Object, RATE, Shape, may, needed};
use crate::diagnostic::{Code, Sink, Spanned};
use crate::file::yaml::{Entry, Node};
use crate::model::job::{
    Late, MAX_DEADLINE_NS, MAX_JOBS, MAX_RANKS, MIN_RATE_BPS, SLOTS, Transport,
};
use crate::units::{Dimension, show_rate};

const WINDOW: u32 = 256;

pub(super) static JOB: Object = Object {
    what: "a job",
    keys: &[
        needed("ranks", Shape::Names, "hosts, 1 to 1024, by rank"),
        may(
            "on",
            Shape::Names,
            "switches that sum, the topmost first; the only one there is",
        ),
        may(
            "window",
            Shape::Integer(1, SLOTS as u64),
            "chunks that a rank may have in flight, a power of two; 256",
        ),
        may(
            "rate",
            RATE,
            "what all frames of its ranks together may be; what is more is dropped",
        ),
        may(
            "values",
            Shape::Integer(32, 2048),
            "values of a frame: 32, 64, 256 or 2048; the most that fit the links' MTU, at least 64",
        ),
        may(
            "transport",
            Shape::Word(&["udp", "rdma"]),
            "what carries values to the switch and sums back; udp",
        ),
        may(
            "deadline",
            DURATION,
            "time after which a sum completes without the missing ranks, up to 1m; it waits for all ranks",
        ),
        may(
            "quorum",
            Shape::Integer(1, MAX_RANKS as u64 - 1),
            "least number of ranks in a partial sum, fewer than all; more than half",
        ),
        may(
            "late",
            Shape::Word(&["drop", "next"]),
            "late values are dropped, or join the next sum; drop",
        ),
    ],
};

/// A job, with the positions where it names hosts and switches.
#[derive(Debug)]
pub(crate) struct RawJob {
    pub name: Spanned<String>,
    pub ranks: Vec<Spanned<String>>,
    pub on: Vec<Spanned<String>>,
    pub window: Spanned<u32>,
    pub rate: Option<Spanned<u64>>,
    pub values: Option<Spanned<FrameValues>>,
    pub transport: Spanned<Transport>,
    pub deadline: Option<Spanned<RawDeadline>>,
}

/// When a switch completes a partial sum.
#[derive(Debug)]
pub(crate) struct RawDeadline {
    pub after_ns: u64,
    pub quorum: Option<Spanned<u16>>,
    pub late: Late,
}

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Vec<RawJob> {
    let entries: &[Entry] = reader::map(sink, node, "`jobs`").unwrap_or_default();
    if let Some(beyond) = entries.get(MAX_JOBS) {
        let message = format!(
            "{} jobs; a switch sums for at most {MAX_JOBS}",
            entries.len()
        );
        sink.error(Code::Capacity, beyond.key_span, message);
        return Vec::new();
    }
    entries
        .iter()
        .filter_map(|entry| job(sink, entry))
        .collect()
}

fn job(sink: &mut Sink<'_>, entry: &Entry) -> Option<RawJob> {
    let is_good = reader::check_name(sink, &entry.key, entry.key_span, "a job");
    let fields = reader::fields(sink, &entry.value, &JOB)?;
    let ranks = fields.read("ranks", |node| reader::names(sink, node, "a host"));
    let on = fields.get("on");
    let on = on.map(|node| reader::names(sink, node, "a switch"));
    let window = match fields.get("window") {
        Some(node) => {
            let window = reader::integer(sink, node, "`window`", 1..=u64::from(SLOTS))?;
            if !window.is_power_of_two() {
                let message = format!("`window` must be a power of two; found {window}");
                let below = 1_u64 << window.ilog2();
                sink.error(Code::OutOfRange, node.span, message)
                    .hint(format!("write {below} or {}", 2 * below));
                return None;
            }
            Spanned::new(u32::try_from(window).ok()?, node.span)
        }
        None => Spanned::new(WINDOW, entry.key_span),
    };
    let rate = match fields.get("rate") {
        Some(node) => {
            let rate = reader::quantity(sink, node, "`rate`", Dimension::Rate)?;
            if rate.value < MIN_RATE_BPS {
                let least = show_rate(MIN_RATE_BPS);
                let message =
                    format!("`rate` must be at least {least}: below that, no frame passes");
                sink.error(Code::OutOfRange, node.span, message);
                return None;
            }
            Some(rate)
        }
        None => None,
    };
    let read = |node: &Node| Some(Spanned::new(frame_values(sink, node)?, node.span));
    let values = fields.optional("values", read)?;
    let transport = match fields.get("transport") {
        None => Spanned::new(Transport::Udp, entry.key_span),
        Some(node) => {
            let transport = match reader::choice(sink, node, "`transport`", &["udp", "rdma"])? {
                "rdma" => Transport::Rdma,
                _ => Transport::Udp,
            };
            Spanned::new(transport, node.span)
        }
    };
    let ranks = ranks?;
    if ranks.is_empty() || ranks.len() > MAX_RANKS {
        let node = fields.get("ranks")?;
        let message = format!(
            "a job must have 1 to {MAX_RANKS} ranks; found {}",
            ranks.len()
        );
        sink.error(Code::OutOfRange, node.span, message);
        return None;
    }
    let on = match on {
        None => Vec::new(),
        // An invalid name has been reported already.
        Some(on) => on?,
    };
    let deadline = deadline(sink, &fields)?;
    is_good.then(|| RawJob {
        name: Spanned::new(entry.key.clone(), entry.key_span),
        ranks,
        on,
        window,
        rate,
        values,
        transport,
        deadline,
    })
}

fn frame_values(sink: &mut Sink<'_>, node: &Node) -> Option<FrameValues> {
    let said = reader::integer(sink, node, "`values`", 32..=2048)?;
    let mut all = FrameValues::ALL.into_iter();
    let found = all.find(|values| u64::from(values.count()) == said);
    if found.is_none() {
        let message = "`values` must be 32, 64, 256 or 2048";
        sink.error(Code::OutOfRange, node.span, message);
    }
    found
}

/// Reads the deadline: `Some(None)` if the file has none, `None` if it was refused.
fn deadline(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Option<Option<Spanned<RawDeadline>>> {
    let Some(node) = fields.get("deadline") else {
        for key in ["quorum", "late"] {
            if let Some(node) = fields.get(key) {
                let message = format!(
                    "`{key}` has no effect without `deadline`: every sum waits for all ranks"
                );
                sink.error(Code::Contradiction, node.span, message)
                    .hint("add a `deadline`; with `deadline: 0s` a sum completes as soon as enough ranks have arrived");
                return None;
            }
        }
        return Some(None);
    };
    let range = 0..=MAX_DEADLINE_NS;
    let after = reader::quantity_within(sink, node, "`deadline`", Dimension::Duration, range)?;
    let quorum = fields.optional("quorum", |node| {
        let most = MAX_RANKS as u64 - 1;
        let quorum = reader::integer(sink, node, "`quorum`", 1..=most)?;
        Some(Spanned::new(u16::try_from(quorum).ok()?, node.span))
    })?;
    let late = match fields.get("late") {
        None => Late::Drop,
        Some(node) => match reader::choice(sink, node, "`late`", &["drop", "next"])? {
            "next" => Late::Next,
            _ => Late::Drop,
        },
    };
    let deadline = RawDeadline {
        after_ns: after.value,
        quorum,
        late,
    };
    Some(Some(Spanned::new(deadline, node.span)))
}
