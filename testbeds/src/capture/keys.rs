//! Keys from the headers of a frame, which identify the same frame on both sides of a switch.

use std::net::Ipv4Addr;

use pnet::packet::Packet as _;
use pnet::packet::ethernet::{EtherTypes, EthernetPacket};
use pnet::packet::ip::{IpNextHeaderProtocol, IpNextHeaderProtocols};
use pnet::packet::ipv4::Ipv4Packet;
use pnet::packet::tcp::TcpPacket;
use pnet::packet::udp::UdpPacket;
use wire::{Flags, HEADER_LEN, Kind, PROTOCOL_VERSION, Packet};

/// Key that identifies one transmission of an aggregation frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AggregationKey {
    /// Kind of the frame: UPDATE, SUM or RESULT.
    pub kind: Kind,
    /// Number of the training job.
    pub job: u16,
    /// Number of the chunk whose values the frame carries.
    pub chunk: u32,
    /// Version of the chunk's slot, 0 (false) or 1 (true).
    pub version: bool,
    /// Rank of the worker that the frame is from or to.
    pub worker: u16,
    /// Number of earlier transmissions of the same frame.
    pub transmission: u8,
}

/// The key of an aggregation frame, from its headers; `None` for other frames. The frame's values may have been cut off.
pub fn aggregation_key(frame: &[u8]) -> Option<AggregationKey> {
    let ip = ipv4(frame, IpNextHeaderProtocols::Udp)?;
    let udp = UdpPacket::new(ip.payload())?;
    let header = udp.payload();
    let &first = header.first()?;
    if udp.get_destination() != wire::UDP_PORT
        || header.len() < HEADER_LEN
        || first >> 4 != PROTOCOL_VERSION
        || Kind::from_bits(first & 0x0f).is_none()
    {
        return None;
    }
    let packet = Packet::new_unchecked(header);
    Some(AggregationKey {
        kind: packet.kind(),
        job: packet.job(),
        chunk: packet.chunk(),
        version: packet.flags().contains(Flags::VERSION),
        worker: packet.worker(),
        transmission: packet.transmission(),
    })
}

/// Identifies one transmission of a TCP segment, and keeps its payload.
///
/// A retransmitted segment has a new IP identification, so it counts as another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpKey {
    /// Source address and port of the segment.
    pub source: (Ipv4Addr, u16),
    /// Destination address and port of the segment.
    pub destination: (Ipv4Addr, u16),
    /// Identification field of the IPv4 header.
    pub ip_id: u16,
    /// Sequence number of the segment.
    pub sequence: u32,
    /// Acknowledgement number of the segment.
    pub acknowledgement: u32,
    /// Flags of the TCP header.
    pub flags: u8,
    /// Payload of the segment.
    pub payload: Box<[u8]>,
}

/// The key of a TCP segment over IPv4; `None` for other frames.
pub fn tcp_key(frame: &[u8]) -> Option<TcpKey> {
    let ip = ipv4(frame, IpNextHeaderProtocols::Tcp)?;
    let tcp = TcpPacket::new(ip.payload())?;
    Some(TcpKey {
        source: (ip.get_source(), tcp.get_source()),
        destination: (ip.get_destination(), tcp.get_destination()),
        ip_id: ip.get_identification(),
        sequence: tcp.get_sequence(),
        acknowledgement: tcp.get_acknowledgement(),
        flags: tcp.get_flags(),
        payload: tcp.payload().into(),
    })
}

/// The IPv4 packet in a frame, if it has this protocol, a valid header, and is no later fragment; else `None`.
fn ipv4(frame: &[u8], protocol: IpNextHeaderProtocol) -> Option<Ipv4Packet<'_>> {
    let ethernet = EthernetPacket::new(frame)?;
    if ethernet.get_ethertype() != EtherTypes::Ipv4 {
        return None;
    }
    let bytes = frame.get(EthernetPacket::minimum_packet_size()..)?;
    let ip = Ipv4Packet::new(bytes)?;
    let header = usize::from(ip.get_header_length()) * 4;
    let legal = ip.get_version() == 4
        && header >= Ipv4Packet::minimum_packet_size()
        && header <= bytes.len()
        && header <= usize::from(ip.get_total_length());
    (legal && ip.get_next_level_protocol() == protocol && ip.get_fragment_offset() == 0)
        .then_some(ip)
}

#[cfg(test)]
pub(super) mod tests {
    use wire::Repr;

    use super::*;

    /// A frame with Ethernet, IPv4 and what follows.
    fn ip_frame(protocol: u8, identification: u16, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0]);
        frame.extend((20 + body.len() as u16).to_be_bytes());
        frame.extend(identification.to_be_bytes());
        frame.extend([0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(body);
        frame
    }

    fn aggregation_frame(repr: Repr) -> Vec<u8> {
        let mut body = vec![0x57, 0x45, 0x57, 0x45];
        body.extend((8 + repr.buffer_len() as u16).to_be_bytes());
        body.extend([0, 0]);
        let start = body.len();
        body.resize(start + repr.buffer_len(), 0);
        repr.emit(&mut Packet::new_unchecked(&mut body[start..]));
        ip_frame(17, 0, &body)
    }

    fn repr() -> Repr {
        Repr {
            kind: Kind::Update,
            flags: Flags::VERSION | Flags::AGAIN,
            job: 7,
            chunk: 99,
            slot: 3,
            worker: 5,
            transmission: 2,
            contributors: 1 << 5,
            scale: 1,
            next_scale: 1,
            count: 256,
        }
    }

    #[test]
    fn an_aggregation_frame_is_known_by_its_headers_alone() {
        let frame = aggregation_frame(repr());
        let expected = AggregationKey {
            kind: Kind::Update,
            job: 7,
            chunk: 99,
            version: true,
            worker: 5,
            transmission: 2,
        };
        assert_eq!(aggregation_key(&frame), Some(expected));
        assert_eq!(aggregation_key(&frame[..42 + HEADER_LEN]), Some(expected));
        for short in 0..42 + HEADER_LEN {
            assert_eq!(aggregation_key(&frame[..short]), None, "{short}");
        }
    }

    #[test]
    fn other_frames_have_no_aggregation_key() {
        let good = aggregation_frame(repr());
        for (at, value) in [
            (12, 0x86),
            (14, 0x65),
            (14, 0x4f),
            (20, 0x01),
            (23, 6),
            (36, 0),
            (42, 0x11),
            (42, 0x29),
        ] {
            let mut frame = good[..42 + HEADER_LEN].to_vec();
            frame[at] = value;
            assert_eq!(aggregation_key(&frame), None, "byte {at} = {value:#x}");
        }
    }

    #[test]
    fn a_retransmitted_segment_is_another_and_padding_is_not_payload() {
        let mut segment = vec![0; 20];
        segment[..4].copy_from_slice(&[0, 80, 0x18, 0xeb]);
        segment[12] = 0x50;
        segment.extend(b"hi");
        let mut first = ip_frame(6, 1, &segment);
        let again = ip_frame(6, 2, &segment);
        first.extend([0; 18]); // Ethernet's padding
        let key = tcp_key(&first).unwrap();
        assert_eq!(
            (key.source.1, key.destination.1, &*key.payload),
            (80, 6379, &b"hi"[..])
        );
        assert_ne!(Some(key), tcp_key(&again));
    }
}
