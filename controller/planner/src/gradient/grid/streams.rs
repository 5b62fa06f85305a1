//! What there is room for, in whole streams of one rate.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::search::Ways;
use crate::gradient::{Job, Server};
use crate::network::{Arc, Network, NodeId};

/// A capacity that is this little short of a whole stream has room for it: rates are ratios of whole numbers.
const ROUNDING: f64 = 1e-9;

/// What there is to be counted.
pub(super) struct Streams<'n> {
    pub(super) network: &'n Network,
    pub(super) job: &'n Job,
    pub(super) server: &'n Server,
    /// Whether the server answers over the same links.
    pub(super) answers: bool,
    /// Switches that can sum, with what they have left, in bits a second.
    sums: Vec<(NodeId, f64)>,
    /// By node.
    is_worker: Vec<bool>,
    /// By node: switches that a link has to bring answers to, since some worker has them from nowhere else.
    is_answered: Vec<bool>,
    /// What the server has left.
    ingress_bps: f64,
}

impl<'n> Streams<'n> {
    pub(super) fn of(
        network: &'n Network,
        job: &'n Job,
        server: &'n Server,
        answers: bool,
    ) -> Streams<'n> {
        let sums = network.switches().filter_map(|id| {
            let switch = network.switch(id).filter(|switch| switch.programmable)?;
            let spare = match switch.throughput_bps {
                Some(bps) => bps.saturating_sub(switch.load_bps) as f64,
                None => f64::INFINITY,
            };
            Some((id, spare))
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

    /// What no plan is above, whatever the ways: what links of workers and of the server carry, and what switches and server
    /// count.
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
        // Fewer streams fit the faster they are.
        let rates = self.rates(0.0, most);
        let suffice = rates.partition_point(|rate_bps| self.counts_suffice(*rate_bps));
        suffice.checked_sub(1).map_or(0.0, |last| rates[last])
    }

    /// Whether the server has room for the streams if the switches that sum most are open, and ways do not matter. One that
    /// is open makes one stream of as many as it has room for.
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

    /// The switches that have room for two workers and more, the one with the most first: what they sum, and what their links
    /// bring them.
    pub(super) fn rooms(&self, rate_bps: f64) -> Vec<(NodeId, usize)> {
        let rooms = self.sums.iter();
        let rooms = rooms.map(|(id, spare)| {
            let brought = self.network.adjacent(*id).iter().map(|(link, peer)| {
                let room = self.room(self.network.arc(*link, *peer), rate_bps);
                match self.network.host(*peer) {
                    // A worker is one, and other hosts are none.
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

    /// How many streams a direction of a link has room for.
    pub(super) fn room(&self, arc: Arc, rate_bps: f64) -> usize {
        whole(self.network.spare_bps(arc) as f64, rate_bps)
    }

    /// How many streams the server has room for.
    pub(super) fn takes(&self, rate_bps: f64) -> usize {
        whole(self.ingress_bps, rate_bps)
    }

    /// What all workers can send by these ways.
    pub(super) fn rate_of(&self, ways: &Ways) -> f64 {
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

    /// How many streams one link can have to carry: each worker's, each sum, and the answers.
    pub(super) fn most_streams(&self) -> usize {
        self.job.workers.len() + self.sums.len() + 1
    }

    /// The rates above one and up to another at which something has room for just so many streams, from the least on. Between
    /// two of them all is the same as at the greater.
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
        // Of two that are the same but for rounding, the greater stands for both.
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

/// The greatest rate at which something holds, from below and from above: it holds at all that are less.
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

/// How many streams of a rate have room.
pub(crate) fn whole(capacity_bps: f64, rate_bps: f64) -> usize {
    // An infinite capacity has room for as many as there are numbers.
    ((capacity_bps / rate_bps) * (1.0 + ROUNDING)) as usize
}
