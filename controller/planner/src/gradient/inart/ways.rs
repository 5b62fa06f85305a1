//! Lists, for each worker's stream, the nodes that may sum it (targets), the paths to them, and the resources on these paths.

use std::collections::BTreeMap;

use crate::gradient::{Job, JobError, Resource, Route};
use crate::network::{Arc, Network, NodeId};
use crate::routing::{Costs, Path, Routing};

/// Maximum number of paths considered between two nodes.
const WAYS: usize = 3;

/// Maximum number of switches in a network in which longer paths are considered besides the shortest.
const FEW_SWITCHES: usize = 24;

/// Maximum number of switches near a worker that may sum its gradient.
const NEAR: usize = 6;

/// Maximum number of hubs, the switches that may sum any worker's gradient: those with the most spare rate.
const HUBS: usize = 16;

/// A path, and the indices of the resources (links, switch, server) that it uses.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub route: Route,
    pub takes: Vec<u32>,
}

/// A switch or server to which a worker may send its gradient, and the paths to it.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Index of the switch in [`Ways::sites`]; `None` for the server.
    pub site: Option<usize>,
    pub ways: Vec<Way>,
}

pub(super) struct Ways<'n> {
    pub network: &'n Network,
    pub job: &'n Job,
    /// Spare rate of each resource, in bit/s.
    pub spare: Vec<f64>,
    places: BTreeMap<Resource, u32>,
    /// Switches that can sum.
    pub sites: Vec<NodeId>,
    /// Indices into `sites` of the switches with the most spare rate for sums, the greatest first.
    pub hubs: Vec<usize>,
    /// Group of each rank. Hosts with one link to the same switch are a group, since their paths are equal behind it.
    pub group: Vec<usize>,
    /// For each group, the node where its paths begin: the switch, or the group's only host.
    pub starts: Vec<NodeId>,
    /// For each rank, its host's only link, as an arc and the arc's index as a resource; `None` if the host has several links.
    pub first: Vec<Option<(Arc, u32)>>,
    /// By server and group of workers: the nodes that may sum their streams. The last one is the server.
    pub targets: Vec<Vec<Vec<Target>>>,
    /// By server and switch: paths of the switch's sum to the server; empty if none leads there.
    pub ups: Vec<Vec<Vec<Way>>>,
}

impl<'n> Ways<'n> {
    pub fn new(network: &'n Network, job: &'n Job) -> Result<Ways<'n>, JobError> {
        let routing = Routing::new(network, Costs::hops(network));
        let can_sum = |id: &NodeId| {
            network
                .switch(*id)
                .is_some_and(|switch| switch.programmable && switch.spare_sums_bps() != Some(0))
        };
        let mut ways = Ways {
            network,
            job,
            spare: Vec::new(),
            places: BTreeMap::new(),
            sites: network.switches().filter(can_sum).collect(),
            hubs: Vec::new(),
            group: Vec::new(),
            starts: Vec::new(),
            first: Vec::new(),
            targets: Vec::new(),
            ups: Vec::new(),
        };
        let mut starts: Vec<NodeId> = Vec::new();
        let mut groups: BTreeMap<NodeId, usize> = BTreeMap::new();
        for worker in &job.workers {
            let leaf = leaf(network, *worker);
            let start = leaf.map_or(*worker, |(_, switch)| switch);
            ways.group.push(*groups.entry(start).or_insert_with(|| {
                starts.push(start);
                starts.len() - 1
            }));
            let first = leaf.and_then(|(arc, _)| Some((arc, ways.place(Resource::Link(arc))?)));
            ways.first.push(first);
        }
        ways.hubs = hubs(&ways, &routing);
        ways.starts.clone_from(&starts);
        let reach: Vec<Vec<usize>> = starts
            .iter()
            .map(|start| {
                let mut sites = nearest(&routing, *start, &ways.sites);
                let hubs = ways.hubs.iter().copied();
                let others: Vec<usize> = hubs.filter(|hub| !sites.contains(hub)).collect();
                sites.extend(others);
                sites
            })
            .collect();
        let mut cache = Cache {
            network,
            routing: &routing,
            is_small: network.switches().count() <= FEW_SWITCHES,
            paths: BTreeMap::new(),
        };
        for server in &job.servers {
            let ups = ways.sites.clone().into_iter().map(|site| {
                let paths = cache.paths(site, server.host);
                ways.ways(paths, None, Some(server.host))
            });
            let ups: Vec<Vec<Way>> = ups.collect();
            let mut of_groups = Vec::new();
            for (start, reach) in starts.iter().zip(&reach) {
                let mut targets = Vec::new();
                for &site in reach.iter().filter(|site| !ups[**site].is_empty()) {
                    let at = ways.sites[site];
                    let paths = cache.paths(*start, at);
                    let ways = ways.ways(paths, Some(at), None);
                    let site = Some(site);
                    targets.extend((!ways.is_empty()).then_some(Target { site, ways }));
                }
                let paths = cache.paths(*start, server.host);
                targets.push(Target {
                    site: None,
                    ways: ways.ways(paths, None, Some(server.host)),
                });
                of_groups.push(targets);
            }
            let workers = job.workers.iter().zip(&ways.group).zip(&ways.first);
            for ((worker, group), first) in workers {
                let is_full = first.is_some_and(|(arc, _)| network.spare_bps(arc) == 0);
                let direct = of_groups[*group].last();
                if is_full || direct.is_none_or(|direct| direct.ways.is_empty()) {
                    return Err(job.no_way(network, *worker, server.host));
                }
            }
            ways.ups.push(ups);
            ways.targets.push(of_groups);
        }
        Ok(ways)
    }

    /// Targets (nodes that may sum) of a worker's stream for a server.
    pub fn targets(&self, server: usize, worker: usize) -> &[Target] {
        &self.targets[server][self.group[worker]]
    }

    /// The given paths on which every link has spare capacity, with the resources that each uses.
    fn ways(&mut self, paths: Vec<Path>, sums: Option<NodeId>, server: Option<NodeId>) -> Vec<Way> {
        let network = self.network;
        let has_room = |path: &Path| path.iter().all(|arc| network.spare_bps(*arc) > 0);
        let mut ways = Vec::new();
        for route in paths.into_iter().filter(has_room) {
            let links = route.iter().map(|arc| Resource::Link(*arc));
            let sums = sums.map(Resource::Sums);
            let all = links.chain(sums).chain(server.map(Resource::Ingress));
            let takes = all.filter_map(|resource| self.place(resource)).collect();
            ways.push(Way { route, takes });
        }
        ways
    }

    fn place(&mut self, resource: Resource) -> Option<u32> {
        if let Some(place) = self.places.get(&resource) {
            return Some(*place);
        }
        let spare = crate::gradient::spare_bps(self.network, self.job, resource)?;
        let place = self.spare.len() as u32;
        self.spare.push(spare);
        self.places.insert(resource, place);
        Some(place)
    }

    /// Rates in bit/s that each switch can still sum, and that each server can still receive.
    pub fn sums_and_ingress(&self) -> (Vec<f64>, Vec<f64>) {
        let of = |resource: Resource| {
            crate::gradient::spare_bps(self.network, self.job, resource).unwrap_or(f64::INFINITY)
        };
        let sums = self.sites.iter().map(|site| of(Resource::Sums(*site)));
        let servers = self.job.servers.iter();
        let ingress = servers.map(|server| of(Resource::Ingress(server.host)));
        (sums.collect(), ingress.collect())
    }

    /// Error that the job's workers cannot send any traffic.
    pub fn no_room(&self) -> JobError {
        let (worker, server) = (self.job.workers[0], self.job.servers[0].host);
        self.job.no_way(self.network, worker, server)
    }
}

