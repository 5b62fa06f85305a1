//! Search for paths of whole streams: which switches sum, and which path each stream takes.

use std::collections::BTreeMap;

use super::paths::StreamPaths;
use super::streams::Streams;
use super::tree::tree;
use crate::flow::Flow;
use crate::network::{Arc, NodeId};

/// Result of a search that did not find paths for all workers.
pub(super) struct Missed {
    /// Number of workers whose streams reach a node that sums them.
    served: usize,
    /// For each node, whether the stream of another, unserved worker could reach it.
    reached: Vec<bool>,
    /// For each switch in use for sums, the number of workers that it sums.
    summed: BTreeMap<NodeId, usize>,
}

/// A switch, and the number of workers whose streams it can sum.
pub(super) type Room = (NodeId, usize);

/// Search for the paths of streams at one rate of all workers.
pub(super) struct Search<'s, 'n> {
    pub(super) streams: &'s Streams<'n>,
    /// Capacity of links in whole streams.
    pub(super) room: Flow<'n>,
    /// Number of streams that the server can receive.
    pub(super) takes: usize,
    /// Switches that can sum, each with the number of workers that it can sum.
    pub(super) rooms: Vec<Room>,
}

/// Maximum number of times that sums and answers are rerouted around links that workers' streams need.
const DETOURS: u32 = 4;
/// Number of links by which a stream's path may grow to avoid one link that workers' streams need.
const DETOUR: u32 = 4;

impl<'s, 'n> Search<'s, 'n> {
    pub fn new(streams: &'s Streams<'n>, rate_bps: f64) -> Search<'s, 'n> {
        Search {
            streams,
            room: Flow::new(streams.network, |arc| streams.room(arc, rate_bps)),
            takes: streams.takes(rate_bps),
            rooms: streams.rooms(rate_bps),
        }
    }

    /// Finds paths for all streams with the switches of greatest capacity summing; `None` is no proof that there are none.
    pub fn quick(&self) -> Option<StreamPaths> {
        let mut open = self.rooms.clone();
        open.truncate(self.takes);
        loop {
            if self.has_room(&open)
                && let Ok(ways) = self.with_open(&open)
            {
                return Some(ways);
            }
            if open.is_empty() {
                return None;
            }
            // Fewer streams of switches leave more capacity to workers' streams.
            open.truncate(open.len() / 2);
        }
    }

    /// Whether these switches and the server can sum all workers' streams, regardless of paths.
    pub fn has_room(&self, open: &[Room]) -> bool {
        let summed = open.iter().map(|(_, room)| *room);
        let raw = self.takes.saturating_sub(open.len());
        summed.fold(raw, usize::saturating_add) >= self.streams.job.workers.len()
    }

    /// Finds paths with these switches summing, or a similar set: exchanges, adds or removes one switch at a time, as long as
    /// more workers get paths. Each set that is tried costs one of `tries`.
    pub fn near(&self, switches: &[NodeId], tries: &mut usize) -> Option<StreamPaths> {
        let rooms: BTreeMap<NodeId, usize> = self.rooms.iter().copied().collect();
        let open = switches.iter();
        let open = open.filter_map(|id| Some((*id, *rooms.get(id)?)));
        let mut open: Vec<Room> = open.take(self.takes).collect();
        let mut missed = match self.with_open(&open) {
            Ok(ways) => return Some(ways),
            Err(missed) => missed,
        };
        loop {
            let mut is_better = false;
            for next in self.neighbours(&open, &missed) {
                *tries = tries.checked_sub(1)?;
                match self.with_open(&next) {
                    Ok(ways) => return Some(ways),
                    Err(less) if less.served > missed.served => {
                        (open, missed, is_better) = (next, less, true);
                        break;
                    }
                    Err(_) => {}
                }
            }
            if !is_better {
                return None;
            }
        }
    }

