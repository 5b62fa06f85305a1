//! The message sizes that the benchmark measures, and their meaning for each collective, by nccl-tests' rules.

use clap::ValueEnum;
use collectives::Collective;

/// A collective, by the names of nccl-tests' programs, and a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Kind {
    AllReduce,
    AllGather,
    ReduceScatter,
    #[value(name = "alltoall")]
    AllToAll,
    Broadcast,
    Reduce,
    Barrier,
}

impl Kind {
    /// Whether a size is divided among ranks, so that each rank has its part.
    fn divides(self) -> bool {
        matches!(self, Self::AllGather | Self::ReduceScatter | Self::AllToAll)
    }

    /// Whether the collective combines values of several ranks.
    pub fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter | Self::Reduce)
    }

    /// Whether the collective has a root rank.
    pub fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce)
    }

    /// Ratio of bus to algorithm bandwidth: minimum share of the size on a rank's busiest link (nccl-tests, PERFORMANCE.md).
    pub fn bus_factor(self, ranks: usize) -> f64 {
        let n = ranks as f64;
        match self {
            Self::AllReduce => 2.0 * (n - 1.0) / n,
            Self::AllGather | Self::ReduceScatter | Self::AllToAll => (n - 1.0) / n,
            Self::Broadcast | Self::Reduce | Self::Barrier => 1.0,
        }
    }
}

/// A message size that the benchmark measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Size in bytes that is printed, rounded down to whole elements per rank.
    pub bytes: u64,
    /// Number of elements as nccl-tests counts them: those of one rank's part if the size is divided among ranks.
    pub count: usize,
}

impl Size {
    fn new(kind: Kind, bytes: u64, ranks: usize, width: usize) -> Self {
        let each = match kind.divides() {
            true => ranks as u64,
            false => 1,
        };
        let count = bytes / (each * width as u64);
        Self {
            bytes: count * each * width as u64,
            count: count as usize,
        }
    }

    /// The collective of this kind and size.
    pub fn collective(&self, kind: Kind, ranks: usize, root: usize) -> Collective {
        let len = self.count;
        match kind {
            Kind::AllReduce => Collective::AllReduce { ranks, len },
            Kind::AllGather => Collective::all_gather(ranks, len),
            Kind::ReduceScatter => Collective::reduce_scatter(ranks, len * ranks),
            Kind::AllToAll => Collective::all_to_all(ranks, len),
            Kind::Broadcast => Collective::Broadcast { ranks, root, len },
            Kind::Reduce => Collective::Reduce { ranks, root, len },
            Kind::Barrier => Collective::Barrier { ranks },
        }
    }

    /// Writes to `ranks` whose input is combined at position `at` of a rank's output; returns the position in their input.
    pub fn contributors(
        &self,
        kind: Kind,
        [rank, all]: [usize; 2],
        root: usize,
        at: usize,
        ranks: &mut Vec<usize>,
    ) -> usize {
        ranks.clear();
        match kind {
            Kind::AllReduce | Kind::Reduce => {
                ranks.extend(0..all);
                at
            }
            Kind::ReduceScatter => {
                ranks.extend(0..all);
                rank * self.count + at
            }
            Kind::AllGather => {
                ranks.push(at / self.count);
                at % self.count
            }
            Kind::AllToAll => {
                ranks.push(at / self.count);
                rank * self.count + at % self.count
            }
            Kind::Broadcast => {
                ranks.push(root);
                at
            }
            Kind::Barrier => at,
        }
    }
}

/// A copy of `len` elements within a rank's memory region, which holds the input and then the output. Units: elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    pub from: usize,
    pub to: usize,
    pub len: usize,
}

/// How a collective with a single buffer for input and output runs: on two buffers, with copies before or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InPlace {
    /// Copy of the input out of the single buffer before the collective; `None` if none is needed.
    pub before: Option<Move>,
    /// Copy of the output into the single buffer after the collective; `None` if none is needed.
    pub after: Option<Move>,
    /// Index in the memory region at which the result begins afterwards.
    pub result: usize,
}

impl Size {
    /// The copies for a single buffer as in nccl-tests: as large as input or output, with a rank's part at the rank's position.
    pub fn in_place(&self, kind: Kind, rank: usize, [input, output]: [usize; 2]) -> InPlace {
        let part = rank * self.count;
        let (before, after) = match kind {
            Kind::AllGather => {
                let from = input + part;
                (
                    Some(Move {
                        from,
                        to: 0,
                        len: input,
                    }),
                    None,
                )
            }
            // The root's buffer is its input, the others' buffer is their output.
            Kind::Broadcast | Kind::Barrier => (None, None),
            Kind::AllReduce | Kind::AllToAll | Kind::Reduce => (
                None,
                Some(Move {
                    from: input,
                    to: 0,
                    len: output,
                }),
            ),
            Kind::ReduceScatter => (
                None,
                Some(Move {
                    from: input,
                    to: part,
                    len: output,
                }),
            ),
        };
        InPlace {
            before,
            after,
            result: after.map_or(input, |after| after.to),
        }
    }
}

/// Range of sizes to be measured, and the step between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub least: u64,
    pub most: u64,
    pub step: Step,
}

/// Step from one size to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Plus(u64),
    Times(u64),
}

/// Reason why there are no sizes to measure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizesError {
    /// The minimum size exceeds the maximum.
    #[error("--minbytes {least} is more than --maxbytes {most}")]
    Order {
        /// Minimum size in bytes.
        least: u64,
        /// Maximum size in bytes.
        most: u64,
    },
    /// There are too many sizes.
    #[error("more than {MOST} sizes: use a larger step")]
    Many,
    /// Every size has less than one element per rank's part.
    #[error("--maxbytes {most} is less than one element of {width} bytes per part")]
    Small {
        /// Maximum size in bytes.
        most: u64,
        /// Length of an element in bytes.
        width: usize,
    },
}

