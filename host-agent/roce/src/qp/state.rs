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

/// State of a queue pair, as in verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// RESET: the queue pair is created; nothing can be posted.
    Reset,
    /// INIT: receives can be posted.
    Init,
    /// RTR (ready to receive): the queue pair processes the peer's packets.
    Rtr,
    /// RTS (ready to send): the queue pair also sends work requests.
    Rts,
    /// ERROR: posted work requests complete as flushed.
    Error,
}

/// Attributes of the transition to INIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitAttributes {
    /// Partition key of the queue pair; bit 15 marks a full member.
    pub pkey: u16,
    /// Access rights that the peer has through this queue pair; the rights of the memory region apply as well.
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
    /// Ethernet and IPv4 address of the peer.
    pub peer: Address,
    /// Number of the peer's queue pair.
    pub peer_qpn: Qpn,
    /// The PSN of the peer's first packet.
    pub psn: Psn,
    /// Path MTU; both sides must use the same.
    pub mtu: Mtu,
    /// Maximum number of outstanding READs of the peer (`max_dest_rd_atomic`), 1 to 128.
    pub max_reads: u8,
    /// Time that the peer waits after an RNR NAK (`min_rnr_timer`), the specification's code of five bits.
    pub rnr_timer: u8,
    /// Differentiated services code point of all packets that the queue pair sends, six bits.
    pub dscp: u8,
}

/// Attributes of the transition to RTS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtsAttributes {
    /// The PSN of this side's first packet.
    pub psn: Psn,
    /// Code of the ACK timer, five bits: T = 4.096 µs · 2^timeout; 0 disables the timer.
    pub timeout: u8,
    /// Number of retransmissions of a packet before its work request fails, at most 7.
    pub retry_count: u8,
    /// Number of retries after RNR NAKs before the work request fails; 7 means unlimited.
    pub rnr_retry: u8,
    /// Maximum number of outstanding READs of this side (`max_rd_atomic`), 1 to 128.
    pub max_reads: u8,
    /// Maximum number of unacknowledged packets in flight.
    pub window: u32,
}

impl RtsAttributes {
    /// Attributes with rxe's window, perftest's timeout and retries, and `psn` as the PSN of this side's first packet.
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

    /// The timeout T in nanoseconds; `None` if the timer is disabled. A packet without a response counts as lost after T (IBA
    /// 9.7.6.1.3 allows T to 4 T).
    pub fn timeout_ns(&self) -> Option<u64> {
        match self.timeout & 0x1F {
            0 => None,
            code => Some(4096 << code),
        }
    }
}

/// State transition of a queue pair, with its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modify {
    /// To RESET: discards posted work requests and the connection, without completions.
    Reset,
    /// To INIT, from RESET.
    Init(InitAttributes),
    /// To RTR (ready to receive), from INIT.
    Rtr(RtrAttributes),
    /// To RTS (ready to send), from RTR.
    Rts(RtsAttributes),
    /// To ERROR, from any state but RESET.
    Error,
}

/// Reason why a queue pair is in the state ERROR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// The caller requested the transition to ERROR.
    #[error("put into the state ERROR")]
    Asked,
    /// A posted work request failed with this status.
    #[error("a work request failed: {0}")]
    Work(Status),
    /// The peer sent a packet that does not follow from its earlier packets.
    #[error("the peer's request is invalid")]
    InvalidRequest,
    /// The peer sent a packet whose length the MTU does not allow: the two sides have different MTUs.
    #[error("a packet of the peer does not fit the MTU")]
    Mtu,
    /// The peer's request used a wrong key, or an address outside of the region.
    #[error("the peer has no access to the requested memory")]
    RemoteAccess,
}
