//! Ethernet, IPv4 and UDP around an aggregation frame, built and read with pnet's packets (`docs/protocol.md`, "Frame").

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use ::frames::bundle::{fold, sum as words};
use aggregation::Mark;
use pnet::datalink;
use pnet::ipnetwork::IpNetwork;
use pnet::packet::ethernet::{EtherTypes, EthernetPacket, MutableEthernetPacket};
use pnet::packet::ip::IpNextHeaderProtocols;
use pnet::packet::ipv4::{self, Ipv4Flags, Ipv4Packet, MutableIpv4Packet};
use pnet::packet::udp::{self, MutableUdpPacket, UdpPacket};
use pnet::util::MacAddr;

pub use ::frames::{
    Cable, Frames, Io, Link, LinkFault, Opened, Options, PnetFrames, WhenFull, receive_within,
};
pub use wire::UDP_PORT;

const ETHERNET_LEN: usize = 14;
const IPV4_LEN: usize = 20;
const UDP_LEN: usize = 8;
/// Values of the ECN field of the IP header (RFC 3168): ECT(0), and CE (congestion experienced).
const ECN_CAPABLE: u8 = 0b10;
const ECN_CONGESTED: u8 = 0b11;
/// Length in bytes of the Ethernet, IPv4 and UDP headers before an aggregation frame.
pub const HEADERS_LEN: usize = ETHERNET_LEN + IPV4_LEN + UDP_LEN;

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Reason why a text is not the address of an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The text does not consist of six pairs of hexadecimal digits.
    #[error("`{0}` is not an Ethernet address, such as 02:00:00:00:00:01")]
    Mac(String),
    /// The text does not have the form MAC/IP.
    #[error(
        "`{0}` is not an Ethernet address and IPv4 address, such as 02:00:00:00:00:01/10.0.0.1"
    )]
    Endpoint(String),
}

impl From<Mac> for String {
    fn from(mac: Mac) -> String {
        mac.to_string()
    }
}

impl TryFrom<String> for Mac {
    type Error = <Mac as FromStr>::Err;

    fn try_from(text: String) -> Result<Mac, Self::Error> {
        text.parse()
    }
}

impl FromStr for Mac {
    type Err = EndpointError;
    fn from_str(text: &str) -> Result<Mac, EndpointError> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2);
            *byte = part
                .and_then(|part| u8::from_str_radix(part, 16).ok())
                .ok_or_else(|| EndpointError::Mac(text.into()))?;
        }
        match parts.next() {
            None => Ok(Mac(bytes)),
            Some(_) => Err(EndpointError::Mac(text.into())),
        }
    }
}

/// Ethernet and IPv4 address of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Ethernet address.
    pub mac: Mac,
    /// IPv4 address.
    pub ip: Ipv4Addr,
}

impl Endpoint {
    /// Ethernet and IPv4 address of an interface in the current network namespace.
    pub fn from_interface(interface: &str) -> io::Result<Endpoint> {
        let wrong = |kind, what: String| io::Error::new(kind, what);
        let mut all = datalink::interfaces();
        let found = all.iter().position(|found| found.name == interface);
        let found = found.map(|at| all.swap_remove(at)).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|other| &*other.name).collect();
            wrong(
                io::ErrorKind::NotFound,
                format!(
                    "no interface is named {interface}; there is {}",
                    names.join(", ")
                ),
            )
        })?;
        let lacks = |what: &str| {
            wrong(
                io::ErrorKind::AddrNotAvailable,
                format!("interface {interface} has no {what} address"),
            )
        };
        let mac = found.mac.filter(|mac| !mac.is_zero());
        let mac = mac.ok_or_else(|| lacks("Ethernet"))?;
        let ip = found.ips.iter().find_map(|ip| match ip {
            IpNetwork::V4(ip) => Some(ip.ip()),
            IpNetwork::V6(_) => None,
        });
        Ok(Endpoint {
            mac: Mac(mac.octets()),
            ip: ip.ok_or_else(|| lacks("IPv4"))?,
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.mac, self.ip)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;
    fn from_str(text: &str) -> Result<Endpoint, EndpointError> {
        let wrong = || EndpointError::Endpoint(text.into());
        let (mac, ip) = text.split_once('/').ok_or_else(wrong)?;
        Ok(Endpoint {
            mac: mac.parse().map_err(|_| wrong())?,
            ip: ip.parse().map_err(|_| wrong())?,
        })
    }
}

