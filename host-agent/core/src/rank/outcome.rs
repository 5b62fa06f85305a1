//! Events, errors and counters that a rank returns to its driver.

use super::Values;
use super::terms::Terms;
use crate::Sent;
use crate::congestion::Signals;
use crate::job::{ChunkId, WorkerId, WorkerSet};

/// Event of a rank.
#[derive(Debug, Clone, PartialEq)]
pub enum RankEvent {
    /// An operation has finished. All ranks have the same sums, or none has any.
    Done {
        /// Number of the operation.
        operation: u64,
        /// The sums, or the reason why there are none.
        outcome: Result<Sums, NonFinite>,
    },
    /// The rank has given up and does nothing more.
    Failed(RankError),
}

/// Result of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Sums {
    /// Sums in the type of the submitted values; the submitted values themselves if this rank takes no sums.
    pub values: Values,
    /// Upper bound of the distance between any value and the exact sum or mean of the ranks' values.
    pub error_bound: f64,
    /// Chunks that were closed before all ranks had contributed, ascending and equal at all ranks. Their sums include the
    /// listed ranks, and a mean is divided by the number of those.
    pub partial: Vec<Partial>,
}

/// A chunk whose sum lacks some ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partial {
    /// Index of the chunk in its operation.
    pub index: usize,
    /// Ranks whose values are in the sum.
    pub contributors: WorkerSet,
}

/// Reason why an operation has no sums: some rank's values include NaN or infinity. The rank continues with the next operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("operation {operation}, part {index} ({chunk}) has a value that is not finite")]
pub struct NonFinite {
    /// Number of the operation.
    pub operation: u64,
    /// Index of the first such chunk.
    pub index: usize,
    /// Chunk number on the wire.
    pub chunk: ChunkId,
}

/// Help text: why a live switch, or a peer behind it, may seem silent, and the command that shows the reason.
pub const DROPS: &str = "a switch drops a rank's frames if the job's lease has expired, or if the rank uses another port than the one \
                         admitted: `weir doctor --switch NAME=IP:PORT` shows both";

/// Reason why a rank gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RankError {
    /// The switch did not answer.
    #[error(
        "the switch did not answer chunk {chunk} within {timeouts} timeouts: check that it sums for this job at this port; {DROPS}"
    )]
    Silent {
        /// The unanswered chunk.
        chunk: ChunkId,
        /// Number of timeouts.
        timeouts: u32,
    },
    /// Another use of the same job has begun.
    #[error(
        "the slot of chunk {chunk} holds a later chunk: check that no other job has the same number"
    )]
    Superseded {
        /// The stale chunk.
        chunk: ChunkId,
    },
    /// A missing rank does not answer.
    #[error("rank {} is unreachable: it does not answer, and chunk {chunk} waits for it{}", .rank.0, if_it_lives(*.is_silent))]
    Gone {
        /// The missing rank.
        rank: WorkerId,
        /// The chunk that waits for it.
        chunk: ChunkId,
        /// Whether nothing came back at all; `false` if the rank's host reported that no process receives frames there.
        is_silent: bool,
    },
    /// The switch sums for a set of ranks that differs from this job's.
    #[error(
        "the switch does not sum for the {ranks} ranks of this job (chunk {chunk}: {}): check the number of ranks given to it", summed(*.complete, *.is_waiting)
    )]
    OtherRanks {
        /// The chunk where the difference was noticed.
        chunk: ChunkId,
        /// Number of ranks in the job, as this rank knows it.
        ranks: u16,
        /// Contributors in the switch's answer.
        complete: WorkerSet,
        /// Whether the switch waits for further ranks.
        is_waiting: bool,
    },
    /// Ranks submitted different things to one operation.
    #[error("operation {operation}: the ranks submitted different operations: this rank {}; {}", gave(*.own), gave_else(*.other))]
    Differs {
        /// Number of the operation.
        operation: u64,
        /// This rank's terms; `None` if it has not submitted the operation.
        own: Option<Terms>,
        /// A rank with other terms, and those terms; `None` if no such rank has replied.
        other: Option<(WorkerId, Terms)>,
    },
}

