//! Answers which protocols a packet can contain together, computed from the parse graph.

use std::collections::{BTreeMap, BTreeSet};

use super::message::Kind;
use super::{Body, Library, Protocol, ProtocolId, Target};

/// Which protocols a packet can contain together; computed once, since a scenario needs it for each filter and each stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Carriage {
    /// Protocols by their names in filters.
    ids: BTreeMap<String, ProtocolId>,
    /// For each protocol, the protocols behind which it may stand in a packet, at whatever distance, itself included.
    behind: Vec<BTreeSet<ProtocolId>>,
    /// For each protocol, the protocols on every path from the root to it, itself included; empty if no packet has it.
    carriers: Vec<BTreeSet<ProtocolId>>,
}

impl Carriage {
    pub(super) fn new(protocols: &[Protocol], root: ProtocolId) -> Carriage {
        let all = 0..protocols.len();
        let names = protocols.iter().map(|protocol| protocol.filter.clone());
        let mut carriage = Carriage {
            ids: names.zip(all.clone()).collect(),
            behind: vec![BTreeSet::new(); protocols.len()],
            carriers: vec![BTreeSet::new(); protocols.len()],
        };
        let of_packets = reached(protocols, root, None);
        for id in all {
            for behind in marked(&reached(protocols, id, None)) {
                carriage.behind[behind].insert(id);
            }
            let otherwise = reached(protocols, root, Some(id));
            for carried in marked(&of_packets) {
                if carried == id || !otherwise[carried] {
                    carriage.carriers[carried].insert(id);
                }
            }
            // Metadata is not a part of a packet, so no protocol carries it.
            if is_metadata(&protocols[id]) {
                carriage.carriers[id] = [id].into();
            }
        }
        carriage
    }
}

impl Library {
    /// Protocols that every packet with `protocol` has, itself included: those on every path from the root to it. Names are
    /// those of filters. Empty if the library has no such protocol.
    pub fn implied_by(&self, protocol: &str) -> BTreeSet<&str> {
        let id = self.carriage.ids.get(protocol);
        let carriers = id.into_iter().flat_map(|id| &self.carriage.carriers[*id]);
        carriers
            .map(|id| self.protocols[*id].filter.as_str())
            .collect()
    }

    /// Whether a packet may have both protocols: one protocol may follow the other, at whatever distance.
    pub fn coexist(&self, a: &str, b: &str) -> bool {
        let id = |name: &str| self.carriage.ids.get(name).copied();
        let (Some(a), Some(b)) = (id(a), id(b)) else {
            return false;
        };
        let is_metadata = |id: ProtocolId| is_metadata(&self.protocols[id]);
        is_metadata(a) || is_metadata(b) || self.reaches(a, b) || self.reaches(b, a)
    }

    /// Filter names of the protocols that no packet has.
    pub(super) fn unreachable(&self) -> Vec<String> {
        let lost = (0..self.protocols.len()).filter(|id| self.carriage.carriers[*id].is_empty());
        lost.map(|id| self.protocols[id].filter.clone()).collect()
    }

    /// Values that select fields of the header `from` have in a packet with the header `to` behind
    /// it, by field index. Leaves out fields that may have any value.
    pub(crate) fn selecting(&self, from: ProtocolId, to: ProtocolId) -> Vec<(usize, Vec<u128>)> {
        let protocol = &self.protocols[from];
        let leads = |target: Target| match target {
            Target::Protocol(id) => self.reaches(id, to),
            Target::Note(_) | Target::End => false,
        };
        let edges: Vec<_> = (protocol.next.iter())
            .filter(|edge| leads(edge.to))
            .collect();
        let of_field = |position: usize| -> Option<Vec<u128>> {
            let values = edges.iter().map(|edge| edge.when[position]);
            values.collect()
        };
        let fields = protocol.select.iter().enumerate();
        let fields = fields.filter_map(|(position, field)| Some((*field, of_field(position)?)));
        fields.filter(|(_, values)| !values.is_empty()).collect()
    }

    /// Whether the header `to` may follow the header `from` in a packet, at any distance.
    pub(crate) fn leads_to(&self, from: ProtocolId, to: ProtocolId) -> bool {
        from != to && self.reaches(from, to)
    }

    /// Number of bytes, from the start of a frame, that parsers and filters can read; `None` if headers may repeat without end.
    pub fn depth(&self) -> Option<usize> {
        let mut depths = vec![Depth::Unknown; self.protocols.len()];
        depth(&self.protocols, self.root, &mut depths)
    }

    fn reaches(&self, from: ProtocolId, to: ProtocolId) -> bool {
        self.carriage.behind[to].contains(&from)
    }
}

#[derive(Clone, Copy)]
enum Depth {
    Unknown,
    /// The depth is being computed: a protocol that reaches this protocol follows itself.
    Open,
    Known(usize),
}

