//! The protocol carried by RoCEv2: what an UPDATE is as an RDMA WRITE with immediate, and what a SUM is that comes as one
//! (`docs/protocol.md`, "By RDMA"). Pure: whoever sends and receives them puts packets around.
//!
//! A message is one packet of an unreliable connection. All that [`Repr`](crate::Repr) says of an UPDATE stands in its destination queue
//! pair, rkey, address and immediate; only values are payload. Of a SUM a receiver's completion shows the immediate and the
//! length alone, so these say what it cannot know itself.
//!
//! | file | what |
//! |---|---|
//! | `immediate.rs` | the four bytes that both directions have |
//! | `update.rs` | an UPDATE, there and back |
//! | `sum.rs` | a SUM, there and back; a rank's region |
//! | `registration.rs` | how a rank tells its switch where SUMs go |

mod immediate;
mod registration;
mod sum;
mod update;

pub use immediate::Immediate;
pub use registration::{REGISTRATION_LEN, Registered, Registration};
pub use sum::{ANSWER_LEN, FIRST_PLACE, PLACE_LEN, Receiver, Sum, Target, cell};
pub use update::{Update, switch_qpn};

use crate::{VALUE_LEN, VALUES_PER_PACKET};

/// Bytes of the values of a frame: RDMA carries one number of them.
pub const VALUES_LEN: usize = VALUES_PER_PACKET * VALUE_LEN;

/// The largest window: the low 16 bits of a chunk's number say slot and version.
pub const MAX_WINDOW: u32 = 1 << 15;

/// An RDMA WRITE with immediate, without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Write {
    /// The queue pair that it goes to, 24 bits.
    pub qpn: u32,
    /// The key of the receiver's region.
    pub rkey: u32,
    /// Where in it.
    pub address: u64,
    /// Bytes of payload.
    pub len: u32,
    /// For the receiver's completion.
    pub immediate: Immediate,
}

/// Why a frame is not carried by RDMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotCarried {
    /// Neither an UPDATE nor a SUM: what ranks say to each other, and what servers do.
    #[error("a frame of kind {0:?}")]
    Kind(crate::Kind),
    /// A switch's queue pairs are for 64 children.
    #[error("worker {0}: a switch has 64 children at most")]
    Worker(u16),
    /// A flag of jobs with deadlines.
    #[error("a job with deadlines")]
    Deadlines,
    /// Another number of values than [`VALUES_PER_PACKET`].
    #[error("{0} values: RDMA carries {VALUES_PER_PACKET}")]
    Values(u16),
}

/// Why a WRITE is no frame of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A queue pair that is no job's.
    #[error("queue pair {0:#08x} is no job's")]
    Qpn(u32),
    /// A key that says no slot.
    #[error("key {0:#010x} says no slot")]
    Rkey(u32),
    /// An address with bits that say nothing.
    #[error("address {0:#x} says no chunk")]
    Address(u64),
    /// A length that no such frame has.
    #[error("{0} bytes: no such frame has so many")]
    Len(u32),
    /// Address and immediate say different things.
    #[error("the immediate is of another chunk")]
    Immediate,
    /// A registration of another version, or none at all.
    #[error("no registration of this version")]
    Registration,
}

#[cfg(test)]
mod tests;
