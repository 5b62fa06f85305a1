//! Bounds of the all-reduce model.

use aggregation::job::{ChunkId, JobError};
use aggregation::rank::LatenessError;

use crate::slots::Rule;

/// An operation that all ranks submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Integers, in this number of chunks.
    Integers(u8),
    /// Floats of about 2^e in this number of chunks, with an e for each rank.
    Floats(u8, Vec<i8>),
    /// One chunk of floats, of which the first rank's are not finite.
    NotFinite,
}

impl Operation {
    pub(super) fn chunks(&self) -> usize {
        match self {
            Self::Integers(chunks) | Self::Floats(chunks, _) => usize::from(*chunks),
            Self::NotFinite => 1,
        }
    }
}

/// Conditions for closing chunks; the time is arbitrary.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    /// Minimum number of contributors.
    pub quorum: u8,
    /// Number of sums kept per slot.
    pub keeps: u32,
}

/// Bounds of the model.
#[derive(Debug, Clone)]
pub struct AllReduceBounds {
    /// Number of ranks.
    pub ranks: u8,
    /// Number of racks, each with a switch below the topmost one; 1 if a single switch sums all ranks.
    pub racks: u8,
    /// Number of slots.
    pub window: u32,
    /// The operations, in order.
    pub operations: Vec<Operation>,
    /// Number of the first chunk.
    pub first_chunk: ChunkId,
    /// Number of times that the switch may forget everything.
    pub restarts: u8,
    /// Whether ranks may crash.
    pub crashes: bool,
    /// Whether waiting ranks ask each other.
    pub asks: bool,
    /// Whether a timeout may make a rank consider the switch silent, so that ranks sum.
    pub hosts: bool,
    /// A rank without contact to the switch, in both directions. The others have contact, and do not consider it silent.
    /// Needs `hosts`.
    pub cut: Option<u8>,
    /// Whether a stranger at another port sends frames in the name of the first rank.
    pub stranger: bool,
    /// Whether chunks may be closed; needs operations of integers.
    pub deadline: Option<Deadline>,
    /// A rule that the switch's slots lack; `None` for the real slots.
    pub without: Option<Rule>,
}

impl AllReduceBounds {
    /// Ranks with these operations, and the real slots.
    pub fn new(ranks: u8, window: u32, operations: Vec<Operation>) -> Self {
        Self {
            ranks,
            racks: 1,
            window,
            operations,
            // Chunk 0 is in the middle of the job.
            first_chunk: ChunkId(0u32.wrapping_sub(2 * window)),
            restarts: 0,
            crashes: false,
            asks: true,
            hosts: false,
            cut: None,
            stranger: false,
            deadline: None,
            without: None,
        }
    }
}

/// Reason why bounds are invalid.
#[derive(Debug, thiserror::Error)]
pub enum BoundsError {
    /// The settings of the job are invalid.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The deadline is invalid for this job.
    #[error(transparent)]
    Lateness(#[from] LatenessError),
}
