//! Writes and parses the Ethernet, IPv4 and UDP headers around a RoCEv2 transport packet.

use std::net::Ipv4Addr;

use crate::psn::Psn;

use super::{ETHERNET_LEN, Error, IPV4_LEN, NETWORK_LEN, UDP_LEN, UDP_PORT};

mod field {
    use std::ops::Range;

    pub const ETHERNET_TO: Range<usize> = 0..6;
    pub const ETHERNET_FROM: Range<usize> = 6..12;
    pub const ETHERTYPE: Range<usize> = 12..14;
    pub const VERSION_AND_LEN: usize = 14;
    pub const TOS: usize = 15;
    pub const TOTAL_LEN: Range<usize> = 16..18;
    pub const IDENTIFICATION: Range<usize> = 18..20;
    pub const FRAGMENT: Range<usize> = 20..22;
    pub const TTL: usize = 22;
    pub const PROTOCOL: usize = 23;
    pub const IP_CHECKSUM: Range<usize> = 24..26;
    pub const IP_FROM: Range<usize> = 26..30;
    pub const IP_TO: Range<usize> = 30..34;
    pub const PORT_FROM: Range<usize> = 34..36;
    pub const PORT_TO: Range<usize> = 36..38;
    pub const UDP_LEN: Range<usize> = 38..40;
    pub const UDP_CHECKSUM: Range<usize> = 40..42;
}

const ETHERTYPE_IPV4: u16 = 0x0800;
/// First byte of an IPv4 header without options: version 4, length of five 32-bit words.
const IPV4_PLAIN: u8 = 0x45;
const PROTOCOL_UDP: u8 = 17;
const DONT_FRAGMENT: u16 = 0x4000;
const TTL: u8 = 64;

/// Address of a RoCEv2 sender or receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// MAC address of the next hop on the way to this host. In a received frame: the address that the frame has.
    pub mac: [u8; 6],
    /// IPv4 address a.b.c.d, which RDMA devices know as the GID ::ffff:a.b.c.d.
    pub ip: Ipv4Addr,
}

/// Explicit congestion notification field of the IP header (RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: congested queues drop the packet.
    NotCapable = 0,
    /// ECT(1): ECN-capable, with the same meaning as ECT(0).
    Capable1 = 1,
    /// ECT(0): ECN-capable, so congested queues may mark the packet.
    Capable = 2,
    /// CE (congestion experienced): a congested queue has marked the packet.
    CongestionExperienced = 3,
}

impl Ecn {
    /// Decodes the low two bits of IPv4's type of service.
    pub fn of_tos(tos: u8) -> Self {
        match tos & 3 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable,
            _ => Self::CongestionExperienced,
        }
    }
}

/// Fields of the Ethernet, IPv4 and UDP headers of a RoCEv2 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route {
    /// Ethernet and IPv4 address of the sender.
    pub from: Address,
    /// Ethernet and IPv4 address of the receiver.
    pub to: Address,
    /// UDP source port; switches hash it to choose a path.
    pub source_port: u16,
    /// Differentiated services code point, six bits.
    pub dscp: u8,
    /// ECN bits of the IP header.
    pub ecn: Ecn,
}

/// Writes Ethernet, IPv4 and UDP headers in front of a packet that came without them, through a UDP socket. Its ICRC covers them.
///
/// # Panics
/// If the frame is shorter than these headers.
pub fn rebuild_network_headers(frame: &mut [u8], route: &Route) {
    /// Position of the PSN in the transport header.
    const PSN: usize = 9;
    let psn = frame[NETWORK_LEN..].get(PSN..PSN + 3);
    let psn = psn.map_or(0, |psn| u32::from_be_bytes([0, psn[0], psn[1], psn[2]]));
    write_network_headers(frame, route, Psn::new(psn));
}

