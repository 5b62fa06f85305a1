//! States of a queue pair, and the attributes of each transition (IBA 10.3.1; `ibv_modify_qp`).
//!
//! ```text
//!   RESET ──Init──▶ INIT ──Rtr──▶ RTR ──Rts──▶ RTS
//!     ▲                │            │            │
//!     └── Reset, from  └────────────┴────────────┴──▶ ERROR
//!         any state                    Error, or a failure
//! ```
//!
//! SQD (send queue drain) and SQE (send queue error) are not supported: a failure of UC's send queue leads to ERROR, too.

use crate::Qpn;
use crate::completion::Status;
use crate::memory::Access;
use crate::packet::{Address, Mtu};
use crate::psn::Psn;

/// State of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Created; nothing can be posted.
    Reset,
    /// Receives can be posted.
    Init,
    /// Ready to receive.
    Rtr,
    /// Ready to send.
    Rts,
    /// Posted work requests are flushed.
    Error,
}

/// Attributes of the transition to INIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitAttributes {
    /// The partition; bit 15: full member.
    pub pkey: u16,
    /// Access of the peer through this queue pair, in addition to the limits of regions.
    pub access: Access,
}

impl Default for InitAttributes {
    fn default() -> Self {
        Self {
            pkey: 0xFFFF,
            access: Access::REMOTE_READ.and(Access::REMOTE_WRITE),
        }
    }
}

/// Attributes of the transition to RTR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtrAttributes {
    /// Address of the peer.
    pub peer: Address,
    /// The peer's queue pair.
    pub peer_qpn: Qpn,
    /// The PSN of the peer's first packet.
    pub psn: Psn,
    /// Path MTU, the same on both sides.
    pub mtu: Mtu,
    /// Maximum number of outstanding READs of the peer (`max_dest_rd_atomic`), 1 to 128.
    pub max_reads: u8,
    /// Time that the peer waits if no receive is posted (`min_rnr_timer`), a code of five bits.
    pub rnr_timer: u8,
    /// Differentiated services code point of all packets, six bits.
    pub dscp: u8,
}

/// Attributes of the transition to RTS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtsAttributes {
    /// The PSN of this side's first packet.
    pub psn: Psn,
    /// Code of the transport timer, five bits: T = 4.096 µs · 2^timeout; 0 disables it.
    pub timeout: u8,
    /// Number of retransmissions of a packet before its work request fails, at most 7.
    pub retry_count: u8,
    /// Number of retries after RNR NAKs; 7 means unlimited.
    pub rnr_retry: u8,
    /// Maximum number of outstanding READs of this side (`max_rd_atomic`), 1 to 128.
    pub max_reads: u8,
    /// Maximum number of unacknowledged packets.
    pub window: u32,
}

impl RtsAttributes {
    /// rxe's window, and perftest's timeout and retries.
    pub fn new(psn: Psn) -> Self {
        Self {
            psn,
            timeout: 14,
            retry_count: 7,
            rnr_retry: 7,
            max_reads: 16,
            window: 128,
        }
    }

    /// T in nanoseconds: a packet counts as lost without a response for this time (IBA 9.7.6.1.3: between T and 4 T); `None`
    /// if disabled.
    pub fn timeout_ns(&self) -> Option<u64> {
        match self.timeout & 0x1F {
            0 => None,
            code => Some(4096 << code),
        }
    }
}

/// State transition with its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modify {
    /// RESET: discards everything, without completions.
    Reset,
    /// INIT.
    Init(InitAttributes),
    /// RTR.
    Rtr(RtrAttributes),
    /// RTS.
    Rts(RtsAttributes),
    /// ERROR.
    Error,
}

/// Reason why a queue pair is in the state ERROR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// The caller requested the state ERROR.
    #[error("put into the state ERROR")]
    Asked,
    /// A posted work request failed with this status.
    #[error("a work request failed: {0}")]
    Work(Status),
    /// The peer sent a packet that does not follow from its earlier ones.
    #[error("the peer's request is invalid")]
    InvalidRequest,
    /// The peer sent a packet whose length the MTU does not allow: the two sides have different MTUs.
    #[error("a packet of the peer does not fit the MTU")]
    Mtu,
    /// The peer used a wrong key, or an address outside of its region.
    #[error("the peer has no access to the requested memory")]
    RemoteAccess,
}
