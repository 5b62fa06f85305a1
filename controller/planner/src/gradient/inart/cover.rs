//! Starts for many racks: few switches sum for each server, and each of them as much as it has room for.
//!
//! A server takes in a stream of every switch that sums for it, so the fewer there are the faster all are, until switches or
//! the links to them are full. How many are best is not known: the search tries some numbers. For one number, that switch is
//! taken again and again that has room for most of the workers that are open yet, as a set is covered by the greatest sets
//! first.

use super::ways::Ways;

/// By server and worker, the place of the switch that sums; `None`: the server.
pub(super) type Places = Vec<Vec<Option<usize>>>;

/// With so many switches for each server, or as many as are of use.
pub(super) fn cover(ways: &Ways<'_>, switches: usize) -> Places {
    let mut room = Room::of(ways);
    let servers = ways.targets.len() as f64;
    let (_, ingress) = ways.sums_and_ingress();
    let of_servers = ingress.iter().enumerate().map(|(server, ingress)| {
        let rate_bps = (ingress / switches as f64).min(ways.narrowest_worker() / servers);
        room.places(server, rate_bps, switches)
    });
    of_servers.collect()
}

/// What is left for the servers that come next.
struct Room<'w, 'n> {
    ways: &'w Ways<'n>,
    /// By group, its workers.
    workers: Vec<Vec<usize>>,
    /// By site: the group that is on it.
    on_it: Vec<Option<usize>>,
    /// By site, what it can sum yet, in bits a second.
    sums_bps: Vec<f64>,
    /// By site, what links from other switches can bring it yet.
    brings_bps: Vec<f64>,
}

impl<'w, 'n> Room<'w, 'n> {
    fn of(ways: &'w Ways<'n>) -> Room<'w, 'n> {
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

    /// Where each worker's stream for a server is summed, if each has this rate.
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

    /// The site that has room for most, and for how many of those on it and of others.
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
        // One alone makes a stream as it is.
        most.filter(|(_, own, others)| own + others > 1)
    }

    fn reaches(&self, server: usize, group: usize, site: usize) -> bool {
        let mut targets = self.ways.targets[server][group].iter();
        targets.any(|target| target.site == Some(site))
    }
}
