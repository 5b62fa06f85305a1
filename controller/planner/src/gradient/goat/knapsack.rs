//! Rounding by knapsacks: as many switches are opened as the relaxation opens, and each with its share as its chance.
//!
//! The shares, the largest first, each go to the knapsack that holds least. The paper needs every knapsack to hold more than a
//! half, and says so of any order; it holds of this one. Say k knapsacks share k or more, and one holds m ≤ ½. Then another
//! holds more than 1. Its last share was put on at most m, since it went to the one that held least. It does not exceed 1,
//! so it lies on something, on at most ½, and is more than ½ itself; but what it lies on came before it and is no smaller.

use rand_chacha::ChaCha12Rng;

use crate::network::generate::random::unit;

/// One site of each knapsack, of those that are open to some share.
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
        // Rounding may leave a little of the last.
        picked.extend(site.or(knapsack.last()));
    }
    picked.sort_unstable();
    picked
}

/// The sites by knapsack; as many knapsacks as shares make wholes.
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
        /// The paper's lemma.
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

    /// In the order in which they come, the lemma does not hold.
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
