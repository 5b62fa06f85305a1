//! Upper bound of the rate of all workers in any InArt plan.
//!
//! Ignores all links except the workers', and treats workers as alike: a plan is the number n of workers that each switch sums
//! for each server. All such numbers are tried if they are few; otherwise only total capacities are compared.

use super::ways::Ways;
use crate::solve::{Cmp, Model, Sense, lp};

/// Maximum number of distributions of workers over switches that are tried.
const MOST: usize = 200_000;

/// Upper bound of the rate in bit/s, for any shares of the servers.
pub(super) fn any_shares(ways: &Ways<'_>) -> f64 {
    let most = altogether(ways);
    let Some(tried) = Tried::new(ways) else {
        return most;
    };
    let mut best = 0.0_f64;
    tried.each(|counts| {
        // The sum of the servers' separate maxima bounds their joint maximum.
        let alone: f64 = (0..counts.len())
            .map(|server| tried.alone(counts, server))
            .sum();
        if alone > best * (1.0 + 1e-9) {
            // If the program is unsolved, use that bound.
            best = best.max(tried.together(counts).unwrap_or(alone).min(alone));
        }
    });
    best.min(most)
}

/// Upper bound of the rate in bit/s, for given shares of the servers.
pub(super) fn with_shares(ways: &Ways<'_>, shares: &[f64]) -> f64 {
    let mut most = altogether(ways);
    for (ingress, share) in ways.sums_and_ingress().1.iter().zip(shares) {
        // A server receives at least one stream.
        if *share > 0.0 {
            most = most.min(ingress / share);
        }
    }
    let Some(tried) = Tried::new(ways) else {
        return most;
    };
    let mut best = 0.0_f64;
    tried.each(|counts| best = best.max(tried.with_shares(counts, shares)));
    best.min(most)
}

/// Upper bound of the rate in bit/s by total capacity: switches or servers receive all that workers send.
fn altogether(ways: &Ways<'_>) -> f64 {
    let (sums, ingress) = ways.sums_and_ingress();
    let ingress: f64 = ingress.iter().sum();
    let workers = ways.job.workers.len() as f64;
    let all = (sums.iter().sum::<f64>() + ingress) / workers;
    ways.job.narrowest_bps(ways.network).min(ingress).min(all)
}

struct Tried {
    workers: usize,
    sums: Vec<f64>,
    ingress: Vec<f64>,
    /// All distributions of one server's workers over the switches: the number of workers by switch.
    of_one: Vec<Vec<usize>>,
}

impl Tried {
    fn new(ways: &Ways<'_>) -> Option<Tried> {
        let (sums, ingress) = ways.sums_and_ingress();
        let workers = ways.job.workers.len();
        // Number of distributions of at most `workers` workers over the switches.
        let mut count = 1_usize;
        for place in 1..=sums.len() {
            count = count.checked_mul(workers + place)? / place;
            if count > MOST {
                return None;
            }
        }
        let all = u32::try_from(ingress.len())
            .ok()
            .and_then(|servers| count.checked_pow(servers));
        if all.is_none_or(|all| all > MOST) {
            return None;
        }
        let mut of_one = Vec::new();
        compositions(sums.len(), workers, &mut Vec::new(), &mut of_one);
        Some(Tried {
            workers,
            sums,
            ingress,
            of_one,
        })
    }

    /// Calls `tell` with every combination of distributions: for each server, the number of workers by switch.
    fn each(&self, mut tell: impl FnMut(&[&[usize]])) {
        let servers = self.ingress.len();
        let mut choice = vec![0; servers];
        loop {
            let counts: Vec<&[usize]> = choice
                .iter()
                .map(|of| self.of_one[*of].as_slice())
                .collect();
            tell(&counts);
            let Some(next) = choice.iter().position(|of| of + 1 < self.of_one.len()) else {
                return;
            };
            choice[next] += 1;
            choice[..next].fill(0);
        }
    }

    /// Number of streams that reach a server under this distribution of its workers over the switches.
    fn streams(&self, of: &[usize]) -> f64 {
        let summed: usize = of.iter().sum();
        let sums = of.iter().filter(|count| **count > 0).count();
        (self.workers - summed + sums) as f64
    }

    fn alone(&self, counts: &[&[usize]], server: usize) -> f64 {
        let of = counts[server];
        let sums = of.iter().zip(&self.sums).filter(|(count, _)| **count > 0);
        let sums = sums.map(|(count, sums)| sums / *count as f64);
        sums.fold(self.ingress[server] / self.streams(of), f64::min)
    }

    fn with_shares(&self, counts: &[&[usize]], shares: &[f64]) -> f64 {
        let mut most = f64::INFINITY;
        for (server, of) in counts.iter().enumerate() {
            most = most.min(self.ingress[server] / (shares[server] * self.streams(of)));
        }
        for (site, sums) in self.sums.iter().enumerate() {
            let of = counts.iter().zip(shares);
            let load: f64 = of.map(|(of, share)| of[site] as f64 * share).sum();
            most = most.min(sums / load);
        }
        most
    }

    /// Upper bound of the rate for any shares, given each server's number of workers by switch; `None` if unproved.
    fn together(&self, counts: &[&[usize]]) -> Option<f64> {
        let mut model = Model::new(Sense::Maximize);
        let rates: Vec<_> = counts
            .iter()
            .zip(&self.ingress)
            .map(|(of, ingress)| model.variable(0.0, ingress / self.streams(of), 1.0))
            .collect();
        for (site, sums) in self
            .sums
            .iter()
            .enumerate()
            .filter(|(_, sums)| sums.is_finite())
        {
            let terms = rates.iter().zip(counts).filter(|(_, of)| of[site] > 0);
            let terms: Vec<_> = terms.map(|(rate, of)| (*rate, of[site] as f64)).collect();
            if !terms.is_empty() {
                model.constrain(terms, Cmp::Le, *sums);
            }
        }
        lp(&model).ok().map(|answer| answer.bound)
    }
}

fn compositions(sites: usize, left: usize, begun: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
    if begun.len() == sites {
        all.push(begun.clone());
        return;
    }
    for count in 0..=left {
        begun.push(count);
        compositions(sites, left - count, begun, all);
        begun.pop();
    }
}
