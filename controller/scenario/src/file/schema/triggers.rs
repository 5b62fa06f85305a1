//! Reads the section `triggers`: events in the network for which faults wait.

use super::Declared;
use super::per::{self, followed};
use super::reader::{self, Fields};
use super::shape::{Object, Shape, duration, may, needed};
use crate::diagnostic::{Code, Sink, Spanned};
use crate::file::yaml::{Kind, Node};
use crate::model::Keys;
use crate::model::protocols::Protocols;

/// Maximum number of stages of a trigger. The switch has a bitmap of 16 bits for them, in which one bit stands for the reset.
const MAX_STAGES: usize = 15;
/// Maximum number of triggers in a scenario.
const MAX_TRIGGERS: usize = 16;
/// Maximum number of events that a stage counts.
const MAX_COUNT: u64 = 100_000_000;
/// Maximum duration in a trigger, in nanoseconds. Switch clocks have 48 bits, and compare times up to half their range.
const MAX_NS: u64 = 3_600_000_000_000;

pub(super) static TRIGGER: Object = Object {
    what: "a trigger",
    keys: &[
        needed(
            "after",
            AFTER,
            "what it waits for; in a list, one after the other",
        ),
        may(
            "for",
            TIME,
            "for how long it is then on; until `reset`, or the end",
        ),
        may(
            "reset",
            Shape::Object(&RESET),
            "what puts it back to the start",
        ),
        may(
            "per",
            Shape::At(&per::PER_OF_TRIGGER),
            "each such key follows a trigger of its own; without, all packets share it",
        ),
        may(
            "keys",
            Shape::Integer(1, per::MAX_KEYS),
            "capacity for keys of `per`",
        )
        .or(per::KEYS),
    ],
};

const TIME: Shape = duration(1, MAX_NS);
const AFTER: Shape = Shape::Either(&[Shape::Object(&STAGE), Shape::List(&Shape::Object(&STAGE))]);

static RESET: Object = Object {
    what: "`reset`",
    keys: &[
        may("flow", Shape::Name("a flow"), "a packet of it"),
        may("fault", Shape::Name("a fault"), "a hit of it"),
    ],
};

static STAGE: Object = Object {
    what: "what a trigger waits for",
    keys: &[
        may("flow", Shape::Name("a flow"), "whose packets are counted"),
        may("packets", Shape::Integer(1, MAX_COUNT), "how many").or(1),
        may("fault", Shape::Name("a fault"), "whose hits are counted"),
        may("hits", Shape::Integer(1, MAX_COUNT), "how many").or(1),
        may(
            "within",
            TIME,
            "of all but the first: how long after the one before it, at most",
        ),
    ],
};

#[derive(Debug)]
pub(crate) struct RawTrigger {
    pub name: Spanned<String>,
    pub stages: Vec<RawStage>,
    pub on_for_ns: Option<u64>,
    pub reset: Option<RawEvent>,
    pub keys: Option<Keys>,
}

