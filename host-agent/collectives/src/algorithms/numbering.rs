//! Which rank takes which place in an algorithm.

/// Ranks in turn from each supernode (swCaffe: Li et al., CLUSTER 2018). Partners at large distances are then in one
/// supernode: with supernodes of q of p ranks, recursive halving sends n(1/q − 1/p) bytes a rank across them instead of
/// n(1 − q/p).
pub fn round_robin(supernodes: &[Vec<usize>]) -> Vec<usize> {
    let longest = supernodes.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| {
        supernodes
            .iter()
            .filter_map(move |ranks| ranks.get(turn).copied())
    });
    turns.collect()
}

/// One supernode after the other.
pub fn blocks(supernodes: &[Vec<usize>]) -> Vec<usize> {
    supernodes.concat()
}
