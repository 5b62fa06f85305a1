//! Where the headers of a TCP or UDP frame begin.

use super::{Malformed, sum};

/// Length of the Ethernet header without VLAN tags.
pub(super) const ETHERNET: usize = 14;
const TAG: usize = 4;
/// Maximum number of VLAN tags.
const TAGS: usize = 2;
pub(super) const IPV4: usize = 20;
pub(super) const IPV6: usize = 40;
pub(super) const UDP_HEADER: usize = 8;
const TCP_HEADER: usize = 20;

const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;
const IPV6_FRAGMENT: u8 = 44;

/// Flags of TCP, in the byte [`TCP_FLAGS`].
pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
pub(super) const URG: u8 = 0x20;
pub(super) const CWR: u8 = 0x80;
/// Position of the flags in the TCP header.
pub(super) const TCP_FLAGS: usize = 13;

/// Positions in bytes of the headers of a whole TCP or UDP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Headers {
    /// Start of the IP header.
    pub network: usize,
    /// Start of the TCP or UDP header.
    pub transport: usize,
    /// Start of the payload.
    pub payload: usize,
    pub ipv6: bool,
    pub tcp: bool,
}

impl Headers {
    /// Finds the headers in the first bytes of a frame of `len` bytes. Only a segment that is whole, unfragmented, without IPv4
    /// options, and as long as its IP and UDP lengths say has some.
    pub fn parse(head: &[u8], len: usize) -> Result<Headers, Malformed> {
        let (ethertype, network) = network(head).ok_or(Malformed::Truncated)?;
        let packet = &head[network..];
        let (protocol, transport) = match ethertype {
            0x0800 => ipv4(packet, len - network)?,
            0x86dd => ipv6(packet, len - network)?,
            _ => return Err(Malformed::NotIp),
        };
        let segment = packet.get(transport..).ok_or(Malformed::Truncated)?;
        let transport = network + transport;
        let length = match protocol {
            UDP => udp(segment, len - transport)?,
            TCP => tcp(segment, len - transport)?,
            _ => return Err(Malformed::Protocol),
        };
        Ok(Headers {
            network,
            transport,
            payload: transport + length,
            ipv6: ethertype == 0x86dd,
            tcp: protocol == TCP,
        })
    }

    /// Position of the TCP or UDP checksum.
    pub fn checksum(&self) -> usize {
        self.transport + self.checksum_offset()
    }

    /// Position of the checksum in the TCP or UDP header.
    pub fn checksum_offset(&self) -> usize {
        if self.tcp { 16 } else { 6 }
    }

    /// Sum of the pseudo header without its length.
    pub fn pseudo(&self, frame: &[u8]) -> u64 {
        let addresses = match self.ipv6 {
            false => self.network + 12..self.network + IPV4,
            true => self.network + 8..self.network + IPV6,
        };
        sum(&frame[addresses]) + u64::from(if self.tcp { TCP } else { UDP })
    }
}

/// EtherType of a frame's payload, and the payload's position, after at most two VLAN tags; `None` for a frame that is cut off.
pub(crate) fn network(frame: &[u8]) -> Option<(u16, usize)> {
    let mut start = ETHERNET;
    loop {
        let ethertype = number(frame, start - 2)?;
        let is_tag = matches!(ethertype, 0x8100 | 0x88a8);
        if !is_tag || start == ETHERNET + TAGS * TAG {
            return Some((ethertype, start));
        }
        start += TAG;
    }
}

/// Big-endian number of 16 bits at a position.
pub(super) fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Writes a big-endian number of 16 bits.
pub(super) fn write(bytes: &mut [u8], at: usize, number: u16) {
    bytes[at..at + 2].copy_from_slice(&number.to_be_bytes());
}

/// Whether an IPv4 header says that its packet is a fragment.
pub(super) fn is_fragment(packet: &[u8]) -> Option<bool> {
    Some(number(packet, 6)? & 0x3fff != 0)
}

/// Protocol and position of the segment in an IPv4 packet of `len` bytes.
fn ipv4(packet: &[u8], len: usize) -> Result<(u8, usize), Malformed> {
    let header = packet.get(..IPV4).ok_or(Malformed::Truncated)?;
    match header[0] {
        0x45 => {}
        0x46..=0x4f => return Err(Malformed::Options),
        0x40..=0x44 => return Err(Malformed::HeaderShort),
        _ => return Err(Malformed::NotIp),
    }
    if is_fragment(header) != Some(false) {
        return Err(Malformed::Fragment);
    }
    check_length(number(header, 2), 0, len)?;
    Ok((header[9], IPV4))
}

/// Like [`ipv4`] for an IPv6 packet: the segment starts after the extension headers.
fn ipv6(packet: &[u8], len: usize) -> Result<(u8, usize), Malformed> {
    let header = packet.get(..IPV6).ok_or(Malformed::Truncated)?;
    if header[0] >> 4 != 6 {
        return Err(Malformed::NotIp);
    }
    check_length(number(header, 4), IPV6, len)?;
    let (mut protocol, mut at) = (header[6], IPV6);
    // Hop-by-hop, routing, destination options.
    while let 0 | 43 | 60 = protocol {
        let extension = packet.get(at..at + 2).ok_or(Malformed::Truncated)?;
        protocol = extension[0];
        at += 8 + usize::from(extension[1]) * 8;
    }
    match protocol {
        IPV6_FRAGMENT => Err(Malformed::Fragment),
        protocol => Ok((protocol, at)),
    }
}

/// Checks that IP's length field, which leaves out the first `before` bytes, is that of a packet of `len` bytes.
fn check_length(field: Option<u16>, before: usize, len: usize) -> Result<(), Malformed> {
    let field = field.ok_or(Malformed::Truncated)?;
    match usize::from(field) + before {
        // The kernel's sign of a packet of more than 65,535 bytes.
        _ if field == 0 => Err(Malformed::IpLength),
        end if end < len => Err(Malformed::Padding),
        end if end > len => Err(Malformed::IpLength),
        _ => Ok(()),
    }
}

/// Length of the header of a UDP datagram of `len` bytes.
fn udp(datagram: &[u8], len: usize) -> Result<usize, Malformed> {
    let header = datagram.get(..UDP_HEADER).ok_or(Malformed::Truncated)?;
    if number(header, 4).map(usize::from) != Some(len) {
        return Err(Malformed::UdpLength);
    }
    Ok(UDP_HEADER)
}

/// Length of the header of a TCP segment of `len` bytes, with options.
fn tcp(segment: &[u8], len: usize) -> Result<usize, Malformed> {
    let header = segment.get(..TCP_HEADER).ok_or(Malformed::Truncated)?;
    match usize::from(header[12] >> 4) * 4 {
        0..TCP_HEADER => Err(Malformed::HeaderShort),
        length if length > len || length > segment.len() => Err(Malformed::Truncated),
        length => Ok(length),
    }
}
