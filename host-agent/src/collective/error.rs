//! Reasons why an operation of a rank has no sums.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aggregation::job::{ChunkId, WorkerId, WorkerSet};
use aggregation::rank::{DROPS, NonFinite, OpeningError, RankError, SubmitError};
use rdma::ProviderError;
use serde::{Deserialize, Serialize};
use wire::VALUES_PER_PACKET;

use super::JobLockError;
use crate::frames::LinkFault;
use crate::metrics::Waits;

/// Reason why an operation of a rank has no sums.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CollectiveError {
    /// The rank's state machine has given up.
    #[error(transparent)]
    Rank(#[from] RankError),
    /// A rank whose contribution is missing is alive: it answers by ordinary UDP, which switches do not filter, but its
    /// aggregation frames do not arrive.
    #[error(
        "rank {} is alive, but no frames of this job pass between it and this rank, and chunk {chunk} waits for it: {DROPS}",
        .rank.0
    )]
    Unheard {
        /// The rank whose contribution is missing.
        rank: WorkerId,
        /// The chunk that waits for the rank's contribution.
        chunk: ChunkId,
    },
    /// Some rank's values include NaN or infinity. All ranks get this error for the operation, and continue with the next one.
    #[error(transparent)]
    NonFinite(#[from] NonFinite),
    /// The submitted operation was rejected.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// No free chunk number was found for the job.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The network interface failed.
    #[error("the network interface failed: {0}")]
    Io(Arc<io::Error>),
    /// The network interface carries no frames, so this rank has left its job.
    #[error("{0}; this rank has left its job")]
    Link(LinkFault),
    /// RDMA does not support the job's settings.
    #[error("the switch cannot sum this job over RDMA: {0}")]
    NotByRdma(#[from] NotByRdma),
    /// The RDMA provider failed.
    #[error("RDMA failed: {0}")]
    Rdma(Arc<ProviderError>),
    /// The switch did not answer the registration of the rank's queue pair.
    #[error(
        "the switch did not answer the registration of queue pair {qpn:#08x} at its {switch:#08x}, {tries} times in {waited_ms} ms: \
         check that it sums RoCEv2 for this job at this port"
    )]
    Unregistered {
        /// Number of the rank's queue pair.
        qpn: u32,
        /// Number of the switch's queue pair for this rank.
        switch: u32,
        /// Number of registrations that the rank sent.
        tries: u32,
        /// Total waiting time in milliseconds.
        waited_ms: u64,
    },
    /// The switch sums for a set of ranks that differs from the rank's settings.
    #[error(
        "the switch does not sum for the {} ranks of this job, but for {everyone}: check the number of ranks given to it",
        siblings.len()
    )]
    RegisteredAmong {
        /// The switch's children (ranks), by its answer to the registration.
        everyone: WorkerSet,
        /// The switch's children (ranks), by the rank's settings.
        siblings: WorkerSet,
    },
    /// Another process of this host is a rank of the job.
    #[error(transparent)]
    JobLock(#[from] JobLockError),
    /// The sums did not arrive while the caller waited.
    #[error("no sum within {:.1} s{}", .waited.as_secs_f64(), waiting(*.stands))]
    Timeout {
        /// Time that the caller waited.
        waited: Duration,
        /// State of the oldest chunk, as far as the switch has reported it; `None` without a report.
        stands: Option<Standing>,
    },
    /// The sums did not arrive from a daemon while the caller waited.
    #[error("no sum within {:.1} s{}", .waited.as_secs_f64(), waiting_there(.waits.as_ref()))]
    Late {
        /// Time that the caller waited.
        waited: Duration,
        /// State of the oldest chunk, as far as the daemon has reported it; `None` without a report.
        waits: Option<Waits>,
    },
    /// An error that a daemon reported to its client.
    #[error("{text}")]
    Agent {
        /// Kind of the error, for programs.
        kind: Failure,
        /// Description of the error, for the user.
        text: String,
    },
    /// The rank has left the job: its handle was closed.
    #[error("the rank was closed")]
    Closed,
}

/// Reason why RDMA does not support a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotByRdma {
    /// The job's frames have another number of values than RDMA supports.
    #[error("{0} values per frame: RDMA carries {VALUES_PER_PACKET}")]
    Values(usize),
    /// The job has a deadline for partial sums.
    #[error("the job has a deadline, which only UDP supports")]
    Deadline,
}

/// Kind of an error, for messages between daemon and client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The request is invalid, or not possible at this daemon.
    Refused,
    /// The values of some rank include NaN or infinity: the operation has no sums; the next one is not affected.
    NonFinite,
    /// No switch answers for the job.
    Silent,
    /// The network interface failed.
    Io,
    /// The rank has given up, and its operations have no sums.
    Failed,
}

/// State of an operation that is not finished.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// The oldest chunk in flight that the switch has reported on.
    pub chunk: ChunkId,
    /// Ranks that have not contributed to the chunk.
    pub misses: WorkerSet,
    /// Time at which the switch reported on the chunk.
    pub told: Instant,
}

fn waiting(stands: Option<Standing>) -> String {
    match stands {
        None => format!(": the switch answered none of its chunks; {DROPS}"),
        Some(Standing {
            chunk,
            misses,
            told,
        }) => format!(
            ": chunk {chunk} waits for {misses}, as the switch reported {:.1} s ago",
            told.elapsed().as_secs_f64()
        ),
    }
}

fn waiting_there(waits: Option<&Waits>) -> String {
    let Some(waits) = waits else {
        return String::new();
    };
    let misses = waits.misses.iter().map(|worker| WorkerId(*worker));
    let misses = misses.fold(WorkerSet::EMPTY, |all, one| {
        WorkerSet(all.0 | WorkerSet::only(one).0)
    });
    let chunk = ChunkId(waits.chunk);
    match misses.is_empty() {
        true => format!(": the switch did not answer chunk {chunk}; {DROPS}"),
        false => format!(": chunk {chunk} waits for {misses}"),
    }
}
