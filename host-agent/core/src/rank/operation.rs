//! An all-reduce operation that was submitted to a rank: its values, their exponents, and their sums.

use half::{bf16, f16};
use wire::VALUE_LEN;

use super::terms::Terms;
use super::values::Values;
use super::{NonFinite, Partial, Sums};
use crate::job::{ChunkId, Job};
use crate::quantise::rounding::{Draws, Rounding};
use crate::quantise::{Exponent, block, bound, exact};

/// Largest tensor, in values, that weir sums exactly if the user does not choose: losses, metrics and biases, whose values
/// differ in magnitude, and which fit few frames anyway.
pub const EXACT_VALUES: usize = 1024;

/// How an operation reduces the values of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reduction {
    /// Divides sums by the number of ranks before rounding to their type (integers: toward zero). Must be equal at every rank.
    pub average: bool,
    /// Makes each sum of floats exact up to the rounding of its type, whatever else the tensor contains. A value takes up to 14
    /// words of a frame instead of one, so this suits tensors of at most [`EXACT_VALUES`]. Must be equal at every rank.
    pub exact: bool,
    /// How this rank rounds its values; ranks may use different modes.
    pub rounding: Rounding,
    /// Identifies the tensor over several operations. Late values join the next operation of the same key
    /// ([`Carry`](super::Carry)).
    pub key: Option<u64>,
    /// This rank's role in the operation; ranks may differ.
    pub share: Share,
    /// Terms that all ranks must have in common, if values and `average` do not give them: of a broadcast or reduce, or of an
    /// operation that ranks perform without the switch, for which this sum only compares the terms.
    pub terms: Option<Terms>,
}

/// A rank's role in an operation. In a reduce the root has `GivesAndTakes`, and the others `Gives`; in a broadcast the root
/// has `Gives`, and the others `Takes`. All roles send the same frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Share {
    /// The rank contributes its values, and the sums replace them.
    #[default]
    GivesAndTakes,
    /// The rank contributes its values, and keeps them: it gets no sums, and no error bound.
    Gives,
    /// The rank contributes zeros, and its values are not read. The sums replace them.
    Takes,
    /// The rank contributes zeros and gets no sums: only the terms are compared. The counters leave such an operation out.
    Compares,
}

impl Share {
    /// Whether the rank contributes its values.
    pub fn gives(self) -> bool {
        matches!(self, Share::GivesAndTakes | Share::Gives)
    }

    /// Whether the rank gets the sums.
    pub fn takes(self) -> bool {
        matches!(self, Share::GivesAndTakes | Share::Takes)
    }
}

/// Number of chunks whose exponents are determined at a time: sequential reads use the memory bandwidth best.
const READ: usize = 32;

/// Content of an item, which is one chunk of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk {
    /// The chunk has no values: it agrees on the exponent of the lane's next item.
    ScaleOnly,
    /// The chunk has values; its index among the operation's chunks with values, from 0.
    Values(usize),
}

/// A submitted operation that is not finished.
#[derive(Debug, Clone)]
pub struct Operation {
    pub id: u64,
    /// Number of the operation's first item, counted over all operations.
    pub first: u64,
    pub values: Values,
    pub reduction: Reduction,
    /// Terms of the operation that all ranks must have in common.
    pub terms: Terms,
    /// Exponents that this rank needs for its chunks, as far as they were determined; `None` if a value is not finite.
    exponents: Vec<Option<Exponent>>,
    /// Number of values per chunk in an exact operation; 0 if the operation is not exact.
    exact_chunk: usize,
    chunks: u64,
    /// Number of scale-only items in front of the chunks with values.
    prologue: u64,
    pub unanswered: u64,
    /// Largest error bound among the chunks that have their sums.
    error_bound: f64,
    /// The first answered chunk with a value that is not finite: its index in the operation, and its number on the wire.
    non_finite: Option<(usize, ChunkId)>,
    /// Chunks whose sums lack some ranks, in ascending order.
    pub partial: Vec<Partial>,
    /// Whether late values of an earlier operation were added to this operation's values.
    pub is_carrying: bool,
    /// This operation's values that came too late for their sum, and zeros elsewhere; `None` if no value was late.
    pub residual: Option<Values>,
}

impl Operation {
    pub fn new(job: &Job, id: u64, first: u64, values: Values, reduction: Reduction) -> Self {
        let exact_chunk = match reduction.exact && !values.is_integer() {
            true => (job.values_per_packet() - 1) / exact::words_per_value(job.workers()),
            false => 0,
        };
        let chunks = match exact_chunk {
            // The first word is the digest of the terms.
            0 => (values.len() + 1).div_ceil(job.values_per_packet()),
            size => values.len().div_ceil(size),
        } as u64;
        let window = u64::from(job.window());
        // In a short operation no chunk follows another one in its lane, so no earlier answer can carry its exponent.
        let is_long = chunks > window && !values.is_integer() && exact_chunk == 0;
        let prologue = if is_long { window } else { 0 };
        let expected = match values.is_integer() || !reduction.share.gives() {
            true => 0,
            false => chunks as usize,
        };
        Self {
            id,
            first,
            terms: reduction
                .terms
                .unwrap_or(Terms::new(&values, reduction.average)),
            values,
            reduction,
            exponents: Vec::with_capacity(expected),
            exact_chunk,
            chunks,
            prologue,
            unanswered: prologue + chunks,
            error_bound: 0.0,
            non_finite: None,
            partial: Vec::new(),
            is_carrying: false,
            residual: None,
        }
    }

