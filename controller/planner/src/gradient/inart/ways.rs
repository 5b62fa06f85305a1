//! Where each stream may go, and what it takes room of.

use std::collections::BTreeMap;

use crate::gradient::{Job, JobError, Resource, Route};
use crate::network::{Arc, Network, NodeId};
use crate::routing::{Costs, Path, Routing};

/// Ways between two nodes, at most.
const WAYS: usize = 3;

/// Switches that may sum a worker's gradient, the nearest, at most.
const SITES: usize = 6;

/// A way and the places of the resources that it takes room of.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub route: Route,
    pub takes: Vec<u32>,
}

/// A switch or a server that a worker may send to, and how.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// A place in [`Ways::sites`]; `None`: the server.
    pub site: Option<usize>,
    pub ways: Vec<Way>,
}

pub(super) struct Ways<'n> {
    network: &'n Network,
    pub job: &'n Job,
    /// What each resource has left, in bits a second.
    pub spare: Vec<f64>,
    places: BTreeMap<Resource, u32>,
    /// Switches that can sum.
    pub sites: Vec<NodeId>,
    /// By server and worker; the server is the last.
    pub targets: Vec<Vec<Vec<Target>>>,
    /// By server and site, the ways of sums; none if nothing leads there.
    pub ups: Vec<Vec<Vec<Way>>>,
}

impl<'n> Ways<'n> {
    pub fn of(network: &'n Network, job: &'n Job) -> Result<Ways<'n>, JobError> {
        let routing = Routing::new(network, Costs::hops(network));
        let can_sum = |id: &NodeId| {
            network.switch(*id).is_some_and(|switch| {
                let is_full = switch
                    .throughput_bps
                    .is_some_and(|bps| bps <= switch.load_bps);
                switch.programmable && !is_full
            })
        };
        let mut ways = Ways {
            network,
            job,
            spare: Vec::new(),
            places: BTreeMap::new(),
            sites: network.switches().filter(can_sum).collect(),
            targets: Vec::new(),
            ups: Vec::new(),
        };
        let mut cache = Cache::new(network, &routing);
        // The nearest switches are the same for all servers.
        let near: Vec<Vec<usize>> = job
            .workers
            .iter()
            .map(|worker| cache.nearest(*worker, &ways.sites))
            .collect();
        for server in &job.servers {
            let ups = ways.sites.clone().into_iter().map(|site| {
                let paths = cache.paths(site, server.host);
                ways.ways(paths, None, Some(server.host))
            });
            let ups: Vec<Vec<Way>> = ups.collect();
            let mut of_workers = Vec::new();
            for (worker, near) in job.workers.iter().zip(&near) {
                let mut targets = Vec::new();
                for &site in near.iter().filter(|site| !ups[**site].is_empty()) {
                    let at = ways.sites[site];
                    let paths = cache.paths(*worker, at);
                    let ways = ways.ways(paths, Some(at), None);
                    let site = Some(site);
                    targets.extend((!ways.is_empty()).then_some(Target { site, ways }));
                }
                let paths = cache.paths(*worker, server.host);
                let direct = ways.ways(paths, None, Some(server.host));
                if direct.is_empty() {
                    return Err(JobError::NoWay {
                        job: job.name.clone(),
                        from: network.name(*worker).to_owned(),
                        to: network.name(server.host).to_owned(),
                    });
                }
                targets.push(Target {
                    site: None,
                    ways: direct,
                });
                of_workers.push(targets);
            }
            ways.ups.push(ups);
            ways.targets.push(of_workers);
        }
        Ok(ways)
    }

    /// Those paths that have anything left.
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

    /// What resources have left that are switches' sums, and servers'.
    pub fn sums_and_ingress(&self) -> (Vec<f64>, Vec<f64>) {
        let of = |resource: Resource| {
            crate::gradient::spare_bps(self.network, self.job, resource).unwrap_or(f64::INFINITY)
        };
        let sums = self.sites.iter().map(|site| of(Resource::Sums(*site)));
        let servers = self.job.servers.iter();
        let ingress = servers.map(|server| of(Resource::Ingress(server.host)));
        (sums.collect(), ingress.collect())
    }

    /// What the links of the worker that has the least carry.
    pub fn narrowest_worker(&self) -> f64 {
        let workers = self.job.workers.iter().map(|worker| {
            let links = self.network.adjacent(*worker).iter();
            let rates = links.map(|(link, _)| {
                let arc = self.network.arc(*link, *worker);
                self.network.spare_bps(arc) as f64
            });
            rates.sum::<f64>()
        });
        workers.fold(f64::INFINITY, f64::min)
    }

    /// Why nothing can be sent at all.
    pub fn no_room(&self) -> JobError {
        let network = self.network;
        JobError::NoWay {
            job: self.job.name.clone(),
            from: network.name(self.job.workers[0]).to_owned(),
            to: network.name(self.job.servers[0].host).to_owned(),
        }
    }
}

/// Paths from switches, which the hosts of a switch share.
struct Cache<'n, 'r> {
    network: &'n Network,
    routing: &'r Routing<'n>,
    paths: BTreeMap<(NodeId, NodeId), Vec<Path>>,
    nearest: BTreeMap<NodeId, Vec<usize>>,
}

impl<'n, 'r> Cache<'n, 'r> {
    fn new(network: &'n Network, routing: &'r Routing<'n>) -> Cache<'n, 'r> {
        Cache {
            network,
            routing,
            paths: BTreeMap::new(),
            nearest: BTreeMap::new(),
        }
    }

    /// The only link of a host, and the switch behind it.
    fn leaf(&self, host: NodeId) -> Option<(Arc, NodeId)> {
        match self.network.adjacent(host) {
            [(link, peer)] if self.network.host(host).is_some() => {
                let is_switch = self.network.switch(*peer).is_some();
                is_switch.then(|| (self.network.arc(*link, host), *peer))
            }
            _ => None,
        }
    }

    fn paths(&mut self, from: NodeId, to: NodeId) -> Vec<Path> {
        // Between the switches of the ends; what the ends add is the same for all.
        let (first, from) = match self.leaf(from) {
            Some((arc, switch)) => (Some(arc), switch),
            None => (None, from),
        };
        let (last, to) = match self.leaf(to) {
            Some((arc, switch)) => (
                Some(Arc {
                    back: !arc.back,
                    ..arc
                }),
                switch,
            ),
            None => (None, to),
        };
        let routing = self.routing;
        let between = self
            .paths
            .entry((from, to))
            .or_insert_with(|| match from == to {
                true => vec![Path::new()],
                false => routing.k_shortest(from, to, WAYS).unwrap_or_default(),
            });
        let whole = between.iter().map(|path| {
            let path = path.iter().copied();
            first.into_iter().chain(path).chain(last).collect()
        });
        whole.collect()
    }

    fn nearest(&mut self, worker: NodeId, sites: &[NodeId]) -> Vec<usize> {
        let from = self.leaf(worker).map_or(worker, |(_, switch)| switch);
        let routing = self.routing;
        let nearest = self.nearest.entry(from).or_insert_with(|| {
            let mut near: Vec<(u32, usize)> = sites
                .iter()
                .enumerate()
                .filter_map(|(place, site)| {
                    let hops = routing.distance(from, *site).ok()?.hops;
                    Some((hops, place))
                })
                .collect();
            near.sort_unstable();
            near.truncate(SITES);
            near.into_iter().map(|(_, place)| place).collect()
        });
        nearest.clone()
    }
}
