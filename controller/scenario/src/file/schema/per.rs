//! Reads `per`: with `per: connection`, a fault or trigger counts the packets of each connection separately.

use parser_gen::key::{KeyError, PacketKey};
use parser_gen::psn;

use super::reader::{self, Fields};
use super::shape::{Object, Shape, needed};
use crate::diagnostic::{Code, Sink, Span};
use crate::file::filter::hint_for_field;
use crate::file::yaml::{Kind, Node};
use crate::model::effect::Effect;
use crate::model::protocols::Protocols;
use crate::model::selection::Selection;
use crate::model::{Keys, Shared};

/// The fields that identify a TCP or UDP connection: a missing field counts as 0. In each pair the sender's field is first.
const CONNECTION: [[&str; 2]; 3] = [
    ["ip.src", "ip.dst"],
    ["tcp.sport", "tcp.dport"],
    ["udp.sport", "udp.dport"],
];

pub(super) static PER: Shape = Shape::Either(&[
    Shape::Word(&["flow", "connection", "source"]),
    Shape::Object(&DIRECTIONS),
    Shape::List(&Shape::Text),
]);

/// The shape of `per` in a trigger, which counts the packets of several flows together.
pub(super) static PER_OF_TRIGGER: Shape = Shape::Either(&[
    Shape::Word(&["connection", "source"]),
    Shape::Object(&DIRECTIONS),
    Shape::List(&Shape::Text),
]);

static DIRECTIONS: Object = Object {
    what: "directions of a connection",
    keys: &[needed(
        "connection",
        Shape::Word(&["both"]),
        "its packets in both directions have one key",
    )],
};

/// The value of `per`: the property (the key, such as the connection) by which the packets of a flow are divided.
#[derive(Debug)]
pub(super) struct Per {
    pub key: PacketKey,
    /// Plural noun for users: `connections`.
    pub of: String,
    /// Singular noun for users: `connection`.
    pub one: String,
    /// Whether a TCP SYN makes the count of its connection start again.
    pub restarts: bool,
    /// How far packets with the same key agree in sender and receiver.
    pub shared: Shared,
}

/// Reads a fault's `per`: `flow` (`Some(None)`: no key), `connection`, `source`, `{connection: both}` or fields. `None`:
/// refused.
pub(super) fn per(sink: &mut Sink<'_>, protocols: &Protocols, node: &Node) -> Option<Option<Per>> {
    if let Kind::List(items) = &node.kind {
        return fields(sink, protocols, node, items).map(Some);
    }
    let words = ["flow", "connection", "source"];
    let written = reader::variant(sink, node, "a key", &words)?;
    match written.name {
        "flow" | "source" => {
            let errors = sink.errors();
            written.nothing(sink);
            match (sink.errors() > errors, written.name) {
                (true, _) => None,
                (false, "flow") => Some(None),
                (false, _) => source(protocols).map(Some),
            }
        }
        _ => match written.payload.as_deref() {
            Some(ways) => connection(sink, protocols, ways).map(Some),
            None => one_way(protocols).map(Some),
        },
    }
}

/// Reads the key of a trigger; `None` if it was refused.
pub(super) fn per_of_trigger(
    sink: &mut Sink<'_>,
    protocols: &Protocols,
    node: &Node,
) -> Option<Per> {
    let flow = match &node.kind {
        Kind::Text { value, .. } => value == "flow",
        _ => false,
    };
    if flow {
        let message = "a trigger counts the packets of all its flows together, so `per: flow` is not possible";
        sink.error(Code::Suspicious, node.span, message)
            .hint("leave `per` out to count all packets together; or write `connection`, `{connection: both}`, `source`, or fields");
        return None;
    }
    per(sink, protocols, node)?
}

fn source(protocols: &Protocols) -> Option<Per> {
    Some(Per {
        key: PacketKey::new(protocols, &CONNECTION[0][..1]).ok()?,
        of: "sources".to_owned(),
        one: "source".to_owned(),
        restarts: false,
        shared: Shared::Sender,
    })
}

fn one_way(protocols: &Protocols) -> Option<Per> {
    Some(Per {
        key: PacketKey::new(protocols, CONNECTION.as_flattened()).ok()?,
        of: "connections".to_owned(),
        one: "connection".to_owned(),
        restarts: true,
        shared: Shared::Direction,
    })
}

/// The key for the selection `psn`, which finds a packet's position in its RDMA connection: the key is the connection.
fn rdma_connection(protocols: &Protocols) -> Option<Per> {
    Some(Per {
        key: PacketKey::new(protocols, &psn::CONNECTION).ok()?,
        of: "RDMA connections".to_owned(),
        one: "RDMA connection".to_owned(),
        restarts: false,
        shared: Shared::Direction,
    })
}

/// Reads `{connection: both}`: a connection whose two directions have the same key.
fn connection(sink: &mut Sink<'_>, protocols: &Protocols, ways: &Node) -> Option<Per> {
    reader::variant(sink, ways, "`connection`", &["both"])?.nothing(sink);
    Some(Per {
        key: PacketKey::both_ways(protocols, &CONNECTION).ok()?,
        of: "connections".to_owned(),
        one: "connection, both ways".to_owned(),
        restarts: true,
        shared: Shared::Nothing,
    })
}

