//! What a rank was given to sum.

use half::{bf16, f16};

use super::{NonFinite, Sums};
use crate::job::{ChunkId, Job};
use crate::quantise::rounding::{Draws, Rounding};
use crate::quantise::{Exponent, block, bound};

/// Values that are summed, and their sums afterwards.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Binary32, scaled by blocks, one a chunk.
    Floats(Vec<f32>),
    /// Binary16, scaled as binary32 is.
    Float16s(Vec<f16>),
    /// Binary32 without the low half, scaled as it is.
    Bfloat16s(Vec<bf16>),
    /// As they are, modulo 2³².
    Integers(Vec<i32>),
    /// Summed in 32 bits; the sum is taken modulo 2⁸, as torch's.
    Int8s(Vec<i8>),
}

/// The same for a vector of any type.
macro_rules! each {
    ($values:expr, $own:ident => $do:expr) => {
        match $values {
            Values::Floats($own) => $do,
            Values::Float16s($own) => $do,
            Values::Bfloat16s($own) => $do,
            Values::Integers($own) => $do,
            Values::Int8s($own) => $do,
        }
    };
}

impl Values {
    /// How many.
    pub fn len(&self) -> usize {
        each!(self, values => values.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether they are summed as they are.
    pub fn is_integer(&self) -> bool {
        matches!(self, Values::Integers(_) | Values::Int8s(_))
    }
}

/// What becomes of values besides being summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reduction {
    /// Sums are divided by the number of ranks before they are rounded to their type; integers toward zero. Every rank must say
    /// the same.
    pub average: bool,
    /// How this rank rounds its own.
    pub rounding: Rounding,
}

/// Exponents of so many chunks are read at a time: memory is fast where it is read in a row.
const READ: usize = 32;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk {
    /// It agrees on the exponent of the lane's next.
    ScaleOnly,
    /// The values of this index.
    Values(usize),
}

/// An operation that is not done.
#[derive(Debug, Clone)]
pub struct Operation {
    pub id: u64,
    /// The number of its first item.
    pub first: u64,
    pub values: Values,
    pub reduction: Reduction,
    /// That this rank wants for each chunk, as far as they were read; `None` if a value is not finite.
    exponents: Vec<Option<Exponent>>,
    chunks: u64,
    /// Scale-only items in front.
    prologue: u64,
    pub unanswered: u64,
    /// The largest of the chunks that have their sums.
    error_bound: f64,
    /// The first chunk that is not finite, of those that were answered.
    non_finite: Option<(usize, ChunkId)>,
}

impl Operation {
    pub fn new(job: &Job, id: u64, first: u64, values: Values, reduction: Reduction) -> Self {
        let chunks = values.len().div_ceil(job.values_per_packet()) as u64;
        let window = u64::from(job.window());
        // A short one has no chunk that comes behind another in its lane, so nothing could tell its exponents before.
        let is_long = chunks > window && !values.is_integer();
        let prologue = if is_long { window } else { 0 };
        let expected = if values.is_integer() {
            0
        } else {
            chunks as usize
        };
        Self {
            id,
            first,
            values,
            reduction,
            exponents: Vec::with_capacity(expected),
            chunks,
            prologue,
            unanswered: prologue + chunks,
            error_bound: 0.0,
            non_finite: None,
        }
    }

    /// How many items it has.
    pub fn items(&self) -> u64 {
        self.prologue + self.chunks
    }

    /// Whether its chunks' exponents are agreed on a window ahead.
    pub fn is_long(&self) -> bool {
        self.prologue > 0
    }

    pub fn is_integer(&self) -> bool {
        self.values.is_integer()
    }

    pub fn chunk(&self, item: u64) -> Chunk {
        item.checked_sub(self.prologue)
            .map_or(Chunk::ScaleOnly, |index| Chunk::Values(index as usize))
    }

    /// Reads exponents up to that of an item, from values that are no sums yet. A frame has to say it: of a long operation a
    /// window ahead, so that the values are still at hand when they are sent.
    pub fn read_exponents(&mut self, job: &Job, item: u64) {
        let chunks = self.chunks as usize;
        let Chunk::Values(index) = self.chunk(item) else {
            return;
        };
        if index < self.exponents.len() || index >= chunks {
            return;
        }
        for index in self.exponents.len()..(index + READ).min(chunks) {
            let range = self.range(job, index);
            self.exponents.push(match &self.values {
                Values::Floats(values) => block::exponent(&values[range]),
                Values::Float16s(values) => block::exponent(&values[range]),
                Values::Bfloat16s(values) => block::exponent(&values[range]),
                Values::Integers(_) | Values::Int8s(_) => return,
            });
        }
    }