    /// Number of items (chunks) of the operation, with scale-only ones.
    pub fn items(&self) -> u64 {
        self.prologue + self.chunks
    }

    /// Whether ranks agree on each chunk's exponent one window ahead, as in an operation longer than the window.
    pub fn is_long(&self) -> bool {
        self.prologue > 0
    }

    /// Whether the operation's frames carry integers without an exponent.
    pub fn is_integer(&self) -> bool {
        self.values.is_integer() || self.is_exact()
    }

    fn is_exact(&self) -> bool {
        self.exact_chunk > 0
    }

    pub fn chunk(&self, item: u64) -> Chunk {
        item.checked_sub(self.prologue)
            .map_or(Chunk::ScaleOnly, |index| Chunk::Values(index as usize))
    }

    /// Determines, from the submitted values, the exponents of all chunks up to that of an item. In a long operation each is
    /// needed one window before its chunk is sent, so the values are still in the cache when they are sent.
    pub fn read_exponents(&mut self, job: &Job, item: u64) {
        let chunks = self.chunks as usize;
        let Chunk::Values(index) = self.chunk(item) else {
            return;
        };
        // Zeros need no exponent.
        if index < self.exponents.len() || index >= chunks || !self.reduction.share.gives() {
            return;
        }
        for index in self.exponents.len()..(index + READ).min(chunks) {
            let range = self.range(job, index);
            let wanted = match &self.values {
                Values::Floats(values) => block::exponent(&values[range]),
                Values::Float16s(values) => block::exponent(&values[range]),
                Values::Bfloat16s(values) => block::exponent(&values[range]),
                Values::Integers(_) | Values::Int8s(_) => return,
            };
            // Exact values need no exponent, but must be finite.
            let is_exact = self.is_exact();
            let wanted = wanted.map(|wanted| if is_exact { Exponent::ZERO } else { wanted });
            self.exponents.push(wanted);
        }
    }

    /// The exponent that this rank needs for a chunk, already determined; `None` if a value is not finite.
    pub fn exponent(&self, index: usize) -> Option<Exponent> {
        let read = self.exponents.get(index).copied();
        read.unwrap_or(Some(Exponent::ZERO))
    }

    /// The random bits for rounding an item of this rank; `None` for rounding to the nearest.
    pub fn draws(&self, rank: u16, item: u64) -> Option<Draws> {
        self.reduction.rounding.draws(rank, item)
    }

    /// Whether the digest in chunk 0's sum (`words`) shows that its contributors, `shares` ranks, submitted the same operation.
    pub fn is_agreed(&self, index: usize, shares: u16, words: &[u8]) -> bool {
        let first = words.first_chunk();
        index > 0 || first.is_some_and(|first| self.terms.is_agreed(shares, *first))
    }