/// Opens an interface of the current network namespace for aggregation frames.
///
/// # Errors
/// The interface is missing, or the system does not open it.
pub fn open_interface(interface: &str, io: Io) -> io::Result<Opened> {
    ::frames::open(interface, Options::udp(io, wire::UDP_PORT))
}

/// Destination of frames for all workers of a job: the job's multicast group (239.87.69.x, "WE"), and the Ethernet group that
/// RFC 1112 maps it to. No kernel joins this group, so no kernel answers it.
pub fn group(job: u16) -> Endpoint {
    let low = (job & 0xff) as u8;
    Endpoint {
        mac: Mac([0x01, 0x00, 0x5e, 0x57, 0x45, low]),
        ip: Ipv4Addr::new(239, 87, 69, low),
    }
}

/// Destination of frames that the switches sum for all workers of the job; they send the sum to the [`group`]. Its Ethernet
/// address differs from the group's, so that switches that do not sum can forward the frames to those that do.
pub fn sum(job: u16) -> Endpoint {
    beside_group(job, 0x02)
}

/// Destination of frames from `me` that the summing switches answer; the answer returns to `me`.
pub fn asking(job: u16, me: Endpoint) -> Endpoint {
    Endpoint {
        ip: me.ip,
        ..beside_group(job, 0x06)
    }
}

/// The addresses of the job's multicast group, but with another first byte of the Ethernet address.
fn beside_group(job: u16, first: u8) -> Endpoint {
    let Endpoint { mac, ip } = group(job);
    let [_, rest @ ..] = mac.0;
    let [a, b, c, d, e] = rest;
    Endpoint {
        mac: Mac([first, a, b, c, d, e]),
        ip,
    }
}

/// Builds an Ethernet frame around an aggregation frame (`payload`). It replaces the content of `frame`.
pub fn build(frame: &mut Vec<u8>, from: Endpoint, to: Endpoint, payload: &[u8]) {
    frame.resize(HEADERS_LEN + payload.len(), 0);
    let rest = Headers::new(from, to).write(frame, 0);
    rest.copy_from_slice(payload);
}

/// Ethernet, IPv4 and UDP headers of the frames from one agent to one destination.
#[derive(Debug, Clone)]
pub struct Headers {
    /// The headers, with lengths, identification and checksums of 0.
    bytes: [u8; HEADERS_LEN],
    /// Sum of the IPv4 header's words.
    sum: u64,
}

impl Headers {
    /// Headers of frames from one agent to another, or to a group.
    pub fn new(from: Endpoint, to: Endpoint) -> Headers {
        let mut bytes = [0; HEADERS_LEN];
        if let Some(mut ethernet) = MutableEthernetPacket::new(&mut bytes) {
            ethernet.set_destination(mac_addr(to.mac));
            ethernet.set_source(mac_addr(from.mac));
            ethernet.set_ethertype(EtherTypes::Ipv4);
        }
        if let Some(mut ip) = MutableIpv4Packet::new(&mut bytes[ETHERNET_LEN..]) {
            ip.set_version(4);
            ip.set_header_length((IPV4_LEN / 4) as u8);
            ip.set_ecn(ECN_CAPABLE);
            ip.set_flags(Ipv4Flags::DontFragment);
            ip.set_ttl(64);
            ip.set_next_level_protocol(IpNextHeaderProtocols::Udp);
            ip.set_source(from.ip);
            ip.set_destination(to.ip);
        }
        if let Some(mut udp) = MutableUdpPacket::new(&mut bytes[ETHERNET_LEN + IPV4_LEN..]) {
            udp.set_source(wire::UDP_PORT);
            udp.set_destination(wire::UDP_PORT);
            // The UDP checksum stays 0, "none" (RFC 768): a switch changes the payload.
        }
        Headers {
            sum: words(&bytes[ETHERNET_LEN..ETHERNET_LEN + IPV4_LEN]),
            bytes,
        }
    }

