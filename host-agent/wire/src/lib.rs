//! The aggregation header (`docs/protocol.md`): a view of bytes and a value.
//!
//! [`Packet`] reads and writes single fields of a buffer in place; [`Repr`] is the whole header as a
//! value. Everything here begins at the aggregation header: Ethernet, IPv4 and UDP are the caller's.
//! [`rdma`] is the same protocol as RDMA WRITEs.
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
//! let packet = Packet::new_checked(&bytes[..])?;
//! assert_eq!(Repr::parse(&packet), repr);
//! assert!(packet.values_i32().eq([-1, 5]));
//! # Ok::<(), wire::Error>(())
//! ```

mod flags;
mod packet;
pub mod rdma;
mod repr;

pub use flags::Flags;
pub use packet::Packet;
pub use repr::Repr;

/// The UDP destination port of every frame: "WE".
pub const UDP_PORT: u16 = 22_341;

/// The protocol version that this crate speaks, in the high four bits of the first byte.
pub const PROTOCOL_VERSION: u8 = 2;

/// Bytes of the header, without values.
pub const HEADER_LEN: usize = 24;

/// Bytes of one value.
pub const VALUE_LEN: usize = 4;

/// Values in a packet, where a job says no other number: the P4 programs sum 32, 64, 256 or 2,048.
pub const VALUES_PER_PACKET: usize = 256;
/// Numbers of values that a frame may have: those that P4 programs are made for.
pub const FRAME_VALUES: [u16; 4] = [32, 64, 256, 2048];

/// Bytes of a full packet of so many values, from the aggregation header on.
pub const FULL_LEN: usize = HEADER_LEN + VALUES_PER_PACKET * VALUE_LEN;

/// Workers, or switches below, that one switch sums: they fit the contributor bitmap.
pub const MAX_CHILDREN: u8 = 64;

/// Workers of a job.
pub const MAX_WORKERS: u16 = 1024;

/// The addressee of a RESULT that is meant for every worker.
pub const ALL_WORKERS: u16 = 0x3FF;

/// What a frame says that was sent so often before, or more often.
pub const MAX_TRANSMISSION: u8 = 63;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// One worker's values, on their way to the server.
    Update = 1,
    /// The values of all workers, from the switch to the server.
    Sum = 2,
    /// The server's answer to a completed chunk; at once the acknowledgement.
    Result = 3,
    /// One rank asks another: do you have the sum of this chunk?
    Ask = 4,
    /// The answer of a rank that has not: I am here.
    Here = 5,
    /// One rank's values, or its probe, on their way to the rank that sums the chunk while no switch does.
    Give = 6,
    /// What that rank answers, as a switch does by SUM.
    Given = 7,
    /// What a rank gave to an operation to which ranks gave different things.
    Differ = 8,
}

impl Kind {
    /// The kind with this number.
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

/// Why bytes are no frame of this protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Fewer bytes than the header, or than the values that it announces.
    #[error("truncated: {have} bytes of {need}")]
    Truncated {
        /// Bytes that are there.
        have: usize,
        /// Bytes that should be.
        need: usize,
    },
    /// A protocol version that this crate does not speak.
    #[error("protocol version {0}, expected {PROTOCOL_VERSION}")]
    Version(u8),
    /// A kind that the protocol does not have.
    #[error("unknown kind {0}")]
    Kind(u8),
}
