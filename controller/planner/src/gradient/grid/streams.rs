//! Whole streams of one rate: which switches sum, and which way each stream goes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::flow::{Flow, Stream};
use crate::gradient::{Goal, Job, Member, Part, Plan, Server};
use crate::network::{Network, NodeId};

/// A capacity that is this little short of a whole stream has room for it: rates are ratios of whole numbers.
const ROUNDING: f64 = 1e-9;

/// What there is to be counted.
pub(super) struct Streams<'n> {
    network: &'n Network,
    job: &'n Job,
    server: &'n Server,
    /// Switches that can sum, with what they have left, in bits a second.
    sums: Vec<(NodeId, f64)>,
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
        Streams {
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
        streams + raw <= whole(self.ingress_bps, rate_bps)
    }

    /// The switches that have room for two workers and more, the one with the most first.
    fn rooms(&self, rate_bps: f64) -> Vec<(NodeId, usize)> {
        let rooms = self.sums.iter();
        let rooms = rooms.map(|(id, spare)| (*id, whole(*spare, rate_bps)));
        let mut rooms: Vec<(NodeId, usize)> = rooms.filter(|(_, room)| *room >= 2).collect();
        rooms.sort_by_key(|(id, room)| (Reverse(*room), *id));
        rooms
    }

    /// A plan in which every worker sends so much, if one is found. That none is found is no proof that there is none.
    pub(super) fn at_rate(&self, rate_bps: f64) -> Option<Plan> {
        let takes = whole(self.ingress_bps, rate_bps);
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
pub(super) fn bisect(
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
fn whole(capacity_bps: f64, rate_bps: f64) -> usize {
    // An infinite capacity has room for as many as there are numbers.
    ((capacity_bps / rate_bps) * (1.0 + ROUNDING)) as usize
}
