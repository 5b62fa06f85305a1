//! Lower bounds of a collective's time, from rates alone without α: traffic through the NICs of equal nodes ([`Nics`]), and
//! traffic between some ranks and all others ([`Cut`]).

use crate::collective::Collective;

/// The NICs of equal nodes, for lower bounds: N nodes, g ranks on each, c NICs of rate B on each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nics {
    /// N: number of nodes.
    pub nodes: usize,
    /// g: number of ranks on each node.
    pub ranks: usize,
    /// c: number of NICs of each node.
    pub nics: usize,
    /// B: rate of each NIC in each direction, in bits per second.
    pub rate_bps: u64,
}

impl Nics {
    /// Lower bound in seconds for an all-gather of shards of m bytes: (N − 1)·g·m / (c·B). A remote shard enters a node once.
    pub fn all_gather_s(&self, bytes: u64) -> f64 {
        self.seconds(self.others() * self.ranks as f64 * bytes as f64)
    }

    /// Lower bound in seconds for an all-to-all of m bytes for each pair of ranks: g²·(N − 1)·m / (c·B).
    pub fn all_to_all_s(&self, bytes: u64) -> f64 {
        let ranks = self.ranks as f64;
        self.seconds(ranks * ranks * self.others() * bytes as f64)
    }

    /// Lower bound in seconds for a reduce-scatter of m bytes at each rank: (N − 1)/N · m / (c·B). A node sums before it sends.
    pub fn reduce_scatter_s(&self, bytes: u64) -> f64 {
        self.seconds(self.others() / self.nodes as f64 * bytes as f64)
    }

    /// Lower bound in seconds for an all-reduce of m bytes at each rank, by hosts alone: twice that of a reduce-scatter.
    pub fn all_reduce_s(&self, bytes: u64) -> f64 {
        2.0 * self.reduce_scatter_s(bytes)
    }

    fn others(&self) -> f64 {
        self.nodes.saturating_sub(1) as f64
    }

    fn seconds(&self, bytes: f64) -> f64 {
        bytes * 8.0 / (self.nics as f64 * self.rate_bps as f64)
    }
}

/// A cut between some ranks (the inside) and all others, with the rates of all edges across it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// For each rank, whether it is inside the cut.
    pub inside: Vec<bool>,
    /// Rate of all edges into the inside together, in bits per second.
    pub into_bps: u64,
    /// Rate of all edges out of the inside together, in bits per second.
    pub out_bps: u64,
}

impl Cut {
    /// Lower bound in seconds: the time of the traffic across the cut, in the direction that takes longer.
    pub fn seconds(&self, collective: &Collective, element_bytes: usize) -> f64 {
        let [into, out] = passes(collective, &self.inside);
        let seconds = |elements: usize, bps: u64| match elements {
            0 => 0.0,
            _ => (elements * element_bytes) as f64 * 8.0 / bps as f64,
        };
        seconds(into, self.into_bps).max(seconds(out, self.out_bps))
    }
}

/// Lower bound in seconds for an all-reduce by hosts that together send at most `all_out_bps`: each element is forwarded N − 1
/// times until one node has the sum, and N − 1 times until all have it (Patarasuk and Yuan, JPDC 2009).
pub fn all_reduce_s(nodes: usize, bytes: u64, all_out_bps: u64) -> f64 {
    let handed_on = 2.0 * nodes.saturating_sub(1) as f64;
    handed_on * bytes as f64 * 8.0 / all_out_bps as f64
}

/// Numbers of elements that must enter and leave the inside of a cut with any algorithm. Each shard or sum counts once.
fn passes(collective: &Collective, inside: &[bool]) -> [usize; 2] {
    if inside.iter().all(|inside| *inside) || !inside.contains(&true) {
        return [0, 0];
    }
    let shards = |shards: &[usize], is_inside: bool| -> usize {
        let of = shards.iter().zip(inside);
        of.filter(|(_, inside)| **inside == is_inside)
            .map(|(len, _)| len)
            .sum()
    };
    let once = |is_there: bool, len: usize| if is_there { len } else { 0 };
    match collective {
        Collective::AllGather { shards: all } => [shards(all, false), shards(all, true)],
        // For each shard inside, a sum of the contributions from outside enters.
        Collective::ReduceScatter { shards: all } => [shards(all, true), shards(all, false)],
        Collective::AllToAll { counts } => {
            let mut passes = [0, 0];
            for (from, counts) in counts.iter().enumerate() {
                for (to, len) in counts.iter().enumerate() {
                    match (inside[from], inside[to]) {
                        (false, true) => passes[0] += len,
                        (true, false) => passes[1] += len,
                        _ => {}
                    }
                }
            }
            passes
        }
        Collective::AllReduce { len, .. } => [*len, *len],
        Collective::Broadcast { root, len, .. } => {
            [once(!inside[*root], *len), once(inside[*root], *len)]
        }
        Collective::Reduce { root, len, .. } => {
            [once(inside[*root], *len), once(!inside[*root], *len)]
        }
        Collective::Barrier { .. } => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four ranks in two nodes of 8 Gb/s, so that a byte takes a nanosecond.
    fn seconds(collective: &Collective) -> f64 {
        let cut = Cut {
            inside: vec![true, true, false, false],
            into_bps: 8_000_000_000,
            out_bps: 8_000_000_000,
        };
        cut.seconds(collective, 1)
    }

    #[test]
    fn cuts_of_equal_nodes_are_their_nics() {
        let nics = Nics {
            nodes: 2,
            ranks: 2,
            nics: 1,
            rate_bps: 8_000_000_000,
        };
        let (ranks, root, len) = (4, 3, 1000);
        for (collective, expected) in [
            (Collective::all_gather(4, 1000), nics.all_gather_s(1000)),
            (Collective::all_to_all(4, 1000), nics.all_to_all_s(1000)),
            (
                Collective::reduce_scatter(4, 4000),
                nics.reduce_scatter_s(4000),
            ),
            (Collective::AllReduce { ranks, len }, 1e-6),
            (Collective::Broadcast { ranks, root, len }, 1e-6),
            (Collective::Reduce { ranks, root, len }, 1e-6),
            (Collective::Barrier { ranks }, 0.0),
        ] {
            let found = seconds(&collective);
            assert!((found - expected).abs() < 1e-12, "{collective:?}: {found}");
        }
        // Each node has one NIC, so the rates of all ranks together yield an equal time.
        let all = all_reduce_s(2, 1000, 16_000_000_000);
        assert!((all - nics.all_reduce_s(1000)).abs() < 1e-12, "{all}");
    }

    #[test]
    fn edges_without_ranks_beyond_carry_no_data() {
        let collective = Collective::all_gather(2, 1000);
        for inside in [vec![true; 2], vec![false; 2]] {
            let (into_bps, out_bps) = (1, 1);
            let cut = Cut {
                inside,
                into_bps,
                out_bps,
            };
            assert_eq!(cut.seconds(&collective, 4), 0.0);
        }
    }
}
