//! RoCEv2 packets: Ethernet, IPv4, UDP to port 4791, BTH, extensions, payload, padding, ICRC.
//!
//! [`Packet`] is a view of a frame's bytes, which is complete and correct once it exists; [`Header`] is the value of the
//! headers between UDP and payload. [`emit`] writes a frame around a payload that the caller fills in.

mod extended;
mod header;
mod icrc;
mod network;
mod opcode;

pub use extended::{Aeth, NakCode, Reth, RnrTimer, Syndrome};
pub use header::{Header, Packet};
pub use icrc::icrc;
use network::write_network_headers;
pub use network::{Address, Ecn, Route, rebuild_network_headers};
pub use opcode::{Opcode, Operation, Position, Service};

/// The UDP destination port of RoCEv2.
pub const UDP_PORT: u16 = 4791;

/// Length of the Ethernet header in bytes.
pub const ETHERNET_LEN: usize = 14;
/// Length of an IPv4 header without options in bytes.
pub const IPV4_LEN: usize = 20;
/// Length of the UDP header in bytes.
pub const UDP_LEN: usize = 8;
/// Length of the Ethernet, IPv4 and UDP headers together, in bytes.
pub const NETWORK_LEN: usize = ETHERNET_LEN + IPV4_LEN + UDP_LEN;
/// Length of the base transport header in bytes.
pub const BTH_LEN: usize = 12;
/// Length of the RDMA extended transport header in bytes.
pub const RETH_LEN: usize = 16;
/// Length of the ACK extended transport header in bytes.
pub const AETH_LEN: usize = 4;
/// Length of immediate data in bytes.
pub const IMMEDIATE_LEN: usize = 4;
/// Length of the reserved field of a congestion notification packet (CNP) in bytes.
pub const CNP_RESERVED_LEN: usize = 16;
/// Length of the invariant CRC in bytes.
pub const ICRC_LEN: usize = 4;

/// Length in bytes of the longest frame with this MTU: a WRITE of one packet with immediate data.
pub const fn frame_len(mtu: Mtu) -> usize {
    NETWORK_LEN + BTH_LEN + RETH_LEN + IMMEDIATE_LEN + mtu.bytes() + ICRC_LEN
}

/// Length in bytes of the longest frame with any MTU.
pub const MAX_FRAME_LEN: usize = frame_len(Mtu::B4096);

/// Path MTU of a connection: payload length of every packet of a message but the last (IBA 9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mtu {
    /// A path MTU of 256 bytes.
    B256,
    /// A path MTU of 512 bytes.
    B512,
    /// A path MTU of 1,024 bytes.
    B1024,
    /// A path MTU of 2,048 bytes.
    B2048,
    /// A path MTU of 4,096 bytes.
    B4096,
}

impl Mtu {
    /// All path MTUs, the smallest first.
    pub const ALL: [Self; 5] = [
        Self::B256,
        Self::B512,
        Self::B1024,
        Self::B2048,
        Self::B4096,
    ];

    /// The path MTU in bytes.
    pub const fn bytes(self) -> usize {
        256 << self as usize
    }

    /// The path MTU of this many bytes; `None` if no path MTU has this length.
    pub fn of_bytes(bytes: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.bytes() == bytes)
    }

    /// The largest path MTU whose frames fit an interface; `None` if none fits. `link_mtu` is the interface's MTU in bytes,
    /// from the IP header on; 80 bytes are reserved for headers, as in rxe.
    pub fn for_link(link_mtu: usize) -> Option<Self> {
        const HEADERS: usize = 80;
        let fits = |mtu: &Self| mtu.bytes() + HEADERS <= link_mtu;
        Self::ALL.into_iter().rev().find(fits)
    }
}

/// Reason why a frame is not a RoCEv2 packet that this crate supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The frame is not for RoCEv2: another protocol, a fragment, IP options, or another UDP port.
    #[error("not RoCEv2 over IPv4")]
    Foreign,
    /// The frame has fewer bytes than a header announces, or than the opcode needs.
    #[error("truncated")]
    Truncated,
    /// The checksum of the IPv4 header or of UDP is wrong.
    #[error("wrong checksum of IPv4 or UDP")]
    Checksum,
    /// The packet has this transport header version, not 0.
    #[error("transport header version {0}")]
    Version(u8),
    /// This opcode belongs to another transport service, or to an operation that is not supported.
    #[error("unknown opcode {0:#04x}")]
    Opcode(u8),
    /// The packet has a payload that its opcode does not allow, or padding without payload.
    #[error("unexpected payload or padding")]
    Payload,
    /// The ICRC does not match: the packet was corrupted.
    #[error("wrong ICRC")]
    Icrc,
}

/// Writes a frame to a buffer. `fill` writes exactly the payload of `payload_len` bytes, and may fail: then the frame must not
/// be sent. Returns the frame's length.
///
/// # Panics
/// If the buffer is too short; [`MAX_FRAME_LEN`] is enough for every payload up to the largest MTU.
pub fn emit<E>(
    buffer: &mut [u8],
    route: &Route,
    header: &Header,
    payload_len: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
) -> Result<usize, E> {
    let payload_at = NETWORK_LEN + BTH_LEN + header.opcode.extended_len();
    let padding = payload_len.wrapping_neg() % 4;
    let icrc_at = payload_at + payload_len + padding;
    let frame = &mut buffer[..icrc_at + ICRC_LEN];
    write_network_headers(frame, route, header.psn);
    header.write(&mut frame[NETWORK_LEN..payload_at], padding as u8);
    fill(&mut frame[payload_at..payload_at + payload_len])?;
    frame[payload_at + payload_len..icrc_at].fill(0);
    let crc = icrc::icrc_in_place(&mut frame[..icrc_at]);
    frame[icrc_at..].copy_from_slice(&crc.to_le_bytes());
    Ok(frame.len())
}

#[cfg(test)]
mod tests;
