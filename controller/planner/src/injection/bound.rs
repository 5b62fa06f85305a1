//! Lower bound of the worst utilization, by the dual of the linear relaxation.
//!
//! Any weights of the rows (switch, resource) whose sum is 1 give a bound: the worst utilization is at least the weighted mean,
//! which is at least the sum, over blocks, of the cheapest option's cost with the weights as prices. A charge that several
//! blocks share is split evenly among them. Multiplicative updates find good weights (Arora, Hazan, Kale, *The Multiplicative
//! Weights Update Method*, Theory of Computing 8, 2012): rows on which the cheapest options put much load get more expensive.

use super::blocks::Blocks;
use super::cost::Utilisation;

/// Maximum number of rounds in which weights are updated.
const ROUNDS: usize = 240;
/// Number of rounds of updates for the largest problems.
const LEAST_ROUNDS: usize = 40;
/// Maximum number of switches in options that all rounds together examine; larger problems have fewer rounds.
const WORK: usize = 60_000_000;
/// Upper bound of the rounding errors in sums.
const SLACK: f64 = 1e-9;

/// Costs of each block's options, with the best found weights of resources as prices.
#[derive(Debug, Clone)]
pub(super) struct Prices {
    /// Cost of each option, by block of faults and option.
    pub of: Vec<Vec<f64>>,
    /// For each block of faults, the cost of its cheapest option.
    pub least: Vec<f64>,
    /// Sum of `least`, a lower bound of the worst utilization of any placement.
    pub bound: f64,
}

/// Amount of a resource against which loads are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadMeasure {
    /// The free amounts of all resources with hard limits: the measured loads are utilizations.
    Free,
    /// The free amounts of one resource, given by its index.
    One(usize),
    /// The limits of what faults may take: a bound above 1 proves that there is no placement.
    Limits,
}

impl Prices {
    /// Finds the weights of resources that give the best bound, as prices. Every block of faults must have an option.
    pub fn find(blocks: &Blocks<'_>, measure: LoadMeasure) -> Prices {
        let parts = parts(blocks);
        let rows = rows(blocks, measure);
        let mut logs = vec![0.0_f64; rows.len()];
        let mut weights = vec![0.0_f64; rows.len()];
        let mut load = vec![0.0_f64; rows.len()];
        let mut best = Prices {
            of: blocks
                .blocks
                .iter()
                .map(|b| vec![0.0; b.options.len()])
                .collect(),
            least: vec![0.0; blocks.blocks.len()],
            bound: 0.0,
        };
        let mut now = best.clone();
        let mut at_switch = vec![f64::NAN; blocks.problem.switches.len()];
        let options = blocks.blocks.iter().flat_map(|block| &block.options);
        let size: usize = options.map(|place| place.switches.len()).sum();
        for round in 0..(WORK / size.max(1)).clamp(LEAST_ROUNDS, ROUNDS) {
            weigh(&logs, &rows, &mut weights);
            load.fill(0.0);
            now.price(
                blocks,
                &parts,
                (&weights, &rows),
                (&mut load, &mut at_switch),
            );
            if now.bound > best.bound {
                best.clone_from(&now);
            }
            let widest = load.iter().fold(0.0_f64, |a, b| a.max(*b));
            if widest <= 0.0 {
                break;
            }
            let step = 2.0 / libm::sqrt(1.0 + round as f64);
            for (log, load) in logs.iter_mut().zip(&load) {
                *log += step * load / widest;
            }
        }
        best
    }

    /// Computes the costs of all options, and adds the load of each block's cheapest option. `at_switch` caches a block's cost
    /// at each switch, since a block's options often have switches in common.
    fn price(
        &mut self,
        blocks: &Blocks<'_>,
        parts: &[Vec<(usize, f64)>],
        (weights, rows): (&[f64], &[f64]),
        (load, at_switch): (&mut [f64], &mut [f64]),
    ) {
        self.bound = 0.0;
        for (number, block) in blocks.blocks.iter().enumerate() {
            let mut cheapest = (f64::INFINITY, 0);
            for switch in block.options.iter().flat_map(|place| &place.switches) {
                at_switch[*switch] = f64::NAN;
            }
            for (option, place) in block.options.iter().enumerate() {
                let mut price = 0.0;
                for &switch in &place.switches {
                    if at_switch[switch].is_nan() {
                        let row = blocks.row(switch, 0);
                        let each = parts[number].iter();
                        let each = each.map(|(resource, part)| weights[row + resource] * part);
                        at_switch[switch] = each.sum();
                    }
                    price += at_switch[switch];
                }
                self.of[number][option] = price;
                if price < cheapest.0 {
                    cheapest = (price, option);
                }
            }
            let Some(place) = block.options.get(cheapest.1) else {
                continue;
            };
            self.least[number] = cheapest.0;
            self.bound += cheapest.0;
            for &switch in &place.switches {
                let row = blocks.row(switch, 0);
                for &(resource, part) in &parts[number] {
                    load[row + resource] += part * rows[row + resource];
                }
            }
        }
        self.bound *= 1.0 - SLACK;
    }
}

