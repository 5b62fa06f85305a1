//! Counters of transmitted frames with their headers.

use aggregation::Sent;
use serde::{Deserialize, Serialize};

/// Length of the headers before the aggregation header.
pub(crate) const HEADERS: u64 = 14 + 20 + 8;

/// Counters of transmitted frames. Bytes are those of whole Ethernet frames without FCS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SentReport {
    /// Number of frames.
    pub frames: u64,
    /// Bytes in those frames.
    pub bytes: u64,
    /// Frames whose chunk had been sent before to the same destination.
    pub retransmitted_frames: u64,
    /// Bytes in those retransmitted frames.
    pub retransmitted_bytes: u64,
}

impl SentReport {
    /// Adds the headers of each frame to the bytes.
    pub(crate) fn new(sent: Sent) -> SentReport {
        SentReport {
            frames: sent.frames,
            bytes: sent.bytes + sent.frames * HEADERS,
            retransmitted_frames: sent.retransmitted_frames,
            retransmitted_bytes: sent.retransmitted_bytes + sent.retransmitted_frames * HEADERS,
        }
    }
}
