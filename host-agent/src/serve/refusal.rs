//! Refusals of a client's requests by the daemon.

use std::io;

use crate::collective::{AttachError, CollectiveError, Failure};

/// A refusal of a request: kind for programs, description for the user.
pub type Refusal = (Failure, String);

pub fn refused(text: impl Into<String>) -> Refusal {
    (Failure::Refused, text.into())
}

/// Refusal because of a system error.
pub fn broken(error: &io::Error) -> Refusal {
    (Failure::Io, error.to_string())
}

/// Refusal because the rank cannot be attached to its interface.
pub fn unattached(error: AttachError) -> Refusal {
    match error {
        AttachError::Carrier(error) => refusal(&error),
        error => (Failure::Io, error.to_string()),
    }
}

/// The refusal for an error of a rank.
pub fn refusal(error: &CollectiveError) -> Refusal {
    let kind = match error {
        CollectiveError::NonFinite(_) => Failure::NonFinite,
        CollectiveError::Io(_) | CollectiveError::Link(_) | CollectiveError::Rdma(_) => Failure::Io,
        CollectiveError::JobLock(_) => Failure::Refused,
        CollectiveError::Agent { kind, .. } => *kind,
        CollectiveError::Opening(_) | CollectiveError::Unregistered { .. } => Failure::Silent,
        CollectiveError::Submit(_) | CollectiveError::NotByRdma(_) => Failure::Refused,
        CollectiveError::Rank(_)
        | CollectiveError::Unheard { .. }
        | CollectiveError::RegisteredAmong { .. }
        | CollectiveError::Timeout { .. }
        | CollectiveError::Late { .. }
        | CollectiveError::Closed => Failure::Failed,
    };
    (kind, error.to_string())
}