    /// Writes the digest of the operation's terms (type, length, …) into chunk 0, and zeros into the words that
    /// [`encode`](Self::encode) may leave as they are. Returns the words for the values.
    pub fn begin<'a>(&self, job: &Job, index: usize, words: &'a mut [u8]) -> &'a mut [u8] {
        let head = if index == 0 { VALUE_LEN } else { 0 };
        let (head, words) = words.split_at_mut(head);
        head.copy_from_slice(&self.terms.digest().to_be_bytes()[..head.len()]);
        let written = match self.is_exact() || !self.reduction.share.gives() {
            true => 0,
            false => VALUE_LEN * self.range(job, index).len(),
        };
        words[written..].fill(0);
        words
    }

    /// Writes the values of a chunk, quantised, into a frame's words from [`begin`](Self::begin). Their exponent must be at
    /// most `scale`.
    pub fn encode(
        &self,
        job: &Job,
        index: usize,
        scale: Exponent,
        draws: Option<Draws>,
        words: &mut [u8],
    ) {
        if !self.reduction.share.gives() {
            return;
        }
        let range = self.range(job, index);
        let workers = job.workers();
        macro_rules! floats {
            ($values:expr) => {
                match self.is_exact() {
                    true => exact::encode(&$values[range], workers, words),
                    false => block::encode(&$values[range], scale, workers, draws, words),
                }
            };
        }
        match &self.values {
            Values::Floats(values) => floats!(values),
            Values::Float16s(values) => floats!(values),
            Values::Bfloat16s(values) => floats!(values),
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

    /// Like [`encode`](Self::encode), for values that may need an exponent above `scale`: they are clipped to its range.
    pub fn encode_clipped(
        &self,
        job: &Job,
        index: usize,
        scale: Exponent,
        draws: Option<Draws>,
        words: &mut [u8],
    ) {
        let range = self.range(job, index);
        let workers = job.workers();
        macro_rules! clipped {
            ($values:expr, $clip:ident) => {{
                let values: Vec<_> = $values[range]
                    .iter()
                    .map(|value| $clip(*value, scale))
                    .collect();
                block::encode(&values, scale, workers, draws, words)
            }};
        }
        match &self.values {
            Values::Floats(values) => clipped!(values, clip),
            Values::Float16s(values) => clipped!(values, clip_f16),
            Values::Bfloat16s(values) => clipped!(values, clip_bf16),
            Values::Integers(_) | Values::Int8s(_) => {}
        }
    }

    /// Saves what no sum has of a chunk's values: all of it, or what clipping at the exponent `clipped_at` removed.
    pub fn set_aside(&mut self, job: &Job, index: usize, clipped_at: Option<Exponent>) {
        let range = self.range(job, index);
        let residual = self.residual.get_or_insert_with(|| self.values.zeros());
        macro_rules! set_aside {
            ($residual:expr, $values:expr, $clip:ident) => {
                for (residual, value) in $residual[range.clone()].iter_mut().zip(&$values[range]) {
                    *residual = match clipped_at {
                        Some(scale) => *value - $clip(*value, scale),
                        None => *value,
                    };
                }
            };
        }
        match (residual, &self.values) {
            (Values::Floats(residual), Values::Floats(values)) => {
                set_aside!(residual, values, clip)
            }
            (Values::Float16s(residual), Values::Float16s(values)) => {
                set_aside!(residual, values, clip_f16);
            }
            (Values::Bfloat16s(residual), Values::Bfloat16s(values)) => {
                set_aside!(residual, values, clip_bf16);
            }
            (Values::Integers(residual), Values::Integers(values)) => {
                residual[range.clone()].copy_from_slice(&values[range]);
            }
            (Values::Int8s(residual), Values::Int8s(values)) => {
                residual[range.clone()].copy_from_slice(&values[range]);
            }
            // Both have the same type.
            _ => {}
        }
    }

    /// Replaces a chunk's values by their sums, to which `shares` ranks contributed, if this rank takes sums.
    pub fn decode(&mut self, job: &Job, index: usize, scale: Exponent, shares: u16, words: &[u8]) {
        if !self.reduction.share.takes() {
            return;
        }
        let range = self.range(job, index);
        let words = &words[if index == 0 { VALUE_LEN } else { 0 }..];
        let workers = job.workers();
        let Reduction {
            average, rounding, ..
        } = self.reduction;
        let divisor = if average { shares.max(1) } else { 1 };
        let is_exact = self.is_exact();
        let sums = words.as_chunks().0.iter().copied().map(i32::from_be_bytes);
        macro_rules! floats {
            ($type:ty, $values:expr) => {{
                let values = &mut $values[range];
                if is_exact {
                    bound::of_exact::<$type>(exact::decode(words, workers, divisor, values))
                } else {
                    let largest = block::decode(words, scale, workers, divisor, values);
                    bound::of_chunk::<$type>(scale, workers, divisor, rounding, largest)
                }
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

    /// Records that a chunk has no sums, since the values of some rank include NaN or infinity.
    pub fn fail(&mut self, index: usize, chunk: ChunkId) {
        // All ranks must name the same chunk, in whatever order answers arrive.
        if self.non_finite.is_none_or(|(first, _)| index < first) {
            self.non_finite = Some((index, chunk));
        }
    }

    /// Records that one more item of the operation was answered.
    pub fn close_item(&mut self) {
        self.unanswered -= 1;
    }

    pub fn is_done(&self) -> bool {
        self.unanswered == 0
    }

    /// Returns the sums, or the reason why there are none, and the late values if there are any. An operation without sums
    /// leaves no late values: the caller still has its values.
    pub fn finish(self) -> (Result<Sums, NonFinite>, Option<Values>) {
        if let Some((index, chunk)) = self.non_finite {
            let error = NonFinite {
                operation: self.id,
                index,
                chunk,
            };
            return (Err(error), None);
        }
        let sums = Sums {
            values: self.values,
            error_bound: self.error_bound,
            partial: self.partial,
        };
        (Ok(sums), self.residual)
    }

    /// Index of the first chunk known to have a value that is not finite; `None` if there is none so far.
    pub fn non_finite(&self) -> Option<usize> {
        self.non_finite.map(|(index, _)| index)
    }

    fn range(&self, job: &Job, index: usize) -> std::ops::Range<usize> {
        if self.is_exact() {
            let from = index * self.exact_chunk;
            return from..(from + self.exact_chunk).min(self.values.len());
        }
        let size = job.values_per_packet();
        let from = (index * size).saturating_sub(1);
        from..((index + 1) * size - 1).min(self.values.len())
    }
}

/// Clips a value to the range of magnitudes that an exponent covers.
fn clip(value: f32, scale: Exponent) -> f32 {
    let limit = scale.scale() as f32;
    value.clamp(-limit, limit)
}

fn clip_f16(value: f16, scale: Exponent) -> f16 {
    f16::from_f32(clip(value.to_f32(), scale))
}

fn clip_bf16(value: bf16, scale: Exponent) -> bf16 {
    bf16::from_f32(clip(value.to_f32(), scale))
}
