//! Times that nothing can be faster than: what has to pass the NICs of a node, by their rate. No α.
//!
//! N nodes, g ranks on each, c NICs of rate B on each.

/// The NICs of equal nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nics {
    /// N.
    pub nodes: usize,
    /// g.
    pub ranks: usize,
    /// c.
    pub nics: usize,
    /// B, of each.
    pub rate_bps: u64,
}

impl Nics {
    /// All-gather of shards of m bytes: (N − 1)·g·m / (c·B). Each remote shard enters a node once.
    pub fn all_gather_s(&self, bytes: u64) -> f64 {
        self.seconds(self.others() * self.ranks as f64 * bytes as f64)
    }

    /// All-to-all of m bytes for each pair: g²·(N − 1)·m / (c·B).
    pub fn all_to_all_s(&self, bytes: u64) -> f64 {
        let ranks = self.ranks as f64;
        self.seconds(ranks * ranks * self.others() * bytes as f64)
    }

    /// Reduce-scatter of m bytes at each rank: (N − 1)/N · m / (c·B). A node sums before it sends.
    pub fn reduce_scatter_s(&self, bytes: u64) -> f64 {
        self.seconds(self.others() / self.nodes as f64 * bytes as f64)
    }

    /// All-reduce of m bytes at each rank, by hosts alone: twice that.
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
