//! Finds hosts of a network by name, or by a pattern of names such as `h*`.

use planner::{Network, NodeId};

use super::reader;
use crate::diagnostic::{Code, Sink, Span, nearest};
use crate::file::yaml::Node;

/// A host that a file of trainings refers to, by name or pattern.
pub(super) struct Meant {
    pub node: NodeId,
    /// Whether the file gives the host's full name; otherwise a pattern matches it.
    pub is_named: bool,
    /// Position of the name or pattern in the file.
    pub span: Span,
}

pub(super) fn hosts(sink: &mut Sink<'_>, node: &Node, network: &Network) -> Option<Vec<Meant>> {
    let names = reader::texts(sink, node, "a host")?;
    let mut meant: Vec<Meant> = Vec::new();
    let mut is_known = true;
    for name in names {
        let found = hosts_named(network, &name.value);
        if found.is_empty() {
            is_known = false;
            let all = network.hosts().map(|host| network.name(host));
            let near = nearest(&name.value, all);
            let is_switch = network.node(&name.value).is_ok();
            let message = match is_switch {
                true => format!("`{}` is a switch, not a host", name.value),
                false => format!("no host is called `{}`", name.value),
            };
            let diagnostic = sink.error(Code::UnknownName, name.span, message);
            if let Some(near) = near.filter(|_| !is_switch) {
                diagnostic.hint(format!("did you mean `{near}`?"));
            }
        }
        let is_named = !name.value.contains('*');
        meant.extend(found.into_iter().map(|node| Meant {
            node,
            is_named,
            span: name.span,
        }));
    }
    is_known.then_some(meant)
}

/// The host with this name, or, in the network's order, all hosts that match a pattern in which `*` stands for any characters.
#[must_use]
pub fn hosts_named(network: &Network, name: &str) -> Vec<NodeId> {
    if !name.contains('*') {
        let node = network.node(name).ok();
        let host = node.filter(|node| network.host(*node).is_some());
        return host.into_iter().collect();
    }
    let hosts = network.hosts();
    hosts
        .filter(|host| matches(name, network.name(*host)))
        .collect()
}

/// Whether a name matches a pattern in which each `*` stands for any number of characters, also none.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_letters() {
        for (pattern, name, fits) in [
            ("h*", "h1-2", true),
            ("h*", "g", false),
            ("*", "", true),
            ("h*-0", "h12-0", true),
            ("h*-0", "h12-01", false),
            ("*a*b*", "xxaybz", true),
            ("*a*b*", "xxbyaz", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
