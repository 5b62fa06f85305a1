//! Counters of transmitted frames, with the bytes of all headers.

use aggregation::Sent;
use serde::{Deserialize, Serialize};

/// Length in bytes of the Ethernet, IPv4 and UDP headers before the aggregation header.
pub(crate) const HEADERS: u64 = 14 + 20 + 8;

/// Counters of transmitted frames. Bytes are those of whole Ethernet frames without the checksum (FCS).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SentReport {
    /// Number of transmitted frames.
    pub frames: u64,
    /// Number of bytes in the transmitted frames.
    pub bytes: u64,
    /// Frames whose chunk had been sent before to the same destination.
    pub retransmitted_frames: u64,
    /// Number of bytes in the retransmitted frames.
    pub retransmitted_bytes: u64,
}

impl SentReport {
    /// Converts counters of bytes from the aggregation header on, by adding the Ethernet, IP and UDP headers of each frame.
    pub(crate) fn new(sent: Sent) -> SentReport {
        SentReport {
            frames: sent.frames,
            bytes: sent.bytes + sent.frames * HEADERS,
            retransmitted_frames: sent.retransmitted_frames,
            retransmitted_bytes: sent.retransmitted_bytes + sent.retransmitted_frames * HEADERS,
        }
    }
}
