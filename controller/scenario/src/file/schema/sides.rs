//! Reads the two sides of a wire, such as `{name: web, netns: web}`: a name each, and optionally an interface or host.

use super::reader;
use super::shape::{Object, Shape, may, needed};
use crate::diagnostic::{Code, Sink, Spanned, enumerate_names};
use crate::file::yaml::{Kind, Node};
use crate::model::topology::{HostAt, NamespaceOf, Side};

pub(super) static SIDE: Object = Object {
    what: "a side",
    keys: &[
        needed("name", Shape::Name("a side"), "what flows call it"),
        may("interface", Shape::Text, "an interface of this machine"),
        may(
            "netns",
            Shape::Text,
            "a host: a network namespace, by name or path",
        ),
        may(
            "pid",
            Shape::Integer(1, i32::MAX as u64),
            "a host: the namespace of a process",
        ),
        may(
            "link",
            Shape::Text,
            "the host's interface, where it has several",
        ),
    ],
};

/// The name of a side of a wire, and its interface or host; `None` if the file does not give one.
type WrittenSide = (Spanned<String>, Option<Side>);

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<Vec<WrittenSide>> {
    let items = reader::list(sink, node, "`wire`")?;
    // Reads both sides, so that errors of both are reported.
    let sides: Vec<_> = items.iter().map(|item| side(sink, item)).collect();
    sides.into_iter().collect()
}

fn side(sink: &mut Sink<'_>, node: &Node) -> Option<WrittenSide> {
    if !matches!(node.kind, Kind::Map(_)) {
        return Some((reader::name(sink, node, "a side")?, None));
    }
    let fields = reader::fields(sink, node, &SIDE)?;
    let name = fields.name(sink, "name")?;
    let said: Vec<&str> = ["interface", "netns", "pid"]
        .into_iter()
        .filter(|key| fields.get(key).is_some())
        .collect();
    if said.len() != 1 {
        let message = format!(
            "side `{}` needs one of `interface`, `netns` and `pid`; found {}",
            name.value,
            enumerate_names(said)
        );
        sink.error(Code::Topology, node.span, message)
            .hint("write for example `{name: web, netns: web}`, or the name alone");
        return None;
    }
    let link = fields.optional("link", |link| interface(sink, link))?;
    if let Some(node) = fields.get("interface") {
        if let Some(link) = fields.get("link") {
            let message =
                "`link` names the interface of a host, but this side is already an `interface`";
            sink.error(Code::Topology, link.span, message)
                .hint("leave `link` out");
            return None;
        }
        return Some((name, Some(Side::Interface(interface(sink, node)?))));
    }
    let namespace = match (fields.get("netns"), fields.get("pid")) {
        (Some(_), _) => {
            let name = fields.text(sink, "netns")?;
            NamespaceOf::Netns(netns(sink, name)?)
        }
        (None, _) => NamespaceOf::Pid(fields.number(sink, "pid")?.value),
    };
    Some((name, Some(Side::Host(HostAt { namespace, link }))))
}

fn netns(sink: &mut Sink<'_>, name: Spanned<String>) -> Option<String> {
    let Spanned { value: name, span } = name;
    if name.is_empty() || name == "." || name == ".." || name.contains('\0') {
        let message = format!("`{name}` cannot be the name of a network namespace");
        sink.error(Code::Topology, span, message)
            .hint("write a name that `ip netns` lists, or a path that contains a slash");
        return None;
    }
    Some(name)
}

/// Reads a name that the kernel accepts for an interface.
fn interface(sink: &mut Sink<'_>, node: &Node) -> Option<String> {
    let name = reader::text(sink, node, "the name of an interface")?.value;
    let is_bad = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    if name.is_empty() || name.len() > 15 || name == "." || name == ".." || name.contains(is_bad) {
        let message = format!("`{name}` cannot be the name of an interface");
        sink.error(Code::Topology, node.span, message).hint(
            "the name of an interface has at most 15 bytes, without `/`, `:` and white space",
        );
        return None;
    }
    Some(name)
}

/// The interfaces or hosts at the two sides of a wire; empty if the file gives neither, so that the command line must. For a
/// host, the file may leave the other side out. Refuses a file that gives only one interface.
pub(super) fn together(
    sink: &mut Sink<'_>,
    node: &Node,
    read: Vec<WrittenSide>,
) -> Option<Vec<Side>> {
    let sides: Vec<Option<Side>> = read.into_iter().map(|(_, side)| side).collect();
    match <[Option<Side>; 2]>::try_from(sides).ok()? {
        [None, None] => Some(Vec::new()),
        [Some(host @ Side::Host(_)), None] => Some(vec![host, Side::Network]),
        [None, Some(host @ Side::Host(_))] => Some(vec![Side::Network, host]),
        [Some(a @ Side::Interface(_)), Some(b @ Side::Interface(_))] if a != b => Some(vec![a, b]),
        _ => {
            sink.error(
                Code::Topology,
                node.span,
                "`wire` must connect two interfaces, or a host and the network that the host is attached to",
            )
            .hint("write two different interfaces, or one host and only a name for the other side");
            None
        }
    }
}
