//! Whole streams of one rate: which switches sum, and which way each stream goes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::flow::{Flow, Stream};
use crate::gradient::{Goal, Job, Member, Part, Plan, Server};
use crate::network::{Arc, LinkId, Network, NodeId};

/// A capacity that is this little short of a whole stream has room for it: rates are ratios of whole numbers.
const ROUNDING: f64 = 1e-9;

/// What there is to be counted.
pub(super) struct Streams<'n> {
    pub(super) network: &'n Network,
    pub(super) job: &'n Job,
    pub(super) server: &'n Server,
    /// Switches that can sum, with what they have left, in bits a second.
    sums: Vec<(NodeId, f64)>,
    /// By node.
    is_worker: Vec<bool>,
    /// What the server has left.
    ingress_bps: f64,
}

impl<'n> Streams<'n> {
    pub(super) fn of(network: &'n Network, job: &'n Job, server: &'n Server) -> Streams<'n> {
        let sums = network.switches().filter_map(|id| {
            let switch = network.switch(id).filter(|switch| switch.programmable)?;
            let spare = match switch.throughput_bps {
                Some(bps) => bps.saturating_sub(switch.load_bps) as f64,
                None => f64::INFINITY,
            };
            Some((id, spare))
        });
        let mut is_worker = vec![false; network.nodes().len()];
        for worker in &job.workers {
            is_worker[worker.index()] = true;
        }
        Streams {
            is_worker,
            network,
            job,
            server,
            sums: sums.collect(),
            ingress_bps: server.spare_bps(network) as f64,
        }
    }

    /// What no plan is above, whatever the ways: what each worker's links carry, and what switches and server count.
    pub(super) fn most_bps(&self) -> f64 {
        let widest = |worker: &NodeId| {
            let links = self.network.adjacent(*worker).iter();
            let rates = links.map(|(link, _)| {
                let arc = self.network.arc(*link, *worker);
                self.network.spare_bps(arc)
            });
            rates.max().unwrap_or(0)
        };
        let workers = self.job.workers.iter().map(widest).min().unwrap_or(0) as f64;
        let most = workers.min(self.ingress_bps);
        // Fewer streams fit the faster they are.
        bisect(0.0, most, |rate_bps| self.counts_suffice(rate_bps)).1
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
                let spare = self.network.spare_bps(self.network.arc(*link, *peer));
                let room = whole(spare as f64, rate_bps);
                match self.network.host(*peer) {
                    // A worker is one, and other hosts are none.
                    Some(_) => room.min(usize::from(self.is_worker[peer.index()])),
                    None => room,
                }
            });
            let brought = brought.fold(0, usize::saturating_add);
            (*id, whole(*spare, rate_bps).min(brought))
        });
        let mut rooms: Vec<(NodeId, usize)> = rooms.filter(|(_, room)| *room >= 2).collect();
        rooms.sort_by_key(|(id, room)| (Reverse(*room), *id));
        rooms
    }

    /// How many streams the server has room for.
    pub(super) fn takes(&self, rate_bps: f64) -> usize {
        whole(self.ingress_bps, rate_bps)
    }

    /// The directions of links between switches, and to the server, that have room for a stream, and for how many.
    pub(super) fn arcs(&self, rate_bps: f64) -> Vec<(Arc, usize)> {
        let links = (0..self.network.links().len() as u32).map(LinkId);
        let both = links.flat_map(|link| [false, true].map(|back| Arc { link, back }));
        let rooms = both.filter_map(|arc| {
            let (from, to) = self.network.ends(arc);
            let passes = |node| self.network.switch(node).is_some();
            let leads = passes(from) && (passes(to) || to == self.server.host);
            let room = whole(self.network.spare_bps(arc) as f64, rate_bps);
            (leads && room > 0).then_some((arc, room))
        });
        rooms.collect()
    }

    /// Which switches workers can enter the network by, and how many can by the same.
    pub(super) fn entries(&self, rate_bps: f64) -> BTreeMap<Vec<NodeId>, usize> {
        let mut entries = BTreeMap::new();
        for worker in &self.job.workers {
            let links = self.network.adjacent(*worker).iter();
            let wide = links.filter(|(link, _)| {
                let spare = self.network.spare_bps(self.network.arc(*link, *worker));
                whole(spare as f64, rate_bps) > 0
            });
            let mut peers: Vec<NodeId> = wide.map(|(_, peer)| *peer).collect();
            peers.sort_unstable();
            peers.dedup();
            *entries.entry(peers).or_default() += 1;
        }
        entries
    }

    /// A plan in which every worker sends so much, if one is found. That none is found is no proof that there is none.
    pub(super) fn at_rate(&self, rate_bps: f64) -> Option<Plan> {
        let takes = self.takes(rate_bps);
        let mut open = self.rooms(rate_bps);
        open.truncate(takes);
        loop {
            if let Some(plan) = self.with_open(rate_bps, takes, &open) {
                return Some(plan);
            }
            if open.is_empty() {
                return None;
            }
            // Fewer streams of switches leave more room to those of workers.
            open.truncate(open.len() / 2);
        }
    }

    /// The same with switches of these, tried from the first on.
    pub(super) fn rounded(&self, rate_bps: f64, switches: &[NodeId]) -> Option<Plan> {
        let takes = self.takes(rate_bps);
        let rooms: BTreeMap<NodeId, usize> = self.rooms(rate_bps).into_iter().collect();
        let rooms = switches
            .iter()
            .filter_map(|id| Some((*id, *rooms.get(id)?)));
        let rooms: Vec<(NodeId, usize)> = rooms.take(takes).collect();
        let most = rooms.len();
        let counts = (most / 2..=most).rev();
        counts
            .into_iter()
            .find_map(|count| self.with_open(rate_bps, takes, &rooms[..count]))
    }

    /// The next rate above this one at which some capacity has room for a stream less; between the two, all have the same.
    pub(super) fn next_rate(&self, rate_bps: f64) -> f64 {
        let links = self.network.links().len() as u32;
        let arcs = (0..links).map(LinkId).flat_map(|link| {
            [false, true].map(|back| self.network.spare_bps(Arc { link, back }) as f64)
        });
        let sums = self.sums.iter().map(|(_, spare)| *spare);
        let capacities = arcs.chain(sums).chain([self.ingress_bps]);
        let next = capacities.filter_map(|capacity| {
            let room = whole(capacity, rate_bps);
            // At the rate itself it may have room for just so many.
            let least = rate_bps * (1.0 + 10.0 * ROUNDING);
            let mut fewer = [room, room.saturating_sub(1)].into_iter();
            let fewer = fewer.find(|room| capacity / *room as f64 > least)?;
            (capacity.is_finite() && fewer > 0).then(|| capacity / fewer as f64)
        });
        next.fold(f64::INFINITY, f64::min)
    }

    /// A plan in which these switches may sum, as far as they have a way to the server.
    fn with_open(&self, rate_bps: f64, takes: usize, open: &[(NodeId, usize)]) -> Option<Plan> {
        let mut flow = Flow::new(self.network, |arc| {
            whole(self.network.spare_bps(arc) as f64, rate_bps)
        });
        let server = self.server.host;
        let sources: Vec<(NodeId, usize)> = open.iter().map(|(id, _)| (*id, 1)).collect();
        let ups = flow.send(&sources, &[(server, takes)]);
        let has_way = |id: NodeId| ups.iter().any(|up| up.from == id);
        let open = open.iter().filter(|(id, _)| has_way(*id)).copied();
        let mut sinks: Vec<(NodeId, usize)> = open.collect();
        sinks.push((server, takes - ups.len()));
        let workers = self.job.workers.iter().map(|worker| (*worker, 1));
        let workers: Vec<(NodeId, usize)> = workers.collect();
        let streams = flow.send(&workers, &sinks);
        (streams.len() == workers.len()).then(|| self.plan(rate_bps, streams, ups))
    }

    fn plan(&self, rate_bps: f64, streams: Vec<Stream>, ups: Vec<Stream>) -> Plan {
        let rank: BTreeMap<NodeId, usize> = self.job.workers.iter().copied().zip(0..).collect();
        let mut members: BTreeMap<NodeId, Vec<Member>> = BTreeMap::new();
        for stream in streams {
            members.entry(stream.to).or_default().push(Member {
                worker: rank[&stream.from],
                route: stream.route,
            });
        }
        let server = self.server.host;
        let ups = ups.into_iter().map(|up| (up.from, up.route));
        let parts = ups.chain([(server, Vec::new())]).filter_map(|(at, up)| {
            let mut members = members.remove(&at)?;
            members.sort_unstable_by_key(|member| member.worker);
            Some(Part {
                piece: 0,
                share: 1.0,
                server: 0,
                at,
                members,
                up,
            })
        });
        Plan {
            job: self.job.name.clone(),
            parts: parts.collect(),
            rate_bps,
            bound_bps: f64::INFINITY,
            goal: Goal::Rate,
            is_optimal: false,
        }
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
