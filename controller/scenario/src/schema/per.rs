//! `per`: which packets of a flow belong together.

use parser_gen::key::{KeyError, PacketKey};

use super::reader;
use super::shape::Shape;
use crate::diagnostic::{Code, Sink};
use crate::effect::Effect;
use crate::model::Keys;
use crate::selection::Selection;
use crate::yaml::{Kind, Node};

/// Both transports: a packet lacks one of them, and what it lacks counts as 0.
const CONNECTION: [&str; 6] = [
    "ip.src",
    "ip.dst",
    "tcp.sport",
    "tcp.dport",
    "udp.sport",
    "udp.dport",
];

pub(super) static PER: Shape = Shape::Either(&[
    Shape::Word(&["flow", "connection", "source"]),
    Shape::List(&Shape::Text),
]);

/// The keys within a flow.
#[derive(Debug)]
pub(super) struct Per {
    pub key: PacketKey,
    /// For people: `connections`.
    pub of: String,
    /// One of them: `connection`.
    pub one: String,
    /// They begin anew with a SYN.
    pub restarts: bool,
}

/// `flow` (`Some(None)`: the flow is the key), `connection`, `source`, or a list of fields.
pub(super) fn per(sink: &mut Sink<'_>, node: &Node) -> Option<Option<Per>> {
    let library = sink.protocols();
    if let Kind::List(items) = &node.kind {
        let mut names: Vec<&str> = Vec::new();
        for item in items {
            let Kind::Text { value, .. } = &item.kind else {
                return reader::wrong_type(sink, item, "a field of a key is a name");
            };
            names.push(value);
            // One by one, to point at the one that is wrong.
            match PacketKey::new(&library, &names) {
                Ok(_) => {}
                Err(error) => {
                    report(sink, item, &error);
                    return None;
                }
            }
        }
        return match PacketKey::new(&library, &names) {
            Ok(key) => Some(Some(Per {
                key,
                of: format!("keys ({})", names.join(", ")),
                one: format!("({})", names.join(", ")),
                restarts: false,
            })),
            Err(error) => {
                report(sink, node, &error);
                None
            }
        };
    }
    let words = ["flow", "connection", "source"];
    let written = reader::variant(sink, node, "a key", &words)?;
    written.nothing(sink);
    let (names, of): (&[&str], _) = match written.name {
        "flow" => return Some(None),
        "source" => (&CONNECTION[..1], "sources"),
        _ => (&CONNECTION, "connections"),
    };
    let key = PacketKey::new(&library, names).ok()?;
    Some(Some(Per {
        key,
        of: of.to_owned(),
        one: written.name.to_owned(),
        restarts: written.name == "connection",
    }))
}

/// For how many keys there is room where the file does not say it.
const KEYS: u32 = 10_000;
/// The most: a switch finds a key by 16 bits in each way.
pub(super) const MAX_KEYS: u64 = 65_536;

/// What packets are numbered by within a flow, if `per` says it, and for how many keys there is room.
pub(super) fn numbered(
    sink: &mut Sink<'_>,
    per: Option<(&Node, Per)>,
    most: Option<&Node>,
    selection: &Selection,
    effect: &Effect,
) -> Option<Keys> {
    let is_share = matches!(selection, Selection::Share(_));
    if let Some(node) = most.filter(|_| is_share || per.is_none()) {
        let message = "`keys` has no effect here: nothing is held for each key";
        sink.error(Code::Suspicious, node.span, message).hint(
            "it says for how many keys of `per` there is room, where packets are numbered or drawn",
        );
    }
    // The share's key is the selection's own.
    let (node, per) = per.filter(|_| !is_share && *selection != Selection::Never)?;
    let most = match most {
        Some(node) => reader::integer(sink, node, "`keys`", 1..=MAX_KEYS)? as u32,
        None => KEYS,
    };
    if *selection == Selection::Always && !effect.draws() {
        let message = "`per` has no effect here: all packets are selected, whatever their key";
        sink.error(Code::Suspicious, node.span, message).hint(
            "it says by what packets are numbered and drawn (`select: {nth: 3}`), or what a share is of",
        );
        return None;
    }
    if effect.goes_by_time() {
        let message = format!(
            "`per` has no effect on `{}`: what waits, waits in its flow's queue",
            effect.word()
        );
        sink.error(Code::Suspicious, node.span, message)
            .hint("leave `per` out, or declare a flow for each");
        return None;
    }
    Some(Keys {
        key: per.key,
        of: per.of,
        one: per.one,
        restarts: per.restarts,
        most,
        span: node.span,
    })
}

fn report(sink: &mut Sink<'_>, node: &Node, error: &KeyError) {
    let (code, hint) = match error {
        KeyError::Unknown(_) => (Code::UnknownName, "docs/filters.md lists the fields"),
        KeyError::Twice(_) => (Code::Duplicate, "name it once"),
        KeyError::NoHeader(_) => (Code::Effect, "name fields like ip.src or tcp.sport"),
        KeyError::Count(_) => (Code::OutOfRange, "name fields like ip.src or tcp.sport"),
    };
    sink.error(code, node.span, error.to_string()).hint(hint);
}
