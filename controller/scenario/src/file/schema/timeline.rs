//! Reads the section `timeline`: steps, once or repeated. It lists each repetition, so that other code sees intervals (epochs).

use crate::diagnostic::{Code, Sink, Span, Spanned};
use crate::file::schema::reader::{self, Fields};
use crate::file::schema::shape::{DURATION, Object, Shape, duration, may, needed};
use crate::file::yaml::{Kind, Node};
use crate::model::Limits;
use crate::units::show_duration;

/// Maximum number of occurrences of all steps together. A switch numbers each occurrence and each gap after it in 16 bits.
const MAX_TIMES: usize = 1024;

/// Minimum length of a repeated step and of the gap after it, in nanoseconds: a write to a switch takes milliseconds, and a
/// step that ends before it is written is skipped.
const SHORTEST_NS: u64 = 10_000_000;

#[derive(Debug)]
pub(crate) struct RawStep {
    pub name: Spanned<String>,
    /// The condition for which the step waits; `None`: it starts at a fixed time. The times of this step and later steps count
    /// from the moment when the condition held.
    pub on: Option<Node>,
    /// Start and duration of each occurrence of the step.
    pub times: Vec<StepTime>,
}

/// One occurrence of a step of the timeline: a step may repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepTime {
    pub at_ns: u64,
    /// Duration in nanoseconds; `None`: until the next step, or the end of the run.
    pub for_ns: Option<u64>,
}

/// A step as the file declares it, before its repetitions are unrolled.
struct WrittenStep {
    name: Spanned<String>,
    /// Start in nanoseconds, since the start of the workload or of the last earlier step that waits for a condition.
    at: Spanned<u64>,
    on: Option<Node>,
    /// Duration of each occurrence, in nanoseconds; `None`: until the next step.
    length: Option<u64>,
    /// Time from the start of one occurrence to the next, in nanoseconds; `None`: the step occurs once.
    every: Option<u64>,
    /// Maximum number of occurrences; `None`: no limit.
    times: Option<u64>,
    /// Time at which the repetition ends, in nanoseconds, counted as `at`; `None`: no such time.
    until: Option<Spanned<u64>>,
    span: Span,
}

const LENGTH: Shape = duration(1, u64::MAX);

pub(super) static STEP: Object = Object {
    what: "a step",
    keys: &[
        needed("name", Shape::Name("a step"), "what `during` names"),
        may(
            "at",
            DURATION,
            "when it begins, since the start, or since the last step with `on` began",
        ),
        may(
            "on",
            Shape::Text,
            "in place of `at`: a condition, such as `fault.loss.fired >= 3`",
        ),
        may(
            "for",
            LENGTH,
            "how long it lasts; until the next step, or the end",
        )
        .beyond("leave `for` out for a step that lasts until the next one"),
        may("until", DURATION, "its end, since the start"),
        may("every", DURATION, "period, from one start to the next"),
        may(
            "times",
            Shape::Integer(1, MAX_TIMES as u64),
            "how often, at most",
        ),
        may("flap", Shape::Object(&FLAP), "`for` and `every` in one"),
    ],
};

