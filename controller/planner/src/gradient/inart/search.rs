//! Streams, and how they are moved away from what is full first.
//!
//! What is lessened is Σ (load / what there is)^12 over all links, switches and servers: nearly the greatest term alone, but it
//! tells apart two placements whose greatest is the same.

use super::ways::{Way, Ways};
use crate::gradient::{Member, Part};

/// The power of the sum.
const POWER: i32 = 12;

/// Passes over all streams, at most.
const PASSES: usize = 12;

/// Switches times servers for which it is tried to open all for each server at once.
const MOST_OPENED: usize = 48;

#[derive(Clone)]
pub(super) struct Search<'w> {
    ways: &'w Ways<'w>,
    /// By server and worker: which target, which way.
    at: Vec<Vec<(usize, usize)>>,
    /// By server and site: how many it sums, and which way the sum goes.
    sums: Vec<Vec<(u32, usize)>>,
    /// Streams by resource and server.
    streams: Vec<u32>,
    /// By resource, with the shares that count now.
    load: Vec<f64>,
    shares: Vec<f64>,
    scale: f64,
    energy: f64,
}

impl<'w> Search<'w> {
    /// Every server sums all.
    fn raw(ways: &'w Ways<'w>) -> Search<'w> {
        let servers = ways.targets.len();
        let resources = ways.spare.len();
        let mut search = Search {
            ways,
            at: Vec::new(),
            sums: vec![vec![(0, 0); ways.sites.len()]; servers],
            streams: vec![0; resources * servers],
            load: vec![0.0; resources],
            shares: vec![1.0 / servers as f64; servers],
            scale: 1.0,
            energy: 0.0,
        };
        for (server, workers) in ways.targets.iter().enumerate() {
            let raw = workers.iter().map(|targets| (targets.len() - 1, 0));
            search.at.push(raw.collect());
            for targets in workers {
                let target = &targets[targets.len() - 1];
                search.take(server, &target.ways[0], true);
            }
        }
        search
    }

    /// Where searches start: each of the first servers at the nearest switches, the others raw; and each at one of the
    /// switches, in turn.
    pub fn starts(ways: &'w Ways<'w>) -> Vec<Search<'w>> {
        let servers = ways.targets.len();
        let mut starts = vec![Search::raw(ways)];
        for nearest in 1..=servers.min(4) {
            let mut search = Search::raw(ways);
            let first = if nearest == servers.min(4) {
                servers
            } else {
                nearest
            };
            for server in 0..first {
                for worker in 0..ways.job.workers.len() {
                    search.set(server, worker, (0, 0));
                }
            }
            starts.push(search);
        }
        if servers > 1 && ways.sites.len() > 1 {
            let mut search = Search::raw(ways);
            for server in 0..servers {
                let workers = ways.targets[server].iter().enumerate();
                for (worker, targets) in workers {
                    let own = |site: usize| site % servers == server % ways.sites.len();
                    let mut targets = targets.iter();
                    if let Some(target) = targets.position(|target| target.site.is_some_and(own)) {
                        search.set(server, worker, (target, 0));
                    }
                }
            }
            starts.push(search);
        }
        starts
    }

    pub fn servers(&self) -> usize {
        self.shares.len()
    }

    /// What each resource has left, and the streams of each server that take of it.
    pub fn rows(&self) -> impl Iterator<Item = (f64, &[u32])> {
        let spare = self.ways.spare.iter().copied();
        let rows = spare.zip(self.streams.chunks(self.servers()));
        rows.filter(|(_, streams)| streams.iter().any(|count| *count > 0))
    }

    /// The rate that all workers have.
    pub fn rate(&self, shares: &[f64]) -> f64 {
        let rates = self.rows().map(|(spare, streams)| {
            let loads = streams.iter().zip(shares);
            spare
                / loads
                    .map(|(count, share)| f64::from(*count) * share)
                    .sum::<f64>()
        });
        rates.fold(f64::INFINITY, f64::min)
    }

    /// Takes or gives back the room of a stream.
    fn take(&mut self, server: usize, way: &Way, takes: bool) {
        let servers = self.shares.len();
        let share = if takes {
            self.shares[server]
        } else {
            -self.shares[server]
        };
        for place in &way.takes {
            let place = *place as usize;
            let count = &mut self.streams[place * servers + server];
            *count = if takes { *count + 1 } else { *count - 1 };
            let full = self.scale / self.ways.spare[place];
            let load = &mut self.load[place];
            self.energy -= (*load * full).powi(POWER);
            *load = (*load + share).max(0.0);
            self.energy += (*load * full).powi(POWER);
        }
    }

    /// Begins anew with these shares, without the rounding errors of what was before.
    fn weigh(&mut self, shares: &[f64]) {
        self.shares = shares.to_vec();
        let rate = self.rate(shares);
        self.scale = if rate.is_finite() { rate } else { 1.0 };
        for (place, load) in self.load.iter_mut().enumerate() {
            let streams = &self.streams[place * shares.len()..][..shares.len()];
            let loads = streams.iter().zip(shares);
            *load = loads.map(|(count, share)| f64::from(*count) * share).sum();
        }
        let terms = self.load.iter().zip(&self.ways.spare);
        self.energy = terms
            .map(|(load, spare)| (load * self.scale / spare).powi(POWER))
            .sum();
    }

    /// Sends a worker's stream elsewhere.
    fn set(&mut self, server: usize, worker: usize, to: (usize, usize)) {
        let ways = self.ways;
        let targets = &ways.targets[server][worker];
        let from = self.at[server][worker];
        self.take(server, &targets[from.0].ways[from.1], false);
        if let Some(site) = targets[from.0].site {
            self.join(server, site, false);
        }
        self.take(server, &targets[to.0].ways[to.1], true);
        if let Some(site) = targets[to.0].site {
            self.join(server, site, true);
        }
        self.at[server][worker] = to;
    }

    /// One more or less that a switch sums: the first and the last bring and take the stream of the sum.
    fn join(&mut self, server: usize, site: usize, joins: bool) {
        let (count, way) = self.sums[server][site];
        let ups = &self.ways.ups[server][site];
        match (joins, count) {
            (true, 0) => {
                let way = self.least(server, ups);
                self.take(server, &ups[way], true);
                self.sums[server][site] = (1, way);
            }
            (true, _) => self.sums[server][site].0 += 1,
            (false, 1) => {
                self.take(server, &ups[way], false);
                self.sums[server][site] = (0, 0);
            }
            (false, _) => self.sums[server][site].0 -= 1,
        }
    }

    /// The way that costs least.
    fn least(&mut self, server: usize, ways: &[Way]) -> usize {
        if ways.len() == 1 {
            return 0;
        }
        let mut best = (f64::INFINITY, 0);
        for (number, way) in ways.iter().enumerate() {
            self.take(server, way, true);
            if self.energy < best.0 {
                best = (self.energy, number);
            }
            self.take(server, way, false);
        }
        best.1
    }

    /// Moves streams as long as it pays. Never for the worse.
    pub fn improve(&mut self, shares: &[f64]) {
        self.weigh(shares);
        let mut rate = self.rate(shares);
        let mut best = self.clone();
        let mut idle = 0;
        for _ in 0..PASSES {
            let before = self.energy;
            self.move_each();
            self.close_each();
            self.weigh(shares);
            if self.ways.sites.len() * self.servers() <= MOST_OPENED {
                self.open_each();
            }
            let reached = self.rate(shares);
            if reached > rate * (1.0 + 1e-9) {
                (rate, idle) = (reached, 0);
                best = self.clone();
            } else {
                idle += 1;
            }
            let gained = self.energy < before * (1.0 - 1e-6);
            self.weigh(shares);
            if idle == 2 || !gained {
                break;
            }
        }
        *self = best;
    }

    /// Each stream goes where it costs least.
    fn move_each(&mut self) {
        for server in 0..self.servers() {
            for worker in 0..self.at[server].len() {
                self.move_one(server, worker, None);
            }
        }
    }

    fn move_one(&mut self, server: usize, worker: usize, without: Option<usize>) {
        let targets = &self.ways.targets[server][worker];
        let was = self.at[server][worker];
        let is_out = |target: usize| without.is_some() && targets[target].site == without;
        let mut best = (
            if is_out(was.0) {
                f64::INFINITY
            } else {
                self.energy
            },
            was,
        );
        for (target, of) in targets
            .iter()
            .enumerate()
            .filter(|(target, _)| !is_out(*target))
        {
            for way in 0..of.ways.len() {
                if (target, way) != was {
                    self.set(server, worker, (target, way));
                    if self.energy < best.0 * (1.0 - 1e-12) {
                        best = (self.energy, (target, way));
                    }
                }
            }
        }
        if self.at[server][worker] != best.1 {
            self.set(server, worker, best.1);
        }
    }

    /// Tries to do without each switch for each server.
    fn close_each(&mut self) {
        for server in 0..self.servers() {
            for site in 0..self.ways.sites.len() {
                // Many that are moved at once seldom pay, and take long.
                if !(1..=64).contains(&self.sums[server][site].0) {
                    continue;
                }
                let (before, was) = (self.energy, self.at[server].clone());
                for worker in 0..was.len() {
                    let target = self.at[server][worker].0;
                    if self.ways.targets[server][worker][target].site == Some(site) {
                        self.move_one(server, worker, Some(site));
                    }
                }
                self.keep_if_less(server, before, &was);
            }
        }
    }

    /// Tries to have each switch sum for each server that it does not sum for yet.
    fn open_each(&mut self) {
        for server in 0..self.servers() {
            for site in 0..self.ways.sites.len() {
                if self.sums[server][site].0 > 0 {
                    continue;
                }
                let (before, was) = (self.energy, self.at[server].clone());
                let mut least: Option<(f64, Vec<(usize, usize)>)> = None;
                for worker in 0..was.len() {
                    let mut targets = self.ways.targets[server][worker].iter();
                    let Some(target) = targets.position(|target| target.site == Some(site)) else {
                        continue;
                    };
                    self.set(server, worker, (target, 0));
                    if least
                        .as_ref()
                        .is_none_or(|(energy, _)| self.energy < *energy)
                    {
                        least = Some((self.energy, self.at[server].clone()));
                    }
                }
                if let Some((_, at)) = least {
                    self.restore(server, &at);
                }
                self.keep_if_less(server, before, &was);
            }
        }
    }

    fn keep_if_less(&mut self, server: usize, before: f64, was: &[(usize, usize)]) {
        if self.energy >= before * (1.0 - 1e-9) {
            self.restore(server, was);
        }
    }

    fn restore(&mut self, server: usize, at: &[(usize, usize)]) {
        for (worker, at) in at.iter().enumerate() {
            if self.at[server][worker] != *at {
                self.set(server, worker, *at);
            }
        }
    }

    /// The plan's parts.
    pub fn parts(&self, ways: &Ways<'_>, shares: &[f64]) -> Vec<Part> {
        let mut parts = Vec::new();
        let has_share = (0..self.servers()).filter(|server| shares[*server] > 0.0);
        for (piece, server) in has_share.enumerate() {
            let host = ways.job.servers[server].host;
            let of_sites = (0..ways.sites.len()).map(Some);
            for site in of_sites.chain([None]) {
                let workers = self.at[server].iter().enumerate();
                let members = workers.filter_map(|(worker, (target, way))| {
                    let target = &ways.targets[server][worker][*target];
                    let route = target.ways[*way].route.clone();
                    (target.site == site).then_some(Member { worker, route })
                });
                let members: Vec<Member> = members.collect();
                if members.is_empty() {
                    continue;
                }
                parts.push(Part {
                    piece,
                    share: shares[server],
                    server,
                    at: site.map_or(host, |site| ways.sites[site]),
                    members,
                    up: site.map_or(Vec::new(), |site| {
                        let (_, way) = self.sums[server][site];
                        ways.ups[server][site][way].route.clone()
                    }),
                });
            }
        }
        parts
    }
}