fn fields(sink: &mut Sink<'_>, protocols: &Protocols, node: &Node, items: &[Node]) -> Option<Per> {
    let mut names: Vec<&str> = Vec::new();
    for item in items {
        let Kind::Text { value, .. } = &item.kind else {
            return reader::wrong_type(sink, item, "a field of a key must be a name");
        };
        names.push(value);
        // Each field is checked on its own, so that the error points at the wrong one.
        if let Err(error) = PacketKey::new(protocols, &names) {
            report(sink, protocols, item, &error);
            return None;
        }
    }
    match PacketKey::new(protocols, &names) {
        Ok(key) => Some(Per {
            key,
            of: format!("keys ({})", names.join(", ")),
            one: format!("({})", names.join(", ")),
            restarts: false,
            shared: match (names.contains(&"ip.src"), names.contains(&"ip.dst")) {
                (true, true) => Shared::Direction,
                (true, false) => Shared::Sender,
                (false, _) => Shared::Nothing,
            },
        }),
        Err(error) => {
            report(sink, protocols, node, &error);
            None
        }
    }
}

/// Default of the number of keys (such as connections) whose counts a switch can store.
pub(super) const KEYS: u64 = 10_000;
/// Maximum number of keys whose counts a switch can store: its hash tables have a 16-bit index.
pub(super) const MAX_KEYS: u64 = 65_536;

/// The key by which a fault divides the packets of a flow, and the number of keys whose counts a switch can store. `None` if
/// neither `per` nor the selection gives a key.
pub(super) fn numbered(
    sink: &mut Sink<'_>,
    protocols: &Protocols,
    fields: &Fields<'_>,
    per: Option<Per>,
    (selection, select): (&Selection, Span),
    effect: &Effect,
) -> Option<Keys> {
    let at = fields.get("per");
    if let Selection::Psn(_) = selection {
        if let Some(node) = at {
            let message = "`per` has no effect on `psn`, which always counts per RDMA connection";
            sink.error(Code::Suspicious, node.span, message).hint(
                "leave `per` out; an RDMA connection is (source, destination, destination queue pair)",
            );
            return None;
        }
        let most = fields.number(sink, "keys")?.value;
        return Some(keys(rdma_connection(protocols)?, most, select));
    }
    let per = at.zip(per);
    let is_share = matches!(selection, Selection::Share(_));
    if let Some(node) = fields.get("keys").filter(|_| is_share || per.is_none()) {
        let message = "`keys` has no effect here: the switch stores nothing per key";
        sink.error(Code::Suspicious, node.span, message)
            .hint("`keys` sets how many keys of `per` a switch can store to count packets or draw random numbers");
    }
    // A share uses the selection's own key.
    let (node, per) = per.filter(|_| !is_share && *selection != Selection::Never)?;
    let most = fields.number(sink, "keys")?.value;
    if *selection == Selection::Always && !effect.draws() {
        let message = "`per` has no effect here: all packets are selected, whatever their key";
        sink.error(Code::Suspicious, node.span, message).hint(
            "`per` says how packets are counted and drawn (`select: {nth: 3}`), or of what a `share` is taken",
        );
        return None;
    }
    if effect.goes_by_time() {
        let message = format!(
            "`per` has no effect on `{}`: packets wait in one queue per flow",
            effect.word()
        );
        sink.error(Code::Suspicious, node.span, message)
            .hint("leave `per` out, or declare one flow per key");
        return None;
    }
    Some(keys(per, most, node.span))
}

/// A trigger's key, and how many keys' counts a switch can store. `Some(None)` without `per`; `None` if an error was reported.
pub(super) fn followed(
    sink: &mut Sink<'_>,
    protocols: &Protocols,
    fields: &Fields<'_>,
) -> Option<Option<Keys>> {
    let Some(node) = fields.get("per") else {
        if let Some(most) = fields.get("keys") {
            let message = "`keys` has no effect here: all packets share this trigger";
            sink.error(Code::Suspicious, most.span, message)
                .hint("`keys` sets how many keys of `per` a switch can store");
            return None;
        }
        return Some(None);
    };
    let per = per_of_trigger(sink, protocols, node)?;
    let most = fields.number(sink, "keys")?.value;
    Some(Some(keys(per, most, node.span)))
}

fn keys(per: Per, most: u32, span: Span) -> Keys {
    Keys {
        key: per.key,
        of: per.of,
        one: per.one,
        restarts: per.restarts,
        shared: per.shared,
        most,
        span,
    }
}

fn report(sink: &mut Sink<'_>, protocols: &Protocols, node: &Node, error: &KeyError) {
    let example = || "write fields of headers, such as `ip.src` or `tcp.sport`".to_owned();
    let (code, hint) = match error {
        KeyError::Unknown(name) => {
            let fits = |field: &str| PacketKey::new(protocols, &[field]).is_ok();
            let hint = hint_for_field(protocols, name, None, &fits);
            (Code::UnknownName, hint)
        }
        KeyError::Twice(_) => (Code::Duplicate, "write it once".to_owned()),
        KeyError::NoHeader(_) => (Code::Effect, example()),
        KeyError::Count(_) => (Code::OutOfRange, example()),
    };
    sink.error(code, node.span, error.to_string()).hint(hint);
}
