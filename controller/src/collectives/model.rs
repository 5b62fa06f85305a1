//! Builds the cost model of a network: each direction of a link is an edge, and each pair of ranks has a route of edges.

use std::collections::BTreeMap;

use collectives::cost::bounds::Cut;
use collectives::cost::{EdgeId, Model, ModelError};
use collectives::{Hierarchy, machine::Machine};
use planner::network::{Arc, NetworkError};
use planner::routing::{Costs, Routing};
use planner::{LinkId, Network, NodeId};

use super::request::Inner;
use super::{MAX_RANKS, PlanError};

/// Hosts of a network that have ranks, and the cost model of this network.
pub struct Modelled<'n> {
    pub network: &'n Network,
    /// Hosts with ranks: the first one has the first `ranks_each` ranks, and so on.
    pub hosts: Vec<NodeId>,
    /// Number of ranks per host.
    pub ranks_each: usize,
    pub model: Model,
    /// For each edge of the cost model that is a link: the link's direction, and the edge's number (from 0) in this direction.
    pub links: BTreeMap<EdgeId, (Arc, usize)>,
    /// Total rate of the NICs of each host, in bits per second, in the order of `hosts`.
    nics_bps: Vec<u64>,
}

/// A NIC of a host: the link that it uses, the switch at the other end, and its number among the NICs on this link.
#[derive(Debug, Clone, Copy)]
struct Nic {
    link: LinkId,
    switch: NodeId,
    copy: usize,
}

impl<'n> Modelled<'n> {
    pub fn new(
        network: &'n Network,
        hosts: &[NodeId],
        inner: Option<Inner>,
        message_ns: u64,
    ) -> Result<Self, PlanError> {
        let ranks_each = inner.map_or(1, |inner| inner.gpus);
        let ranks = hosts.len() * ranks_each;
        if !(2..=MAX_RANKS).contains(&ranks) {
            return Err(PlanError::Ranks(ranks));
        }
        let mut modelled = Self {
            network,
            hosts: hosts.to_vec(),
            ranks_each,
            model: Model::new(ranks),
            links: BTreeMap::new(),
            nics_bps: Vec::new(),
        };
        let nics = hosts.iter().map(|host| nics(network, *host, inner));
        let nics: Vec<Vec<Nic>> = nics.collect::<Result<_, _>>()?;
        let rate = |nic: &Nic| network.link(nic.link).rate_bps;
        modelled.nics_bps = nics
            .iter()
            .map(|nics| nics.iter().map(rate).sum())
            .collect();
        match inner {
            None => modelled.hosts_alone(&nics)?,
            Some(inner) => modelled.with_insides(&inner.machine(), &nics)?,
        }
        modelled.model.post_ns = message_ns;
        Ok(modelled)
    }

    /// Builds the cost model for hosts with one rank each. The hosts at one switch form a group for hierarchical algorithms.
    fn hosts_alone(&mut self, nics: &[Vec<Nic>]) -> Result<(), PlanError> {
        let mut edges = Edges::default();
        let routing = Routing::new(self.network, Costs::hops(self.network));
        for (from, sender) in nics.iter().enumerate() {
            for to in (0..nics.len()).filter(|to| *to != from) {
                // Hosts with several NICs use a different one for each peer.
                let turn = match sender.len() {
                    1 => from,
                    _ => from + to,
                };
                let [host, other] = [self.hosts[from], self.hosts[to]];
                let way = way(&routing, host, other, turn)?;
                let way = way.into_iter().map(|arc| (arc, 0));
                let route = edges.of(&mut self.model, self.network, way)?;
                self.model.set_route(from, to, route)?;
            }
        }
        self.links = edges.into_links();
        let mut racks: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
        for (rank, nics) in nics.iter().enumerate() {
            racks.entry(nics[0].switch).or_default().push(rank);
        }
        let racks: Vec<Vec<usize>> = racks.into_values().collect();
        if racks.len() > 1 && racks.len() < nics.len() {
            self.model.hierarchy = Hierarchy::new(racks).ok();
        }
        Ok(())
    }

