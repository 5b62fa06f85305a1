//! Facts that a run reports besides the frames.

use serde::{Deserialize, Serialize};

/// A write of an epoch to a switch. Times are in nanoseconds since 1970, as those of captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochWrite {
    /// Name of the switch.
    pub switch: String,
    /// The epoch that takes effect; 0 disarms the faults.
    pub epoch: u16,
    /// Time read before the controller sent the write.
    pub sent_ns: u64,
    /// Time read after the switch confirmed the write.
    pub confirmed_ns: u64,
}

/// A switch's own counts of a trigger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerCount {
    /// Number of times that the trigger came on; 0 where this is not counted.
    pub on: u64,
    /// Packets that the trigger would have counted, but whose key had no cell.
    pub keyless: u64,
}
