//! Every lie of a bundle has its name, and none is cut.

use crate::packet::{Bundle, Transport};
use crate::*;

/// Changes a bundle, and expects the error.
fn refuse(bundle: &Bundle, expected: Malformed, change: impl Fn(&mut Offload, &mut Vec<u8>)) {
    let (mut offload, mut packet) = bundle.build();
    change(&mut offload, &mut packet);
    for checksums in [Checksums::Finish, Checksums::Omit] {
        let refused = try_cut(offload, &packet, 0, checksums);
        assert_eq!(refused, Err(expected), "{bundle:?}");
    }
}

fn kinds() -> [Bundle; 4] {
    let kind = |transport, ipv6| Bundle {
        transport,
        ipv6,
        ..Bundle::default()
    };
    [
        kind(Transport::Udp, false),
        kind(Transport::Udp, true),
        kind(Transport::Tcp, false),
        kind(Transport::Tcp, true),
    ]
}

#[test]
fn a_virtio_header_that_lies() {
    for bundle in &kinds() {
        for kind in [
            2,
            Offload::UDP,
            6,
            0x20,
            0x40,
            Offload::ECN,
            Offload::ECN | Offload::UDP_L4,
            0xff,
        ] {
            refuse(bundle, Malformed::UnknownKind(kind), |offload, _| {
                offload.kind = kind
            });
        }
        refuse(bundle, Malformed::Unverified, |offload, _| {
            offload.flags = 0
        });
        refuse(bundle, Malformed::SegmentZero, |offload, _| {
            offload.segment = 0
        });
        refuse(bundle, Malformed::SegmentBeyond, |offload, _| {
            offload.segment = 3001
        });
        refuse(bundle, Malformed::ChecksumOutside, |offload, _| {
            offload.checksum_start = 5000
        });
        refuse(bundle, Malformed::ChecksumOutside, |offload, _| {
            offload.checksum_offset = u16::MAX
        });
        refuse(bundle, Malformed::ChecksumElsewhere, |offload, _| {
            offload.checksum_start -= 2
        });
        refuse(bundle, Malformed::ChecksumElsewhere, |offload, _| {
            offload.checksum_offset += 2
        });
        // It has the whole payload, once.
        let (mut offload, packet) = bundle.build();
        offload.segment = 3000;
        assert_eq!(cut(offload, &packet).len(), 1);
        // A hint only.
        offload.header_length = 7;
        assert_eq!(cut(offload, &packet).len(), 1);
    }
}

#[test]
fn a_segment_above_the_longest_frame_whose_tags_do_not_count() {
    for tags in [&[][..], &[0x81, 0, 0, 7], &[0x81, 0, 0, 1, 0x81, 0, 0, 2]] {
        let bundle = Bundle {
            tags: tags.to_vec(),
            segment: 1472,
            ..Bundle::default()
        };
        let (offload, packet) = bundle.build();
        let start = |longest| {
            let cut = Cut::new(offload, &packet, 0, Checksums::Finish, longest);
            cut.map(|cut| cut.frames())
        };
        assert_eq!(start(1514), Ok(3));
        assert_eq!(start(1513), Err(Malformed::SegmentLong));
    }
}

#[test]
fn a_kind_of_another_protocol() {
    for (at, bundle) in kinds().iter().enumerate() {
        for (other_at, other) in kinds().iter().enumerate() {
            let udp = at < 2 && other_at < 2;
            if at != other_at && !udp {
                let kind = other.build().0.kind;
                // A virtio header that names TCP before another protocol describes the inner packet of a tunnel.
                let expected = match at < 2 && other_at >= 2 {
                    true => Malformed::Tunnel,
                    false => Malformed::Protocol,
                };
                refuse(bundle, expected, |offload, _| offload.kind = kind);
            }
        }
        let protocol = if bundle.ipv6 { 20 } else { 23 };
        let expected = match at < 2 {
            true => Malformed::Protocol,
            false => Malformed::Tunnel,
        };
        refuse(bundle, expected, |_, packet| packet[protocol] = 132);
    }
}

#[test]
fn packets_that_no_sender_bundles() {
    for bundle in &kinds() {
        refuse(bundle, Malformed::NotIp, |_, packet| packet[12] = 0x99);
        refuse(bundle, Malformed::NotIp, |_, packet| packet[14] ^= 0x30);
        refuse(bundle, Malformed::Padding, |_, packet| packet.push(0));
        refuse(bundle, Malformed::IpLength, |_, packet| {
            packet.truncate(packet.len() - 1)
        });
        let length = if bundle.ipv6 { 18 } else { 16 };
        // The kernel's sign of more than 65,535 bytes.
        refuse(bundle, Malformed::IpLength, |_, packet| {
            packet[length..length + 2].fill(0)
        });
        refuse(bundle, Malformed::NotIp, |offload, packet| {
            // A third tag.
            packet.splice(12..12, [0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3]);
            offload.checksum_start += 12;
        });
    }
    let [udp4, udp6, tcp4, tcp6] = &kinds();
    for bundle in [udp4, tcp4] {
        for byte in [0x46, 0x4f] {
            refuse(bundle, Malformed::Options, |_, packet| packet[14] = byte);
        }
        refuse(bundle, Malformed::HeaderShort, |_, packet| {
            packet[14] = 0x44
        });
        for fragment in [[0x20, 0], [0, 1], [0x1f, 0xff]] {
            refuse(bundle, Malformed::Fragment, |_, packet| {
                packet[20..22].copy_from_slice(&fragment)
            });
        }
    }
    for (bundle, transport) in [(udp4, 34), (udp6, 54)] {
        for length in [0u16, 3007, 3009] {
            refuse(bundle, Malformed::UdpLength, |_, packet| {
                packet[transport + 4..transport + 6].copy_from_slice(&length.to_be_bytes());
            });
        }
    }
    for (bundle, transport) in [(tcp4, 34), (tcp6, 54)] {
        refuse(bundle, Malformed::HeaderShort, |_, packet| {
            packet[transport + 12] = 0x40
        });
    }
    for bundle in [udp6, tcp6] {
        refuse(bundle, Malformed::Fragment, |_, packet| packet[20] = 44);
        // An extension header without end, and one that is longer than Linux ever bundles.
        refuse(bundle, Malformed::Truncated, |_, packet| {
            packet[20] = 0;
            packet[54..].fill(0xff);
            packet
                .iter_mut()
                .skip(54)
                .step_by(2048)
                .for_each(|next| *next = 0);
        });
        refuse(bundle, Malformed::HeadersLong, |offload, packet| {
            let protocol = std::mem::replace(&mut packet[20], 60);
            let mut options = vec![0; 248];
            (options[0], options[1]) = (protocol, 30);
            packet.splice(54..54, options);
            let length = (packet.len() - 54) as u16;
            packet[18..20].copy_from_slice(&length.to_be_bytes());
            offload.checksum_start += 248;
        });
    }
}

#[test]
fn a_packet_that_ends_anywhere() {
    for bundle in &kinds() {
        let (offload, packet) = bundle.build();
        for length in 0..200 {
            let refused = try_cut(offload, &packet[..length], 0, Checksums::Finish);
            assert!(
                matches!(refused, Err(Malformed::Truncated | Malformed::IpLength)),
                "{length}"
            );
        }
    }
}
