//! Errors of a group of ranks and of a schedule's execution, with the communication that was unfinished then.

use std::time::Duration;

use collectives::BuildError;
use roce::Qpn;
use roce::completion::Status;

use super::meeting::MeetingError;
use crate::provider::ProviderError;

/// Reason why a rank could not join its group.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// The rank's number is not below the number of ranks of the group.
    #[error("rank {rank} of {ranks}: ranks count from 0")]
    Rank {
        /// Number that the rank was given.
        rank: usize,
        /// Number of ranks of the group.
        ranks: usize,
    },
    /// This process has no rank, or a rank names a NIC that does not exist; the value is the number of NICs.
    #[error("each rank must be bound to one of {0} NICs, and there must be at least one rank")]
    Nics(usize),
    /// This rank and a peer have created different numbers of queue pairs for each other.
    #[error("rank {peer} has {has} queue pairs for this rank, and this rank has {ours}")]
    QueuePairs {
        /// Rank of the peer in the group.
        peer: usize,
        /// Number of the peer's queue pairs for this rank.
        has: usize,
        /// Number of this rank's queue pairs for the peer.
        ours: usize,
    },
    /// The ranks could not exchange their queue pairs.
    #[error(transparent)]
    Meeting(#[from] MeetingError),
    /// The RDMA provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The barrier's schedule cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The execution of a schedule failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Unfinished communication of a rank at the time when it gave up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// Number of the rank that gave up.
    pub rank: usize,
    /// Peers whose puts have not arrived: rank, and number of missing signals.
    pub unheard: Vec<(usize, usize)>,
    /// Peers that have not acknowledged puts: rank, queue pair, number of puts in flight, oldest unacknowledged PSN if known.
    pub unanswered: Vec<(usize, Qpn, usize, Option<u32>)>,
    /// Number of completions in this schedule until then.
    pub completions: u64,
}

impl std::fmt::Display for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "rank {} after {} completions",
            self.rank, self.completions
        )?;
        for (peer, signals) in &self.unheard {
            write!(f, "; rank {peer} has not put {signals} parts")?;
        }
        for (peer, qpn, puts, psn) in &self.unanswered {
            write!(
                f,
                "; rank {peer} has not acknowledged {puts} puts of queue pair {qpn}"
            )?;
            if let Some(psn) = psn {
                write!(f, " from PSN {psn:#08x} on")?;
            }
        }
        Ok(())
    }
}

/// Reason why a rank did not execute a schedule to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The schedule made no progress for the maximum time.
    #[error("no progress for {patience:?}: {open}")]
    Stuck {
        /// The maximum time without progress.
        patience: Duration,
        /// The rank's unfinished communication.
        open: Open,
    },
    /// A work request to a peer failed.
    #[error("a work request to rank {peer} failed: {status}; {open}")]
    Failed {
        /// Rank of the peer in the group.
        peer: usize,
        /// Status of the work request's completion.
        status: Status,
        /// The rank's unfinished communication.
        open: Open,
    },
    /// A peer's put carried a signal that the schedule does not have.
    #[error("rank {peer} sent unknown signal {signal}: give all ranks the same schedule")]
    Signal {
        /// Rank of the peer in the group.
        peer: usize,
        /// The invalid signal, a number that the put carries.
        signal: u32,
    },
    /// A peer sent a SEND instead of a WRITE.
    #[error("rank {peer} sent a message, but ranks only write: is it another program?")]
    Strange {
        /// Rank of the peer in the group.
        peer: usize,
    },
    /// A put of this many bytes exceeds the maximum length of an RDMA message.
    #[error("a put of {0} bytes exceeds a message: build the schedule in tiles")]
    TooLong(usize),
    /// The schedule is for another number of ranks, or needs more memory than the group has.
    #[error(
        "the schedule needs {schedule} ranks and {bytes} bytes: the group has {ranks} ranks and {capacity} bytes"
    )]
    Size {
        /// Number of ranks of the schedule.
        schedule: usize,
        /// Number of bytes that this rank would need.
        bytes: usize,
        /// Number of ranks of the group.
        ranks: usize,
        /// Length of the rank's memory region in bytes.
        capacity: usize,
    },
    /// The RDMA provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}