/// Hint for a silent peer, which may be alive behind a switch that drops its frames.
fn if_it_lives(is_silent: bool) -> String {
    match is_silent {
        true => format!("; if its process is alive, {DROPS}"),
        false => String::new(),
    }
}

fn summed(complete: WorkerSet, is_waiting: bool) -> String {
    match is_waiting {
        true => format!("it has {complete}, and waits for others"),
        false => format!("its sum includes {complete}"),
    }
}

fn gave(own: Option<Terms>) -> String {
    own.map_or_else(|| "nothing yet".to_owned(), |own| own.to_string())
}

fn gave_else(other: Option<(WorkerId, Terms)>) -> String {
    let told = other.map(|(rank, terms)| format!("rank {} {terms}", rank.0));
    told.unwrap_or_else(|| "another rank a different one, without a report of its terms".to_owned())
}

/// Reason why an operation is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The operation has no values.
    #[error("there are no values to sum")]
    Empty,
    /// The rank has already given up.
    #[error("the rank has already given up")]
    Failed,
}

/// Result of processing a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankFrame {
    /// The frame completed a chunk.
    Answer,
    /// The frame reported which ranks a chunk misses.
    Told,
    /// A question or reply from another rank.
    Word,
    /// A partial sum of a chunk that this rank has not sent yet.
    Early,
    /// The chunk was answered before.
    Duplicate,
    /// The frame belongs to another job, or has an unexpected kind.
    NotOurs,
    /// The bytes are not a frame of the protocol, or the frame cannot be the chunk's answer.
    Malformed,
}

/// Counters of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RankCounters {
    /// Frames and bytes sent.
    pub sent: Sent,
    /// Operations finished with sums.
    pub operations: u64,
    /// Operations finished without sums, because of a value that is not finite.
    pub non_finite: u64,
    /// Probes sent; included in `sent`.
    pub probes: u64,
    /// Frames sent to other ranks: questions, replies, sums that they missed.
    pub words: u64,
    /// Probes sent because later chunks were answered; included in `probes`.
    pub early_probes: u64,
    /// Chunks sent again because their exponent was guessed wrongly.
    pub repeated_guesses: u64,
    /// Chunks that timed out.
    pub timeouts: u64,
    /// Probes sent because a chunk's deadline had passed; included in `probes`.
    pub deadlines: u64,
    /// Frames sent to close a chunk, whether or not another rank had closed it before.
    pub closes: u64,
    /// Chunks with partial sums.
    pub partial_chunks: u64,
    /// Partial chunks without this rank's values.
    pub late_chunks: u64,
    /// Chunks whose values this rank had to clip, because the others agreed on a smaller exponent without it.
    pub clipped_chunks: u64,
    /// Late and clipped chunks whose missing values join no later operation.
    pub dropped_chunks: u64,
    /// Operations that late values have joined.
    pub carried: u64,
    /// Operations whose late values were lost: the next operation of the key had another length or type, or there were too
    /// many keys.
    pub lost_residuals: u64,
    /// Chunks of which the switch had forgotten whether they were closed. After the first one, the job waits for all ranks.
    pub forgotten: u64,
    /// Sums that arrived before this rank had sent its values.
    pub early: u64,
    /// Number of times that hosts began to sum because the switch was silent.
    pub fallbacks: u64,
    /// Number of times that the switch answered again after that.
    pub returns: u64,
    /// Chunks summed by a host.
    pub by_hosts: u64,
    /// Answers to chunks that were answered before.
    pub duplicates: u64,
    /// Frames of other jobs, or of unexpected kinds.
    pub not_ours: u64,
    /// Bytes that are not a frame, or frames that cannot be a chunk's answer.
    pub malformed: u64,
    /// Congestion marks, and their effect on the window.
    pub congestion: Signals,
}