/// Writes Ethernet, IPv4 and UDP headers at the beginning of `frame`, whose length is that of the whole frame. The other bytes
/// may be written before or after.
///
/// The IP identification is the low 16 bits of the PSN. So consecutive packets of a queue pair can leave as one bundle, whose
/// frames the kernel numbers, and a receiver behind a UDP socket can rebuild these headers.
///
/// # Panics
/// If the frame is shorter than these headers.
pub(super) fn write_network_headers(frame: &mut [u8], route: &Route, psn: Psn) {
    let ip_len = (frame.len() - ETHERNET_LEN) as u16;
    let headers = &mut frame[..NETWORK_LEN];
    headers.fill(0);
    headers[field::ETHERNET_TO].copy_from_slice(&route.to.mac);
    headers[field::ETHERNET_FROM].copy_from_slice(&route.from.mac);
    headers[field::ETHERTYPE].copy_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
    headers[field::VERSION_AND_LEN] = IPV4_PLAIN;
    headers[field::TOS] = route.dscp << 2 | route.ecn as u8;
    headers[field::TOTAL_LEN].copy_from_slice(&ip_len.to_be_bytes());
    headers[field::IDENTIFICATION].copy_from_slice(&(psn.bits() as u16).to_be_bytes());
    headers[field::FRAGMENT].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    headers[field::TTL] = TTL;
    headers[field::PROTOCOL] = PROTOCOL_UDP;
    headers[field::IP_FROM].copy_from_slice(&route.from.ip.octets());
    headers[field::IP_TO].copy_from_slice(&route.to.ip.octets());
    let checksum = !sum(&headers[ETHERNET_LEN..ETHERNET_LEN + IPV4_LEN], 0);
    headers[field::IP_CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    headers[field::PORT_FROM].copy_from_slice(&route.source_port.to_be_bytes());
    headers[field::PORT_TO].copy_from_slice(&UDP_PORT.to_be_bytes());
    let udp_len = ip_len - IPV4_LEN as u16;
    headers[field::UDP_LEN].copy_from_slice(&udp_len.to_be_bytes());
    // The UDP checksum stays 0, "none" (RFC 768): the ICRC covers the packet.
}

/// Parses the Ethernet, IPv4 and UDP headers; returns their fields, and the frame without Ethernet padding.
pub fn parse(frame: &[u8]) -> Result<(Route, &[u8]), Error> {
    if frame.len() < ETHERNET_LEN + IPV4_LEN {
        return Err(Error::Foreign);
    }
    let is_ours = u16_at(frame, field::ETHERTYPE) == ETHERTYPE_IPV4
        && frame[field::VERSION_AND_LEN] == IPV4_PLAIN
        && frame[field::PROTOCOL] == PROTOCOL_UDP
        && u16_at(frame, field::FRAGMENT) & !DONT_FRAGMENT == 0;
    if !is_ours {
        return Err(Error::Foreign);
    }
    if sum(&frame[ETHERNET_LEN..ETHERNET_LEN + IPV4_LEN], 0) != 0xFFFF {
        return Err(Error::Checksum);
    }
    let end = ETHERNET_LEN + usize::from(u16_at(frame, field::TOTAL_LEN));
    if end < NETWORK_LEN || frame.len() < end {
        return Err(Error::Truncated);
    }
    let frame = &frame[..end];
    if u16_at(frame, field::PORT_TO) != UDP_PORT {
        return Err(Error::Foreign);
    }
    if usize::from(u16_at(frame, field::UDP_LEN)) != end - ETHERNET_LEN - IPV4_LEN {
        return Err(Error::Truncated);
    }
    let address = |mac: std::ops::Range<usize>, ip: std::ops::Range<usize>| {
        let mut bytes = [0; 6];
        bytes.copy_from_slice(&frame[mac]);
        let (ip, _) = frame[ip].as_chunks::<4>();
        Address {
            mac: bytes,
            ip: ip[0].into(),
        }
    };
    let route = Route {
        from: address(field::ETHERNET_FROM, field::IP_FROM),
        to: address(field::ETHERNET_TO, field::IP_TO),
        source_port: u16_at(frame, field::PORT_FROM),
        dscp: frame[field::TOS] >> 2,
        ecn: Ecn::of_tos(frame[field::TOS]),
    };
    if u16_at(frame, field::UDP_CHECKSUM) != 0 && !udp_checksum_is_right(frame) {
        return Err(Error::Checksum);
    }
    Ok((route, frame))
}

/// Checks the UDP checksum (RFC 768), with the pseudo header of addresses, protocol and length.
fn udp_checksum_is_right(frame: &[u8]) -> bool {
    let udp = &frame[ETHERNET_LEN + IPV4_LEN..];
    let pseudo = sum(&frame[field::IP_FROM.start..field::IP_TO.end], 0);
    let start = u64::from(pseudo) + u64::from(PROTOCOL_UDP) + udp.len() as u64;
    debug_assert!(udp.len() >= UDP_LEN);
    sum(udp, start) == 0xFFFF
}

/// The one's complement sum of 16-bit big-endian words (RFC 1071), added to `start`.
fn sum(bytes: &[u8], start: u64) -> u16 {
    let (words, odd) = bytes.as_chunks::<2>();
    let words = words
        .iter()
        .map(|&word| u64::from(u16::from_be_bytes(word)));
    let odd = odd.first().map_or(0, |&byte| u64::from(byte) << 8);
    let mut sum = start + words.sum::<u64>() + odd;
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

fn u16_at(frame: &[u8], range: std::ops::Range<usize>) -> u16 {
    let (bytes, _) = frame[range].as_chunks::<2>();
    u16::from_be_bytes(bytes[0])
}
