//! Short ways: of plans of one rate, one whose streams pass few links.

use std::collections::BTreeMap;

use super::search::{Search, Ways};
use super::tree::tree;
use crate::network::NodeId;

impl Ways {
    /// Links that are passed, those of each stream counted for itself.
    pub fn hops(&self) -> usize {
        let streams = self.workers.iter().chain(&self.ups);
        streams.map(|stream| stream.route.len()).sum::<usize>() + self.tree.len()
    }

    /// How many workers each switch sums, and the server.
    pub fn summed(&self) -> BTreeMap<NodeId, usize> {
        let mut summed = BTreeMap::new();
        for stream in &self.workers {
            *summed.entry(stream.to).or_default() += 1;
        }
        summed
    }
}

impl Search<'_, '_> {
    /// The same rate by shorter ways: workers, sums and answers are led anew in turn, each by a flow of least cost in what the
    /// others leave, until that saves no link. A switch that would sum one worker sums none.
    pub fn shortened(&self, mut ways: Ways) -> Ways {
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

    fn lead_workers(&self, ways: &mut Ways) {
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

    fn lead_sums(&self, ways: &mut Ways) {
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

    fn lead_answers(&self, ways: &mut Ways) {
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
