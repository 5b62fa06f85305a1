//! Lower bound of one resource's worst utilization that counts shared charges in full.
//!
//! As in [`super::bound`], any weights of switches whose sum is 1 give a bound. There, a charge that blocks share is split
//! evenly, so a block placed apart from its group (the blocks that share a charge) pays for a part only; here it pays in full.
//! At given prices of switches a group costs at least its cheapest cover: switches such that each of its blocks has one among
//! its options. Groups are small, so the cover is found exactly, by dynamic programming over the sets of covered blocks.

use std::collections::BTreeSet;

use super::blocks::{BlockId, Blocks};
use super::groups::groups;
use super::problem::{ResourceId, SwitchId};

/// Number of rounds in which the weights of switches are updated.
const ROUNDS: usize = 400;
/// Maximum number of blocks in a group whose cheapest switches are computed. Shared charges of larger groups are left out.
const MOST: usize = 12;
/// Upper bound of the rounding errors in sums.
const SLACK: f64 = 1e-9;

/// Lower bound of the worst utilization of a resource in any placement.
pub(super) fn at_least(blocks: &Blocks<'_>, resource: ResourceId) -> f64 {
    let groups = Group::all(blocks, resource);
    let own = own(blocks, &groups, resource);
    let switches = blocks.problem.switches.len();
    let free = (0..switches).map(|switch| blocks.free[blocks.row(switch, resource)] as f64);
    let free: Vec<f64> = free.collect();
    let mut logs = vec![0.0_f64; switches];
    let mut prices = vec![0.0; switches];
    let mut best = 0.0_f64;
    for round in 0..ROUNDS {
        weigh(&logs, &free, &mut prices);
        let mut taken = vec![0.0; switches];
        let mut bound = 0.0;
        for group in &groups {
            bound += group.cover(&prices, &mut taken);
        }
        for (block, own) in blocks
            .blocks
            .iter()
            .zip(&own)
            .filter(|(_, own)| **own > 0.0)
        {
            let price = |switches: &[SwitchId]| switches.iter().map(|s| prices[*s]).sum::<f64>();
            let places = block.options.iter().map(|place| place.switches.as_slice());
            let Some(cheapest) = places.min_by(|a, b| price(a).total_cmp(&price(b))) else {
                continue;
            };
            bound += own * price(cheapest);
            for switch in cheapest {
                taken[*switch] += own;
            }
        }
        best = best.max(bound * (1.0 - SLACK));
        let loads = taken.iter().zip(&free).map(|(taken, free)| taken / free);
        let widest = loads.clone().fold(0.0_f64, f64::max);
        if widest <= 0.0 {
            break;
        }
        let step = 2.0 / libm::sqrt(1.0 + round as f64);
        for (log, load) in logs.iter_mut().zip(loads) {
            *log += step * load / widest;
        }
    }
    best
}

/// Converts logarithms to prices of switches: weights that sum to 1, each divided by the switch's free amount.
fn weigh(logs: &[f64], free: &[f64], prices: &mut [f64]) {
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|log| libm::exp(log - highest)).sum();
    for ((price, log), free) in prices.iter_mut().zip(logs).zip(free) {
        *price = libm::exp(log - highest) / sum / free;
    }
}

/// Blocks of faults that share a charge: a part that a switch holds once for all of them.
struct Group {
    /// Amount of the resource that the charge takes at each switch where one of the blocks of faults is placed.
    cost: f64,
    /// Index of the shared charge in the problem.
    charge: usize,
    /// For each block of the group: the switches of its options, and at each the set of the group's blocks that can be there.
    by_block: Vec<Vec<(SwitchId, usize)>>,
}

impl Group {
    fn all(blocks: &Blocks<'_>, resource: ResourceId) -> Vec<Group> {
        let (_, members) = groups(blocks);
        let small = members.iter().filter(|members| members.len() <= MOST);
        let mut counted = BTreeSet::new();
        small
            .filter_map(|members| Group::new(blocks, members, resource))
            // Two groups may have the same charge: it is counted once.
            .filter(|group| counted.insert(group.charge))
            .collect()
    }

