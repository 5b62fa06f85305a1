//! What a collective is asked to do: who contributes how much, and what everybody has in the end.

/// A collective and its sizes, in elements. Sizes may be 0, and differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collective {
    /// Everybody gets everybody's shard, by rank.
    AllGather {
        /// By rank.
        shards: Vec<usize>,
    },
    /// Everybody sends something else to everybody; inputs and outputs are in the order of ranks.
    AllToAll {
        /// `counts[from][to]`; square.
        counts: Vec<Vec<usize>>,
    },
    /// Each rank gets its shard of the sum.
    ReduceScatter {
        /// By rank.
        shards: Vec<usize>,
    },
    /// Everybody gets the sum.
    AllReduce {
        /// How many.
        ranks: usize,
        /// Of each.
        len: usize,
    },
    /// Everybody gets what the root has.
    Broadcast {
        /// How many.
        ranks: usize,
        /// Who has it.
        root: usize,
        /// Of the root.
        len: usize,
    },
    /// The root gets the sum.
    Reduce {
        /// How many.
        ranks: usize,
        /// Who gets it.
        root: usize,
        /// Of each.
        len: usize,
    },
    /// Nobody goes on before all are there.
    Barrier {
        /// How many.
        ranks: usize,
    },
}

/// Where an element of a result comes from: a rank, and an element of its input. Each is there once.
pub type Contribution = (usize, usize);

impl Collective {
    /// Equal shards, as MPI_Allgather.
    pub fn all_gather(ranks: usize, shard: usize) -> Self {
        Self::AllGather {
            shards: vec![shard; ranks],
        }
    }

    /// Equal parts, as MPI_Alltoall; each rank keeps its own.
    pub fn all_to_all(ranks: usize, len: usize) -> Self {
        Self::AllToAll {
            counts: vec![vec![len; ranks]; ranks],
        }
    }

    /// A vector in shards that differ by one element at most.
    pub fn reduce_scatter(ranks: usize, len: usize) -> Self {
        Self::ReduceScatter {
            shards: even(len, ranks),
        }
    }

    /// As nccl-tests call it.
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

    /// How many take part.
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

    /// Whether inputs are combined.
    pub fn reduces(&self) -> bool {
        matches!(
            self,
            Self::ReduceScatter { .. } | Self::AllReduce { .. } | Self::Reduce { .. }
        )
    }

    /// Elements that a rank contributes.
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

    /// Elements that a rank gets.
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

    /// What each element of a rank's output is made of, ascending.
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

/// So many elements in parts that differ by one at most, larger ones first.
pub fn even(len: usize, parts: usize) -> Vec<usize> {
    let part = |i: usize| len / parts + usize::from(i < len % parts);
    (0..parts).map(part).collect()
}

fn only(is_there: bool, len: usize) -> usize {
    if is_there { len } else { 0 }
}
