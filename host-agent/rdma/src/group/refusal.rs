//! Why a schedule is not carried out, and what a rank still waits for then.

use std::time::Duration;

use roce::Qpn;
use roce::completion::Status;

use crate::provider::ProviderError;

/// What a rank still waits for, when it waits no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// This rank.
    pub rank: usize,
    /// Peers whose puts have not come: rank, signals that are missing.
    pub unheard: Vec<(usize, usize)>,
    /// Peers that have not acknowledged: rank, queue pair, puts under way, and the oldest PSN without an answer.
    pub unanswered: Vec<(usize, Qpn, usize, Option<u32>)>,
    /// Completions before.
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

/// Why a schedule was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nothing has happened for so long.
    #[error("nothing has happened for {patience:?}: {open}")]
    Stuck {
        /// For how long.
        patience: Duration,
        /// What is open.
        open: Open,
    },
    /// Work failed.
    #[error("work with rank {peer} failed: {status}; {open}")]
    Failed {
        /// With whom.
        peer: usize,
        /// How.
        status: Status,
        /// What is open.
        open: Open,
    },
    /// A peer signals what it cannot.
    #[error("rank {peer} signals {signal}, which is of no schedule: does it carry out another?")]
    Signal {
        /// Who.
        peer: usize,
        /// What.
        signal: u32,
    },
    /// A peer sends what no rank does.
    #[error("rank {peer} sends messages, where ranks write: is it another program?")]
    Strange {
        /// Who.
        peer: usize,
    },
    /// A put is longer than a message can be.
    #[error("a put of {0} bytes: more than a message has; build the schedule in tiles")]
    TooLong(usize),
    /// The schedule is for others.
    #[error(
        "the schedule is for {schedule} ranks and {bytes} bytes: this is a group of {ranks} with {capacity}"
    )]
    Size {
        /// Ranks that it is for.
        schedule: usize,
        /// Bytes that this rank would need.
        bytes: usize,
        /// Ranks that there are.
        ranks: usize,
        /// Bytes that there are.
        capacity: usize,
    },
    /// This side.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}
