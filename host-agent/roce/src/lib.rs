//! RoCEv2 in user space, without I/O: packets, and the state machines of reliable and unreliable connections (`docs/rdma.md`).
//!
//! ```text
//!  post_send, post_receive ─▶ ┌──────────┐ ─▶ poll_completion
//!             handle_frame ─▶ │ Endpoint │ ─▶ poll_transmit
//!           handle_timeout ─▶ └──────────┘ ─▶ poll_timeout
//!                                   │
//!                                 Memory     regions: the bytes are the driver's
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`packet`] | frames as a view and as a value, ICRC |
//! | [`psn`] | packet sequence numbers, which wrap |
//! | [`memory`] | regions, keys, access rights |
//! | [`qp`] | queue pairs: requester, responder, states, work requests |
//! | [`completion`] | completions, in the terms of verbs |
//! | [`congestion`] | ECN, CNP, DCQCN |
//! | [`counters`] | counters with rxe's names, otherwise mlx5's |
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

/// Number of a queue pair on its host, 24 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Qpn(u32);

impl Qpn {
    /// The queue pair number that consists of the low 24 bits of `bits`.
    pub fn new(bits: u32) -> Self {
        Self(bits & 0xFF_FFFF)
    }

    /// The number as an integer; its high 8 bits are 0.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}
