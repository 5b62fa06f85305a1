//! Starting placements for many racks: few switches sum for each server, each as much as it can.
//!
//! A server receives a stream from every switch that sums for it, so fewer switches mean a higher rate, until switches or the
//! links to them are full. The best number is unknown, so the search tries several. For a given number, it repeatedly takes the
//! switch that can sum most of the remaining workers, as in a greedy set cover.

use super::ways::Ways;

/// For each server and worker, the index of the switch that sums the worker's stream, or `None` if the server does.
pub(super) type Places = Vec<Vec<Option<usize>>>;

/// Placement in which `switches` switches sum for each server, or fewer if more are of no use.
pub(super) fn cover(ways: &Ways<'_>, switches: usize) -> Places {
    let mut room = Room::new(ways);
    let servers = ways.targets.len() as f64;
    let (_, ingress) = ways.sums_and_ingress();
    let of_servers = ingress.iter().enumerate().map(|(server, ingress)| {
        let rate_bps =
            (ingress / switches as f64).min(ways.job.narrowest_bps(ways.network) / servers);
        room.places(server, rate_bps, switches)
    });
    of_servers.collect()
}

/// Capacity that is left for the servers not yet placed.
struct Room<'w, 'n> {
    ways: &'w Ways<'n>,
    /// For each group (workers at one switch), its workers' ranks.
    workers: Vec<Vec<usize>>,
    /// For each switch that can sum, the group of workers that is attached to it, if any.
    on_it: Vec<Option<usize>>,
    /// For each switch, the rate in bit/s that it can still sum.
    sums_bps: Vec<f64>,
    /// For each switch, the spare rate in bit/s of links from other switches to it.
    brings_bps: Vec<f64>,
}

impl<'w, 'n> Room<'w, 'n> {
    fn new(ways: &'w Ways<'n>) -> Room<'w, 'n> {
        let mut workers = vec![Vec::new(); ways.starts.len()];
        for (worker, group) in ways.group.iter().enumerate() {
            workers[*group].push(worker);
        }
        let on_it = ways.sites.iter().map(|site| {
            let mut starts = ways.starts.iter();
            starts.position(|start| start == site)
        });
        let network = ways.network;
        let brings_bps = ways.sites.iter().map(|site| {
            let links = network.adjacent(*site).iter();
            let between = links.filter(|(_, peer)| network.switch(*peer).is_some());
            let rates = between.map(|(link, peer)| network.spare_bps(network.arc(*link, *peer)));
            rates.map(|bps| bps as f64).sum()
        });
        Room {
            on_it: on_it.collect(),
            brings_bps: brings_bps.collect(),
            sums_bps: ways.sums_and_ingress().0,
            workers,
            ways,
        }
    }

    /// For each worker, the switch that sums its stream for a server, if each stream has this rate; `None`: the server sums it.
    fn places(&mut self, server: usize, rate_bps: f64, switches: usize) -> Vec<Option<usize>> {
        let mut places = vec![None; self.ways.group.len()];
        let mut open = self.workers.clone();
        for _ in 0..switches {
            let Some((site, own, others)) = self.best(server, rate_bps, &open) else {
                break;
            };
            let mut take = |group: usize, most: usize| {
                let rest = open[group].len() - most.min(open[group].len());
                let taken = open[group].split_off(rest);
                for worker in &taken {
                    places[*worker] = Some(site);
                }
                taken.len()
            };
            if let Some(group) = self.on_it[site] {
                take(group, own);
            }
            let mut left = others;
            for group in (0..self.workers.len()).filter(|group| self.on_it[site] != Some(*group)) {
                if left > 0 && self.reaches(server, group, site) {
                    left -= take(group, left);
                }
            }
            self.sums_bps[site] -= (own + others) as f64 * rate_bps;
            self.brings_bps[site] -= others as f64 * rate_bps;
        }
        places
    }

    /// The switch that can sum the most workers' streams, and how many workers of its own group and of others it would sum.
    fn best(
        &self,
        server: usize,
        rate_bps: f64,
        open: &[Vec<usize>],
    ) -> Option<(usize, usize, usize)> {
        let mut others = vec![0; self.on_it.len()];
        for (group, workers) in open.iter().enumerate().filter(|(_, open)| !open.is_empty()) {
            for target in &self.ways.targets[server][group] {
                if let Some(site) = target.site
                    && self.on_it[site] != Some(group)
                {
                    others[site] += workers.len();
                }
            }
        }
        let whole = |bps: f64| (bps / rate_bps) as usize;
        let rooms = others.into_iter().enumerate().map(|(site, others)| {
            let sums = whole(self.sums_bps[site]);
            let own = self.on_it[site]
                .map_or(0, |group| open[group].len())
                .min(sums);
            let others = others.min(whole(self.brings_bps[site])).min(sums - own);
            (site, own, others)
        });
        let most = rooms.max_by_key(|(site, own, others)| (own + others, usize::MAX - site));
        // Summing a single worker saves no stream.
        most.filter(|(_, own, others)| own + others > 1)
    }

    fn reaches(&self, server: usize, group: usize, site: usize) -> bool {
        let mut targets = self.ways.targets[server][group].iter();
        targets.any(|target| target.site == Some(site))
    }
}