/// For each block of faults, the resources that it takes at each of its switches, with its part of charges that blocks share.
fn parts(blocks: &Blocks<'_>) -> Vec<Vec<(usize, f64)>> {
    let problem = blocks.problem;
    let mut sharing = vec![0_u32; problem.charges.len()];
    for charge in blocks.blocks.iter().flat_map(|block| &block.charges) {
        sharing[*charge] += 1;
    }
    let of = |block: &super::blocks::Block| {
        let mut parts = vec![0.0; problem.resources.len()];
        for &charge in &block.charges {
            for &(resource, cost) in &problem.charges[charge].cost {
                parts[resource] += cost as f64 / f64::from(sharing[charge]);
            }
        }
        let parts = parts.into_iter().enumerate();
        parts.filter(|(_, part)| *part > 0.0).collect()
    };
    blocks.blocks.iter().map(of).collect()
}

/// For each switch and resource, the reciprocal of the amount against which loads are measured; 0 if it does not count.
fn rows(blocks: &Blocks<'_>, measure: LoadMeasure) -> Vec<f64> {
    let resources = blocks.problem.resources.len();
    let rows = blocks.limits.iter().zip(&blocks.free).enumerate();
    rows.map(|(row, (limit, free))| match measure {
        LoadMeasure::One(resource) if row % resources != resource => 0.0,
        LoadMeasure::One(_) => 1.0 / *free as f64,
        LoadMeasure::Free if !blocks.problem.resources[row % resources].binds => 0.0,
        LoadMeasure::Free => 1.0 / *free as f64,
        LoadMeasure::Limits if *limit == u64::MAX => 0.0,
        // Limit 0: treat it as a tiny limit, since whole units are taken.
        LoadMeasure::Limits => 1.0 / (*limit as f64).max(0.5),
    })
    .collect()
}

/// Converts logarithms to weights: those that count sum to 1, and each is then divided by its resource's amount.
fn weigh(logs: &[f64], rows: &[f64], weights: &mut [f64]) {
    let counted = || logs.iter().zip(rows).filter(|(_, row)| **row > 0.0);
    let highest = counted().fold(f64::NEG_INFINITY, |a, (log, _)| a.max(*log));
    let sum: f64 = counted().map(|(log, _)| libm::exp(log - highest)).sum();
    for ((weight, log), row) in weights.iter_mut().zip(logs).zip(rows) {
        *weight = match *row > 0.0 {
            true => libm::exp(log - highest) / sum * row,
            false => 0.0,
        };
    }
}

/// The values that a utilization can have: for each switch and resource, multiples of a common divisor of its costs.
#[derive(Debug, Clone)]
pub(super) struct Levels {
    /// For each switch and resource that counts: the free amount, and a divisor of all amounts that faults can take.
    rows: Vec<(u64, u64)>,
}

impl Levels {
    /// Possible utilizations of all resources with a hard limit.
    pub fn new(blocks: &Blocks<'_>) -> Levels {
        Levels::for_resources(blocks, |resource| blocks.problem.resources[resource].binds)
    }

    /// Possible utilizations of one resource, given by its index.
    pub fn for_resource(blocks: &Blocks<'_>, resource: usize) -> Levels {
        Levels::for_resources(blocks, |other| other == resource)
    }

    /// Possible utilizations of the resources for which `counts` is true, at all switches of some option.
    fn for_resources(blocks: &Blocks<'_>, counts: impl Fn(usize) -> bool) -> Levels {
        let problem = blocks.problem;
        let mut steps = vec![0_u64; problem.resources.len()];
        let charges = blocks.blocks.iter().flat_map(|block| &block.charges);
        for &(resource, cost) in charges.flat_map(|charge| &problem.charges[*charge].cost) {
            steps[resource] = gcd(steps[resource], cost);
        }
        let mut touched = vec![false; problem.switches.len()];
        let places = blocks.blocks.iter().flat_map(|block| &block.options);
        for switch in places.flat_map(|place| &place.switches) {
            touched[*switch] = true;
        }
        let switches = (0..problem.switches.len()).filter(|switch| touched[*switch]);
        let mut rows: Vec<(u64, u64)> = switches
            .flat_map(|switch| {
                let counted = (0..problem.resources.len()).filter(|resource| counts(*resource));
                let steps = &steps;
                counted.map(move |resource| {
                    let opening = problem.switches[switch].opening[resource];
                    let step = gcd(steps[resource], opening);
                    (problem.free(switch, resource), step)
                })
            })
            .filter(|(_, step)| *step > 0)
            .collect();
        rows.sort_unstable();
        rows.dedup();
        Levels { rows }
    }

    /// The least possible utilization that is not below a bound; the worst utilization of a placement is one of those.
    pub fn at_least(&self, bound: f64) -> Utilisation {
        let level = |(of, step): &(u64, u64)| {
            let (of, step) = (*of, *step);
            let exact = bound * of as f64 / step as f64;
            // A rounding error must not raise the level.
            let steps = libm::ceil(exact * (1.0 - SLACK) - SLACK).max(0.0) as u64;
            Utilisation {
                taken: steps.saturating_mul(step),
                of,
            }
        };
        let levels = self.rows.iter().map(level);
        levels.min().unwrap_or(Utilisation::NONE)
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