/// Length in bytes of the longest sequence of headers that begins with a protocol; `None` if headers may repeat without end.
fn depth(protocols: &[Protocol], id: ProtocolId, depths: &mut [Depth]) -> Option<usize> {
    match depths[id] {
        Depth::Open => return None,
        Depth::Known(bytes) => return Some(bytes),
        Depth::Unknown => depths[id] = Depth::Open,
    }
    let mut behind = 0;
    for edge in &protocols[id].next {
        if let Target::Protocol(next) = edge.to {
            behind = behind.max(depth(protocols, next, depths)?);
        }
    }
    let bytes = longest(&protocols[id]) + behind;
    depths[id] = Depth::Known(bytes);
    Some(bytes)
}

/// Length in bytes of a protocol's longest header.
fn longest(protocol: &Protocol) -> usize {
    match &protocol.body {
        Body::Metadata { .. } => 0,
        Body::Header { options, .. } => {
            let options = options.map_or(0, |options| options.max - options.first_word);
            protocol.header_bits() as usize / 8 + 4 * options as usize
        }
        Body::Message(elements) => {
            let kinds = elements.iter().map(|element| &element.kind);
            let bytes = kinds.map(|kind| match kind {
                Kind::Literal(bytes) => bytes.len(),
                Kind::Number { bits, .. } => *bits as usize / 8,
                Kind::Decimal { max, .. } | Kind::Until { max, .. } => max + 1,
                Kind::Varint { max } | Kind::Fixed(max) | Kind::Counted { max, .. } => *max,
            });
            bytes.sum()
        }
    }
}

fn is_metadata(protocol: &Protocol) -> bool {
    matches!(protocol.body, Body::Metadata { .. })
}

/// For each protocol, whether a parse may reach it from `from` without passing `without`.
fn reached(protocols: &[Protocol], from: ProtocolId, without: Option<ProtocolId>) -> Vec<bool> {
    let mut reached = vec![false; protocols.len()];
    let mut waiting = vec![from];
    while let Some(id) = waiting.pop() {
        if Some(id) == without || reached[id] {
            continue;
        }
        reached[id] = true;
        let next = protocols[id].next.iter();
        waiting.extend(next.filter_map(|edge| match edge.to {
            Target::Protocol(id) => Some(id),
            Target::Note(_) | Target::End => None,
        }));
    }
    reached
}

fn marked(marks: &[bool]) -> impl Iterator<Item = ProtocolId> {
    (0..marks.len()).filter(|id| marks[*id])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_filter_looks_behind_the_depth() {
        let library = Library::builtin();
        let depth = library.depth().unwrap();
        // Ethernet, IPv4 and TCP with all options, and a Redis command.
        assert!((14 + 60 + 60 + 60..400).contains(&depth), "{depth}");
        let command =
            b"*2\r\n$16\r\nABCDEFGHIJKLMNOP\r\n$32\r\nabcdefghijklmnopqrstuvwxyz012345\r\n";
        let mut frame = vec![0; 14];
        frame[12] = 8;
        frame.extend([0x4f, 0, 0, 234, 0, 0, 0, 0, 64, 6]);
        frame.resize(14 + 60, 0);
        frame.extend([0, 80, 6379_u16.to_be_bytes()[0], 6379_u16.to_be_bytes()[1]]);
        frame.extend([0; 8]);
        frame.push(0xf0);
        frame.resize(14 + 120, 0);
        frame.extend(command);
        let whole = library.dissect(&frame, 1);
        assert!(whole.value("redis.key").is_some());
        let cut = library.dissect(&frame[..frame.len().min(depth)], 1);
        assert_eq!(cut.value("redis.key"), whole.value("redis.key"));
    }

    #[test]
    fn what_carries_what() {
        let library = Library::builtin();
        let implied = |name| library.implied_by(name).into_iter().collect::<Vec<_>>();
        assert_eq!(implied("redis"), ["eth", "redis", "tcp"]);
        assert_eq!(implied("agg"), ["agg", "eth", "udp"]);
        assert_eq!(implied("ip"), ["eth", "ip"]);
        assert_eq!(implied("inner_vlan"), ["eth", "inner_vlan", "vlan"]);
        assert_eq!(implied("switch"), ["switch"]);
        assert!(implied("gopher").is_empty());
    }

    #[test]
    fn what_excludes_what() {
        let library = Library::builtin();
        for (a, b, together) in [
            ("tcp", "udp", false),
            ("ip", "ipv6", false),
            ("redis", "agg", false),
            ("roce", "agg", false),
            ("redis", "ip", true),
            ("vlan", "udp", true),
            ("tcp", "tcp", true),
            ("switch", "udp", true),
        ] {
            assert_eq!(library.coexist(a, b), together, "{a} {b}");
            assert_eq!(library.coexist(b, a), together, "{b} {a}");
        }
    }
}
