//! Reads the section `jobs`: aggregation jobs whose values switches sum.

use parser_gen::FrameValues;

use super::reader::{self, Fields};
use super::shape::{Object, Shape, duration, may, needed, rate};
use crate::diagnostic::{Code, Sink, Spanned};
use crate::file::yaml::{Entry, Node};
use crate::model::job::{
    Late, MAX_DEADLINE_NS, MAX_JOBS, MAX_RANKS, MIN_RATE_BPS, SLOTS, Transport,
};

pub(super) static JOB: Object = Object {
    what: "a job",
    keys: &[
        needed("ranks", Shape::Names("a host"), "hosts, 1 to 1024, by rank"),
        may(
            "on",
            Shape::Names("a switch"),
            "switches that sum, the topmost first; the only one there is",
        ),
        may(
            "window",
            Shape::Integer(1, SLOTS as u64),
            "chunks that a rank may have in flight, a power of two",
        )
        .or(256),
        may(
            "rate",
            rate(MIN_RATE_BPS, u64::MAX),
            "what all frames of its ranks together may be; what is more is dropped",
        )
        .beyond("at a lower rate no frame passes"),
        may(
            "values",
            Shape::Integer(32, 2048),
            "values of a frame: 32, 64, 256 or 2048; the most that fit the links' MTU, at least 64",
        ),
        may(
            "transport",
            Shape::Word(&["udp", "rdma"]),
            "what carries values to the switch and sums back",
        )
        .or_first(),
        may(
            "deadline",
            duration(0, MAX_DEADLINE_NS),
            "time after which a sum completes without the missing ranks; it waits for all ranks",
        ),
        may(
            "quorum",
            Shape::Integer(1, MAX_RANKS as u64 - 1),
            "least number of ranks in a partial sum, fewer than all; more than half",
        ),
        may(
            "late",
            Shape::Word(&["drop", "next"]),
            "late values are dropped, or join the next sum",
        )
        .or_first(),
    ],
};

/// A job as the file declares it, with the positions where it names hosts and switches.
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

/// The deadline of a job as the file declares it: when a switch sends a sum although values of some ranks are missing.
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
    let ranks = fields.names(sink, "ranks");
    let on = fields.names(sink, "on");
    let window = fields.number::<u32>(sink, "window")?;
    if !window.value.is_power_of_two() {
        let message = format!("`window` must be a power of two; found {}", window.value);
        let below = 1_u32 << window.value.ilog2();
        sink.error(Code::OutOfRange, window.span, message)
            .hint(format!("write {below} or {}", 2 * below));
        return None;
    }
    let rate = fields.optional_number(sink, "rate")?;
    let values = fields.optional("values", |_| frame_values(sink, &fields))?;
    let transport = match fields.word(sink, "transport")? {
        "rdma" => Transport::Rdma,
        _ => Transport::Udp,
    };
    let span = fields
        .get("transport")
        .map_or(entry.key_span, |node| node.span);
    let transport = Spanned::new(transport, span);
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
    // An invalid name has been reported already.
    let on = on?;
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

fn frame_values(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Option<Spanned<FrameValues>> {
    let count = fields.number::<u16>(sink, "values")?;
    let found = FrameValues::ALL
        .into_iter()
        .find(|values| values.count() == count.value);
    if found.is_none() {
        let message = "`values` must be 32, 64, 256 or 2048";
        sink.error(Code::OutOfRange, count.span, message);
    }
    Some(Spanned::new(found?, count.span))
}

/// Reads the deadline of a job: `Some(None)` if the job has none, `None` if it was refused.
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
    let after = fields.number(sink, "deadline")?;
    let quorum = fields.optional_number(sink, "quorum")?;
    let late = match fields.word(sink, "late")? {
        "next" => Late::Next,
        _ => Late::Drop,
    };
    let deadline = RawDeadline {
        after_ns: after.value,
        quorum,
        late,
    };
    Some(Some(Spanned::new(deadline, node.span)))
}
