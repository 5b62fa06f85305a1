//! Shortens paths: among plans of one rate, prefers one whose streams cross few links.

use std::collections::{BTreeMap, VecDeque};

use super::paths::StreamPaths;
use super::search::{Room, Search};
use super::tree::tree;
use crate::network::NodeId;

/// Maximum number of sets of summing switches that are tried for shorter paths.
const TRIES: usize = 32;
/// Maximum product of workers, switches and open switches for which other sets of switches are tried.
const LARGE: usize = 10_000_000;

impl Search<'_, '_> {
    /// Shortens paths at the same rate: exchanges summing switches as long as that saves links, in at most [`TRIES`] sets.
    pub fn shortened(&self, ways: StreamPaths) -> StreamPaths {
        let mut ways = self.led_anew(ways);
        let Some(distances) = Distances::new(self) else {
            return ways;
        };
        let mut tries = TRIES;
        loop {
            let open: Vec<usize> = distances.places(ways.ups.iter().map(|up| up.from));
            let sends = ways.hops() - ways.tree.len();
            let mut is_shorter = false;
            for next in distances.nearer(&open, self.takes, sends) {
                let open: Vec<Room> = next.iter().map(|place| self.rooms[*place]).collect();
                if !self.has_room(&open) {
                    continue;
                }
                if tries == 0 {
                    return ways;
                }
                tries -= 1;
                let Ok(found) = self.with_open(&open) else {
                    continue;
                };
                let found = self.led_anew(found);
                if found.hops() < ways.hops() {
                    (ways, is_shorter) = (found, true);
                    break;
                }
            }
            if !is_shorter {
                return ways;
            }
        }
    }

    /// Reroutes workers' streams, then sums, then answers, each by a flow of least cost in the capacity that the others leave,
    /// and repeats this as long as it saves a link. The summing switches stay the same, except one that would sum only one
    /// worker.
    fn led_anew(&self, mut ways: StreamPaths) -> StreamPaths {
        loop {
            let before = ways.hops();
            self.lead_workers(&mut ways);
            self.lead_sums(&mut ways);
            self.lead_answers(&mut ways);
            if ways.hops() >= before {
                return ways;
            }
        }
    }

    fn lead_workers(&self, ways: &mut StreamPaths) {
        let summed = ways.summed();
        ways.ups
            .retain(|up| summed.get(&up.from).is_some_and(|workers| *workers > 1));
        let mut flow = self.room.clone();
        flow.take(&ways.tree);
        ways.ups.iter().for_each(|up| flow.take(&up.route));
        let rooms: BTreeMap<NodeId, usize> = self.rooms.iter().copied().collect();
        let open = ways.ups.iter();
        let open = open.filter_map(|up| Some((up.from, *rooms.get(&up.from)?)));
        let mut sinks: Vec<(NodeId, usize)> = open.collect();
        sinks.push((self.streams.server.host, self.takes - ways.ups.len()));
        let workers: Vec<(NodeId, usize)> =
            ways.workers.iter().map(|stream| (stream.from, 1)).collect();
        ways.workers = flow.send(&workers, &sinks);
    }

    fn lead_sums(&self, ways: &mut StreamPaths) {
        let mut flow = self.room.clone();
        flow.take(&ways.tree);
        ways.workers
            .iter()
            .for_each(|stream| flow.take(&stream.route));
        let summed = ways.summed();
        let ups = ways.ups.iter().filter(|up| summed.contains_key(&up.from));
        let ups: Vec<(NodeId, usize)> = ups.map(|up| (up.from, 1)).collect();
        ways.ups = flow.send(&ups, &[(self.streams.server.host, self.takes)]);
    }

    fn lead_answers(&self, ways: &mut StreamPaths) {
        let mut flow = self.room.clone();
        for stream in ways.workers.iter().chain(&ways.ups) {
            flow.take(&stream.route);
        }
        let job = self.streams.job;
        let may = |arc| flow.room(arc) > 0;
        let shorter = tree(
            self.streams.network,
            self.streams.server.host,
            &job.workers,
            may,
            |_| 1,
        );
        if let Some(shorter) = shorter.filter(|shorter| shorter.len() < ways.tree.len()) {
            ways.tree = shorter;
        }
    }
}

