//! What a run tells of itself beside the frames.

use serde::{Deserialize, Serialize};

/// A write of an epoch to a switch. Times are in nanoseconds since 1970, as those of captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochWrite {
    /// Which switch.
    pub switch: String,
    /// What it puts in force; 0 disarms.
    pub epoch: u16,
    /// Read before it was sent.
    pub sent_ns: u64,
    /// Read after the switch had confirmed it.
    pub confirmed_ns: u64,
}

/// What a switch has counted of a trigger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerCount {
    /// How often it came on; 0 where that is not counted.
    pub on: u64,
    /// Packets that it would have counted, and whose key had no cell.
    pub keyless: u64,
}