    /// Writes the headers, [`HEADERS_LEN`] bytes, to the beginning of a frame, and returns the rest of the frame, for the
    /// aggregation frame.
    ///
    /// Frames with consecutive identifications (in the IP header) can leave as one bundle, whose frames the kernel numbers.
    ///
    /// # Panics
    /// If the frame is shorter than the headers.
    pub fn write<'f>(&self, frame: &'f mut [u8], identification: u16) -> &'f mut [u8] {
        let ip_len = (frame.len() - ETHERNET_LEN) as u16;
        let (headers, payload) = frame.split_at_mut(HEADERS_LEN);
        headers.copy_from_slice(&self.bytes);
        let checksum = !fold(self.sum + u64::from(ip_len) + u64::from(identification));
        let (_, ip) = headers.split_at_mut(ETHERNET_LEN);
        ip[2..4].copy_from_slice(&ip_len.to_be_bytes());
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let udp_len = ip_len - IPV4_LEN as u16;
        ip[IPV4_LEN + 4..IPV4_LEN + 6].copy_from_slice(&udp_len.to_be_bytes());
        payload
    }
}

/// Sets the congestion mark (ECN) in the IP header of a frame from [`build`], which answers a frame with this mark.
pub fn pass_mark(frame: &mut [u8], mark: Mark) {
    if mark == Mark::None {
        return;
    }
    if let Some(mut ip) = frame
        .get_mut(ETHERNET_LEN..)
        .and_then(MutableIpv4Packet::new)
    {
        ip.set_ecn(ECN_CONGESTED);
        ip.set_checksum(ipv4::checksum(&ip.to_immutable()));
    }
}

/// Congestion mark (ECN) of a frame that [`open`] accepts.
pub fn mark(frame: &[u8]) -> Mark {
    let ip = frame.get(ETHERNET_LEN..).and_then(Ipv4Packet::new);
    match ip.is_some_and(|ip| ip.get_ecn() == ECN_CONGESTED) {
        true => Mark::Congested,
        false => Mark::None,
    }
}

/// IPv4 address of the sender of a frame that [`open`] accepts. A switch's SUM has that of the last contributor's UPDATE.
pub fn source(frame: &[u8]) -> Option<Ipv4Addr> {
    let ip = frame.get(ETHERNET_LEN..).and_then(Ipv4Packet::new)?;
    Some(ip.get_source())
}

/// The aggregation frame inside an Ethernet frame to `me` or to a group; `None` for all other frames and for invalid frames.
pub fn open(frame: &[u8], me: Endpoint) -> Option<&[u8]> {
    let ethernet = EthernetPacket::new(frame)?;
    let to = ethernet.get_destination();
    let to_group = to.0 & 1 == 1;
    if ethernet.get_ethertype() != EtherTypes::Ipv4 || !(to_group || to == mac_addr(me.mac)) {
        return None;
    }
    let bytes = &frame[ETHERNET_LEN..];
    let ip = plain_ip(bytes)?;
    let total_len = usize::from(ip.get_total_length());
    let fragment = ip.get_fragment_offset() != 0 || ip.get_flags() & Ipv4Flags::MoreFragments != 0;
    if fragment || ip.get_next_level_protocol() != IpNextHeaderProtocols::Udp {
        return None;
    }
    if !(ip.get_destination() == me.ip
        || ip.get_destination().is_multicast()
        || ip.get_destination().is_broadcast())
    {
        return None;
    }
    let bytes = &bytes[IPV4_LEN..total_len];
    let udp = UdpPacket::new(bytes)?;
    let udp_len = usize::from(udp.get_length());
    if udp.get_destination() != wire::UDP_PORT || udp_len < UDP_LEN || udp_len > bytes.len() {
        return None;
    }
    if udp.get_checksum() != 0 {
        let whole = UdpPacket::new(&bytes[..udp_len])?;
        if udp::ipv4_checksum(&whole, &ip.get_source(), &ip.get_destination()) != udp.get_checksum()
        {
            return None;
        }
    }
    Some(&bytes[UDP_LEN..udp_len])
}

/// The IPv4 header at the beginning of a packet; `None` if it is incomplete, invalid or has options. Aggregation frames have no
/// options; a frame with options could be forged, since switches do not examine it.
fn plain_ip(bytes: &[u8]) -> Option<Ipv4Packet<'_>> {
    const VERSION_AND_LEN: u8 = 0x45;
    let ip = Ipv4Packet::new(bytes)?;
    let total_len = usize::from(ip.get_total_length());
    let is_whole = (IPV4_LEN..=bytes.len()).contains(&total_len);
    let is_right = bytes.first() == Some(&VERSION_AND_LEN)
        && is_whole
        && internet_checksum(&bytes[..IPV4_LEN]) == 0;
    is_right.then_some(ip)
}

