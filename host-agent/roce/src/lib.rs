//! RoCEv2 in user space, without I/O: packets, and the machines of reliable and unreliable connections (`docs/rdma.md`).
//!
//! ```text
//!  post_send, post_receive ─▶ ┌──────────┐ ─▶ poll_completion
//!             handle_frame ─▶ │ Endpoint │ ─▶ poll_transmit
//!           handle_timeout ─▶ └──────────┘ ─▶ poll_timeout
//!                                   │
//!                                 Memory     regions: the bytes are the driver's
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`packet`] | frames: a view and a value, ICRC |
//! | [`psn`] | sequence numbers that wrap |
//! | [`memory`] | regions, keys, rights |
//! | [`qp`] | queue pairs: requester, responder, states, what is posted |
//! | [`completion`] | what became of work, in verbs' words |
//! | [`congestion`] | ECN, CNP, DCQCN |
//! | [`counters`] | rxe's names, then mlx5's |
//! | [`endpoint`] | many queue pairs behind one address |
//!
//! Time is nanoseconds from an origin that the caller chooses.

pub mod completion;
pub mod congestion;
pub mod counters;
pub mod endpoint;
pub mod memory;
pub mod packet;
pub mod psn;
pub mod qp;

use std::fmt;

pub use completion::{Completion, Status, WorkKind};
pub use counters::Counters;
pub use endpoint::{CreateError, Discarded, Endpoint, EndpointConfig};
pub use memory::{Access, Buffer, Key, Memory};
pub use psn::Psn;
pub use qp::{
    Fault, InitAttributes, Local, Modify, ModifyError, PostError, QpConfig, ReceiveRequest, Remote,
    RtrAttributes, RtsAttributes, SendRequest, State, Work,
};

/// A queue pair's number, 24 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Qpn(u32);

impl Qpn {
    /// The queue pair with these low 24 bits.
    pub fn new(bits: u32) -> Self {
        Self(bits & 0xFF_FFFF)
    }

    /// The 24 bits.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}
