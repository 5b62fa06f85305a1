//! States of a queue pair and what each is entered with (IBA 10.3.1; `ibv_modify_qp`).
//!
//! ```text
//!   RESET ──Init──▶ INIT ──Rtr──▶ RTR ──Rts──▶ RTS
//!     ▲                │            │            │
//!     └── Reset, from  └────────────┴────────────┴──▶ ERROR
//!         any state                    Error, or a failure
//! ```
//!
//! SQD (send queue drain) and SQE (send queue error) are not here: a failure of UC's send queue leads to ERROR, too.

use crate::Qpn;
use crate::completion::Status;
use crate::memory::Access;
use crate::packet::{Address, Mtu};
use crate::psn::Psn;

/// The state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Made; nothing can be posted.
    Reset,
    /// Receives can be posted.
    Init,
    /// Ready to receive.
    Rtr,
    /// Ready to send.
    Rts,
    /// Everything that is posted is flushed.
    Error,
}

/// What INIT is entered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitAttributes {
    /// The partition; bit 15: full member.
    pub pkey: u16,
    /// What the peer may do through this queue pair, besides what regions allow.
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

/// What RTR is entered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtrAttributes {
    /// The peer.
    pub peer: Address,
    /// The peer's queue pair.
    pub peer_qpn: Qpn,
    /// The PSN of the peer's first packet.
    pub psn: Psn,
    /// The path MTU, the same on both sides.
    pub mtu: Mtu,
    /// READs that the peer may have under way here (`max_dest_rd_atomic`), 1 to 128.
    pub max_reads: u8,
    /// How long the peer is to wait when no receive is posted (`min_rnr_timer`), a code of five bits.
    pub rnr_timer: u8,
    /// The class of service of all packets, six bits.
    pub dscp: u8,
}

/// What RTS is entered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtsAttributes {
    /// The PSN of this side's first packet.
    pub psn: Psn,
    /// The transport timer's code, five bits: T = 4.096 µs · 2^timeout; 0: never.
    pub timeout: u8,
    /// How often a packet is sent again before its work fails, at most 7.
    pub retry_count: u8,
    /// How often after RNR NAKs; 7: for ever.
    pub rnr_retry: u8,
    /// READs that this side may have under way (`max_rd_atomic`), 1 to 128.
    pub max_reads: u8,
    /// Packets without an answer.
    pub window: u32,
}

impl RtsAttributes {
    /// As rxe's window, with perftest's time-out and retries.
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

    /// T: a packet counts as lost when no answer has come for so long (IBA 9.7.6.1.3: between T and 4 T).
    pub fn timeout_ns(&self) -> Option<u64> {
        match self.timeout & 0x1F {
            0 => None,
            code => Some(4096 << code),
        }
    }
}

/// Which state to enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modify {
    /// RESET: everything is forgotten, without completions.
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

/// Why a queue pair is in the state ERROR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// The caller has put it there.
    #[error("put into the state ERROR")]
    Asked,
    /// Work that was posted has failed so.
    #[error("work has failed: {0}")]
    Work(Status),
    /// The peer has sent what does not follow from what it sent before.
    #[error("the peer's request is invalid")]
    InvalidRequest,
    /// The peer has sent a packet of a length that the MTU does not allow: the two sides differ in it.
    #[error("a packet of the peer does not fit the MTU")]
    Mtu,
    /// The peer has used a wrong key, or an address outside of its region.
    #[error("the peer has no access to what it asks for")]
    RemoteAccess,
}
