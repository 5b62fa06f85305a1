//! Facts that a run reports to the judge besides the captured frames: when epochs took effect, how often triggers came on.

use serde::{Deserialize, Serialize};

/// A write of an epoch (step of the timeline) to a switch. Times are in nanoseconds since 1970, as those of captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochWrite {
    /// Name of the switch.
    pub switch: String,
    /// The epoch that takes effect; 0 disarms the faults.
    pub epoch: u16,
    /// The controller's clock before it sent the write, in nanoseconds since 1970.
    pub sent_ns: u64,
    /// The controller's clock after the switch confirmed the write, in nanoseconds since 1970.
    pub confirmed_ns: u64,
}

/// Counts that a switch itself reports for a trigger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerCount {
    /// Number of times that the trigger came on; 0 where the switch does not count this.
    pub on: u64,
    /// Number of packets that the trigger had to count, but could not, because their key had no register cell.
    pub keyless: u64,
}
