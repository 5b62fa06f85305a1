//! What a rank tells its driver.

use super::terms::Terms;
use super::{Partial, Values};
use crate::Sent;
use crate::congestion::Signals;
use crate::job::{ChunkId, WorkerId, WorkerSet};

/// What a rank has to say.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An operation is done. All ranks have the same sums, or all have none.
    Done {
        /// Its number.
        operation: u64,
        /// What came of it.
        outcome: Result<Sums, NonFinite>,
    },
    /// The rank has given up; nothing more happens.
    Failed(RankError),
}

/// What an operation gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Sums {
    /// In the type of what was summed; of who takes no sums, what it gave.
    pub values: Values,
    /// No value is farther from the exact sum of the ranks' values, or from their mean, than this.
    pub error_bound: f64,
    /// Chunks that were closed before all ranks were there, ascending: all ranks have the same. Their sums are of what those ranks
    /// sent, and a mean is divided by how many these are.
    pub partial: Vec<Partial>,
}

/// Why an operation has no sums: some rank's values held NaN or infinity. The rank goes on with the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("operation {operation}, part {index} ({chunk}) holds a value that is not finite")]
pub struct NonFinite {
    /// Which operation.
    pub operation: u64,
    /// The first of its chunks that does.
    pub index: usize,
    /// Its number on the wire.
    pub chunk: ChunkId,
}

/// What makes a switch, or a peer behind it, seem silent though it lives, and which command names it.
pub const DROPS: &str = "a switch drops a rank's frames when its job's lease has run out, and when the rank is at another port than \
                         the job was admitted with: `weir doctor --switch NAME=IP:PORT` names both";

/// Why a rank gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RankError {
    /// The switch did not answer.
    #[error(
        "the switch did not answer chunk {chunk} within {timeouts} timeouts: does it sum for this job, by this port? {DROPS}"
    )]
    Silent {
        /// The chunk.
        chunk: ChunkId,
        /// So many.
        timeouts: u32,
    },
    /// Another use of the same job has begun since.
    #[error(
        "chunk {chunk} is older than what its slot holds: is another job of the same number at work?"
    )]
    Superseded {
        /// The chunk.
        chunk: ChunkId,
    },
    /// A rank that is waited for does not answer.
    #[error("rank {} is gone: it does not answer, and chunk {chunk} waits for it{}", .rank.0, if_it_lives(*.is_silent))]
    Gone {
        /// Which rank.
        rank: WorkerId,
        /// What it was asked for.
        chunk: ChunkId,
        /// Nothing came back at all; `false` if its host said that nobody takes frames there any more.
        is_silent: bool,
    },
    /// The switch waits for others than the ranks that this one knows of.
    #[error(
        "the switch sums for other ranks than the {ranks} of this job (chunk {chunk}: {}): was it told of another number of them?", summed(*.complete, *.is_waiting)
    )]
    OtherRanks {
        /// Where it was seen.
        chunk: ChunkId,
        /// How many the job has here.
        ranks: u16,
        /// Whose values are in the chunk.
        complete: WorkerSet,
        /// Whether the switch waits for more.
        is_waiting: bool,
    },
    /// Ranks gave different things to one operation.
    #[error("operation {operation}: the ranks gave different things: this one {}; {}", gave(*.own), gave_else(*.other))]
    Differs {
        /// Its number.
        operation: u64,
        /// What this rank gave; `None` if nothing yet.
        own: Option<Terms>,
        /// A rank that gave something else, and what; `None` if none has said so.
        other: Option<(WorkerId, Terms)>,
    },
}

/// Nobody but the switch knows better where the peer was not asked past it, or did not answer there either.
fn if_it_lives(is_silent: bool) -> String {
    match is_silent {
        true => format!("; if its process lives, {DROPS}"),
        false => String::new(),
    }
}

fn summed(complete: WorkerSet, is_waiting: bool) -> String {
    match is_waiting {
        true => format!("it has {complete}, and waits for more"),
        false => format!("its sum is of {complete}"),
    }
}

fn gave(own: Option<Terms>) -> String {
    own.map_or_else(|| "nothing yet".to_owned(), |own| own.to_string())
}

fn gave_else(other: Option<(WorkerId, Terms)>) -> String {
    let told = other.map(|(rank, terms)| format!("rank {} {terms}", rank.0));
    told.unwrap_or_else(|| "another something else, and has not said what".to_owned())
}

/// Why an operation is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// There is nothing to sum.
    #[error("there are no values to sum")]
    Empty,
    /// The rank has given up before.
    #[error("the rank has given up before")]
    Failed,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// It completed a chunk.
    Answer,
    /// It told whom a chunk misses.
    Told,
    /// Another rank asks, or has answered.
    Word,
    /// A sum of a chunk that others have closed, and that this rank has not sent yet.
    Early,
    /// Of a chunk that was answered before.
    Duplicate,
    /// Another job's, or no SUM.
    NotOurs,
    /// No frame of the protocol, or not what the chunk's answer can be.
    Malformed,
}

/// What a rank has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RankCounters {
    /// Frames and bytes sent.
    pub sent: Sent,
    /// Operations that have their sums.
    pub operations: u64,
    /// Operations that have none, for a value that is not finite.
    pub non_finite: u64,
    /// Of the frames, those that asked.
    pub probes: u64,
    /// Frames to other ranks: questions, answers, sums that they missed.
    pub words: u64,
    /// Of the probes, those that were sent because later chunks were answered.
    pub early_probes: u64,
    /// Chunks whose exponent was guessed wrongly, and that were sent once more.
    pub repeated_guesses: u64,
    /// Chunks that timed out.
    pub timeouts: u64,
    /// Of the probes, those that asked whether a chunk can be closed, as its deadline was over.
    pub deadlines: u64,
    /// Frames that closed a chunk, or came second.
    pub closes: u64,
    /// Chunks whose sum is not that of all ranks.
    pub partial_chunks: u64,
    /// Of those, the ones that are without this rank's values.
    pub late_chunks: u64,
    /// Chunks of which this rank's largest values were cut off, for an exponent that others agreed on without it.
    pub clipped_chunks: u64,
    /// Of the late and clipped, those of which nothing joins a next operation.
    pub dropped_chunks: u64,
    /// Operations that what was late has joined.
    pub carried: u64,
    /// Operations whose late parts were lost: the next of the same key had another length or type, or there were too many keys.
    pub lost_residuals: u64,
    /// Chunks of which the switch had forgotten whether they were closed. From the first on it waits for all ranks.
    pub forgotten: u64,
    /// Sums that came before this rank's values were there.
    pub early: u64,
    /// How often the switch was silent for so long that hosts summed, and how often it was there again.
    pub fallbacks: u64,
    /// See there.
    pub returns: u64,
    /// Chunks that a host has summed.
    pub by_hosts: u64,
    /// Answers to chunks that were answered before.
    pub duplicates: u64,
    /// Frames of others.
    pub not_ours: u64,
    /// Frames that are no answer.
    pub malformed: u64,
    /// How far its window has shrunk.
    pub congestion: Signals,
}
