//! Permutations of a tree's ranks and racks that change nothing.

use super::AllReduce;
use crate::model::permutations;

impl AllReduce {
    /// All orders of the racks, combined with all orders of the ranks within each rack.
    pub(super) fn orders_of_racks(&self) -> Vec<Vec<u8>> {
        let first = self.bounds.ranks + 1;
        let size = self.in_rack();
        // For each rack an order of its ranks.
        let mut within = vec![Vec::new()];
        for _ in 0..self.bounds.racks {
            let longer = within.iter().flat_map(|orders: &Vec<Vec<u8>>| {
                let next = permutations(size).into_iter();
                next.map(|order| orders.iter().cloned().chain([order]).collect())
            });
            within = longer.collect();
        }
        let of_racks = permutations(self.bounds.racks).into_iter();
        let orders = of_racks.flat_map(|racks| {
            within
                .iter()
                .map(move |within| {
                    let rank = |rank: u8| {
                        let (rack, place) = (usize::from(rank / size), usize::from(rank % size));
                        racks[rack] * size + within[rack][place]
                    };
                    let ranks = (0..first - 1).map(rank);
                    let switches = racks.iter().map(|rack| first + rack);
                    ranks
                        .chain([first - 1])
                        .chain(switches)
                        .collect::<Vec<u8>>()
                })
                .collect::<Vec<Vec<u8>>>()
        });
        orders.collect()
    }
}
