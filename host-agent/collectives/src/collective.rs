//! Specification of collectives: which values each rank contributes, and which result each rank gets.

/// A collective and its sizes in elements. Sizes may be 0, and may differ between ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collective {
    /// Every rank gets the shards of all ranks, in rank order.
    AllGather {
        /// Length of each rank's shard in elements, in rank order.
        shards: Vec<usize>,
    },
    /// Every rank sends different elements to every rank; inputs and outputs are in rank order.
    AllToAll {
        /// `counts[from][to]`: number of elements that rank `from` sends to rank `to`; a square matrix.
        counts: Vec<Vec<usize>>,
    },
    /// Each rank gets its shard of the sum of all inputs.
    ReduceScatter {
        /// Length of each rank's shard in elements, in rank order.
        shards: Vec<usize>,
    },
    /// Every rank gets the sum of all inputs.
    AllReduce {
        /// Number of ranks that take part.
        ranks: usize,
        /// Number of elements that each rank contributes.
        len: usize,
    },
    /// Every rank gets the root's values.
    Broadcast {
        /// Number of ranks that take part.
        ranks: usize,
        /// Rank that has the values at the beginning.
        root: usize,
        /// Number of elements that the root sends.
        len: usize,
    },
    /// The root gets the sum of all inputs.
    Reduce {
        /// Number of ranks that take part.
        ranks: usize,
        /// Rank that gets the sum.
        root: usize,
        /// Number of elements that each rank contributes.
        len: usize,
    },
    /// No rank proceeds before all ranks have arrived.
    Barrier {
        /// Number of ranks that take part.
        ranks: usize,
    },
}

/// A contribution to an element of a result: a rank, and the index of an element in its input.
pub type Contribution = (usize, usize);

impl Collective {
    /// All-gather with equal shards, as MPI_Allgather.
    pub fn all_gather(ranks: usize, shard: usize) -> Self {
        Self::AllGather {
            shards: vec![shard; ranks],
        }
    }

    /// All-to-all with `len` elements for each pair of ranks, as MPI_Alltoall; each rank also keeps `len` elements of its own.
    pub fn all_to_all(ranks: usize, len: usize) -> Self {
        Self::AllToAll {
            counts: vec![vec![len; ranks]; ranks],
        }
    }

    /// Reduce-scatter of a vector of `len` elements, in shards whose lengths differ by at most one element.
    pub fn reduce_scatter(ranks: usize, len: usize) -> Self {
        Self::ReduceScatter {
            shards: even(len, ranks),
        }
    }

    /// Name of the collective, as in nccl-tests.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AllGather { .. } => "all_gather",
            Self::AllToAll { .. } => "all_to_all",
            Self::ReduceScatter { .. } => "reduce_scatter",
            Self::AllReduce { .. } => "all_reduce",
            Self::Broadcast { .. } => "broadcast",
            Self::Reduce { .. } => "reduce",
            Self::Barrier { .. } => "barrier",
        }
    }

    /// Number of ranks that take part.
    pub fn ranks(&self) -> usize {
        match self {
            Self::AllGather { shards } | Self::ReduceScatter { shards } => shards.len(),
            Self::AllToAll { counts } => counts.len(),
            Self::AllReduce { ranks, .. }
            | Self::Broadcast { ranks, .. }
            | Self::Reduce { ranks, .. }
            | Self::Barrier { ranks } => *ranks,
        }
    }

    /// Whether the collective combines the inputs of several ranks, such as by a sum.
    pub fn reduces(&self) -> bool {
        matches!(
            self,
            Self::ReduceScatter { .. } | Self::AllReduce { .. } | Self::Reduce { .. }
        )
    }

    /// Length of a rank's input in elements.
    pub fn input_len(&self, rank: usize) -> usize {
        match self {
            Self::AllGather { shards } => shards[rank],
            Self::AllToAll { counts } => counts[rank].iter().sum(),
            Self::ReduceScatter { shards } => shards.iter().sum(),
            Self::AllReduce { len, .. } | Self::Reduce { len, .. } => *len,
            Self::Broadcast { root, len, .. } => only(rank == *root, *len),
            Self::Barrier { .. } => 0,
        }
    }

    /// Length of a rank's output in elements.
    pub fn output_len(&self, rank: usize) -> usize {
        match self {
            Self::AllGather { shards } => shards.iter().sum(),
            Self::AllToAll { counts } => counts.iter().map(|to| to[rank]).sum(),
            Self::ReduceScatter { shards } => shards[rank],
            Self::AllReduce { len, .. } | Self::Broadcast { len, .. } => *len,
            Self::Reduce { root, len, .. } => only(rank == *root, *len),
            Self::Barrier { .. } => 0,
        }
    }

    /// For each element of a rank's output, the contributions that it combines, in ascending order.
    pub fn expected(&self, rank: usize) -> Vec<Vec<Contribution>> {
        let all = |element: usize| (0..self.ranks()).map(|from| (from, element)).collect();
        let alone = |from: usize, first: usize, len: usize| {
            (first..first + len).map(move |element| vec![(from, element)])
        };
        match self {
            Self::AllGather { shards } => {
                let shards = shards.iter().enumerate();
                shards
                    .flat_map(|(from, len)| alone(from, 0, *len))
                    .collect()
            }
            Self::AllToAll { counts } => {
                let from = counts.iter().enumerate();
                from.flat_map(|(from, to)| alone(from, to[..rank].iter().sum(), to[rank]))
                    .collect()
            }
            Self::ReduceScatter { shards } => {
                let first: usize = shards[..rank].iter().sum();
                (first..first + shards[rank]).map(all).collect()
            }
            Self::AllReduce { .. } | Self::Reduce { .. } => {
                (0..self.output_len(rank)).map(all).collect()
            }
            Self::Broadcast { root, len, .. } => alone(*root, 0, *len).collect(),
            Self::Barrier { .. } => Vec::new(),
        }
    }
}

/// Splits `len` elements into `parts` lengths that differ by at most one, larger ones first.
pub fn even(len: usize, parts: usize) -> Vec<usize> {
    let part = |i: usize| len / parts + usize::from(i < len % parts);
    (0..parts).map(part).collect()
}

fn only(is_there: bool, len: usize) -> usize {
    if is_there { len } else { 0 }
}