/// Distances, in links with capacity for a stream, between workers, switches that can sum, and the server, by their indices.
struct Distances {
    /// For each worker, its distance to each switch.
    to_switch: Vec<Vec<usize>>,
    /// For each worker, its distance to the server.
    raw: Vec<usize>,
    /// For each switch, its distance to the server.
    up: Vec<usize>,
    switches: Vec<NodeId>,
}

/// Distance of an unreachable node: more links than any path has.
const FAR: usize = usize::MAX / 4096;

impl Distances {
    /// Computes the distances; `None` if the network and job are too large.
    fn new(search: &Search<'_, '_>) -> Option<Distances> {
        let workers = &search.streams.job.workers;
        let open = search.takes.min(search.rooms.len());
        if workers.len().saturating_mul(search.rooms.len() * open) > LARGE {
            return None;
        }
        let server = search.to(search.streams.server.host);
        let switches: Vec<NodeId> = search.rooms.iter().map(|(id, _)| *id).collect();
        let to: Vec<Vec<usize>> = switches.iter().map(|id| search.to(*id)).collect();
        let to_switch = workers.iter().map(|worker| {
            let to = to.iter().map(|to| to[worker.index()]);
            to.collect()
        });
        Some(Distances {
            to_switch: to_switch.collect(),
            raw: workers
                .iter()
                .map(|worker| server[worker.index()])
                .collect(),
            up: switches.iter().map(|id| server[id.index()]).collect(),
            switches,
        })
    }

    fn places(&self, open: impl Iterator<Item = NodeId>) -> Vec<usize> {
        let place = |id| self.switches.iter().position(|other| *other == id);
        open.filter_map(place).collect()
    }

    /// Sets of switches that differ from `open` by one switch and with which gradients might cross
    /// fewer than `hops` links, the fewest first. Link capacities may prevent it.
    fn nearer(&self, open: &[usize], takes: usize, hops: usize) -> Vec<Vec<usize>> {
        let closed = (0..self.switches.len()).filter(|place| !open.contains(place));
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for with in closed {
            if open.len() < takes {
                sets.push([open, &[with]].concat());
            }
            for without in 0..open.len() {
                let mut next = open.to_vec();
                next[without] = with;
                sets.push(next);
            }
        }
        for without in 0..open.len() {
            let mut next = open.to_vec();
            next.remove(without);
            sets.push(next);
        }
        let sets = sets.into_iter().map(|set| (self.least(&set, takes), set));
        let mut sets: Vec<(usize, Vec<usize>)> = sets.filter(|(least, _)| *least < hops).collect();
        sets.sort();
        sets.into_iter().map(|(_, set)| set).collect()
    }

    /// Lower bound of the number of links that gradients cross if these switches sum.
    fn least(&self, open: &[usize], takes: usize) -> usize {
        let has_room = takes > open.len();
        let workers = self.to_switch.iter().zip(&self.raw).map(|(to, raw)| {
            let nearest = open.iter().map(|place| to[*place]);
            nearest.chain(has_room.then_some(*raw)).min().unwrap_or(FAR)
        });
        let ups = open.iter().map(|place| self.up[*place]);
        workers.chain(ups).fold(0, usize::saturating_add)
    }
}

impl Search<'_, '_> {
    /// For each node, its number of links to `node`.
    fn to(&self, node: NodeId) -> Vec<usize> {
        let network = self.streams.network;
        let mut distances = vec![FAR; network.nodes().len()];
        distances[node.index()] = 0;
        let mut ahead = VecDeque::from([node]);
        while let Some(at) = ahead.pop_front() {
            // Hosts do not forward.
            if at != node && network.host(at).is_some() {
                continue;
            }
            for (link, before) in network.adjacent(at) {
                let has_room = self.room.room(network.arc(*link, *before)) > 0;
                if has_room && distances[before.index()] == FAR {
                    distances[before.index()] = distances[at.index()] + 1;
                    ahead.push_back(*before);
                }
            }
        }
        distances
    }
}
