//! `per`: which packets of a flow belong together.

use parser_gen::key::{KeyError, PacketKey};

use super::reader;
use crate::diagnostic::{Code, Sink};
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

/// The keys within a flow.
#[derive(Debug)]
pub(super) struct Per {
    pub key: PacketKey,
    /// For people: `connections`.
    pub of: String,
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
    }))
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
