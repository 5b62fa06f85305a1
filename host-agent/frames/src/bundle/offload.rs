//! The virtio header before a packet: the work that the packet's sender has left to the network card.

use super::Joins;

/// The header that a packet socket with `PACKET_VNET_HDR` puts before each packet (`struct virtio_net_hdr` of Linux's
/// `virtio_net.h`, in native byte order). Its values are not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    /// [`NEEDS_CSUM`](Self::NEEDS_CSUM), [`DATA_VALID`](Self::DATA_VALID); other bits have no meaning here.
    pub flags: u8,
    /// [`PLAIN`](Self::PLAIN), or how to segment the packet: [`TCPV4`](Self::TCPV4), [`TCPV6`](Self::TCPV6), both also with
    /// [`ECN`](Self::ECN), or [`UDP_L4`](Self::UDP_L4).
    pub kind: u8,
    /// Length of all headers up to TCP's or UDP's in bytes. A hint: [`super::Cut`] does not read it.
    pub header_length: u16,
    /// Payload of each frame after TCP's or UDP's header in bytes; only the last frame may have less. 0 for a plain frame.
    pub segment: u16,
    /// Start of the bytes under the checksum, from the start of the packet; with `NEEDS_CSUM` only.
    pub checksum_start: u16,
    /// Position of the checksum after `checksum_start`; with `NEEDS_CSUM` only.
    pub checksum_offset: u16,
}

impl Offload {
    /// Length of the header in bytes.
    pub const LEN: usize = 10;
    /// Header of a frame that is sent as it is.
    pub const NONE: Offload = Offload {
        flags: 0,
        kind: Self::PLAIN,
        header_length: 0,
        segment: 0,
        checksum_start: 0,
        checksum_offset: 0,
    };

    /// Flag: the checksum field holds the sum of the pseudo header, and the rest is to be added.
    pub const NEEDS_CSUM: u8 = 1;
    /// Flag: the kernel or the card has found the checksum right.
    pub const DATA_VALID: u8 = 2;

    /// Kind of a single frame.
    pub const PLAIN: u8 = 0;
    /// Kind of a bundle of TCP segments over IPv4.
    pub const TCPV4: u8 = 1;
    /// Kind of a UDP datagram that the card fragments by IP. Current kernels do not send it.
    pub const UDP: u8 = 3;
    /// Kind of a bundle of TCP segments over IPv6.
    pub const TCPV6: u8 = 4;
    /// Kind of a bundle of UDP datagrams over IPv4 or IPv6.
    pub const UDP_L4: u8 = 5;
    /// Bit of TCP's kinds: the first segment has the flag CWR.
    pub const ECN: u8 = 0x80;

    /// Reads a header.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Offload {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Offload {
            flags: bytes[0],
            kind: bytes[1],
            header_length: number(2),
            segment: number(4),
            checksum_start: number(6),
            checksum_offset: number(8),
        }
    }

    /// The header's bytes.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = self.flags;
        bytes[1] = self.kind;
        let numbers = [
            self.header_length,
            self.segment,
            self.checksum_start,
            self.checksum_offset,
        ];
        for (to, number) in bytes[2..].chunks_exact_mut(2).zip(numbers) {
            to.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    /// Whether the packet stands for several frames.
    pub fn is_bundle(&self) -> bool {
        self.kind != Self::PLAIN
    }

    /// The protocol of a bundle's frames.
    pub fn joins(&self) -> Joins {
        Joins {
            udp: self.kind == Self::UDP_L4,
            tcp: matches!(self.kind & !Self::ECN, Self::TCPV4 | Self::TCPV6),
        }
    }

    /// Whether the packet's checksum is still to be finished.
    pub fn needs_checksum(&self) -> bool {
        self.flags & Self::NEEDS_CSUM != 0
    }

    /// Whether the packet is a segment that a kernel's TCP has left unfinished. It comes from a virtual link's other end, whose TCP
    /// takes bundles too: offloads are of the link, not of a connection's direction.
    pub fn is_of_tcp_socket(&self) -> bool {
        /// Position of the checksum in TCP's header; in UDP's it is 6.
        const CHECKSUM: u16 = 16;
        self.needs_checksum() && self.checksum_offset == CHECKSUM
    }

    /// Whether the kernel vouches for the packet's data, with an unfinished checksum or with one that it has verified.
    pub fn is_vouched_for(&self) -> bool {
        self.flags & (Self::NEEDS_CSUM | Self::DATA_VALID) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_bytes() {
        let bytes = [1, 0x81, 66, 0, 0x20, 4, 34, 0, 16, 0];
        let offload = Offload {
            flags: Offload::NEEDS_CSUM,
            kind: Offload::TCPV4 | Offload::ECN,
            header_length: u16::from_ne_bytes([66, 0]),
            segment: u16::from_ne_bytes([0x20, 4]),
            checksum_start: u16::from_ne_bytes([34, 0]),
            checksum_offset: u16::from_ne_bytes([16, 0]),
        };
        assert_eq!(Offload::from_bytes(bytes), offload);
        assert_eq!(offload.to_bytes(), bytes);
        assert_eq!(Offload::NONE.to_bytes(), [0; Offload::LEN]);
    }
}
