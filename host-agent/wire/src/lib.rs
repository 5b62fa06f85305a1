//! The aggregation header (`docs/protocol.md`) in two forms: a view of bytes and a value.
//!
//! [`Packet`] reads and writes single fields of a buffer in place; [`Repr`] is the whole header as a
//! value. Every offset here counts from the aggregation header: the caller handles Ethernet, IPv4 and UDP.
//! [`rdma`] carries the same protocol in RDMA WRITEs.
//!
//! ```
//! use wire::{Flags, Kind, Packet, Repr};
//!
//! let repr = Repr {
//!     kind: Kind::Update,
//!     flags: Flags::VERSION,
//!     job: 1,
//!     chunk: 7,
//!     slot: 3,
//!     worker: 2,
//!     transmission: 0,
//!     contributors: 1 << 2,
//!     scale: 127,
//!     next_scale: 0,
//!     count: 2,
//! };
//! let mut bytes = vec![0; repr.buffer_len()];
//! let mut packet = Packet::new_unchecked(&mut bytes[..]);
//! repr.emit(&mut packet);
//! packet.write_i32([-1, 5]);
//!
//! let (header, payload) = Repr::parse_frame(&bytes)?;
//! assert_eq!(header, repr);
//! assert!(wire::values_i32(payload).eq([-1, 5]));
//! # Ok::<(), wire::Error>(())
//! ```

mod flags;
mod packet;
pub mod rdma;
mod repr;

pub use flags::Flags;
pub use packet::{Packet, values_i32, write_i32};
pub use repr::Repr;

/// UDP destination port of every aggregation frame: the bytes "WE" as a number.
pub const UDP_PORT: u16 = 22_341;

/// Version of the protocol that this crate implements; the header has it in the high four bits of its first byte.
pub const PROTOCOL_VERSION: u8 = 2;

/// Length of the aggregation header in bytes, without values.
pub const HEADER_LEN: usize = 24;

/// Length of one value in a frame in bytes.
pub const VALUE_LEN: usize = 4;

/// Default number of values per packet; a job may choose another number of [`FRAME_VALUES`].
pub const VALUES_PER_PACKET: usize = 256;
/// Numbers of values per frame that the P4 programs can be built for.
pub const FRAME_VALUES: [u16; 4] = [32, 64, 256, 2048];

/// Length in bytes of a packet with [`VALUES_PER_PACKET`] values, from the aggregation header on.
pub const FULL_LEN: usize = HEADER_LEN + VALUES_PER_PACKET * VALUE_LEN;

/// Maximum number of children (workers, or switches one level below) that one switch sums: the width of the contributor bitmap.
pub const MAX_CHILDREN: u8 = 64;

/// Maximum number of workers of a job.
pub const MAX_WORKERS: u16 = 1024;

/// Value of the `worker` field in a RESULT that is meant for all workers.
pub const ALL_WORKERS: u16 = 0x3FF;

/// Largest value of the `transmission` field, which saturates there.
pub const MAX_TRANSMISSION: u8 = 63;

/// Kind of an aggregation frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// The values of one worker (or rank), sent to the switch or to the server that sums.
    Update = 1,
    /// The sum of all workers' values, sent by the switch to the server (to the ranks in an all-reduce).
    Sum = 2,
    /// The server's answer to a completed chunk, which also acknowledges the worker's values.
    Result = 3,
    /// Question of one rank to another whether it has the sum of this chunk.
    Ask = 4,
    /// Reply to [`Ask`](Self::Ask) from a rank that does not have the sum: the rank is alive.
    Here = 5,
    /// The values of one rank, or its probe, sent to the rank that hosts (sums) the chunk while no switch answers.
    Give = 6,
    /// Reply of the rank that hosts (sums) the chunk to [`Give`](Self::Give), as SUM is the reply of a switch.
    Given = 7,
    /// A rank's description of its own operations, sent after ranks submitted operations that differ.
    Differ = 8,
}

impl Kind {
    /// Returns the kind with this number, or `None` if the protocol has no such kind.
    pub fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            1 => Some(Self::Update),
            2 => Some(Self::Sum),
            3 => Some(Self::Result),
            4 => Some(Self::Ask),
            5 => Some(Self::Here),
            6 => Some(Self::Give),
            7 => Some(Self::Given),
            8 => Some(Self::Differ),
            _ => None,
        }
    }
}

/// Reason why bytes are not an aggregation frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The buffer is shorter than the header, or than the header and the number of values that it announces.
    #[error("truncated: {have} bytes of {need}")]
    Truncated {
        /// Number of bytes in the buffer.
        have: usize,
        /// Number of bytes required.
        need: usize,
    },
    /// The header has a protocol version that this crate does not support.
    #[error("protocol version {0}, expected {PROTOCOL_VERSION}")]
    Version(u8),
    /// The header has a kind number that the protocol does not define.
    #[error("unknown kind {0}")]
    Kind(u8),
}
