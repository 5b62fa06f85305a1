//! Which part of the protocol library a set of filters needs: paths from Ethernet to the headers that they name.

use std::collections::BTreeSet;

use crate::library::{Body, Library, ProtocolId, Target};
use crate::terms::{MatchKey, Term};

/// The headers and edges to parse.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    pub nodes: BTreeSet<ProtocolId>,
    pub edges: BTreeSet<(ProtocolId, ProtocolId)>,
    /// Edges that a filter needs. The others serve aggregation, whose frames have no options (docs/protocol.md).
    filter_edges: BTreeSet<(ProtocolId, ProtocolId)>,
}

impl Slice {
    /// The slice of some flows' terms. Terms that no packet can meet are removed, and so are constraints that every
    /// packet of a term meets.
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

    /// Adds every path to a header, so that it is found wherever it is.
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

    /// Adds TCP and UDP straight behind Ethernet and IPv4, options skipped: what tells a flow's packets from others'.
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

    /// Adds BTH and RETH straight behind Ethernet, IPv4 and UDP: what of RoCEv2 is summed, which has no options.
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

    /// Some filter looks beyond this header.
    pub fn filters_look_beyond(&self, from: ProtocolId) -> bool {
        self.filter_edges.iter().any(|(a, _)| *a == from)
    }

    fn add(&mut self, chain: &[ProtocolId]) {
        self.nodes.extend(chain);
        self.edges
            .extend(chain.windows(2).map(|pair| (pair[0], pair[1])));
    }

    /// Adds the paths on which the term can be decided; false if no path meets it.
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
                // A message of which something is there is there.
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
        // Without required headers, the packet may be too short for any.
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
                // With the required headers there, this one never is.
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

/// Every path from the root to every protocol.
fn chains(library: &Library) -> Vec<Vec<ProtocolId>> {
    let mut chains = vec![vec![library.root]];
    let mut at = 0;
    // Edges lead forward in wire order, so this ends.
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

/// Ethernet, IPv4, UDP, aggregation header: as docs/protocol.md lays a frame out. They are what p4src/common names.
fn aggregation_chain(library: &Library) -> Vec<ProtocolId> {
    (0..library.protocols.len())
        .filter(|id| library.protocols[*id].is_common())
        .collect()
}
