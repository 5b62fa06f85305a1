//! Orders of ranks: which rank has which position in an algorithm.

/// Order that takes one rank from each supernode (group of ranks with fast links) in turn (swCaffe: Li et al., CLUSTER 2018).
/// Then partners at large distances, which exchange most data, are in one supernode. With p ranks in supernodes of q ranks,
/// recursive halving of n bytes sends n(1/q − 1/p) bytes per rank across supernodes, instead of n(1 − q/p).
pub fn round_robin(supernodes: &[Vec<usize>]) -> Vec<usize> {
    let longest = supernodes.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| {
        supernodes
            .iter()
            .filter_map(move |ranks| ranks.get(turn).copied())
    });
    turns.collect()
}

/// Order that takes all ranks of one supernode, then those of the next supernode.
pub fn blocks(supernodes: &[Vec<usize>]) -> Vec<usize> {
    supernodes.concat()
}
