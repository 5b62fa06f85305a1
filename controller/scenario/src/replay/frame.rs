//! The frames that the model of the fault engine reads and computes: classified, recorded, and rewritten frames.

use std::sync::Arc;

use parser_gen::key::KeyHash;
use parser_gen::psn::{Begun, DataPacket};

use super::{FlowSet, Verdict};

/// A frame as the switch's control `Classify` sees it: the flows that it belongs to, and the other inputs of the fault units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classified {
    /// Port by which the frame came to the switch.
    pub port: u32,
    /// The flows that the frame belongs to in ingress.
    pub ingress: FlowSet,
    /// The frame's egress ports, in the order in which the switch copies the frame; for each, the flows of the copy.
    pub exits: Arc<[(u32, FlowSet)]>,
    /// For each egress port, the verdict on the frame's copy if no egress unit examines the frame and each port gets one copy.
    pub untouched: Arc<[(u32, Vec<Verdict>)]>,
    /// For each ingress fault unit, the hash of the frame's key (such as its connection); empty if no unit distinguishes keys.
    pub keys: Arc<[KeyHash]>,
    /// For each trigger of the switch, the hash of the frame's key (such as its connection); empty if no trigger has keys.
    pub trigger_keys: Arc<[KeyHash]>,
    /// The frame's role in an RDMA connection; `None` if it has none, or if no unit selects by sequence number.
    pub data: Option<DataPacket>,
    /// The announcement of the frame's RDMA connection, if the switch had received one before the frame.
    pub told: Option<Begun>,
    /// TCP sequence number, if the frame opens a connection and a unit or trigger then restarts its numbering; else `None`.
    pub begins: Option<u32>,
    /// Arrival time of the frame in nanoseconds, for effects that depend on time.
    pub at_ns: u64,
    /// Length of the frame in bytes, for effects that depend on it.
    pub bytes: u32,
    /// For each fault unit in ingress: the time in nanoseconds when the later packets had come for which the unit lets this
    /// frame wait; `u64::MAX` if they never came. Empty if no unit lets packets wait.
    pub passed_ns: Arc<[u64]>,
    /// For each trigger of the switch: whether a slightly later frame from another port may have changed it first, because the
    /// switch may have processed that frame before this one. Empty if no trigger is concerned.
    pub may_turn: Arc<[bool]>,
    /// Whether captures show that the frame left the switch; `None`: unknown. Used where the switch's own clock decides.
    pub seen_to_leave: Option<bool>,
    /// Time in nanoseconds when the first copy left the switch, if known. By then the switch had processed the frame.
    pub left_ns: Option<u64>,
}

impl Classified {
    /// Whether captures show that this frame left the switch before the frame `next` arrived.
    #[must_use]
    pub fn was_done_before(&self, next: &Classified) -> bool {
        self.left_ns.is_some_and(|left_ns| left_ns < next.at_ns)
    }
}

/// A frame as a capture recorded it, possibly without its end.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'f> {
    /// The captured bytes, from the start of the frame on.
    pub bytes: &'f [u8],
    /// Length of the whole frame on the wire, in bytes.
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

/// The frame that leaves the switch after faults changed it, possibly without its end, as in the capture of the original.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rewritten {
    /// The known bytes of the changed frame, from its start on.
    pub bytes: Vec<u8>,
    /// Length of the whole changed frame, in bytes.
    pub wire_len: u32,
}