    /// Sets that differ from `open` by one switch, greatest gain first. Adds only switches that unserved workers can reach.
    fn neighbours(&self, open: &[Room], missed: &Missed) -> Vec<Vec<Room>> {
        let summed = |id: &NodeId| missed.summed.get(id).copied().unwrap_or(0);
        let is_open = |id: NodeId| open.iter().any(|(other, _)| *other == id);
        let closed = self.rooms.iter();
        let closed = closed.filter(|(id, _)| !is_open(*id) && missed.reached[id.index()]);
        let mut changes: Vec<(isize, Vec<Room>)> = Vec::new();
        for with in closed {
            let gain = with.1 as isize;
            if open.len() < self.takes {
                let next = open.iter().chain([with]).copied().collect();
                changes.push((gain - 1, next));
            }
            for place in 0..open.len() {
                let mut next = open.to_vec();
                next[place] = *with;
                changes.push((gain - summed(&open[place].0) as isize, next));
            }
        }
        for place in 0..open.len() {
            let mut next = open.to_vec();
            let (id, _) = next.remove(place);
            changes.push((1 - summed(&id) as isize, next));
        }
        // Stable: among equal gains, switches with the most capacity come first.
        changes.sort_by_key(|(gain, _)| -gain);
        changes.into_iter().map(|(_, next)| next).collect()
    }

    /// Finds paths for all streams with these switches summing, as far as they can reach the server. Answers are routed first,
    /// then sums, then workers' streams; links that these need then get a higher cost.
    pub fn with_open(&self, open: &[Room]) -> Result<StreamPaths, Missed> {
        let Streams {
            network,
            job,
            server,
            ..
        } = *self.streams;
        let workers: Vec<Room> = job.workers.iter().map(|worker| (*worker, 1)).collect();
        let sources: Vec<Room> = open.iter().map(|(id, _)| (*id, 1)).collect();
        let mut costs: BTreeMap<Arc, u32> = BTreeMap::new();
        let mut most = Missed {
            served: 0,
            reached: vec![false; network.nodes().len()],
            summed: BTreeMap::new(),
        };
        for _ in 0..=DETOURS {
            let cost = |arc| costs.get(&arc).copied().unwrap_or(1);
            let mut flow = self.room.clone();
            let tree = match self.streams.answers {
                true => self.tree(&costs),
                false => Some(Vec::new()),
            };
            let Some(tree) = tree else {
                break;
            };
            flow.take(&tree);
            let ups = flow
                .send_by(&sources, &[(server.host, self.takes)], cost)
                .streams;
            let has_way = |id: NodeId| ups.iter().any(|up| up.from == id);
            let mut sinks: Vec<Room> = open
                .iter()
                .filter(|(id, _)| has_way(*id))
                .copied()
                .collect();
            sinks.push((server.host, self.takes - ups.len()));
            let sent = flow.send_by(&workers, &sinks, |_| 1);
            if sent.streams.len() == workers.len() {
                return Ok(StreamPaths {
                    workers: sent.streams,
                    ups,
                    tree,
                });
            }
            let is_short = |arc: &Arc| {
                let (from, to) = network.ends(*arc);
                sent.reached[from.index()] && !sent.reached[to.index()]
            };
            let taken = tree.iter().chain(ups.iter().flat_map(|up| &up.route));
            let short: Vec<Arc> = taken.filter(|arc| is_short(arc)).copied().collect();
            if sent.streams.len() > most.served {
                let mut summed: BTreeMap<NodeId, usize> = BTreeMap::new();
                for stream in &sent.streams {
                    *summed.entry(stream.to).or_default() += 1;
                }
                most = Missed {
                    served: sent.streams.len(),
                    reached: sent.reached,
                    summed,
                };
            }
            // Each of these links serves at most one more worker if it is freed.
            if short.len() < workers.len() - sent.streams.len() {
                break;
            }
            for arc in short {
                *costs.entry(arc).or_insert(1) += DETOUR;
            }
        }
        Err(most)
    }

    /// Tree of answers on links of low total cost; it avoids the links in `costs` where that is cheaper.
    fn tree(&self, costs: &BTreeMap<Arc, u32>) -> Option<Vec<Arc>> {
        let cost = |arc| costs.get(&arc).copied().unwrap_or(1);
        let all = |tree: &[Arc]| tree.iter().map(|arc| cost(*arc)).sum::<u32>();
        let without = |shut: &[Arc]| {
            tree(
                self.streams.network,
                self.streams.server.host,
                &self.streams.job.workers,
                |arc| self.room.room(arc) > 0 && !shut.contains(&arc),
                cost,
            )
        };
        let mut best = without(&[])?;
        let mut shut: Vec<Arc> = Vec::new();
        for arc in costs.keys() {
            if !best.contains(arc) {
                continue;
            }
            shut.push(*arc);
            match without(&shut) {
                Some(other) if all(&other) < all(&best) => best = other,
                _ => {
                    shut.pop();
                }
            }
        }
        Some(best)
    }
}