/// Maximum number of sizes that one benchmark measures.
const MOST: usize = 1000;

impl Range {
    /// All sizes with at least one element, ascending. Sizes that become equal by rounding are measured once.
    ///
    /// # Errors
    /// [`SizesError`].
    pub fn sizes(&self, kind: Kind, ranks: usize, width: usize) -> Result<Vec<Size>, SizesError> {
        if kind == Kind::Barrier {
            return Ok(vec![Size { bytes: 0, count: 0 }]);
        }
        let (least, most) = (self.least, self.most);
        if least > most {
            return Err(SizesError::Order { least, most });
        }
        let (mut sizes, mut next) = (Vec::new(), Some(least));
        while let Some(bytes) = next.filter(|bytes| *bytes <= most) {
            let size = Size::new(kind, bytes, ranks, width);
            if size.count > 0 && sizes.last() != Some(&size) {
                sizes.push(size);
            }
            if sizes.len() > MOST {
                return Err(SizesError::Many);
            }
            next = match self.step {
                Step::Plus(step) => bytes.checked_add(step),
                Step::Times(factor) => bytes.max(1).checked_mul(factor),
            };
        }
        match sizes.is_empty() {
            true => Err(SizesError::Small { most, width }),
            false => Ok(sizes),
        }
    }
}

/// Parses a number of bytes, or of K, M or G in units of 1,024, as in nccl-tests.
///
/// # Errors
/// If the text is not such a number.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("`{text}` is not a number of bytes, such as 8, 64K, 32M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(kind: Kind, range: Range) -> Vec<u64> {
        let sizes = range.sizes(kind, 4, 4).unwrap();
        sizes.into_iter().map(|size| size.bytes).collect()
    }

    #[test]
    fn sizes_step_as_nccl_tests_do() {
        let range = |least, most, step| Range { least, most, step };
        let by_factor = range(8, 128, Step::Times(2));
        assert_eq!(bytes_of(Kind::AllReduce, by_factor), [8, 16, 32, 64, 128]);
        // With four ranks, 8 bytes are less than one element each.
        assert_eq!(bytes_of(Kind::AllGather, by_factor), [16, 32, 64, 128]);
        let by_step = range(100, 160, Step::Plus(20));
        assert_eq!(bytes_of(Kind::AllToAll, by_step), [96, 112, 128, 160]);
        assert_eq!(bytes_of(Kind::Barrier, by_step), [0]);
        let refused = |of: Range| of.sizes(Kind::AllGather, 4, 4).unwrap_err();
        assert_eq!(
            refused(range(2, 1, Step::Plus(1))),
            SizesError::Order { least: 2, most: 1 }
        );
        assert_eq!(
            refused(range(1, 15, Step::Plus(1))),
            SizesError::Small { most: 15, width: 4 }
        );
        assert_eq!(refused(range(0, 1 << 20, Step::Plus(16))), SizesError::Many);
        let large = range(u64::MAX - 8, u64::MAX, Step::Plus(4));
        assert_eq!(bytes_of(Kind::AllReduce, large).len(), 3);
    }

    #[test]
    fn numbers_of_bytes() {
        let read = ["8", "64K", "32m", "2G"].map(|text| bytes(text).unwrap());
        assert_eq!(read, [8, 65_536, 32 << 20, 2 << 30]);
        for wrong in ["", "K", "-1", "1T", "1.5M", "99999999999G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn outputs_are_those_of_the_collectives() {
        for kind in Kind::value_variants().iter().copied() {
            let size = Size { bytes: 0, count: 3 };
            let (all, root) = (4, 2);
            let collective = size.collective(kind, all, root);
            for rank in 0..all {
                let mut ranks = Vec::new();
                let expected = collective.expected(rank);
                for (at, contributions) in expected.into_iter().enumerate() {
                    let element = size.contributors(kind, [rank, all], root, at, &mut ranks);
                    let told: Vec<_> = ranks.iter().map(|rank| (*rank, element)).collect();
                    assert_eq!(told, contributions, "{kind:?} at {rank}");
                }
            }
        }
    }

    /// The single buffer lies within the region, and has the collective's result.
    #[test]
    fn one_buffer_holds_input_and_output() {
        let size = Size { bytes: 0, count: 3 };
        for kind in Kind::value_variants().iter().copied() {
            for rank in 0..4 {
                let collective = size.collective(kind, 4, 2);
                let [input, output] = [collective.input_len(rank), collective.output_len(rank)];
                let of = size.in_place(kind, rank, [input, output]);
                assert!(of.result + output <= input + output, "{kind:?} {of:?}");
                for part in [of.before, of.after].into_iter().flatten() {
                    assert!(part.from + part.len <= input + output, "{kind:?} {of:?}");
                    assert!(part.to + part.len <= input.max(output), "{kind:?} {of:?}");
                }
            }
        }
        let of = |kind, lens| size.in_place(kind, 2, lens);
        assert_eq!(of(Kind::AllReduce, [3, 3]).result, 0);
        assert_eq!(of(Kind::ReduceScatter, [12, 3]).result, 6);
        let gathered = of(Kind::AllGather, [3, 12]);
        assert_eq!((gathered.result, gathered.before.unwrap().from), (3, 9));
    }

    #[test]
    fn factors_are_those_of_the_page() {
        let all = Kind::value_variants().iter();
        let factors: Vec<f64> = all.map(|kind| kind.bus_factor(4)).collect();
        assert_eq!(factors, [1.5, 0.75, 0.75, 0.75, 1.0, 1.0, 1.0]);
    }
}
