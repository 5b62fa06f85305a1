//! Which protocols stand in one packet: what follows from the parse graph alone.

use std::collections::BTreeSet;

use super::{Body, Library, ProtocolId, Target};

impl Library {
    /// The protocols that every packet with `protocol` has, itself included: those that stand on every way from the root
    /// to it. Names are those of filters. Empty for a name that the library does not have.
    pub fn implied_by(&self, protocol: &str) -> BTreeSet<&str> {
        let Some(id) = self.protocols.iter().position(|p| p.filter == protocol) else {
            return BTreeSet::new();
        };
        let is_on_every_way =
            |on: &ProtocolId| *on == id || !self.reaches(self.root, id, Some(*on));
        let all = 0..self.protocols.len();
        let of_packets = all.filter(|id| self.reaches(self.root, *id, None));
        let carriers = of_packets.filter(is_on_every_way);
        // Metadata are no part of a packet, and nothing carries them.
        let is_metadata = matches!(self.protocols[id].body, Body::Metadata { .. });
        let carriers: BTreeSet<ProtocolId> = if is_metadata {
            [id].into()
        } else {
            carriers.collect()
        };
        carriers
            .into_iter()
            .map(|id| self.protocols[id].filter.as_str())
            .collect()
    }

    /// Whether a packet may have both protocols: whether one of them may follow the other, at whatever distance.
    pub fn coexist(&self, a: &str, b: &str) -> bool {
        let id = |name: &str| self.protocols.iter().position(|p| p.filter == name);
        let (Some(a), Some(b)) = (id(a), id(b)) else {
            return false;
        };
        let is_metadata = |id: ProtocolId| matches!(self.protocols[id].body, Body::Metadata { .. });
        is_metadata(a) || is_metadata(b) || self.reaches(a, b, None) || self.reaches(b, a, None)
    }

    /// Filter names of the protocols that no packet has.
    pub(super) fn unreachable(&self) -> Vec<String> {
        let lost = (0..self.protocols.len()).filter(|id| {
            let is_metadata = matches!(self.protocols[*id].body, Body::Metadata { .. });
            !is_metadata && !self.reaches(self.root, *id, None)
        });
        lost.map(|id| self.protocols[id].filter.clone()).collect()
    }

    /// The values that select fields of a header may have in a packet with another protocol behind it, by the field's index.
    /// Fields that may have any value are left out.
    pub(crate) fn selecting(&self, from: ProtocolId, to: ProtocolId) -> Vec<(usize, Vec<u128>)> {
        let protocol = &self.protocols[from];
        let leads = |target: Target| match target {
            Target::Protocol(id) => id == to || self.reaches(id, to, None),
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

    /// Whether one header may stand behind another in a packet, at whatever distance.
    pub(crate) fn leads_to(&self, from: ProtocolId, to: ProtocolId) -> bool {
        from != to && self.reaches(from, to, None)
    }

    /// Whether a parse may come from one protocol to another without passing `without`.
    fn reaches(&self, from: ProtocolId, to: ProtocolId, without: Option<ProtocolId>) -> bool {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(id) = waiting.pop() {
            if Some(id) == without || !seen.insert(id) {
                continue;
            }
            if id == to {
                return true;
            }
            let next = self.protocols[id].next.iter();
            waiting.extend(next.filter_map(|edge| match edge.to {
                Target::Protocol(id) => Some(id),
                Target::Note(_) | Target::End => None,
            }));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
