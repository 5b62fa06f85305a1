//! Explicit congestion notification (RFC 3168): marks frames that join a long queue.

use crate::bundle::network;

const NOT_CAPABLE: u8 = 0b00;
const CONGESTED: u8 = 0b11;

const IPV4_HEADER: usize = 20;
const IPV4_CHECKSUM: usize = 10;
const IPV6_HEADER: usize = 40;
/// Bits by which the ECN field is shifted in the second byte of an IPv6 header.
const IPV6_ECN_SHIFT: u32 = 4;

/// Marks a frame of an ECN-capable transport (ECT(0), ECT(1)), also behind VLAN tags, and returns whether it did. Other frames
/// and frames that are marked already stay unchanged.
pub(crate) fn mark(frame: &mut [u8]) -> bool {
    let Some((ethertype, start)) = network(frame) else {
        return false;
    };
    let packet = &mut frame[start..];
    match ethertype {
        0x0800 => mark_ipv4(packet),
        0x86dd => mark_ipv6(packet),
        _ => false,
    }
}

fn mark_ipv4(packet: &mut [u8]) -> bool {
    // A valid header has at least five words.
    if packet.len() < IPV4_HEADER || !matches!(packet[0], 0x45..=0x4f) {
        return false;
    }
    let before = [packet[0], packet[1]];
    if !mark_bits(&mut packet[1], 0) {
        return false;
    }
    let after = [packet[0], packet[1]];
    let checksum = &mut packet[IPV4_CHECKSUM..IPV4_CHECKSUM + 2];
    let mended = mended([checksum[0], checksum[1]], before, after);
    checksum.copy_from_slice(&mended);
    true
}

/// Marks an IPv6 packet. IPv6 has no header checksum, and the checksums of transports do not cover the traffic class.
fn mark_ipv6(packet: &mut [u8]) -> bool {
    packet.len() >= IPV6_HEADER && packet[0] >> 4 == 6 && mark_bits(&mut packet[1], IPV6_ECN_SHIFT)
}

fn mark_bits(byte: &mut u8, shift: u32) -> bool {
    let bits = *byte >> shift & 0b11;
    let is_capable = bits != NOT_CAPABLE && bits != CONGESTED;
    if is_capable {
        *byte |= CONGESTED << shift;
    }
    is_capable
}

/// Updates an IPv4 checksum after one 16-bit word changed (RFC 1624, equation 3): a wrong checksum stays wrong.
fn mended(checksum: [u8; 2], before: [u8; 2], after: [u8; 2]) -> [u8; 2] {
    let [checksum, before, after] = [checksum, before, after].map(u16::from_be_bytes);
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    (!(folded as u16)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::{fold, sum};
    use proptest::prelude::*;

    const PAYLOAD: [u8; 4] = [1, 2, 3, 4];

    fn framed(tags: &[[u8; 4]], ethertype: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend(tags.concat());
        frame.extend(ethertype.to_be_bytes());
        frame.extend(packet);
        frame.extend(PAYLOAD);
        frame
    }

    /// An IPv4 header with the correct checksum.
    fn ipv4(mut header: Vec<u8>) -> Vec<u8> {
        header[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].fill(0);
        let sum = !fold(sum(&header));
        header[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        header
    }

    fn tags() -> impl Strategy<Value = Vec<[u8; 4]>> {
        let tag = prop_oneof![Just([0x81, 0x00]), Just([0x88, 0xa8])];
        let tag = (tag, any::<[u8; 2]>()).prop_map(|([a, b], [c, d])| [a, b, c, d]);
        proptest::collection::vec(tag, 0..3)
    }

    proptest! {
        #[test]
        fn a_marked_ipv4_header_has_the_right_checksum(
            tags in tags(),
            words in 5usize..=15,
            bytes in proptest::collection::vec(any::<u8>(), 60),
            ecn in 0u8..4,
        ) {
            let mut header = bytes[..4 * words].to_vec();
            header[0] = 0x40 | words as u8;
            header[1] = header[1] & !0b11 | ecn;
            let header = ipv4(header);
            let mut frame = framed(&tags, 0x0800, &header);
            let before = frame.clone();
            let is_marked = mark(&mut frame);
            prop_assert_eq!(is_marked, ecn == 1 || ecn == 2);
            if is_marked {
                let mut expected = header;
                expected[1] |= 0b11;
                prop_assert_eq!(frame, framed(&tags, 0x0800, &ipv4(expected)));
            } else {
                prop_assert_eq!(frame, before);
            }
        }

        #[test]
        fn an_ipv6_header_changes_in_its_traffic_class_alone(
            tags in tags(),
            mut header in proptest::collection::vec(any::<u8>(), 40),
        ) {
            header[0] = 0x60 | header[0] & 0xf;
            let class = header[0] << 4 | header[1] >> 4;
            let mut frame = framed(&tags, 0x86dd, &header);
            let is_marked = mark(&mut frame);
            prop_assert_eq!(is_marked, matches!(class & 3, 1 | 2));
            if is_marked {
                header[1] |= 0x30;
            }
            prop_assert_eq!(frame, framed(&tags, 0x86dd, &header));
        }

        #[test]
        fn other_bytes_stay_unchanged(mut frame in proptest::collection::vec(any::<u8>(), 0..80), cut in 0usize..34) {
            // Random types are rarely those of IP; cut headers are invalid.
            let before = frame.clone();
            if frame.len() >= 14 && !matches!(frame[12..14], [0x08, 0x00] | [0x86, 0xdd] | [0x81, 0x00] | [0x88, 0xa8]) {
                prop_assert!(!mark(&mut frame));
                prop_assert_eq!(frame, before);
            }
            let whole = framed(&[], 0x0800, &ipv4([&[0x45, 2][..], &[7; 18]].concat()));
            let mut cut = whole[..cut].to_vec();
            prop_assert!(!mark(&mut cut));
            prop_assert_eq!(&cut[..], &whole[..cut.len()]);
        }
    }

    #[test]
    fn frames_that_resemble_ip_stay_unchanged() {
        let header = ipv4([&[0x45, 2][..], &[7; 18]].concat());
        for (ethertype, first) in [
            (0x0800, 0x44),
            (0x0800, 0x65),
            (0x86dd, 0x45),
            (0x0806, 0x45),
        ] {
            let mut frame = framed(&[], ethertype, &header);
            frame[14] = first;
            let before = frame.clone();
            assert!(!mark(&mut frame), "{ethertype:x} {first:x}");
            assert_eq!(frame, before);
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut header = ipv4([&[0x45, 1][..], &[9; 18]].concat());
        header[IPV4_CHECKSUM] ^= 0x40;
        let mut frame = framed(&[], 0x0800, &header);
        assert!(mark(&mut frame));
        assert_ne!(fold(sum(&frame[14..34])), 0xffff);
    }
}