    /// Builds the cost model for hosts with several ranks. The ranks share the host's NICs, and each NIC has its own link.
    fn with_insides(&mut self, machine: &Machine, nics: &[Vec<Nic>]) -> Result<(), PlanError> {
        let mut edges = Edges::default();
        let mut ways: BTreeMap<[[usize; 2]; 2], Vec<EdgeId>> = BTreeMap::new();
        let routing = Routing::new(self.network, Costs::hops(self.network));
        for (from, senders) in nics.iter().enumerate() {
            for (to, receivers) in nics.iter().enumerate() {
                if from == to {
                    continue;
                }
                for (nic, sender) in senders.iter().enumerate() {
                    for (other, receiver) in receivers.iter().enumerate() {
                        let turn = from * senders.len() + nic;
                        let way = self.between(&routing, sender, receiver, turn)?;
                        let route = edges.of(&mut self.model, self.network, way.into_iter())?;
                        ways.insert([[from, nic], [to, other]], route);
                    }
                }
            }
        }
        let across = |from: [usize; 2], to: [usize; 2]| {
            let way = ways.get(&[from, to]);
            way.cloned().unwrap_or_default()
        };
        machine.join(&mut self.model, nics.len(), &across)?;
        self.links = edges.into_links();
        Ok(())
    }

    /// Returns the route from one NIC to another: the link of the sender's NIC, links between switches, the receiver's link.
    fn between(
        &self,
        routing: &Routing<'_>,
        from: &Nic,
        to: &Nic,
        turn: usize,
    ) -> Result<Vec<(Arc, usize)>, NetworkError> {
        let first = self.network.arc(from.link, from.switch);
        let first = Arc {
            back: !first.back,
            ..first
        };
        let last = self.network.arc(to.link, to.switch);
        let mut way = vec![(first, from.copy)];
        if from.switch != to.switch {
            let between = self::way(routing, from.switch, to.switch, turn)?;
            way.extend(between.into_iter().map(|arc| (arc, 0)));
        }
        way.push((last, to.copy));
        Ok(way)
    }

    /// Returns the host of a rank.
    pub fn host(&self, rank: usize) -> NodeId {
        self.hosts[rank / self.ranks_each]
    }

    /// Cuts of the network, with names; each separates the ranks of a host, or of all hosts behind a switch, from the rest.
    pub fn cuts(&self) -> Vec<(String, Cut)> {
        let hosts = self.hosts.iter().zip(&self.nics_bps);
        let mut cuts: Vec<(String, Cut)> = hosts
            .map(|(host, bps)| {
                let name = format!("the links of {}", self.network.name(*host));
                (name, self.cut(&[*host], *bps))
            })
            .collect();
        for switch in self.network.switches() {
            let links = self.network.adjacent(switch).iter();
            let (mut below, mut up_bps) = (Vec::new(), 0_u64);
            for (link, peer) in links {
                match self.network.host(*peer) {
                    // A host with other routes as well is not behind this switch.
                    Some(_) if self.only_at(*peer, switch) => below.push(*peer),
                    _ => up_bps = up_bps.saturating_add(self.network.link(*link).rate_bps),
                }
            }
            below.retain(|host| self.hosts.contains(host));
            below.dedup();
            if !below.is_empty() && up_bps > 0 {
                let name = format!("the uplinks of {}", self.network.name(switch));
                cuts.push((name, self.cut(&below, up_bps)));
            }
        }
        cuts
    }

    fn only_at(&self, host: NodeId, switch: NodeId) -> bool {
        let mut links = self.network.adjacent(host).iter();
        links.all(|(_, peer)| *peer == switch)
    }

    fn cut(&self, hosts: &[NodeId], bps: u64) -> Cut {
        let ranks = 0..self.model.ranks();
        Cut {
            inside: ranks.map(|rank| hosts.contains(&self.host(rank))).collect(),
            into_bps: bps,
            out_bps: bps,
        }
    }

