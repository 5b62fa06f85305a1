//! The aggregation protocol over RoCEv2: UPDATEs and SUMs as RDMA WRITEs with immediate (`docs/protocol.md`, "By RDMA"). This
//! module is pure: its callers send and receive the packets.
//!
//! A message is one packet of an unreliable connection. The destination queue pair, rkey, address and immediate hold the
//! header of an UPDATE; only the values are payload. A receiver's completion of a SUM shows the immediate and the length
//! alone, so these two hold what the receiver cannot know itself.
//!
//! | file | contents |
//! |---|---|
//! | `immediate.rs` | the four immediate bytes, common to both directions |
//! | `update.rs` | an UPDATE to and from a WRITE |
//! | `sum.rs` | a SUM to and from a WRITE; the layout of a rank's memory region |
//! | `registration.rs` | a rank's announcement of its queue pair and memory region to its switch |

mod immediate;
mod registration;
mod sum;
mod update;

pub use immediate::Immediate;
pub use registration::{REGISTRATION_LEN, Registered, Registration};
pub use sum::{ANSWER_LEN, FIRST_PLACE, PLACE_LEN, Receiver, Sum, Target, cell};
pub use update::{Update, switch_qpn};

use crate::{VALUE_LEN, VALUES_PER_PACKET};

/// Length in bytes of a frame's values: RDMA carries [`VALUES_PER_PACKET`] of them, or none.
pub const VALUES_LEN: usize = VALUES_PER_PACKET * VALUE_LEN;

/// The largest window in chunks: the low 16 bits of a chunk number must determine slot and version.
pub const MAX_WINDOW: u32 = 1 << 15;

/// Header fields of an RDMA WRITE with immediate, without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Write {
    /// Number of the destination queue pair, 24 bits.
    pub qpn: u32,
    /// Remote key of the receiver's memory region.
    pub rkey: u32,
    /// Virtual address within that memory region.
    pub address: u64,
    /// Payload length in bytes.
    pub len: u32,
    /// Immediate data of the WRITE, which the receiver's completion shows.
    pub immediate: Immediate,
}

/// Reason why RDMA does not carry an aggregation frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotCarried {
    /// The frame is neither an UPDATE nor a SUM: frames between ranks, and frames of servers, need UDP.
    #[error("RDMA has no frame of kind {0:?}")]
    Kind(crate::Kind),
    /// The worker number is above 63: a switch has queue pairs for 64 children.
    #[error("worker {0}: a switch has 64 children at most")]
    Worker(u16),
    /// The frame has a flag that only jobs with deadlines use.
    #[error("RDMA does not support a job with deadlines")]
    Deadlines,
    /// The number of values is neither 0 nor [`VALUES_PER_PACKET`].
    #[error("{0} values: RDMA carries {VALUES_PER_PACKET}")]
    Values(u16),
}

/// Reason why an RDMA WRITE or SEND is not a frame of the aggregation protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The queue pair number belongs to no job.
    #[error("queue pair {0:#08x} belongs to no job")]
    Qpn(u32),
    /// The remote key encodes no slot.
    #[error("key {0:#010x} names no slot")]
    Rkey(u32),
    /// The address has bits set outside its fields.
    #[error("address {0:#x} names no chunk")]
    Address(u64),
    /// The payload has a length that the protocol does not use.
    #[error("{0} bytes: no such frame has this length")]
    Len(u32),
    /// The chunk or exponent in the immediate differs from that in the address.
    #[error("the immediate belongs to another chunk")]
    Immediate,
    /// The payload is not a registration of this protocol version.
    #[error("the payload is not a registration of this protocol version")]
    Registration,
}

#[cfg(test)]
mod tests;
