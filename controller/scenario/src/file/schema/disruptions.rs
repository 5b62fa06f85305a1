//! Reads the faults on programs and switches in `faults`: `{id: freeze, effect: {pause: primary}, during: frozen}`.

use super::reader::{self, Variant};
use super::shape::{Object, Shape, duration, may, needed};
use crate::diagnostic::{Sink, Spanned};
use crate::file::yaml::{Kind, Node};
use crate::model::disruption::Does;

/// Minimum time for which a restarted switch is down, in nanoseconds: a process takes milliseconds to stop and to start.
const SHORTEST_NS: u64 = 1_000_000;
/// Maximum time for which a restarted switch is down, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

pub(super) static DISRUPTION: Object = Object {
    what: "a fault of a program or a switch",
    keys: &[
        needed("id", Shape::Name("a fault"), "its name"),
        needed(
            "effect",
            Shape::Object(&DOES),
            "what the controller does to it",
        ),
        may(
            "during",
            Shape::Names("a step"),
            "steps of the timeline; the whole run",
        ),
    ],
};

/// The keys of a disruption's effect. Each action needs a value, so the effect is always a mapping.
static DOES: Object = Object {
    what: "what is done to a program or a switch",
    keys: &[
        may(
            "pause",
            Shape::Name("a command"),
            "all its processes are stopped until the step ends",
        ),
        may("kill", ENDED, "all its processes are killed"),
        may(
            "stop",
            ENDED,
            "it is asked to end by its own `stop`, else killed",
        ),
        may(
            "restart",
            Shape::Either(&[Shape::Name("a switch"), Shape::Object(&RESTART)]),
            "its process is killed, and started again",
        ),
    ],
};

const ENDED: Shape = Shape::Either(&[Shape::Name("a command"), Shape::Object(&END)]);

static END: Object = Object {
    what: "how a command ends",
    keys: &[
        needed("command", Shape::Name("a command"), "which"),
        may(
            "restart",
            Shape::Bool,
            "whether it is restarted when the step ends",
        )
        .or_flag(false),
    ],
};

static RESTART: Object = Object {
    what: "a restart",
    keys: &[
        needed("switch", Shape::Name("a switch"), "which"),
        may(
            "after",
            duration(SHORTEST_NS, LONGEST_NS),
            "for how long it is down; until the step ends",
        ),
    ],
};

/// A fault on a program or switch as the file declares it, with names that are not yet resolved.
#[derive(Debug)]
pub(crate) struct RawDisruption {
    pub id: Spanned<String>,
    pub does: Does,
    /// Name of the command or switch on which the fault acts.
    pub on: Spanned<String>,
    pub during: Vec<Spanned<String>>,
}

/// Whether a fault in the file acts on a program or switch instead of packets, according to the word of its effect.
pub(super) fn is_one(fault: &Node) -> bool {
    let Some(effect) = fault.get("effect") else {
        return false;
    };
    let word = match (&effect.tag, &effect.kind) {
        (Some(tag), _) => tag.as_str(),
        (None, Kind::Text { value, .. }) => value.as_str(),
        (None, Kind::Map(entries)) => match entries.first() {
            Some(entry) => entry.key.as_str(),
            None => return false,
        },
        _ => return false,
    };
    Does::WORDS.contains(&word)
}

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<RawDisruption> {
    let fields = reader::fields(sink, node, &DISRUPTION)?;
    let id = fields.name(sink, "id");
    let effect = fields.read("effect", |node| {
        let written = reader::variant(sink, node, "an effect", &Does::WORDS)?;
        does(sink, &written)
    });
    let during = fields.names(sink, "during").unwrap_or_default();
    let (does, on) = effect?;
    Some(RawDisruption {
        id: id?,
        does,
        on,
        during,
    })
}

fn does(sink: &mut Sink<'_>, written: &Variant<'_>) -> Option<(Does, Spanned<String>)> {
    Some(match written.name {
        "pause" => {
            let node = written.needed(sink, "web")?;
            let on = reader::name(sink, node, "a command")?;
            let command = on.value.clone();
            (Does::Pause { command }, on)
        }
        "restart" => {
            let node = written.needed(sink, "sw")?;
            let (on, after_ns) = restart(sink, node)?;
            let switch = on.value.clone();
            (Does::Restart { switch, after_ns }, on)
        }
        word => {
            let node = written.needed(sink, "web")?;
            let (on, restart) = ended(sink, node)?;
            let command = on.value.clone();
            let does = match word {
                "kill" => Does::Kill { command, restart },
                _ => Does::Stop { command, restart },
            };
            (does, on)
        }
    })
}

/// Reads the value of `kill` or `stop`, `web` or `{command: web, restart: true}`: the command, and whether it is started again.
fn ended(sink: &mut Sink<'_>, node: &Node) -> Option<(Spanned<String>, bool)> {
    if !matches!(node.kind, Kind::Map(_)) {
        return Some((reader::name(sink, node, "a command")?, false));
    }
    let fields = reader::fields(sink, node, &END)?;
    let restart = fields.flag(sink, "restart")?;
    Some((fields.name(sink, "command")?, restart))
}

/// Reads the value of `restart`, `sw` or `{switch: sw, after: 200ms}`: the switch, and its downtime (ns) if given.
fn restart(sink: &mut Sink<'_>, node: &Node) -> Option<(Spanned<String>, Option<u64>)> {
    if !matches!(node.kind, Kind::Map(_)) {
        return Some((reader::name(sink, node, "a switch")?, None));
    }
    let fields = reader::fields(sink, node, &RESTART)?;
    let after = fields.optional_number(sink, "after")?;
    let switch = fields.name(sink, "switch")?;
    Some((switch, after.map(|after| after.value)))
}
