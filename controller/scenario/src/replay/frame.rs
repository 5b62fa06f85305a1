//! Frames as the model takes them.

use std::sync::Arc;

use parser_gen::key::KeyHash;
use parser_gen::psn::{Begun, DataPacket};

use super::{FlowSet, Verdict};

/// A frame as `Classify` sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classified {
    /// By which port it came.
    pub port: u32,
    /// Its flows when it comes in.
    pub ingress: FlowSet,
    /// The ports that it is forwarded to, and its flows there, in the order in which copies are made.
    pub exits: Arc<[(u32, FlowSet)]>,
    /// What becomes of it in egress, where no unit looks at it there and one copy is made.
    pub untouched: Arc<[(u32, Vec<Verdict>)]>,
    /// By unit of ingress, the hash of the packet's key, where keys are told apart.
    pub keys: Arc<[KeyHash]>,
    /// By trigger of the switch, the hash of the packet's key, where keys follow triggers of their own.
    pub trigger_keys: Arc<[KeyHash]>,
    /// What it is of an RDMA connection, where units select by that.
    pub data: Option<DataPacket>,
    /// What the switch had been told of its connection.
    pub told: Option<Begun>,
    /// With which sequence number it begins a TCP connection, where one that begins anew is numbered anew.
    pub begins: Option<u32>,
    /// When it came, for effects that go by that.
    pub at_ns: u64,
    /// How long it is, for those that go by that.
    pub bytes: u32,
    /// By unit of ingress, when as many more packets of its cell had come as the unit makes one wait for; `u64::MAX` if they
    /// never did. Empty if no unit does.
    pub passed_ns: Arc<[u64]>,
    /// By trigger of the switch, whether a frame that comes by another port hardly later may turn it: the switch may have taken
    /// that one first. Empty if none does.
    pub may_turn: Arc<[bool]>,
    /// Whether it was seen to leave, by those who look from outside: the clock of a switch is not theirs.
    pub seen_to_leave: Option<bool>,
    /// When it was first seen to leave, where that is known: what came later found the switch with it already done.
    pub left_ns: Option<u64>,
}

impl Classified {
    /// Whether the switch was seen to be done with it before another frame came.
    #[must_use]
    pub fn was_done_before(&self, next: &Classified) -> bool {
        self.left_ns.is_some_and(|left_ns| left_ns < next.at_ns)
    }
}

/// A frame as far as it was recorded.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'f> {
    /// From its first on.
    pub bytes: &'f [u8],
    /// How long it was.
    pub wire_len: u32,
}

impl<'f> Recorded<'f> {
    /// A frame of which all is there.
    #[must_use]
    pub fn whole(bytes: &'f [u8]) -> Recorded<'f> {
        Recorded {
            bytes,
            wire_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        }
    }
}

/// What leaves of a frame, as far as the frame was recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rewritten {
    /// From its first on.
    pub bytes: Vec<u8>,
    /// How long it is.
    pub wire_len: u32,
}