    /// Makes a group of these blocks; `None` if they share no charge that takes this resource.
    fn new(blocks: &Blocks<'_>, members: &[BlockId], resource: ResourceId) -> Option<Group> {
        let problem = blocks.problem;
        let takes = |charge: &usize| {
            let mut cost = problem.charges[*charge].cost.iter();
            let cost = cost
                .find(|(of, _)| *of == resource)
                .map_or(0, |(_, cost)| *cost);
            // Charges of single blocks are counted separately.
            let holds = |block: &&BlockId| blocks.blocks[**block].charges.contains(charge);
            match members.iter().filter(holds).count() == members.len() {
                true => cost,
                false => 0,
            }
        };
        let first = &blocks.blocks[*members.first()?].charges;
        let charge = first.iter().copied().max_by_key(takes)?;
        let cost = takes(&charge) as f64;
        if cost == 0.0 {
            return None;
        }
        let stands = |block: BlockId, switch: SwitchId| {
            let mut options = blocks.blocks[block].options.iter();
            options.any(|place| place.switches.contains(&switch))
        };
        let by_block = members.iter().map(|block| {
            let options = blocks.blocks[*block].options.iter();
            let mut switches: Vec<SwitchId> =
                options.flat_map(|place| &place.switches).copied().collect();
            switches.sort_unstable();
            switches.dedup();
            let sets = switches.into_iter().map(|switch| {
                let there = members.iter().enumerate();
                let there = there.filter(|(_, other)| stands(**other, switch));
                (switch, there.map(|(place, _)| 1 << place).sum())
            });
            sets.collect()
        });
        Some(Group {
            cost,
            charge,
            by_block: by_block.collect(),
        })
    }

    /// Least total price of switches such that each block of the group can be at one of them. Adds their amounts to `taken`.
    fn cover(&self, prices: &[f64], taken: &mut [f64]) -> f64 {
        let all = (1 << self.by_block.len()) - 1;
        // By set of covered blocks: least cost, previous set, and the switch that was added.
        let mut least = vec![(f64::INFINITY, 0, 0); all + 1];
        least[0].0 = 0.0;
        for set in 0..all {
            let (cost, ..) = least[set];
            if cost == f64::INFINITY {
                continue;
            }
            // Every cover covers the first open block by some switch.
            let open = (!set).trailing_zeros() as usize;
            for &(switch, covers) in &self.by_block[open] {
                let next = &mut least[set | covers];
                let with = cost + self.cost * prices[switch];
                if with < next.0 {
                    *next = (with, set, switch);
                }
            }
        }
        let mut set = all;
        while set != 0 && least[set].0 < f64::INFINITY {
            let (_, before, switch) = least[set];
            taken[switch] += self.cost;
            set = before;
        }
        match least[all].0 {
            f64::INFINITY => 0.0,
            cost => cost,
        }
    }
}

/// For each block of faults, the amount that it takes by charges that no group counts; shared charges are split evenly.
fn own(blocks: &Blocks<'_>, groups: &[Group], resource: ResourceId) -> Vec<f64> {
    let problem = blocks.problem;
    let mut is_counted = vec![false; problem.charges.len()];
    for group in groups {
        is_counted[group.charge] = true;
    }
    let mut sharing = vec![0_u32; problem.charges.len()];
    for charge in blocks.blocks.iter().flat_map(|block| &block.charges) {
        sharing[*charge] += 1;
    }
    let of_block = blocks.blocks.iter().map(|block| {
        let charges = block.charges.iter().filter(|charge| !is_counted[**charge]);
        let parts = charges.flat_map(|charge| {
            let cost = problem.charges[*charge].cost.iter();
            let cost = cost.filter(|(of, _)| *of == resource);
            cost.map(|(_, cost)| *cost as f64 / f64::from(sharing[*charge]))
        });
        parts.sum()
    });
    of_block.collect()
}
