//! Local search for InArt: moves streams away from the fullest resource.
//!
//! It minimizes the energy Σ (load / capacity)^12 over all links, switches and servers. This is nearly the greatest term alone,
//! but also distinguishes placements whose greatest terms are equal.

use super::cover::{Places, cover};
use super::relax::Relaxed;
use super::ways::{Way, Ways};
use crate::gradient::{Member, Part};

/// Exponent of a resource's fullness in the energy that the search minimizes.
const POWER: i32 = 12;

/// Maximum number of passes over all streams.
const PASSES: usize = 12;

/// Maximum number of streams for which all starting placements are tried.
const FEW_STREAMS: usize = 200;

/// Number of starting placements that are tried if there are more streams than [`FEW_STREAMS`].
const BEST_STARTS: usize = 2;

/// Minimum number of racks for starting placements in which few switches sum for all racks.
const MANY_RACKS: usize = 12;

/// Maximum number of moves and trials of moves in one search. Unlike a time limit, it gives equal results on every machine.
const MOVES: usize = 60_000;

/// Streams move away from a resource if its fullness is at least this share of the fullest resource's.
const NEARLY_FULL: f64 = 0.8;

/// Maximum product of switches and servers up to which the search tries to let all switches sum for each server at once.
const MOST_OPENED: usize = 48;

#[derive(Clone)]
pub(super) struct Search<'w> {
    ways: &'w Ways<'w>,
    /// By server and worker: target (node that sums) and path of the worker's stream, as indices.
    at: Vec<Vec<(usize, usize)>>,
    /// By server and switch: number of workers that the switch sums, and index of the path of its sum.
    sums: Vec<Vec<(u32, usize)>>,
    /// By resource, then server: number of streams on the resource.
    streams: Vec<u32>,
    /// Load of each resource, with the current shares of the servers.
    load: Vec<f64>,
    shares: Vec<f64>,
    scale: f64,
    energy: f64,
    moves: usize,
}

