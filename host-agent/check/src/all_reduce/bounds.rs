//! What is explored of an all-reduce.

use aggregation::job::{ChunkId, JobError};
use aggregation::rank::LatenessError;

use crate::slots::Rule;

/// What all ranks are given to sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// So many chunks of integers.
    Integers(u8),
    /// So many chunks of numbers of about 2^e, for each rank its own e.
    Floats(u8, Vec<i8>),
    /// A chunk of numbers, of which the first rank's are none.
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

/// When chunks are closed: at any time, as far as the rules go.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    /// So many have to be there.
    pub quorum: u8,
    /// So many sums are kept of each slot.
    pub keeps: u32,
}

/// What is explored.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// How many ranks.
    pub ranks: u8,
    /// How many racks they stand in, each with a switch below the topmost; 1 where one switch sums all.
    pub racks: u8,
    /// How many slots.
    pub window: u32,
    /// What they are given, one after the other.
    pub operations: Vec<Operation>,
    /// The number of the first chunk.
    pub first_chunk: ChunkId,
    /// How often the switch may forget everything.
    pub restarts: u8,
    /// Whether ranks may crash.
    pub crashes: bool,
    /// Whether ranks that wait ask each other.
    pub asks: bool,
    /// Whether a rank whose timer fires may take the switch for silent, so that ranks sum.
    pub hosts: bool,
    /// A rank that the switch never hears, nor it the switch. The others hear it, and do not take it for silent. With `hosts`.
    pub cut: Option<u8>,
    /// Whether somebody by another port speaks for the first rank.
    pub stranger: bool,
    /// Whether chunks may be closed. Operations are of integers then.
    pub deadline: Option<Deadline>,
    /// Slots written anew, without this rule; none for those that run.
    pub without: Option<Rule>,
}

impl Bounds {
    /// Ranks that are given integers, through the slots that run.
    pub fn new(ranks: u8, window: u32, operations: Vec<Operation>) -> Self {
        Self {
            ranks,
            racks: 1,
            window,
            operations,
            // Chunk 0 comes in the middle.
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

/// Why bounds are no model.
#[derive(Debug, thiserror::Error)]
pub enum BoundsError {
    /// They are no job.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The job cannot have such a deadline.
    #[error(transparent)]
    Lateness(#[from] LatenessError),
}
