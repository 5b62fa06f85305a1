//! Errors of a group and of a schedule's execution, with the state of the rank at that time.

use std::time::Duration;

use collectives::BuildError;
use roce::Qpn;
use roce::completion::Status;

use super::meeting::MeetingError;
use crate::provider::ProviderError;

/// Reason why there is no group.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// The rank's number is not below the number of ranks.
    #[error("rank {rank} of {ranks}: ranks count from 0")]
    Rank {
        /// The rank.
        rank: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// A rank's NIC does not exist, or this process has no rank.
    #[error("each rank must be bound to one of {0} NICs, and there must be at least one rank")]
    Nics(usize),
    /// A peer has another number of queue pairs.
    #[error("rank {peer} has {has} queue pairs for this rank, and this rank has {ours}")]
    QueuePairs {
        /// The peer.
        peer: usize,
        /// Number of the peer's queue pairs for this rank.
        has: usize,
        /// Number of this rank's queue pairs for the peer.
        ours: usize,
    },
    /// The ranks did not meet.
    #[error(transparent)]
    Meeting(#[from] MeetingError),
    /// The provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The barrier's schedule cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A schedule was not executed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Unfinished communication of a rank that has given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// Number of this rank.
    pub rank: usize,
    /// Peers whose puts have not arrived: rank, number of missing signals.
    pub unheard: Vec<(usize, usize)>,
    /// Peers that have not acknowledged: rank, queue pair, puts in flight, and the oldest unacknowledged PSN.
    pub unanswered: Vec<(usize, Qpn, usize, Option<u32>)>,
    /// Number of completions before.
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

/// Reason why a schedule was not executed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No progress for the allowed time.
    #[error("no progress for {patience:?}: {open}")]
    Stuck {
        /// The allowed time.
        patience: Duration,
        /// The unfinished communication.
        open: Open,
    },
    /// A work request failed.
    #[error("a work request to rank {peer} failed: {status}; {open}")]
    Failed {
        /// The peer's rank.
        peer: usize,
        /// Status of the completion.
        status: Status,
        /// The unfinished communication.
        open: Open,
    },
    /// A peer sent an invalid signal.
    #[error("rank {peer} sent unknown signal {signal}: give all ranks the same schedule")]
    Signal {
        /// The peer's rank.
        peer: usize,
        /// The signal.
        signal: u32,
    },
    /// A peer sent a message instead of a WRITE.
    #[error("rank {peer} sent a message, but ranks only write: is it another program?")]
    Strange {
        /// The peer's rank.
        peer: usize,
    },
    /// A put exceeds the maximum length of a message.
    #[error("a put of {0} bytes exceeds a message: build the schedule in tiles")]
    TooLong(usize),
    /// The schedule is for another number of ranks, or needs more memory.
    #[error(
        "the schedule needs {schedule} ranks and {bytes} bytes: the group has {ranks} ranks and {capacity} bytes"
    )]
    Size {
        /// Ranks of the schedule.
        schedule: usize,
        /// Bytes that this rank would need.
        bytes: usize,
        /// Ranks of the group.
        ranks: usize,
        /// Bytes of the region.
        capacity: usize,
    },
    /// The provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}
