//! What a rank was given to sum.

use crate::job::Job;
use crate::quantise::Exponent;

/// Values that are summed, and their sums afterwards.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Scaled by blocks, one a chunk.
    Floats(Vec<f32>),
    /// As they are, modulo 2³².
    Integers(Vec<i32>),
}

impl Values {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Values::Floats(values) => values.len(),
            Values::Integers(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk {
    /// It agrees on the exponent of the lane's next.
    ScaleOnly,
    /// The values of this index.
    Values(usize),
}

/// Values of a chunk.
pub enum Slice<'a> {
    Floats(&'a [f32]),
    Integers(&'a [i32]),
}

/// The same, to be replaced by sums.
pub enum SliceMut<'a> {
    Floats(&'a mut [f32]),
    Integers(&'a mut [i32]),
}

/// An operation that is not done.
#[derive(Debug, Clone)]
pub struct Operation {
    pub id: u64,
    /// The number of its first item.
    pub first: u64,
    pub values: Values,
    /// Each chunk's exponent; `None` where a value is not finite. Empty of integers.
    exponents: Vec<Option<Exponent>>,
    chunks: u64,
    /// Scale-only items in front.
    prologue: u64,
    pub unanswered: u64,
}

impl Operation {
    pub fn new(job: &Job, id: u64, first: u64, values: Values) -> Self {
        let size = job.values_per_packet();
        let exponents: Vec<Option<Exponent>> = match &values {
            Values::Floats(values) => values.chunks(size).map(Exponent::of).collect(),
            Values::Integers(_) => Vec::new(),
        };
        let chunks = values.len().div_ceil(size) as u64;
        let window = u64::from(job.window());
        // A short one has no chunk that comes behind another in its lane, so nothing could tell its exponents before.
        let is_long = chunks > window && matches!(values, Values::Floats(_));
        let prologue = if is_long { window } else { 0 };
        Self {
            id,
            first,
            values,
            exponents,
            chunks,
            prologue,
            unanswered: prologue + chunks,
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
        matches!(self.values, Values::Integers(_))
    }

    pub fn chunk(&self, item: u64) -> Chunk {
        item.checked_sub(self.prologue)
            .map_or(Chunk::ScaleOnly, |index| Chunk::Values(index as usize))
    }

    /// The exponent that this rank wants for a chunk; `None` if a value is not finite.
    pub fn exponent(&self, index: usize) -> Option<Exponent> {
        self.exponents
            .get(index)
            .copied()
            .unwrap_or(Some(Exponent::ZERO))
    }

    pub fn values(&self, job: &Job, index: usize) -> Slice<'_> {
        let range = self.range(job, index);
        match &self.values {
            Values::Floats(values) => Slice::Floats(&values[range]),
            Values::Integers(values) => Slice::Integers(&values[range]),
        }
    }

    pub fn values_mut(&mut self, job: &Job, index: usize) -> SliceMut<'_> {
        let range = self.range(job, index);
        match &mut self.values {
            Values::Floats(values) => SliceMut::Floats(&mut values[range]),
            Values::Integers(values) => SliceMut::Integers(&mut values[range]),
        }
    }

    fn range(&self, job: &Job, index: usize) -> std::ops::Range<usize> {
        let size = job.values_per_packet();
        let from = index * size;
        from..(from + size).min(self.values.len())
    }
}
