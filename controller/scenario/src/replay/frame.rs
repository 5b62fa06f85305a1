//! Frames as input and output of the model.

use std::sync::Arc;

use parser_gen::key::KeyHash;
use parser_gen::psn::{Begun, DataPacket};

use super::{FlowSet, Verdict};

/// A frame as `Classify` sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classified {
    /// Ingress port.
    pub port: u32,
    /// Flows of the frame in ingress.
    pub ingress: FlowSet,
    /// Egress ports, and the frame's flows at each, in the order in which copies are made.
    pub exits: Arc<[(u32, FlowSet)]>,
    /// The egress verdicts if no egress unit examines the frame and one copy is made per port.
    pub untouched: Arc<[(u32, Vec<Verdict>)]>,
    /// Hash of the packet's key for each ingress unit, if units distinguish keys.
    pub keys: Arc<[KeyHash]>,
    /// Hash of the packet's key for each trigger of the switch, if triggers distinguish keys.
    pub trigger_keys: Arc<[KeyHash]>,
    /// The frame's role in an RDMA connection, if units select by that.
    pub data: Option<DataPacket>,
    /// The announcement of its connection that the switch had received.
    pub told: Option<Begun>,
    /// The sequence number with which the frame opens a TCP connection, if opening a connection restarts its numbering.
    pub begins: Option<u32>,
    /// Arrival time in nanoseconds, for effects that depend on it.
    pub at_ns: u64,
    /// Length in bytes, for effects that depend on it.
    pub bytes: u32,
    /// For each ingress unit, the time in nanoseconds when as many later packets of its cell had come as the unit makes a
    /// packet wait for; `u64::MAX` if they never came. Empty if no unit waits.
    pub passed_ns: Arc<[u64]>,
    /// For each trigger of the switch, whether a slightly later frame from another port may change it: the switch may
    /// have taken that frame first. Empty if there is no such trigger.
    pub may_turn: Arc<[bool]>,
    /// Whether captures show that the frame left. It is decided by them, because the switch's clock is not theirs.
    pub seen_to_leave: Option<bool>,
    /// Time of the first departure, if known: when a later frame came, the switch had finished with this one.
    pub left_ns: Option<u64>,
}

impl Classified {
    /// Whether the frame was seen to leave before the next frame came.
    #[must_use]
    pub fn was_done_before(&self, next: &Classified) -> bool {
        self.left_ns.is_some_and(|left_ns| left_ns < next.at_ns)
    }
}

/// A frame as far as it was captured.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'f> {
    /// Captured bytes, from the frame's start.
    pub bytes: &'f [u8],
    /// Original length in bytes.
    pub wire_len: u32,
}

impl<'f> Recorded<'f> {
    /// A frame that was captured completely.
    #[must_use]
    pub fn whole(bytes: &'f [u8]) -> Recorded<'f> {
        Recorded {
            bytes,
            wire_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        }
    }
}

/// The frame that leaves after changes, as far as the original was captured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rewritten {
    /// Known bytes, from the frame's start.
    pub bytes: Vec<u8>,
    /// Full length in bytes.
    pub wire_len: u32,
}