    /// Total rate at which all hosts together can send, in bits per second.
    pub fn all_out_bps(&self) -> u64 {
        let all = self.nics_bps.iter();
        all.fold(0, |sum, bps| sum.saturating_add(*bps))
    }

    /// Name of an edge for readers: `h1 → s1` for a link, `h1: …` for an edge inside a host.
    pub fn name(&self, edge: EdgeId) -> String {
        if let Some((arc, copy)) = self.links.get(&edge) {
            let (from, to) = self.network.ends(*arc);
            let of_several = match copy {
                0 => String::new(),
                more => format!(" ({})", more + 1),
            };
            let [from, to] = [from, to].map(|node| self.network.name(node));
            return format!("{from} → {to}{of_several}");
        }
        // The model numbers its nodes.
        let name = &self.model.edges()[edge.0].name;
        let rest = name.strip_prefix("node ").and_then(|rest| {
            let (node, what) = rest.split_once(' ')?;
            let host = self.hosts.get(node.parse::<usize>().ok()?)?;
            Some(format!("{}: {what}", self.network.name(*host)))
        });
        rest.unwrap_or_else(|| name.clone())
    }
}

/// One of the shortest routes between two nodes. `turn`, which depends on the sender, selects one of the equally good next hops
/// at each switch, as in a fat tree with routing by source.
fn way(
    routing: &Routing<'_>,
    from: NodeId,
    to: NodeId,
    mut turn: usize,
) -> Result<Vec<Arc>, NetworkError> {
    routing.distance(from, to)?;
    let (mut at, mut way) = (from, Vec::new());
    loop {
        let onward = routing.next_hops(at, to);
        let Some(arc) = onward.get(turn % onward.len().max(1)) else {
            return Ok(way);
        };
        turn /= onward.len();
        at = routing.network().ends(*arc).1;
        way.push(*arc);
    }
}

/// Edges of the cost model, by the link's direction and the edge's number in it; created when a route first uses them.
#[derive(Default)]
struct Edges(BTreeMap<(Arc, usize), EdgeId>);

impl Edges {
    fn of(
        &mut self,
        model: &mut Model,
        network: &Network,
        way: impl Iterator<Item = (Arc, usize)>,
    ) -> Result<Vec<EdgeId>, ModelError> {
        let mut route = Vec::new();
        for (arc, copy) in way {
            let known = self.0.get(&(arc, copy)).copied();
            route.push(match known {
                Some(edge) => edge,
                None => {
                    let link = network.link(arc.link);
                    let (from, to) = network.ends(arc);
                    let name = format!("{} → {}", network.name(from), network.name(to));
                    let edge = model.add_edge(&name, link.rate_bps, link.delay_ns)?;
                    self.0.insert((arc, copy), edge);
                    edge
                }
            });
        }
        Ok(route)
    }

    fn into_links(self) -> BTreeMap<EdgeId, (Arc, usize)> {
        let all = self.0.into_iter();
        all.map(|(link, edge)| (edge, link)).collect()
    }
}

/// Returns the NICs of a host. Each uses the next of the host's links to switches; more NICs than links share the links.
fn nics(network: &Network, host: NodeId, inner: Option<Inner>) -> Result<Vec<Nic>, PlanError> {
    let links = network.adjacent(host).iter();
    let links = links.filter(|(_, peer)| network.switch(*peer).is_some());
    let links: Vec<Nic> = links
        .map(|(link, switch)| Nic {
            link: *link,
            switch: *switch,
            copy: 0,
        })
        .collect();
    if links.is_empty() {
        return Err(PlanError::NoLink(network.name(host).to_owned()));
    }
    let Some(inner) = inner else {
        return Ok(links);
    };
    if inner.nics > links.len() && inner.nics % links.len() != 0 {
        return Err(PlanError::Nics {
            host: network.name(host).to_owned(),
            nics: inner.nics,
            links: links.len(),
        });
    }
    let nic = |number: usize| Nic {
        copy: number / links.len(),
        ..links[number % links.len()]
    };
    Ok((0..inner.nics).map(nic).collect())
}