#[derive(Debug)]
pub(crate) struct RawStage {
    pub event: RawEvent,
    pub count: u32,
    pub within_ns: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum RawEvent {
    Flow(Spanned<String>),
    Fault(Spanned<String>),
}

pub(super) fn read(
    sink: &mut Sink<'_>,
    protocols: &Protocols,
    node: &Node,
    declared: &Declared,
) -> Vec<RawTrigger> {
    let entries = reader::map(sink, node, "`triggers`").unwrap_or_default();
    if let Some(beyond) = entries.get(MAX_TRIGGERS) {
        let message = format!(
            "{} triggers; a scenario has at most {MAX_TRIGGERS}",
            entries.len()
        );
        sink.error(Code::Capacity, beyond.key_span, message);
        return Vec::new();
    }
    let triggers = entries.iter().filter_map(|entry| {
        let named = reader::check_name(sink, &entry.key, entry.key_span, "a trigger");
        let name = Spanned::new(entry.key.clone(), entry.key_span);
        trigger(sink, protocols, name, &entry.value, declared).filter(|_| named)
    });
    triggers.collect()
}

/// Reads a trigger, `{after: {fault: loss, hits: 1}, for: 50ms, reset: {flow: closing}}`; `after` may be a list of stages.
fn trigger(
    sink: &mut Sink<'_>,
    protocols: &Protocols,
    name: Spanned<String>,
    node: &Node,
    declared: &Declared,
) -> Option<RawTrigger> {
    let fields = reader::fields(sink, node, &TRIGGER)?;
    let on_for_ns = fields.optional_number(sink, "for")?;
    let reset = fields.optional("reset", |node| {
        let fields = reader::fields(sink, node, &RESET)?;
        event(sink, &fields, "`reset`")
    })?;
    let keys = followed(sink, protocols, &fields)?;
    let after = fields.get("after")?;
    let one = std::slice::from_ref(after);
    let items = match &after.kind {
        Kind::List(_) => reader::list(sink, after, "`after`")?,
        _ => one,
    };
    if items.is_empty() {
        sink.error(
            Code::OutOfRange,
            after.span,
            "`after` is empty; a trigger waits for one event or more",
        );
        return None;
    }
    if let Some(beyond) = items.get(MAX_STAGES) {
        let message = format!("{} stages; a trigger has at most {MAX_STAGES}", items.len());
        sink.error(Code::Capacity, beyond.span, message);
        return None;
    }
    let mut stages = Vec::new();
    for (number, item) in items.iter().enumerate() {
        if let Some(what) = named(item, declared) {
            let message = format!(
                "{} must be a mapping; found {}",
                STAGE.what,
                item.describe()
            );
            sink.error(Code::WrongType, item.span, message)
                .hint(format!("write `{{{what}}}`"));
            return None;
        }
        stages.push(stage(sink, item, number == 0)?);
    }
    let all: u64 = stages.iter().map(|stage| u64::from(stage.count)).sum();
    if all > MAX_COUNT {
        let message = format!(
            "the counts of all stages of a trigger may add up to at most {MAX_COUNT}; found {all}"
        );
        sink.error(Code::OutOfRange, after.span, message);
        return None;
    }
    Some(RawTrigger {
        name,
        stages,
        on_for_ns: on_for_ns.map(|time| time.value),
        reset,
        keys,
    })
}

/// The hint for an event that is only the name of a flow or fault, such as `out`: `flow: out`. `None` for other values.
fn named(node: &Node, declared: &Declared) -> Option<String> {
    let Kind::Text { value, .. } = &node.kind else {
        return None;
    };
    let kinds = [("flow", &declared.flows), ("fault", &declared.faults)];
    let mut found = kinds.iter().filter(|(_, names)| names.contains(value));
    found.next().map(|(kind, _)| format!("{kind}: {value}"))
}

/// Reads a stage, `{flow: NAME, packets: N}` or `{fault: NAME, hits: N}`; stages after the first may have `within`.
fn stage(sink: &mut Sink<'_>, node: &Node, is_first: bool) -> Option<RawStage> {
    let fields = reader::fields(sink, node, &STAGE)?;
    let event = event(sink, &fields, "an event of a trigger")?;
    let (own, other) = match event {
        RawEvent::Flow(_) => ("packets", "hits"),
        RawEvent::Fault(_) => ("hits", "packets"),
    };
    if let Some(node) = fields.get(other) {
        let message = format!("`{other}` is not a key of this event");
        sink.error(Code::Contradiction, node.span, message)
            .hint(format!(
                "write `{own}`: a flow counts `packets`, and a fault counts `hits`"
            ));
        return None;
    }
    let count = fields.number(sink, own)?.value;
    let within_ns = fields.optional_number(sink, "within")?;
    if let Some(node) = fields.get("within").filter(|_| is_first) {
        let message = "`within` counts from the previous event, but this event is the first";
        sink.error(Code::Contradiction, node.span, message)
            .hint("leave `within` out; to limit how long the trigger stays on, write `for` beside `after`");
        return None;
    }
    Some(RawStage {
        event,
        count,
        within_ns: within_ns.map(|time| time.value),
    })
}

fn event(sink: &mut Sink<'_>, fields: &Fields<'_>, what: &str) -> Option<RawEvent> {
    match (fields.get("flow"), fields.get("fault")) {
        (Some(_), None) => fields.name(sink, "flow").map(RawEvent::Flow),
        (None, Some(_)) => fields.name(sink, "fault").map(RawEvent::Fault),
        (None, None) => {
            let message = format!("{what} must be a `flow` or a `fault`");
            sink.error(Code::MissingKey, fields.span, message)
                .hint("write for example `{fault: loss, hits: 1}` or `{flow: a-get, packets: 3}`");
            None
        }
        (Some(_), Some(fault)) => {
            let message = format!("{what} must be a `flow` or a `fault`, not both");
            sink.error(Code::Contradiction, fault.span, message)
                .hint("write a list of the events in order: `after: [{flow: …}, {fault: …}]`");
            None
        }
    }
}