/// The Internet checksum (RFC 1071) of all words: 0 if the data includes a correct checksum.
fn internet_checksum(bytes: &[u8]) -> u16 {
    !fold(words(bytes))
}

fn mac_addr(mac: Mac) -> MacAddr {
    mac.0.into()
}

/// The host that reports that none of its processes receives aggregation frames: an ICMP message "port unreachable" (RFC 792)
/// about a frame from `me`. A host can report this only about itself; other reports give `None`.
pub fn refused(frame: &[u8], me: Endpoint) -> Option<Ipv4Addr> {
    const PORT_UNREACHABLE: [u8; 2] = [3, 3];
    /// Length in bytes of an ICMP header: type, code, checksum, and four unused bytes.
    const ICMP_LEN: usize = 8;
    let ethernet = EthernetPacket::new(frame)?;
    let bytes = frame.get(ETHERNET_LEN..)?;
    let ip = plain_ip(bytes)?;
    let is_ours = ethernet.get_ethertype() == EtherTypes::Ipv4
        && ethernet.get_destination() == mac_addr(me.mac)
        && ip.get_destination() == me.ip
        && ip.get_next_level_protocol() == IpNextHeaderProtocols::Icmp;
    let icmp = &bytes[IPV4_LEN..usize::from(ip.get_total_length())];
    if !is_ours || !icmp.starts_with(&PORT_UNREACHABLE) || internet_checksum(icmp) != 0 {
        return None;
    }
    // The quoted packet may end after eight bytes of UDP.
    let about = icmp.get(ICMP_LEN..)?;
    let udp = about.get(IPV4_LEN..)?;
    let about = Ipv4Packet::new(about)?;
    let to_port = u16::from_be_bytes([*udp.get(2)?, *udp.get(3)?]);
    let is_about_us = about.get_header_length() == (IPV4_LEN / 4) as u8
        && about.get_source() == me.ip
        && about.get_destination() == ip.get_source()
        && about.get_next_level_protocol() == IpNextHeaderProtocols::Udp
        && to_port == wire::UDP_PORT;
    is_about_us.then(|| about.get_destination())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(last: u8) -> Endpoint {
        Endpoint {
            mac: Mac([2, 0, 0, 0, 0, last]),
            ip: Ipv4Addr::new(10, 0, 0, last),
        }
    }

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![9; 3];
        build(&mut frame, endpoint(1), endpoint(2), payload);
        frame
    }

    #[test]
    fn bytes_are_as_documented() {
        let frame = frame(&[0; 20]);
        assert_eq!(frame.len(), 62);
        assert_eq!(frame[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(frame[14..24], [0x45, 2, 0, 48, 0, 0, 0x40, 0, 64, 17]);
        assert_eq!(frame[26..34], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(frame[34..42], [0x57, 0x45, 0x57, 0x45, 0, 28, 0, 0]);
        assert_eq!(internet_checksum(&frame[14..34]), 0);
    }

    #[test]
    fn a_mark_is_read() {
        let mut frame = frame(b"payload");
        assert_eq!(mark(&frame), Mark::None);
        pass_mark(&mut frame, Mark::None);
        assert_eq!(mark(&frame), Mark::None);
        pass_mark(&mut frame, Mark::Congested);
        assert_eq!(mark(&frame), Mark::Congested);
        assert_eq!(open(&frame, endpoint(2)), Some(&b"payload"[..]));
        assert_eq!(mark(&frame[..20]), Mark::None);
    }

    #[test]
    fn built_frames_open_only_for_their_addressee() {
        let mut frame = frame(b"payload");
        assert_eq!(open(&frame, endpoint(2)), Some(&b"payload"[..]));
        assert_eq!(open(&frame, endpoint(3)), None);
        frame.extend([0; 11]); // Ethernet's padding
        assert_eq!(open(&frame, endpoint(2)), Some(&b"payload"[..]));
        build(&mut frame, endpoint(1), group(258), b"all");
        assert_eq!(open(&frame, endpoint(3)), Some(&b"all"[..]));
        assert_eq!(frame[..6], [1, 0, 0x5e, 0x57, 0x45, 2]);
    }

    #[test]
    fn a_udp_checksum_that_is_there_must_be_right() {
        let mut bytes = frame(b"payload");
        let sum = {
            let udp = UdpPacket::new(&bytes[34..]).unwrap();
            udp::ipv4_checksum(&udp, &endpoint(1).ip, &endpoint(2).ip)
        };
        bytes[40..42].copy_from_slice(&sum.to_be_bytes());
        assert!(open(&bytes, endpoint(2)).is_some());
        bytes[45] ^= 1;
        assert_eq!(open(&bytes, endpoint(2)), None);
    }

    #[test]
    fn no_bit_of_the_headers_may_flip_unseen() {
        let good = frame(b"payload");
        for bit in 0..HEADERS_LEN * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let opened = open(&bad, endpoint(2));
            // These may change: the group bit of the destination, the source address, the source port; and a shorter length
            // gives a shorter payload.
            let (byte, group_bit) = (bit / 8, bit == 0);
            let harmless = group_bit
                || [6..12, 34..36, 38..40]
                    .iter()
                    .any(|free| free.contains(&byte));
            assert!(harmless || opened.is_none(), "bit {bit}: {opened:?}");
        }
    }

    #[test]
    fn no_prefix_and_no_garbage_panics() {
        let good = frame(b"payload");
        for end in 0..good.len() {
            assert_eq!(open(&good[..end], endpoint(2)), None, "{end}");
        }
        // A header length beyond the packet, and one below the minimum, with correct checksums.
        for first in [0x4f, 0x44] {
            let mut bad = good.clone();
            bad[14] = first;
            sign(&mut bad, 34);
            assert_eq!(open(&bad, endpoint(2)), None);
        }
    }

    /// Sets the checksum of an IPv4 header that ends at `end`.
    fn sign(frame: &mut [u8], end: usize) {
        frame[24..26].fill(0);
        let sum = internet_checksum(&frame[14..end]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }

    #[test]
    fn a_frame_with_ip_options_is_refused() {
        let mut frame = frame(b"payload");
        // Two options without effect, and the end of the list.
        frame.splice(34..34, [1, 1, 1, 0]);
        frame[14] = 0x46;
        let len = (frame.len() - ETHERNET_LEN) as u16;
        frame[16..18].copy_from_slice(&len.to_be_bytes());
        sign(&mut frame, 38);
        assert_eq!(internet_checksum(&frame[14..38]), 0);
        assert_eq!(open(&frame, endpoint(2)), None);
    }

    /// The message from `from` to host 1 about a frame from host 1 to `about`.
    fn unreachable(from: u8, about: u8) -> Vec<u8> {
        let mut quoted = Vec::new();
        build(&mut quoted, endpoint(1), endpoint(about), b"payload");
        let mut icmp = vec![3, 3, 0, 0, 0, 0, 0, 0];
        icmp.extend_from_slice(&quoted[ETHERNET_LEN..][..IPV4_LEN + UDP_LEN]);
        let sum = internet_checksum(&icmp);
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut frame = Vec::new();
        build(&mut frame, endpoint(from), endpoint(1), &[]);
        frame.truncate(ETHERNET_LEN + IPV4_LEN);
        frame[23] = 1;
        frame.extend_from_slice(&icmp);
        let len = (frame.len() - ETHERNET_LEN) as u16;
        frame[16..18].copy_from_slice(&len.to_be_bytes());
        sign(&mut frame, 34);
        frame
    }

    #[test]
    fn an_icmp_error_counts_only_from_its_own_host() {
        assert_eq!(
            refused(&unreachable(2, 2), endpoint(1)),
            Some(endpoint(2).ip)
        );
        assert_eq!(refused(&unreachable(3, 2), endpoint(1)), None);
        assert_eq!(refused(&unreachable(2, 2), endpoint(4)), None);
        let good = unreachable(2, 2);
        for end in 0..good.len() {
            assert_eq!(refused(&good[..end], endpoint(1)), None, "{end}");
        }
        // No bit of the headers or of the message may change unnoticed, except for the Ethernet source address.
        for bit in (0..good.len() * 8).filter(|bit| !(6..12).contains(&(bit / 8))) {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(refused(&bad, endpoint(1)), None, "bit {bit}");
        }
    }

    #[test]
    fn addresses_are_read_and_written() {
        let text = "02:00:00:00:00:ff/10.0.0.1";
        assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        for bad in [
            "",
            "02:00:00:00:00/10.0.0.1",
            "02:00:00:00:00:00:00/10.0.0.1",
            "2:0:0:0:0:0/10.0.0.1",
            "02:00:00:00:00:0g/10.0.0.1",
            "02:00:00:00:00:00",
        ] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
        }
    }
}
