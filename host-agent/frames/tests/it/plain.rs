//! Single frames: only the checksum is finished.

use crate::packet::{Bundle, Transport};
use crate::*;

/// A single frame whose checksum is left to the card, and the frame with its checksum.
fn unfinished(transport: Transport, ipv6: bool, tags: &[u8]) -> (Offload, Vec<u8>, Vec<u8>) {
    let bundle = Bundle {
        transport,
        ipv6,
        tags: tags.to_vec(),
        segment: 133,
        payload: 133,
        ..Bundle::default()
    };
    let (offload, packet) = bundle.build();
    let plain = Offload {
        kind: Offload::PLAIN,
        segment: 0,
        ..offload
    };
    (plain, packet, bundle.frames().remove(0))
}

#[test]
fn a_checksum_is_finished_without_padding() {
    for transport in [Transport::Udp, Transport::Tcp] {
        for ipv6 in [false, true] {
            for tags in [
                &[][..],
                &[0x81, 0, 0, 7],
                &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2],
            ] {
                let (offload, mut packet, mut frame) = unfinished(transport, ipv6, tags);
                assert_eq!(cut(offload, &packet), [frame.clone()]);
                packet.extend([0xee; 3]);
                frame.extend([0xee; 3]);
                assert_eq!(cut(offload, &packet), [frame]);
            }
        }
    }
}

#[test]
fn a_frame_without_a_flag_stays_as_it_is() {
    let (_, packet, _) = unfinished(Transport::Udp, false, &[]);
    for bytes in [&packet[..], &packet[..20], &[]] {
        for checksums in [Checksums::Finish, Checksums::Omit] {
            let frames = try_cut(Offload::NONE, bytes, 0, checksums);
            assert_eq!(frames, Ok(vec![bytes.to_vec()]));
        }
    }
}

#[test]
fn a_verified_checksum_stays_or_is_omitted() {
    let (_, _, frame) = unfinished(Transport::Udp, false, &[]);
    let verified = Offload {
        flags: Offload::DATA_VALID,
        ..Offload::NONE
    };
    assert_eq!(cut(verified, &frame), std::slice::from_ref(&frame));
    let omitted = try_cut(verified, &frame, 0, Checksums::Omit).unwrap();
    let mut expected = frame.clone();
    expected[40..42].fill(0);
    assert_eq!(omitted, [expected]);
    // A fragment's bytes at that position are data.
    let mut fragment = frame;
    fragment[21] = 9;
    assert_eq!(
        try_cut(verified, &fragment, 0, Checksums::Omit),
        Ok(vec![fragment])
    );
}

#[test]
fn only_udp_over_ipv4_omits_an_unfinished_checksum() {
    for transport in [Transport::Udp, Transport::Tcp] {
        for ipv6 in [false, true] {
            let (offload, packet, frame) = unfinished(transport, ipv6, &[]);
            let frames = try_cut(offload, &packet, 0, Checksums::Omit).unwrap();
            match transport == Transport::Udp && !ipv6 {
                true => assert_eq!(frames[0][40..42], [0, 0]),
                false => assert_eq!(frames, [frame]),
            }
        }
    }
}

/// The outer checksum of a tunnel is finished or 0; the flag means the inner one.
#[test]
fn the_checksum_of_a_tunnels_inner_packet_is_finished() {
    let (inner_offload, inner, finished) = unfinished(Transport::Tcp, false, &[]);
    let (_, _, outer) = unfinished(Transport::Udp, false, &[]);
    let headers = |inner: &[u8]| {
        let mut frame = outer[..42].to_vec();
        frame[16..18].copy_from_slice(&(28 + inner.len() as u16).to_be_bytes());
        frame.extend(inner);
        frame
    };
    let offload = Offload {
        checksum_start: inner_offload.checksum_start + 42,
        ..inner_offload
    };
    for checksums in [Checksums::Finish, Checksums::Omit] {
        let frames = try_cut(offload, &headers(&inner), 0, checksums).unwrap();
        assert_eq!(frames, [headers(&finished)]);
    }
}

/// Its checksum is a CRC, for which Linux uses the same flag.
#[test]
fn sctp_stays_unfinished() {
    let (mut offload, mut packet, _) = unfinished(Transport::Tcp, false, &[]);
    packet[23] = 132;
    offload.checksum_offset = 8;
    assert_eq!(cut(offload, &packet), [packet]);
}

#[test]
fn a_checksum_outside_the_packet_is_refused() {
    let (offload, packet, _) = unfinished(Transport::Udp, false, &[]);
    for (start, offset) in [
        (13, 6),
        (packet.len() as u16 - 7, 6),
        (34, packet.len() as u16),
        (u16::MAX, u16::MAX),
    ] {
        let lie = Offload {
            checksum_start: start,
            checksum_offset: offset,
            ..offload
        };
        let refused = try_cut(lie, &packet, 0, Checksums::Finish);
        assert_eq!(refused, Err(Malformed::ChecksumOutside), "{start} {offset}");
    }
}
