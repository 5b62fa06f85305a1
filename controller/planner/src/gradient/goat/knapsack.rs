//! Rounding by knapsacks: opens as many switches as the relaxation does, each with its share as probability.
//!
//! Each share, largest first, goes to the knapsack that holds the least. The paper requires every knapsack to hold more than ½,
//! and claims it for any order; it is true for this one. Suppose that k knapsacks hold k or more in total, and that one holds m
//! ≤ ½. Then another holds more than 1. Its last share was added to at most m, since that knapsack held the least then. A share
//! is at most 1, so some shares of at most ½ lie below it, and it is more than ½ itself; but those came before and are no
//! smaller.

use rand_chacha::ChaCha12Rng;

use crate::network::generate::random::unit;

/// Picks one switch at random from each knapsack; `open` has the share to which the relaxation opens each switch.
pub(super) fn pick(open: &[f64], rng: &mut ChaCha12Rng) -> Vec<usize> {
    let knapsacks = pack(open);
    let mut picked = Vec::new();
    for knapsack in knapsacks {
        let held: f64 = knapsack.iter().map(|site| open[*site]).sum();
        let mut left = unit(rng) * held;
        let site = knapsack.iter().find(|site| {
            left -= open[**site];
            left < 0.0
        });
        // Rounding errors may leave a small rest: take the last site.
        picked.extend(site.or(knapsack.last()));
    }
    picked.sort_unstable();
    picked
}

/// Indices of the switches in each knapsack; there are as many knapsacks as the whole part of the sum of all shares.
pub(super) fn pack(open: &[f64]) -> Vec<Vec<usize>> {
    let mut sites: Vec<usize> = (0..open.len()).filter(|site| open[*site] > 1e-9).collect();
    sites.sort_by(|a, b| open[*b].total_cmp(&open[*a]).then(a.cmp(b)));
    let sum: f64 = sites.iter().map(|site| open[*site]).sum();
    let mut knapsacks = vec![(0.0_f64, Vec::new()); (sum + 1e-9) as usize];
    for site in sites {
        let least = knapsacks.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((held, knapsack)) = least else { break };
        *held += open[site];
        knapsack.push(site);
    }
    knapsacks
        .into_iter()
        .map(|(_, knapsack)| knapsack)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::rand_core::SeedableRng;

    fn least(open: &[f64], knapsacks: &[Vec<usize>]) -> f64 {
        let held = knapsacks
            .iter()
            .map(|knapsack| knapsack.iter().map(|site| open[*site]).sum::<f64>());
        held.fold(f64::INFINITY, f64::min)
    }

    proptest! {
        /// Lemma of the paper.
        #[test]
        fn every_knapsack_holds_more_than_a_half(open in prop::collection::vec(0.0..=1.0, 1..40)) {
            let knapsacks = pack(&open);
            prop_assert_eq!(knapsacks.len(), open.iter().sum::<f64>() as usize);
            prop_assert!(least(&open, &knapsacks) > 0.5);
        }

        #[test]
        fn each_knapsack_opens_one(open in prop::collection::vec(0.0..=1.0, 1..40), seed: u64) {
            let mut rng = ChaCha12Rng::seed_from_u64(seed);
            let picked = pick(&open, &mut rng);
            let knapsacks = pack(&open);
            prop_assert_eq!(picked.len(), knapsacks.len());
            for knapsack in knapsacks {
                let of = picked.iter().filter(|site| knapsack.contains(site));
                prop_assert_eq!(of.count(), 1);
            }
        }
    }

    /// Without sorting, the lemma does not hold.
    #[test]
    fn sorted_is_not_as_they_come() {
        let open = [0.3, 0.4, 0.4, 1.0, 0.9];
        let mut held = [0.0; 3];
        for share in open {
            let least = (0..3).min_by(|a, b| f64::total_cmp(&held[*a], &held[*b]));
            held[least.unwrap()] += share;
        }
        assert!(held.iter().any(|held| *held <= 0.5));
        assert!(least(&open, &pack(&open)) > 0.5);
    }
}