impl<'w> Search<'w> {
    /// Placement in which every server sums all its streams itself.
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
            moves: 0,
        };
        for server in 0..servers {
            let mut at = Vec::new();
            for (worker, first) in ways.first.iter().enumerate() {
                // The load of a worker's only link does not depend on the target.
                if let Some((_, place)) = first {
                    search.take(server, &[*place], true);
                }
                let raw = ways.targets(server, worker).len() - 1;
                search.take(
                    server,
                    &ways.targets(server, worker)[raw].ways[0].takes,
                    true,
                );
                at.push((raw, 0));
            }
            search.at.push(at);
        }
        search
    }

    /// Starting placements of the search. In some, the nearest switches sum for the first servers; in some, a few switches with
    /// much spare rate (hubs) sum for each server. Other streams go unsummed.
    pub fn starts(ways: &'w Ways<'w>) -> Vec<Search<'w>> {
        let servers = ways.targets.len();
        let workers = ways.job.workers.len();
        let mut starts = vec![Search::raw(ways)];
        for nearest in 1..=servers.min(4) {
            let mut search = Search::raw(ways);
            let first = if nearest == servers.min(4) {
                servers
            } else {
                nearest
            };
            for server in 0..first {
                for worker in 0..workers {
                    search.set(server, worker, (0, 0));
                }
            }
            starts.push(search);
        }
        // Each server at some hubs, different from those of earlier servers as long as there are enough.
        let mut count = 1;
        while count <= ways.hubs.len() {
            let mut search = Search::raw(ways);
            for server in 0..servers {
                for worker in 0..workers {
                    let number = server * count + worker * count / workers;
                    let hub = ways.hubs[number % ways.hubs.len()];
                    let mut targets = ways.targets(server, worker).iter();
                    if let Some(target) = targets.position(|target| target.site == Some(hub)) {
                        search.set(server, worker, (target, 0));
                    }
                }
            }
            starts.push(search);
            count *= 2;
        }
        // With few racks, the other starts lead to equally good results.
        let mut switches = 1;
        while ways.starts.len() >= MANY_RACKS && switches <= ways.starts.len() {
            starts.push(Search::covered(ways, &cover(ways, switches)));
            switches *= 2;
        }
        starts
    }

    fn covered(ways: &'w Ways<'w>, places: &Places) -> Search<'w> {
        let mut search = Search::raw(ways);
        for (server, places) in places.iter().enumerate() {
            for (worker, site) in places.iter().enumerate().filter(|(_, site)| site.is_some()) {
                let mut targets = ways.targets(server, worker).iter();
                if let Some(target) = targets.position(|target| target.site == *site) {
                    let equal = ways.targets(server, worker)[target].ways.len();
                    search.set(server, worker, (target, worker % equal));
                }
            }
        }
        search
    }

    /// Rounds a relaxation to a placement: each node that may sum gets a whole number of a group's workers, close to its share.
    pub fn rounded(ways: &'w Ways<'w>, relaxed: &Relaxed) -> Search<'w> {
        let mut search = Search::raw(ways);
        for server in 0..ways.targets.len() {
            for group in 0..ways.starts.len() {
                let workers: Vec<usize> = (0..ways.group.len())
                    .filter(|worker| ways.group[*worker] == group)
                    .collect();
                let shares = &relaxed.shares[server][group];
                let mut given = vec![0.0; shares.len()];
                for worker in workers.iter().copied() {
                    // The next worker goes to the target that lacks the most.
                    for (given, share) in given.iter_mut().zip(shares) {
                        *given += share;
                    }
                    let most = (0..given.len())
                        .max_by(|a, b| given[*a].total_cmp(&given[*b]).then(b.cmp(a)));
                    let Some(most) = most else { continue };
                    given[most] -= 1.0;
                    let site = (most < ways.sites.len()).then_some(most);
                    let mut targets = ways.targets(server, worker).iter();
                    if let Some(target) = targets.position(|target| target.site == site) {
                        search.set(server, worker, (target, 0));
                    }
                }
            }
        }
        search
    }

    /// Placement with the given node that sums and path of each stream, by server and worker, and the given path of each sum.
    pub fn placed(
        ways: &'w Ways<'w>,
        at: &[Vec<(usize, usize)>],
        ups: &[Vec<Option<usize>>],
        shares: &[f64],
    ) -> Search<'w> {
        let mut search = Search::raw(ways);
        search.weigh(shares);
        for (server, ups) in ups.iter().enumerate() {
            search.restore(server, &at[server]);
            for (site, up) in ups.iter().enumerate() {
                let (count, was) = search.sums[server][site];
                let Some(way) = up.filter(|_| count > 0) else {
                    continue;
                };
                search.take(server, &ways.ups[server][site][was].takes, false);
                search.take(server, &ways.ups[server][site][way].takes, true);
                search.sums[server][site] = (count, way);
            }
        }
        search.weigh(shares);
        search
    }

    /// Indices of the target (node that sums) and path of a worker's stream for a server.
    pub fn at(&self, server: usize, worker: usize) -> (usize, usize) {
        self.at[server][worker]
    }

    /// Index of the path of a switch's sum for a server; `None` if the switch sums nothing for it.
    pub fn up(&self, server: usize, site: usize) -> Option<usize> {
        let (count, way) = self.sums[server][site];
        (count > 0).then_some(way)
    }

    /// The starting placements with the best rates for given shares of the servers.
    pub fn best_starts(ways: &'w Ways<'w>, shares: &[f64]) -> Vec<Search<'w>> {
        let mut starts = Search::starts(ways);
        if ways.job.workers.len() * ways.targets.len() > FEW_STREAMS {
            // The sort is stable, so the result is deterministic.
            starts.sort_by(|a, b| b.rate(shares).total_cmp(&a.rate(shares)));
            starts.truncate(BEST_STARTS);
        }
        starts
    }

    pub fn servers(&self) -> usize {
        self.shares.len()
    }

    /// Spare rate in bit/s of each resource in use, and each server's number of streams on it.
    pub fn rows(&self) -> impl Iterator<Item = (f64, &[u32])> {
        let spare = self.ways.spare.iter().copied();
        let rows = spare.zip(self.streams.chunks(self.servers()));
        rows.filter(|(_, streams)| streams.iter().any(|count| *count > 0))
    }

    /// Rate of all workers, in bit/s, with these shares of the servers.
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

    /// Adds (`takes`) or removes a server's stream on the resources of a path.
    fn take(&mut self, server: usize, way: &[u32], takes: bool) {
        let servers = self.shares.len();
        let share = if takes {
            self.shares[server]
        } else {
            -self.shares[server]
        };
        for place in way {
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

    /// Recomputes loads and energy (the search's objective) for these shares of the servers, without old rounding errors.
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

    /// Moves a worker's stream for a server to another node that sums (target), and another path.
    fn set(&mut self, server: usize, worker: usize, to: (usize, usize)) {
        let ways = self.ways;
        let targets = ways.targets(server, worker);
        self.moves += 1;
        let from = self.at[server][worker];
        self.take(server, &targets[from.0].ways[from.1].takes, false);
        if let Some(site) = targets[from.0].site {
            self.join(server, site, false);
        }
        self.take(server, &targets[to.0].ways[to.1].takes, true);
        if let Some(site) = targets[to.0].site {
            self.join(server, site, true);
        }
        self.at[server][worker] = to;
    }

    /// Adds (`joins`) or removes a worker that a switch sums for a server. The first worker adds the stream of the switch's
    /// sum, the last removes it.
    fn join(&mut self, server: usize, site: usize, joins: bool) {
        let (count, way) = self.sums[server][site];
        let ups = &self.ways.ups[server][site];
        match (joins, count) {
            (true, 0) => {
                let way = self.least(server, ups);
                self.take(server, &ups[way].takes, true);
                self.sums[server][site] = (1, way);
            }
            (true, _) => self.sums[server][site].0 += 1,
            (false, 1) => {
                self.take(server, &ups[way].takes, false);
                self.sums[server][site] = (0, 0);
            }
            (false, _) => self.sums[server][site].0 -= 1,
        }
    }

    /// Index of the path on which one more stream of the server raises the energy (the quantity to minimize) the least.
    fn least(&mut self, server: usize, ways: &[Way]) -> usize {
        if ways.len() == 1 {
            return 0;
        }
        let mut best = (f64::INFINITY, 0);
        for (number, way) in ways.iter().enumerate() {
            self.take(server, &way.takes, true);
            if self.energy < best.0 {
                best = (self.energy, number);
            }
            self.take(server, &way.takes, false);
        }
        best.1
    }

    /// Moves streams as long as that improves the rate of all workers; never makes it worse.
    pub fn improve(&mut self, shares: &[f64]) {
        self.weigh(shares);
        self.moves = 0;
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
            if idle == 2 || !gained || self.moves > MOVES {
                break;
            }
        }
        *self = best;
    }

    /// Moves each worker's stream to the node that sums and the path with which the energy (the search's objective) is least.
    fn move_each(&mut self) {
        for server in 0..self.servers() {
            for worker in 0..self.at[server].len() {
                if self.meets_full(server, worker) {
                    self.move_one(server, worker, None);
                }
            }
        }
    }

    /// Whether a worker's stream, or the sum to which a switch adds it, uses a nearly full resource.
    fn meets_full(&self, server: usize, worker: usize) -> bool {
        let (target, way) = self.at[server][worker];
        let target = &self.ways.targets(server, worker)[target];
        let up = target.site.map(|site| {
            let (_, way) = self.sums[server][site];
            &self.ways.ups[server][site][way].takes
        });
        let mut takes = target.ways[way]
            .takes
            .iter()
            .chain(up.into_iter().flatten());
        takes.any(|place| {
            let place = *place as usize;
            self.load[place] * self.scale >= NEARLY_FULL * self.ways.spare[place]
        })
    }

    fn move_one(&mut self, server: usize, worker: usize, without: Option<usize>) {
        if self.moves > MOVES {
            return;
        }
        let targets = self.ways.targets(server, worker);
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

    /// Tries to remove each switch from those that sum for each server, and keeps a removal that lowers the energy.
    fn close_each(&mut self) {
        for server in 0..self.servers() {
            for site in 0..self.ways.sites.len() {
                // Moving many workers at once rarely helps, and takes long.
                if !(1..=64).contains(&self.sums[server][site].0) {
                    continue;
                }
                let (before, was) = (self.energy, self.at[server].clone());
                for worker in 0..was.len() {
                    let target = self.at[server][worker].0;
                    if self.ways.targets(server, worker)[target].site == Some(site) {
                        self.move_one(server, worker, Some(site));
                    }
                }
                self.keep_if_less(server, before, &was);
            }
        }
    }

    /// For each server, tries to add each switch that does not sum for it yet, and keeps what lowers the energy.
    fn open_each(&mut self) {
        for server in 0..self.servers() {
            for site in 0..self.ways.sites.len() {
                if self.sums[server][site].0 > 0 {
                    continue;
                }
                let (before, was) = (self.energy, self.at[server].clone());
                let mut least: Option<(f64, Vec<(usize, usize)>)> = None;
                for worker in 0..was.len() {
                    let mut targets = self.ways.targets(server, worker).iter();
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

    /// Parts of the plan (each a node and the workers whose gradients it sums) for this placement and these servers' shares.
    pub fn parts(&self, ways: &Ways<'_>, shares: &[f64]) -> Vec<Part> {
        let mut parts = Vec::new();
        let has_share = (0..self.servers()).filter(|server| shares[*server] > 0.0);
        for (piece, server) in has_share.enumerate() {
            let host = ways.job.servers[server].host;
            let of_sites = (0..ways.sites.len()).map(Some);
            for site in of_sites.chain([None]) {
                let workers = self.at[server].iter().enumerate();
                let members = workers.filter_map(|(worker, (target, way))| {
                    let target = &ways.targets(server, worker)[*target];
                    let first = ways.first[worker].map(|(arc, _)| arc);
                    let rest = target.ways[*way].route.iter().copied();
                    let route = || first.into_iter().chain(rest).collect();
                    (target.site == site).then(|| Member {
                        worker,
                        route: route(),
                    })
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
