//! Refusals of requests.

use std::io;

use crate::collective::{AttachError, CollectiveError, FailureKind};

/// A refusal: kind for programs, description for the user.
pub type Refusal = (FailureKind, String);

pub fn refused(text: impl Into<String>) -> Refusal {
    (FailureKind::Refused, text.into())
}

/// Refusal because of a system error.
pub fn broken(error: &io::Error) -> Refusal {
    (FailureKind::Io, error.to_string())
}

/// Refusal because the rank cannot be attached to its interface.
pub fn unattached(error: AttachError) -> Refusal {
    match error {
        AttachError::Carrier(error) => refusal(&error),
        error => (FailureKind::Io, error.to_string()),
    }
}

/// The refusal for an error of a rank.
pub fn refusal(error: &CollectiveError) -> Refusal {
    let kind = match error {
        CollectiveError::NonFinite(_) => FailureKind::NonFinite,
        CollectiveError::Io(_) | CollectiveError::Link(_) | CollectiveError::Rdma(_) => {
            FailureKind::Io
        }
        CollectiveError::JobLock(_) => FailureKind::Refused,
        CollectiveError::Agent { kind, .. } => *kind,
        CollectiveError::Opening(_) | CollectiveError::Unregistered { .. } => FailureKind::Silent,
        CollectiveError::Submit(_) | CollectiveError::NotByRdma(_) => FailureKind::Refused,
        CollectiveError::Rank(_)
        | CollectiveError::Unheard { .. }
        | CollectiveError::RegisteredAmong { .. }
        | CollectiveError::Timeout { .. }
        | CollectiveError::Late { .. }
        | CollectiveError::Closed => FailureKind::Failed,
    };
    (kind, error.to_string())
}
