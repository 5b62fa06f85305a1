//! Bounds of the all-reduce model for the model checker.

use aggregation::job::{ChunkId, JobError};
use aggregation::rank::LatenessError;

use crate::slots::Rule;

/// An operation that all ranks of the model submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Integers that fill this number of chunks.
    Integers(u8),
    /// Floats of about 2^e in this number of chunks; the list has the e of each rank.
    Floats(u8, Vec<i8>),
    /// One chunk of floats, in which the values of the first rank are NaN.
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

/// Conditions under which ranks of the model close chunks; time is arbitrary in the model.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    /// Minimum number of contributors to a closed chunk.
    pub quorum: u8,
    /// Number of sums that each rank keeps per slot.
    pub keeps: u32,
}

/// Bounds of the all-reduce model.
#[derive(Debug, Clone)]
pub struct AllReduceBounds {
    /// Number of ranks in the model.
    pub ranks: u8,
    /// Number of racks, each with a switch below the topmost one; 1 if a single switch sums all ranks.
    pub racks: u8,
    /// The job's window: the number of the switch's aggregation slots that it uses.
    pub window: u32,
    /// The operations that all ranks submit, in order.
    pub operations: Vec<Operation>,
    /// Number of the job's first chunk.
    pub first_chunk: ChunkId,
    /// Number of times that the switch may restart and forget all registers.
    pub restarts: u8,
    /// Whether ranks of the model may crash.
    pub crashes: bool,
    /// Whether waiting ranks ask each other for sums.
    pub asks: bool,
    /// Whether a rank may consider the switch silent after a timeout, so that the ranks sum the values themselves.
    pub hosts: bool,
    /// Number of a rank without contact to the switch, in both directions; `None` if all ranks have contact. Needs `hosts`;
    /// ranks with contact never consider the switch silent.
    pub cut: Option<u8>,
    /// Whether a node outside the job, at another port, forges frames of the first rank.
    pub stranger: bool,
    /// Conditions for closing chunks, which need operations of integers; `None` if chunks are never closed.
    pub deadline: Option<Deadline>,
    /// The rule of the protocol that the model lacks; `None` to check the real slots of crate `aggregation`.
    pub without: Option<Rule>,
}

impl AllReduceBounds {
    /// Bounds of an all-reduce with one switch, and without a removed rule.
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

/// Reason why bounds of the all-reduce model are invalid.
#[derive(Debug, thiserror::Error)]
pub enum BoundsError {
    /// The settings of the model's job are invalid.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The deadline is invalid for the model's job.
    #[error(transparent)]
    Lateness(#[from] LatenessError),
}