    /// The exponent that this rank wants for a chunk, which was read; `None` if a value is not finite.
    pub fn exponent(&self, index: usize) -> Option<Exponent> {
        let read = self.exponents.get(index).copied();
        read.unwrap_or(Some(Exponent::ZERO))
    }

    /// What a rank's item is rounded by.
    pub fn draws(&self, rank: u16, item: u64) -> Option<Draws> {
        self.reduction.rounding.draws(rank, item)
    }

    /// Writes a chunk's values into a frame. Its exponent must be at most `scale`.
    pub fn encode(
        &self,
        job: &Job,
        index: usize,
        scale: Exponent,
        draws: Option<Draws>,
        words: &mut [u8],
    ) {
        let range = self.range(job, index);
        let workers = job.workers();
        match &self.values {
            Values::Floats(values) => block::encode(&values[range], scale, workers, draws, words),
            Values::Float16s(values) => block::encode(&values[range], scale, workers, draws, words),
            Values::Bfloat16s(values) => {
                block::encode(&values[range], scale, workers, draws, words)
            }
            Values::Integers(values) => {
                for (word, value) in words.as_chunks_mut().0.iter_mut().zip(&values[range]) {
                    *word = value.to_be_bytes();
                }
            }
            Values::Int8s(values) => {
                for (word, value) in words.as_chunks_mut().0.iter_mut().zip(&values[range]) {
                    *word = i32::from(*value).to_be_bytes();
                }
            }
        }
    }

    /// Puts a chunk's sums in the place of its values.
    pub fn decode(&mut self, job: &Job, index: usize, scale: Exponent, words: &[u8]) {
        let range = self.range(job, index);
        let workers = job.workers();
        let Reduction { average, rounding } = self.reduction;
        let divisor = if average { workers } else { 1 };
        let sums = words.as_chunks().0.iter().copied().map(i32::from_be_bytes);
        macro_rules! floats {
            ($type:ty, $values:expr) => {{
                let largest = block::decode(words, scale, workers, divisor, &mut $values[range]);
                bound::of_chunk::<$type>(scale, workers, divisor, rounding, largest)
            }};
        }
        let whole = i32::from(divisor);
        let error_bound = match &mut self.values {
            Values::Floats(values) => floats!(f32, values),
            Values::Float16s(values) => floats!(f16, values),
            Values::Bfloat16s(values) => floats!(bf16, values),
            Values::Integers(values) => {
                values[range]
                    .iter_mut()
                    .zip(sums)
                    .for_each(|(value, sum)| *value = sum / whole);
                bound::of_integers(divisor)
            }
            Values::Int8s(values) => {
                let values = values[range].iter_mut();
                values
                    .zip(sums)
                    .for_each(|(value, sum)| *value = (sum / whole) as i8);
                bound::of_integers(divisor)
            }
        };
        self.error_bound = self.error_bound.max(error_bound);
    }

    /// A chunk has no sums: some rank's values are not finite.
    pub fn fail(&mut self, index: usize, chunk: ChunkId) {
        // All ranks are to name the same one, in whatever order answers come.
        if self.non_finite.is_none_or(|(first, _)| index < first) {
            self.non_finite = Some((index, chunk));
        }
    }

    /// One more item is answered.
    pub fn close_item(&mut self) {
        self.unanswered -= 1;
    }

    pub fn is_done(&self) -> bool {
        self.unanswered == 0
    }

    /// Its sums, or why there are none.
    pub fn finish(self) -> Result<Sums, NonFinite> {
        match self.non_finite {
            None => Ok(Sums {
                values: self.values,
                error_bound: self.error_bound,
            }),
            Some((index, chunk)) => Err(NonFinite {
                operation: self.id,
                index,
                chunk,
            }),
        }
    }

    /// Which of its parts is known to hold a value that is not finite.
    pub fn non_finite(&self) -> Option<usize> {
        self.non_finite.map(|(index, _)| index)
    }

    fn range(&self, job: &Job, index: usize) -> std::ops::Range<usize> {
        let size = job.values_per_packet();
        let from = index * size;
        from..(from + size).min(self.values.len())
    }
}
