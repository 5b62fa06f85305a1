//! Slice: the part of the protocol library that a set of filters needs, as paths from Ethernet to the headers they name.

use std::collections::BTreeSet;

use crate::library::{Body, Library, ProtocolId, Target};
use crate::terms::{MatchKey, Term};

/// Protocol headers to parse, and the edges (which header follows which) between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    pub nodes: BTreeSet<ProtocolId>,
    pub edges: BTreeSet<(ProtocolId, ProtocolId)>,
    /// Edges that a filter needs. The other edges serve aggregation, whose frames have no options (docs/protocol.md).
    filter_edges: BTreeSet<(ProtocolId, ProtocolId)>,
}

impl Slice {
    /// Builds the slice for the terms of all flows. Removes terms that no packet can match, and
    /// constraints that every packet of a term meets.
    pub fn new<'a>(
        library: &Library,
        flows: impl Iterator<Item = &'a mut Vec<Term>>,
        aggregate: bool,
    ) -> Slice {
        let chains = chains(library);
        let mut slice = Slice::default();
        slice.nodes.insert(library.root);
        if aggregate {
            slice.add(&aggregation_chain(library));
        }
        for terms in flows {
            terms.retain_mut(|term| slice.add_term(library, &chains, term));
        }
        slice
    }

    /// Adds every path to a protocol's header, so that the parser finds the header wherever it is in a packet.
    pub fn add_protocol(&mut self, library: &Library, id: ProtocolId) {
        for chain in chains(library)
            .iter()
            .filter(|chain| chain.last() == Some(&id))
        {
            self.add(chain);
            self.filter_edges
                .extend(chain.windows(2).map(|pair| (pair[0], pair[1])));
        }
    }

    /// Adds every path to the headers of the protocols with these names.
    pub fn add_named(&mut self, library: &Library, names: &[&str]) {
        for (id, protocol) in library.protocols.iter().enumerate() {
            if names.contains(&protocol.name.as_str()) {
                self.add_protocol(library, id);
            }
        }
    }

    /// Adds TCP and UDP directly behind Ethernet and IPv4, with IPv4 options skipped: the ports identify a flow's packets.
    pub fn add_ports(&mut self, library: &Library) {
        let named = |chain: &[ProtocolId], last: &str| {
            let names = chain.iter().map(|id| library.protocols[*id].name.as_str());
            names.eq(["ethernet", "ipv4", last])
        };
        for chain in chains(library) {
            if ["tcp", "udp"].iter().any(|last| named(&chain, last)) {
                self.add(&chain);
                self.filter_edges.insert((chain[1], chain[2]));
            }
        }
    }

    /// Adds RoCEv2's BTH and RETH directly behind Ethernet, IPv4 and UDP: the packets that a switch sums have no options.
    pub fn add_roce(&mut self, library: &Library) {
        let named = |chain: &[ProtocolId]| {
            let names = chain.iter().map(|id| library.protocols[*id].name.as_str());
            names.eq(["ethernet", "ipv4", "udp", "roce", "reth"])
        };
        for chain in chains(library).iter().filter(|chain| named(chain)) {
            self.add(chain);
        }
    }

    pub fn follows(&self, from: ProtocolId, to: ProtocolId) -> bool {
        self.edges.contains(&(from, to))
    }

    /// Whether a filter needs a header behind the header of the protocol `from`.
    pub fn filters_look_beyond(&self, from: ProtocolId) -> bool {
        self.filter_edges.iter().any(|(a, _)| *a == from)
    }

    fn add(&mut self, chain: &[ProtocolId]) {
        self.nodes.extend(chain);
        self.edges
            .extend(chain.windows(2).map(|pair| (pair[0], pair[1])));
    }

    /// Adds the paths of headers on which the term can be decided; returns false if no path can match the term.
    fn add_term(&mut self, library: &Library, chains: &[Vec<ProtocolId>], term: &mut Term) -> bool {
        let owner = |key: &MatchKey| match key {
            MatchKey::Present(id) | MatchKey::There(id, _) => Some(*id),
            MatchKey::AtLeast(id, ..) | MatchKey::Byte(id, ..) => Some(*id),
            MatchKey::Field(id, _) => {
                (!matches!(library.protocols[*id].body, Body::Metadata { .. })).then_some(*id)
            }
        };
        let said = |value: u128| -> BTreeSet<ProtocolId> {
            let keys = term.iter().filter(|(_, values)| values.is(value));
            keys.filter_map(|(key, _)| match key {
                MatchKey::Present(id) => Some(*id),
                // A message is present if any part of it is.
                MatchKey::There(id, _) | MatchKey::AtLeast(id, ..) if value == 1 => Some(*id),
                _ => None,
            })
            .collect()
        };
        let (required, absent) = (said(1), said(0));
        let possible = |chain: &&Vec<ProtocolId>| {
            required.iter().all(|id| chain.contains(id))
                && !chain.iter().any(|id| absent.contains(id))
        };
        // A packet may be too short for any header, unless the term requires one.
        if !required.is_empty() && !chains.iter().any(|chain| possible(&chain)) {
            return false;
        }
        let mut chosen = Vec::new();
        for id in term.keys().filter_map(owner).collect::<BTreeSet<_>>() {
            let before = chosen.len();
            chosen.extend(chains.iter().filter(|chain| {
                let ends_in_need = chain
                    .last()
                    .is_some_and(|last| required.contains(last) || *last == id);
                ends_in_need && chain.contains(&id) && required.iter().all(|id| chain.contains(id))
            }));
            if chosen.len() == before {
                if required.contains(&id) {
                    return false;
                }
                // No path with the required headers contains this header.
                term.retain(|key, _| owner(key) != Some(id));
            }
        }
        for chain in chosen {
            self.add(chain);
            self.filter_edges
                .extend(chain.windows(2).map(|pair| (pair[0], pair[1])));
        }
        true
    }
}

/// All paths of headers through the parse graph, from the root to each protocol.
fn chains(library: &Library) -> Vec<Vec<ProtocolId>> {
    let mut chains = vec![vec![library.root]];
    let mut at = 0;
    // The loop ends, since edges lead forward in wire order.
    while at < chains.len() {
        let chain = chains[at].clone();
        let mut targets = BTreeSet::new();
        if let Some(last) = chain.last() {
            for edge in &library.protocols[*last].next {
                if let Target::Protocol(to) = edge.to {
                    targets.insert(to);
                }
            }
        }
        chains.extend(
            targets
                .into_iter()
                .map(|to| [chain.as_slice(), &[to]].concat()),
        );
        at += 1;
    }
    chains
}

/// Path of headers in an aggregation frame (docs/protocol.md): Ethernet, IPv4, UDP, aggregation header.
fn aggregation_chain(library: &Library) -> Vec<ProtocolId> {
    (0..library.protocols.len())
        .filter(|id| library.protocols[*id].is_common())
        .collect()
}
