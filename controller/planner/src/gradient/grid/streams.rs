//! Capacities of a network's links, switches and server, in whole streams of one rate.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::paths::StreamPaths;
use crate::gradient::{Job, Server};
use crate::network::{Arc, Network, NodeId};

/// Relative error up to which a capacity is rounded up to a whole stream: rates are ratios of whole numbers.
const ROUNDING: f64 = 1e-9;

/// A network and a job, to count how many streams fit at a rate.
pub(super) struct Streams<'n> {
    pub(super) network: &'n Network,
    pub(super) job: &'n Job,
    pub(super) server: &'n Server,
    /// Whether the server sends answers to the workers over the same links.
    pub(super) answers: bool,
    /// Switches that can sum, and the spare rate in bit/s of each for sums.
    sums: Vec<(NodeId, f64)>,
    /// For each node, whether it is a worker.
    is_worker: Vec<bool>,
    /// For each node, whether it is the only switch linked to some worker, so that answers must reach it over a link.
    is_answered: Vec<bool>,
    /// Spare ingress rate of the server, in bit/s.
    ingress_bps: f64,
}

impl<'n> Streams<'n> {
    pub(super) fn new(
        network: &'n Network,
        job: &'n Job,
        server: &'n Server,
        answers: bool,
    ) -> Streams<'n> {
        let sums = network.switches().filter_map(|id| {
            let switch = network.switch(id).filter(|switch| switch.programmable)?;
            let spare = switch.spare_sums_bps();
            Some((id, spare.map_or(f64::INFINITY, |bps| bps as f64)))
        });
        let mut is_worker = vec![false; network.nodes().len()];
        let mut is_answered = is_worker.clone();
        for worker in &job.workers {
            is_worker[worker.index()] = true;
            if let [(_, switch)] = network.adjacent(*worker) {
                is_answered[switch.index()] = answers;
            }
        }
        for (_, switch) in network.adjacent(server.host) {
            is_answered[switch.index()] = false;
        }
        Streams {
            network,
            job,
            server,
            answers,
            sums: sums.collect(),
            is_worker,
            is_answered,
            ingress_bps: server.spare_bps(network) as f64,
        }
    }

    /// Upper bound of the rate of any plan in bit/s, regardless of paths: by the links of workers
    /// and server, and by the number of streams that switches and the server can handle.
    pub(super) fn most_bps(&self) -> f64 {
        let widest = |host: NodeId, is_away: bool| {
            let links = self.network.adjacent(host).iter();
            let rates = links.map(|(link, peer)| {
                let from = if is_away { host } else { *peer };
                self.network.spare_bps(self.network.arc(*link, from))
            });
            rates.max().unwrap_or(0) as f64
        };
        let workers = self.job.workers.iter();
        let mut most = workers.clone().fold(self.ingress_bps, |most, worker| {
            most.min(widest(*worker, true))
        });
        if self.answers {
            most = workers.fold(most, |most, worker| most.min(widest(*worker, false)));
            most = most.min(widest(self.server.host, true));
        }
        // The higher the rate, the fewer streams fit.
        let rates = self.rates(0.0, most);
        let suffice = rates.partition_point(|rate_bps| self.counts_suffice(*rate_bps));
        suffice.checked_sub(1).map_or(0.0, |last| rates[last])
    }

    /// Whether the server can receive all streams at this rate if the switches of greatest capacity
    /// sum, regardless of paths. Such a switch makes one stream of as many workers as it can sum.
    fn counts_suffice(&self, rate_bps: f64) -> bool {
        let mut raw = self.job.workers.len();
        let mut streams = 0;
        for (_, room) in self.rooms(rate_bps) {
            let summed = room.min(raw);
            if summed < 2 {
                break;
            }
            raw -= summed;
            streams += 1;
        }
        streams + raw <= self.takes(rate_bps)
    }

    /// Switches that can sum at least two workers at this rate, and how many; the most first. The
    /// number is limited by the rate that a switch sums and by its links.
    pub(super) fn rooms(&self, rate_bps: f64) -> Vec<(NodeId, usize)> {
        let rooms = self.sums.iter();
        let rooms = rooms.map(|(id, spare)| {
            let brought = self.network.adjacent(*id).iter().map(|(link, peer)| {
                let room = self.room(self.network.arc(*link, *peer), rate_bps);
                match self.network.host(*peer) {
                    // A worker sends one stream, other hosts none.
                    Some(_) => room.min(usize::from(self.is_worker[peer.index()])),
                    None => room,
                }
            });
            let brought = brought.fold(0, usize::saturating_add);
            let brought = brought.saturating_sub(usize::from(self.is_answered[id.index()]));
            (*id, whole(*spare, rate_bps).min(brought))
        });
        let mut rooms: Vec<(NodeId, usize)> = rooms.filter(|(_, room)| *room >= 2).collect();
        rooms.sort_by_key(|(id, room)| (Reverse(*room), *id));
        rooms
    }

    /// Number of streams of this rate that fit on an arc.
    pub(super) fn room(&self, arc: Arc, rate_bps: f64) -> usize {
        whole(self.network.spare_bps(arc) as f64, rate_bps)
    }

    /// Number of streams of this rate that the server can receive.
    pub(super) fn takes(&self, rate_bps: f64) -> usize {
        whole(self.ingress_bps, rate_bps)
    }

    /// Rate of all workers, in bit/s, that these paths allow.
    pub(super) fn rate_of(&self, ways: &StreamPaths) -> f64 {
        let mut links: BTreeMap<Arc, usize> = BTreeMap::new();
        let streams = ways.workers.iter().chain(&ways.ups);
        let arcs = streams.flat_map(|stream| &stream.route).chain(&ways.tree);
        for arc in arcs {
            *links.entry(*arc).or_default() += 1;
        }
        let links = links.into_iter();
        let links = links.map(|(arc, count)| (self.network.spare_bps(arc) as f64, count));
        let summed = ways.summed();
        let raw = summed.get(&self.server.host).copied().unwrap_or(0);
        let sums = self.sums.iter();
        let sums = sums.filter_map(|(switch, spare)| Some((*spare, *summed.get(switch)?)));
        let ingress = (self.ingress_bps, raw + ways.ups.len());
        let rates = links.chain(sums).chain([ingress]);
        let rates = rates.map(|(capacity_bps, count)| capacity_bps / count as f64);
        rates.fold(f64::INFINITY, f64::min)
    }

    /// Maximum number of streams on one link: one per worker, one per sum, and the answers.
    pub(super) fn most_streams(&self) -> usize {
        self.job.workers.len() + self.sums.len() + 1
    }

    /// Rates above `above_bps`, up to `most_bps`, at which some capacity is a whole number of streams, ascending. Between two
    /// such rates, all numbers of streams are those of the greater rate.
    pub(super) fn rates(&self, above_bps: f64, most_bps: f64) -> Vec<f64> {
        let links = self.network.arcs();
        let links = links.map(|arc| self.network.spare_bps(arc));
        let sums = self.sums.iter().filter(|(_, spare)| spare.is_finite());
        let sums = sums.map(|(_, spare)| *spare as u64);
        let capacities: BTreeSet<u64> =
            links.chain(sums).chain([self.ingress_bps as u64]).collect();
        let mut rates: Vec<f64> = Vec::new();
        for capacity in capacities {
            let least = (capacity as f64 / most_bps).floor().max(1.0) as usize;
            let streams = least..=self.most_streams();
            let of_it = streams.map(|streams| capacity as f64 / streams as f64);
            rates.extend(
                of_it
                    .skip_while(|rate| *rate > most_bps)
                    .take_while(|rate| *rate > above_bps * (1.0 + 10.0 * ROUNDING)),
            );
        }
        rates.push(most_bps);
        rates.sort_by(f64::total_cmp);
        // If two rates differ only by rounding, keep the greater.
        rates.dedup_by(|later, first| {
            let is_same = *later <= *first * (1.0 + ROUNDING);
            if is_same {
                *first = *later;
            }
            is_same
        });
        rates
    }
}

/// Finds a lower and an upper bound of the greatest rate at which a condition holds. It also holds at all lower rates.
pub(crate) fn bisect(
    mut low: f64,
    mut high: f64,
    mut holds: impl FnMut(f64) -> bool,
) -> (f64, f64) {
    if holds(high) {
        return (high, high);
    }
    while high - low > ROUNDING * high {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
}

/// Number of whole streams of a rate that fit into a capacity.
pub(crate) fn whole(capacity_bps: f64, rate_bps: f64) -> usize {
    // The cast saturates for an infinite capacity.
    ((capacity_bps / rate_bps) * (1.0 + ROUNDING)) as usize
}