static FLAP: Object = Object {
    what: "`flap`",
    keys: &[
        needed("down", LENGTH, "how long it is in force"),
        needed("up", DURATION, "how long it then is not"),
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node, limits: &Limits) -> Vec<RawStep> {
    let items = reader::list(sink, node, "the timeline").unwrap_or_default();
    if let Some(beyond) = items.get(MAX_TIMES) {
        let message = format!("{} steps; a timeline has at most {MAX_TIMES}", items.len());
        sink.error(Code::Capacity, beyond.span, message);
        return Vec::new();
    }
    let written: Vec<WrittenStep> = items.iter().filter_map(|item| step(sink, item)).collect();
    let mut steps: Vec<RawStep> = Vec::new();
    let mut count = 0;
    for (index, step) in written.iter().enumerate() {
        if steps
            .iter()
            .any(|other| other.name.value == step.name.value)
        {
            let message = format!("step `{}` is declared twice", step.name.value);
            sink.error(Code::Duplicate, step.name.span, message)
                .hint("give each step its own name; to repeat a step, write `every`");
        }
        if let Some(before) = steps.last().filter(|_| step.on.is_none()) {
            overlap(sink, before, step);
        }
        let next = written.get(index + 1);
        if let Some(waiting) = next.filter(|next| next.on.is_some()) {
            ends_before(sink, step, waiting);
        }
        let next = next.filter(|next| next.on.is_none());
        let next = next.map(|next| next.at.value);
        let times = unroll(sink, step, next, limits);
        count += times.len();
        steps.push(RawStep {
            name: step.name.clone(),
            on: step.on.clone(),
            times,
        });
        if count > MAX_TIMES {
            let message = format!(
                "all steps of a timeline together may occur at most {MAX_TIMES} times; step `{}` exceeds this",
                step.name.value
            );
            sink.error(Code::Capacity, step.span, message)
                .hint("write a longer `every`, or limit the repetitions with `times` or `until`");
            break;
        }
    }
    steps
}

fn step(sink: &mut Sink<'_>, item: &Node) -> Option<WrittenStep> {
    let fields = reader::fields(sink, item, &STEP)?;
    let errors = sink.errors();
    let name = fields.name(sink, "name");
    let at = begins(sink, &fields);
    let on = condition(sink, &fields);
    let mut length = fields.number(sink, "for");
    let until = fields.number::<u64>(sink, "until");
    let mut every = fields.number::<u64>(sink, "every");
    let times = fields.number(sink, "times");
    if let Some(node) = fields.get("flap") {
        let flap = reader::fields(sink, node, &FLAP);
        let down = flap.and_then(|flap| flap.number(sink, "down"));
        let up = flap.and_then(|flap| flap.number::<u64>(sink, "up"));
        if length.is_some() || every.is_some() {
            let message = "`flap` already sets how long the step lasts and how often it repeats";
            sink.error(Code::Contradiction, node.span, message)
                .hint("leave `for` and `every` out");
        }
        let period = up.zip(down);
        every = period.map(|(up, down)| up.map(|up| up.saturating_add(down.value)));
        length = down;
    }
    let (name, at) = (name?, at?);
    if let (Some(until), Some(_)) = (&until, on) {
        let message = "`until` counts from the start of the workload, but a step with `on` has no known start time";
        sink.error(Code::Contradiction, until.span, message)
            .hint("write `for`, how long the step lasts, and `times`, how often it occurs");
    }
    if let Some(until) = until.filter(|until| until.value <= at.value && on.is_none()) {
        sink.error(
            Code::OutOfRange,
            until.span,
            format!(
                "`until` must be later than `at`; found {}, and `at` is {}",
                show_duration(until.value),
                show_duration(at.value)
            ),
        )
        .hint("both count from the start of the workload; `for` counts from `at`");
    }
    match (length, every) {
        (None, Some(every)) if fields.get("for").is_none() => {
            sink.error(
                Code::MissingKey,
                every.span,
                "`every` needs `for`: how long the step lasts each time",
            )
            .hint("write for example `every: 10s, for: 2s`");
        }
        (Some(length), Some(every)) => {
            let gap = every.value.saturating_sub(length.value);
            if length.value < SHORTEST_NS || gap < SHORTEST_NS {
                let shortest = show_duration(SHORTEST_NS);
                let message = format!(
                    "a step that repeats must last at least {shortest}, and pause at least {shortest} in between; found {} and {}",
                    show_duration(length.value),
                    show_duration(gap)
                );
                sink.error(Code::OutOfRange, every.span, message)
                    .hint("write a longer `for` or `every`: the controller needs milliseconds to write to a switch");
            }
        }
        (Some(length), None) if until.is_some() => {
            let message = "a step that occurs once ends by `for` or by `until`, not by both";
            sink.error(Code::Contradiction, length.span, message)
                .hint("leave one of them out");
        }
        _ => {}
    }
    if let (None, Some(node)) = (every, fields.get("times")) {
        sink.error(
            Code::MissingKey,
            node.span,
            "`times` needs `every` or `flap`: a step without them occurs once",
        )
        .hint("write for example `every: 10s`, or leave `times` out");
    }
    (sink.errors() == errors).then_some(WrittenStep {
        name,
        at,
        on: on.cloned(),
        length: length.map(|length| length.value),
        every: every.map(|every| every.value),
        times: times.map(|times| times.value),
        until,
        span: item.span,
    })
}

/// The condition at the key `on` of a step, which must be a text; reports other values. `None` if there is none.
fn condition<'n>(sink: &mut Sink<'_>, fields: &Fields<'n>) -> Option<&'n Node> {
    let node = fields.get("on")?;
    if let Kind::Map(_) = node.kind {
        sink.error(
            Code::WrongType,
            node.span,
            "`on` must be a condition; found a mapping",
        )
        .hint("write a comparison: `on: trigger.NAME.on >= 1`, `on: fault.loss.fired >= 3`");
        return None;
    }
    fields.text(sink, "on").map(|_| node)
}

/// The start of a step: the time `at`, or 0 for a step that starts `on` a condition; refuses steps with neither or both.
fn begins(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Option<Spanned<u64>> {
    match (fields.get("at"), fields.get("on")) {
        (Some(_), None) => fields.number(sink, "at"),
        (None, Some(on)) => Some(Spanned::new(0, on.span)),
        (None, None) => {
            sink.error(
                Code::MissingKey,
                fields.span,
                "a step needs the key `at` or `on`",
            )
            .hint("write `at: 5s`, a time since the start of the workload, or `on: fault.loss.fired >= 3`, a condition");
            None
        }
        (Some(at), Some(_)) => {
            let message = "a step starts `at` a time or `on` a condition, not both";
            sink.error(Code::Contradiction, at.span, message)
                .hint("leave one of them out; after a step with `on`, the times of later steps count from the start of that step");
            None
        }
    }
}

/// Refuses a step that repeats without end in front of a step that waits for a condition, which could then never start.
fn ends_before(sink: &mut Sink<'_>, step: &WrittenStep, waiting: &WrittenStep) {
    if step.every.is_some() && step.times.is_none() && step.until.is_none() {
        let message = format!(
            "step `{}` repeats without end, so step `{}` after it could never start",
            step.name.value, waiting.name.value
        );
        sink.error(Code::Contradiction, step.span, message)
            .hint("limit the repetitions with `times` or `until`");
    }
}

/// Refuses a step that begins while the step before it is in force or still repeats.
fn overlap(sink: &mut Sink<'_>, before: &RawStep, step: &WrittenStep) {
    let Some(last) = before.times.last() else {
        return;
    };
    let end = last.at_ns.saturating_add(last.for_ns.unwrap_or(1));
    if step.at.value < end {
        let message = format!(
            "step `{}` starts before step `{}` ends",
            step.name.value, before.name.value
        );
        sink.error(Code::OutOfRange, step.at.span, message)
            .hint("write steps in order, without overlap");
    }
}

/// All occurrences of a step. An occurrence without an end lasts until the next step, or until the run's time limit.
fn unroll(
    sink: &mut Sink<'_>,
    step: &WrittenStep,
    next: Option<u64>,
    limits: &Limits,
) -> Vec<StepTime> {
    let at = step.at.value;
    let until = step.until.map(|until| until.value);
    let (Some(every), Some(length)) = (step.every, step.length) else {
        let for_ns = step.length.or(until.map(|until| until.saturating_sub(at)));
        return vec![StepTime { at_ns: at, for_ns }];
    };
    let last = step.times.map(|times| {
        let gaps = (times - 1).saturating_mul(every);
        at.saturating_add(gaps).saturating_add(length)
    });
    let said = match (until, last) {
        (Some(until), Some(last)) => Some(until.min(last)),
        (until, last) => until.or(last),
    };
    if said.unwrap_or(at.saturating_add(1)) > limits.time_ns {
        let message = format!(
            "step `{}` repeats {} after the start, but the run's time limit is {}",
            step.name.value,
            match said {
                Some(end) => format!("until {}", show_duration(end)),
                None => format!("from {}", show_duration(at)),
            },
            show_duration(limits.time_ns)
        );
        sink.error(Code::OutOfRange, step.span, message)
            .hint("let the step start and end earlier, or raise `limits.time`");
        return Vec::new();
    }
    let end = said.or(next).unwrap_or(limits.time_ns);
    let mut times = Vec::new();
    let mut at_ns = at;
    // One occurrence beyond the limit suffices to report it.
    while at_ns < end && times.len() <= MAX_TIMES {
        let for_ns = Some(length.min(end - at_ns));
        times.push(StepTime { at_ns, for_ns });
        at_ns = at_ns.saturating_add(every);
    }
    times
}
