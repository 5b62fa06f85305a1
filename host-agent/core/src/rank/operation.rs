//! What a rank was given to sum.

use half::{bf16, f16};
use wire::VALUE_LEN;

use super::terms::Terms;
use super::values::Values;
use super::{NonFinite, Partial, Sums};
use crate::job::{ChunkId, Job};
use crate::quantise::rounding::{Draws, Rounding};
use crate::quantise::{Exponent, block, bound, exact};

/// Tensors of at most so many values are summed exactly where it is left to weir. Those are losses, metrics and biases: values of
/// different size, of which no frame is sent less.
pub const EXACT_VALUES: usize = 1024;

/// What becomes of values besides being summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reduction {
    /// Sums are divided by the number of ranks before they are rounded to their type; integers toward zero. Every rank must say
    /// the same.
    pub average: bool,
    /// Each sum of floats is right to the rounding of its type, whatever else is in the tensor. A value takes up to 14 words of a
    /// frame instead of one, so it is for tensors of [`EXACT_VALUES`] at most. Every rank must say the same.
    pub exact: bool,
    /// How this rank rounds its own.
    pub rounding: Rounding,
    /// Which tensor this is. What of it comes too late joins the next operation of the same key ([`Carry`](super::Carry)).
    pub key: Option<u64>,
    /// What this rank does in it; others may do something else.
    pub share: Share,
    /// What all ranks have to give alike, where values and average do not say it: of a broadcast or a reduce, and of what is done
    /// by other means, of which this sum only compares the terms.
    pub terms: Option<Terms>,
}

/// What a rank does in an operation. Of a reduce the root has `GivesAndTakes`, and the others `Gives`; of a broadcast the root
/// has `Gives`, and the others `Takes`. On the wire all are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Share {
    /// Its values are summed, and the sums take their place.
    #[default]
    GivesAndTakes,
    /// Its values are summed, and stay what they are: it has no sums, and no bound of their error.
    Gives,
    /// It gives zeros, whatever its values are, which are not read. The sums take their place.
    Takes,
    /// It gives zeros, and takes nothing: only the terms are compared. Such an operation is not counted.
    Compares,
}

impl Share {
    /// Whether its values are summed.
    pub fn gives(self) -> bool {
        matches!(self, Share::GivesAndTakes | Share::Gives)
    }

    /// Whether it has the sums.
    pub fn takes(self) -> bool {
        matches!(self, Share::GivesAndTakes | Share::Takes)
    }
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
    /// What all ranks have to give alike.
    pub terms: Terms,
    /// That this rank wants for each chunk, as far as they were read; `None` if a value is not finite.
    exponents: Vec<Option<Exponent>>,
    /// How many values a chunk has that are summed exactly; 0 if they are not.
    exact_chunk: usize,
    chunks: u64,
    /// Scale-only items in front.
    prologue: u64,
    pub unanswered: u64,
    /// The largest of the chunks that have their sums.
    error_bound: f64,
    /// The first chunk that is not finite, of those that were answered.
    non_finite: Option<(usize, ChunkId)>,
    /// Chunks that were closed, ascending.
    pub partial: Vec<Partial>,
    /// What was late of another has joined its values.
    pub is_carrying: bool,
    /// What came too late, in its places; `None` if nothing did.
    pub residual: Option<Values>,
}

impl Operation {
    pub fn new(job: &Job, id: u64, first: u64, values: Values, reduction: Reduction) -> Self {
        let exact_chunk = match reduction.exact && !values.is_integer() {
            true => (job.values_per_packet() - 1) / exact::words_per_value(job.workers()),
            false => 0,
        };
        let chunks = match exact_chunk {
            // The first word is the digest of its terms.
            0 => (values.len() + 1).div_ceil(job.values_per_packet()),
            size => values.len().div_ceil(size),
        } as u64;
        let window = u64::from(job.window());
        // A short one has no chunk that comes behind another in its lane, so nothing could tell its exponents before.
        let is_long = chunks > window && !values.is_integer() && exact_chunk == 0;
        let prologue = if is_long { window } else { 0 };
        let expected = match values.is_integer() || !reduction.share.gives() {
            true => 0,
            false => chunks as usize,
        };
        Self {
            id,
            first,
            terms: reduction.terms.unwrap_or(Terms::of(&values, reduction)),
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

    /// How many items it has.
    pub fn items(&self) -> u64 {
        self.prologue + self.chunks
    }

    /// Whether its chunks' exponents are agreed on a window ahead.
    pub fn is_long(&self) -> bool {
        self.prologue > 0
    }

    /// Whether its words are integers without an exponent.
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

    /// Reads exponents up to that of an item, from values that are no sums yet. A frame has to say it: of a long operation a
    /// window ahead, so that the values are still at hand when they are sent.
    pub fn read_exponents(&mut self, job: &Job, item: u64) {
        let chunks = self.chunks as usize;
        let Chunk::Values(index) = self.chunk(item) else {
            return;
        };
        // Zeros want none.
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
            // What is summed exactly wants none, but still has to be finite.
            let is_exact = self.is_exact();
            let wanted = wanted.map(|wanted| if is_exact { Exponent::ZERO } else { wanted });
            self.exponents.push(wanted);
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

    /// Whether the word of a sum that is no value says that all of so many ranks gave the same.
    pub fn is_agreed(&self, index: usize, shares: u16, words: &[u8]) -> bool {
        let first = words.first_chunk();
        index > 0 || first.is_some_and(|first| self.terms.is_agreed(shares, *first))
    }

    /// Writes the word that is no value into a chunk's frame, and gives where its values are.
    pub fn begin<'a>(&self, index: usize, words: &'a mut [u8]) -> &'a mut [u8] {
        if index > 0 {
            return words;
        }
        let (head, values) = words.split_at_mut(VALUE_LEN);
        head.copy_from_slice(&self.terms.digest().to_be_bytes());
        values
    }

    /// Writes a chunk's values where they are in a frame, which has zeros. Their exponent must be at most `scale`.
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

    /// The same of values that want a larger exponent: what is beyond its limits is cut off.
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

    /// Remembers a chunk's values that are in no sum: all, or what was cut off beyond the limits of an exponent.
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
            // They are of one type.
            _ => {}
        }
    }

    /// Puts a chunk's sums in the place of its values, if this rank takes them; so many ranks contributed.
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

    /// Its sums, or why there are none; and what came too late. An operation without sums leaves nothing: its values are the
    /// caller's still.
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

    /// Which of its parts is known to hold a value that is not finite.
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

/// A value within what an exponent has room for.
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
