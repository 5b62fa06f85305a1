//! Events, errors and counters that a rank returns to its driver.

use super::Values;
use super::terms::Terms;
use crate::Sent;
use crate::congestion::Signals;
use crate::job::{ChunkId, WorkerId, WorkerSet};

/// Event that a rank reports to its driver.
#[derive(Debug, Clone, PartialEq)]
pub enum RankEvent {
    /// An operation has finished. All ranks have the same sums, or no rank has any.
    Done {
        /// Number of the operation, as `submit` returned it.
        operation: u64,
        /// The sums, or the reason why there are none.
        outcome: Result<Sums, NonFinite>,
    },
    /// The rank has given up and sends nothing more.
    Failed(RankError),
}

/// Sums of an operation that has finished.
#[derive(Debug, Clone, PartialEq)]
pub struct Sums {
    /// Sums in the type of the submitted values; the submitted values themselves if this rank's role takes no sums.
    pub values: Values,
    /// Upper bound of the difference between any of `values` and the exact sum (or mean).
    pub error_bound: f64,
    /// Chunks that were closed before all ranks had contributed, ascending and equal at all ranks. Their sums include the
    /// listed ranks, and a mean is divided by the number of the listed ranks.
    pub partial: Vec<Partial>,
}

/// A chunk whose sum lacks the values of some ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partial {
    /// Index of the chunk in its operation, from 0.
    pub index: usize,
    /// Ranks whose values are in the sum.
    pub contributors: WorkerSet,
}

/// Reason why an operation has no sums: some rank's values include NaN or infinity. The next operation is not affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("operation {operation}, part {index} ({chunk}) has a value that is not finite")]
pub struct NonFinite {
    /// Number of the operation.
    pub operation: u64,
    /// Index in the operation of the first chunk with NaN or infinity.
    pub index: usize,
    /// The chunk's number on the wire.
    pub chunk: ChunkId,
}

/// Help text for errors: why a live switch, or a rank behind it, may seem silent, and the command that shows the reason.
pub const DROPS: &str = "a switch drops a rank's frames if the job's lease has expired, or if the rank uses another port than the one \
                         admitted: `weir doctor --switch NAME=IP:PORT` shows both";

/// Reason why a rank gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RankError {
    /// The switch did not answer a chunk.
    #[error(
        "the switch did not answer chunk {chunk} within {timeouts} timeouts: check that it sums for this job at this port; {DROPS}"
    )]
    Silent {
        /// The unanswered chunk.
        chunk: ChunkId,
        /// Number of timeouts of the chunk.
        timeouts: u32,
    },
    /// The switch's slot holds a later chunk: another use of the same job has begun.
    #[error(
        "the slot of chunk {chunk} holds a later chunk: check that no other job has the same number"
    )]
    Superseded {
        /// This rank's chunk, which is older than the slot's chunk.
        chunk: ChunkId,
    },
    /// A rank whose contribution is missing does not answer.
    #[error("rank {} is unreachable: it does not answer, and chunk {chunk} waits for it{}", .rank.0, if_it_lives(*.is_silent))]
    Gone {
        /// The rank that does not answer.
        rank: WorkerId,
        /// The chunk that lacks the rank's contribution.
        chunk: ChunkId,
        /// Whether no frame came back at all; `false` if the rank's host reported that no process receives frames there.
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
        /// The ranks that the switch's answer named as contributors.
        complete: WorkerSet,
        /// Whether the switch waits for further ranks after all of the job contributed; otherwise it called the sum complete.
        is_waiting: bool,
    },
    /// Ranks submitted different operations under one number.
    #[error("operation {operation}: the ranks submitted different operations: this rank {}; {}", gave(*.own), gave_else(*.other))]
    Differs {
        /// Number of the operation.
        operation: u64,
        /// Type, reduction, length and root that this rank submitted; `None` if it has not submitted the operation.
        own: Option<Terms>,
        /// Another rank that submitted others, and which ones; `None` if no such rank has replied.
        other: Option<(WorkerId, Terms)>,
    },
}

/// Hint for a rank that does not answer, which may be alive behind a switch that drops its frames.
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

/// Reason why a submitted operation is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The operation has no values.
    #[error("there are no values to sum")]
    Empty,
    /// The rank has already given up.
    #[error("the rank has already given up")]
    Failed,
}

/// Result of processing a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankFrame {
    /// The frame completed a chunk of this rank.
    Answer,
    /// The frame reported which ranks have not contributed to a chunk.
    Told,
    /// The frame is a question or reply from another rank.
    Word,
    /// The frame is the sum of a chunk that this rank has not sent yet.
    Early,
    /// The frame answers a chunk that was answered before.
    Duplicate,
    /// The frame belongs to another job, or has an unexpected kind.
    NotOurs,
    /// The bytes are not a frame of the protocol, or the frame cannot be the answer to its chunk.
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
    /// Probes sent to the switch; included in `sent`.
    pub probes: u64,
    /// Frames sent to other ranks: questions, replies, and sums that the other ranks missed.
    pub words: u64,
    /// Probes sent because later chunks were answered; included in `probes`.
    pub early_probes: u64,
    /// Chunks sent again because this rank had guessed their exponent wrongly.
    pub repeated_guesses: u64,
    /// Chunks that timed out.
    pub timeouts: u64,
    /// Probes sent because a chunk's deadline had passed; included in `probes`.
    pub deadlines: u64,
    /// Frames sent that ask the switch to close a chunk, whether or not another rank had already closed it.
    pub closes: u64,
    /// Chunks whose sums lack the values of some ranks.
    pub partial_chunks: u64,
    /// Chunks whose sums lack this rank's values.
    pub late_chunks: u64,
    /// Chunks whose values this rank had to clip, because the other ranks agreed on a smaller exponent without it.
    pub clipped_chunks: u64,
    /// Chunks with late or clipped values that join no later operation.
    pub dropped_chunks: u64,
    /// Operations to which late values of an earlier operation were added.
    pub carried: u64,
    /// Operations whose late values were lost: the key's next operation had another length or type, or there are too many keys.
    pub lost_residuals: u64,
    /// Chunks for which a restarted switch no longer knew whether they were closed. From then on, the job waits for all ranks.
    pub forgotten: u64,
    /// Sums received of chunks whose values this rank had not sent yet.
    pub early: u64,
    /// Number of times that the ranks began to sum the values themselves because the switch was silent.
    pub fallbacks: u64,
    /// Number of times that the switch answered again, and took over from the ranks that summed the values meanwhile.
    pub returns: u64,
    /// Chunks summed by a rank as their host, instead of the switch.
    pub by_hosts: u64,
    /// Answers received to chunks that had been answered before.
    pub duplicates: u64,
    /// Received frames of other jobs, or of unexpected kinds.
    pub not_ours: u64,
    /// Received bytes that are not a frame, or frames that cannot be the answer to their chunk.
    pub malformed: u64,
    /// Congestion marks received, and their effect on the window.
    pub congestion: Signals,
}
