//! Reasons why an operation has no sums.

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

/// Reason why an operation has no sums.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CollectiveError {
    /// The rank has given up.
    #[error(transparent)]
    Rank(#[from] RankError),
    /// A missing rank is alive: it answers by a path that bypasses the switch's guard, but its frames do not arrive.
    #[error(
        "rank {} is alive, but no frames of this job pass between it and this rank, and chunk {chunk} waits for it: {DROPS}",
        .rank.0
    )]
    Unheard {
        /// The missing rank.
        rank: WorkerId,
        /// The chunk that waits for its values.
        chunk: ChunkId,
    },
    /// Some rank's values are not finite. All ranks get this error for the operation, and continue with the next one.
    #[error(transparent)]
    NonFinite(#[from] NonFinite),
    /// The operation was rejected.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The job could not begin.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The network interface failed.
    #[error("the network interface failed: {0}")]
    Io(Arc<io::Error>),
    /// The network interface carries no frames, so this rank has left its job.
    #[error("{0}; this rank has left its job")]
    Link(LinkFault),
    /// RDMA does not support the job.
    #[error("the switch cannot sum this job over RDMA: {0}")]
    NotByRdma(#[from] NotByRdma),
    /// RDMA failed.
    #[error("RDMA failed: {0}")]
    Rdma(Arc<ProviderError>),
    /// The switch did not answer the registration of the queue pair.
    #[error(
        "the switch did not answer the registration of queue pair {qpn:#08x} at its {switch:#08x}, {tries} times in {waited_ms} ms: \
         check that it sums RoCEv2 for this job at this port"
    )]
    Unregistered {
        /// Number of the rank's queue pair.
        qpn: u32,
        /// Number of the switch's queue pair.
        switch: u32,
        /// Number of registrations sent.
        tries: u32,
        /// Total waiting time in milliseconds.
        waited_ms: u64,
    },
    /// The switch sums for another set of ranks.
    #[error(
        "the switch does not sum for the {} ranks of this job, but for {everyone}: check the number of ranks given to it",
        siblings.len()
    )]
    RegisteredAmong {
        /// The switch's children, by its answer to the registration.
        everyone: WorkerSet,
        /// The switch's children, by the rank's settings.
        siblings: WorkerSet,
    },
    /// Another process of this host is a rank of the job.
    #[error(transparent)]
    JobLock(#[from] JobLockError),
    /// The sums did not arrive in time.
    #[error("no sum within {:.1} s{}", .waited.as_secs_f64(), waiting(*.stands))]
    Timeout {
        /// Time that the caller waited.
        waited: Duration,
        /// State of the oldest chunk, as far as the switch has reported it.
        stands: Option<Standing>,
    },
    /// The sums did not arrive in time, at a daemon.
    #[error("no sum within {:.1} s{}", .waited.as_secs_f64(), waiting_there(.waits.as_ref()))]
    Late {
        /// Time that the caller waited.
        waited: Duration,
        /// State of the oldest chunk, as far as the daemon has reported it.
        waits: Option<Waits>,
    },
    /// Error reported by a daemon.
    #[error("{text}")]
    Agent {
        /// Kind of the error, for programs.
        kind: Failure,
        /// Description of the error, for the user.
        text: String,
    },
    /// The member was closed.
    #[error("the rank was closed")]
    Closed,
}

/// Reason why RDMA does not support a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotByRdma {
    /// Frames have another number of values.
    #[error("{0} values per frame: RDMA carries {VALUES_PER_PACKET}")]
    Values(usize),
    /// The job has a deadline.
    #[error("the job has a deadline, which only UDP supports")]
    Deadline,
}

/// Kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The request is invalid, or not possible here.
    Refused,
    /// A value is not finite: the operation has no sums; the next one is not affected.
    NonFinite,
    /// No switch answers for the job.
    Silent,
    /// The interface failed.
    Io,
    /// The rank has given up.
    Failed,
}

/// State of an unfinished operation.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// The oldest chunk in flight that the switch has reported on.
    pub chunk: ChunkId,
    /// Ranks that have not contributed to it.
    pub misses: WorkerSet,
    /// Time of the report.
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