/// For a host with one link: the link as an arc away from the host, and the switch at its end. `None` for other nodes.
fn leaf(network: &Network, node: NodeId) -> Option<(Arc, NodeId)> {
    network.host(node)?;
    match network.adjacent(node) {
        [(link, peer)] => {
            network.switch(*peer)?;
            Some((network.arc(*link, node), *peer))
        }
        _ => None,
    }
}

/// Indices of the switches nearest to a node. Neighbors break ties alike, so that their streams can be summed together.
fn nearest(routing: &Routing<'_>, from: NodeId, sites: &[NodeId]) -> Vec<usize> {
    let own = sites.partition_point(|site| *site < from);
    let distances = sites.iter().enumerate().filter_map(|(place, site)| {
        let hops = routing.distance(from, *site).ok()?.hops;
        Some((hops, place / NEAR != own / NEAR, place))
    });
    let mut near: Vec<(u32, bool, usize)> = distances.collect();
    near.sort_unstable();
    near.truncate(NEAR);
    near.into_iter().map(|(_, _, place)| place).collect()
}

/// Indices of the switches with the most spare rate for sums; among equal ones, those nearest to the servers come first.
fn hubs(ways: &Ways<'_>, routing: &Routing<'_>) -> Vec<usize> {
    let (sums, _) = ways.sums_and_ingress();
    let mut all: Vec<(f64, u64, usize)> = sums
        .into_iter()
        .zip(&ways.sites)
        .enumerate()
        .map(|(place, (sums, site))| {
            let servers = ways.job.servers.iter().map(|server| {
                let distance = routing.distance(*site, server.host);
                distance.map_or(u64::from(u32::MAX), |distance| u64::from(distance.hops))
            });
            (sums, servers.sum(), place)
        })
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    all.truncate(HUBS);
    all.into_iter().map(|(_, _, place)| place).collect()
}

/// Some of the shortest paths between two nodes. They part early, and vary with the ends, so that together they use all links.
fn equal_ways(routing: &Routing<'_>, from: NodeId, to: NodeId) -> Vec<Path> {
    let first = from.index() * 31 + to.index();
    let mut ways: Vec<Path> = Vec::new();
    for mut number in first..first + WAYS {
        let (mut at, mut way) = (from, Path::new());
        loop {
            let onward = routing.next_hops(at, to);
            let Some(arc) = onward.get(number % onward.len().max(1)) else {
                break;
            };
            way.push(*arc);
            at = routing.network().ends(*arc).1;
            number /= onward.len();
        }
        if at == to && !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

/// Cache of the paths between pairs of nodes.
struct Cache<'n, 'r> {
    network: &'n Network,
    routing: &'r Routing<'n>,
    is_small: bool,
    paths: BTreeMap<(NodeId, NodeId), Vec<Path>>,
}

impl Cache<'_, '_> {
    fn paths(&mut self, from: NodeId, to: NodeId) -> Vec<Path> {
        // Search paths to the only switch of a host, and append the last link.
        let (last, to) = match leaf(self.network, to) {
            Some((arc, switch)) => {
                let back = !arc.back;
                (Some(Arc { back, ..arc }), switch)
            }
            None => (None, to),
        };
        let routing = self.routing;
        let between = self
            .paths
            .entry((from, to))
            .or_insert_with(|| match from == to {
                true => vec![Path::new()],
                false if self.is_small => routing.k_shortest(from, to, WAYS).unwrap_or_default(),
                false => equal_ways(routing, from, to),
            });
        let whole = between
            .iter()
            .map(|path| path.iter().copied().chain(last).collect());
        whole.collect()
    }
}
