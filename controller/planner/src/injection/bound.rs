//! Lower bound of the worst utilization, by the dual of the linear relaxation.
//!
//! Any weights of the rows (switch, resource) whose sum is 1 give a bound: the worst utilization is at least the weighted mean,
//! which is at least the sum, over blocks, of the cheapest option's cost with the weights as prices. A charge that several
//! blocks share is split evenly among them. Multiplicative updates find good weights (Arora, Hazan, Kale, *The Multiplicative
//! Weights Update Method*, Theory of Computing 8, 2012): rows on which the cheapest options put much load become more
//! expensive.

use super::blocks::Blocks;
use super::cost::Utilisation;

/// Maximum number of rounds of updates.
const ROUNDS: usize = 240;
/// Number of rounds for the largest problems.
const LEAST_ROUNDS: usize = 40;
/// Maximum number of switches in options that all rounds examine; larger problems have fewer rounds.
const WORK: usize = 60_000_000;
/// Bound of rounding errors in sums.
const SLACK: f64 = 1e-9;

/// Costs of each block's options at the best weights found.
#[derive(Debug, Clone)]
pub(super) struct Prices {
    /// Cost by block and option.
    pub of: Vec<Vec<f64>>,
    /// Cost of the cheapest option, by block.
    pub least: Vec<f64>,
    /// Sum of `least`, a lower bound of the worst utilization of any placement.
    pub bound: f64,
}

/// Amount against which loads are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadMeasure {
    /// Free amounts of binding resources: utilization.
    Free,
    /// Free amounts of one resource: its utilization.
    One(usize),
    /// Limits: a bound above 1 proves that there is no placement.
    Limits,
}

impl Prices {
    /// Finds the best prices. Every block must have an option.
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

    /// Computes the prices of all options, and adds the load of each block's cheapest option. `at_switch` caches a block's cost
    /// at each switch, since spread blocks have many options with the same switches.
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

/// By block: its share of each resource that it takes at any of its switches.
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

/// By row: reciprocal of the amount against which loads are measured; 0 for rows that do not count.
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

/// Converts logarithms to weights: their sum over the rows that count is 1, and each is divided by its row's amount.
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

/// Possible utilizations: in each row, multiples of a common divisor of its costs.
#[derive(Debug, Clone)]
pub(super) struct Levels {
    /// By row of a binding resource: free amount, and a divisor of all amounts that can be taken.
    rows: Vec<(u64, u64)>,
}

impl Levels {
    /// Levels of all binding resources.
    pub fn new(blocks: &Blocks<'_>) -> Levels {
        Levels::for_resources(blocks, |resource| blocks.problem.resources[resource].binds)
    }

    /// Levels of one resource.
    pub fn for_resource(blocks: &Blocks<'_>, resource: usize) -> Levels {
        Levels::for_resources(blocks, |other| other == resource)
    }

    /// Levels of all rows that an option touches.
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

    /// Least level not below a bound; the worst utilization is always one of the levels.
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
