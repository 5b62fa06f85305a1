//! Finishes checksums that a virtual link leaves to a network card: a veth pair hands over frames of local processes
//! with unfinished checksums (ethtool's `tx`), and has no card.

const ETHERNET: usize = 14;
const TAG: usize = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Finishes the checksum of a TCP or UDP segment whose checksum field holds the sum of its pseudo header, as Linux leaves
/// it (CHECKSUM_PARTIAL). Returns false for other frames, which stay unchanged.
pub(crate) fn finish_checksum(frame: &mut [u8]) -> bool {
    finish(frame).is_some()
}

/// EtherType of a frame's payload, and the payload's offset in bytes, after VLAN tags; `None` for a frame that is cut off.
pub(crate) fn network(frame: &[u8]) -> Option<(u16, usize)> {
    let mut start = ETHERNET;
    loop {
        match *frame.get(start - 2..start)? {
            [0x81, 0x00] | [0x88, 0xa8] => start += TAG,
            [a, b] => return Some((u16::from_be_bytes([a, b]), start)),
            _ => return None,
        }
    }
}

fn finish(frame: &mut [u8]) -> Option<()> {
    let (ethertype, network) = network(frame)?;
    let packet = frame.get_mut(network..)?;
    let (protocol, start, end) = match ethertype {
        0x0800 => ipv4(packet)?,
        0x86dd => ipv6(packet)?,
        _ => return None,
    };
    let segment = packet.get_mut(start..end)?;
    let field = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return None,
    };
    segment.get(field..field + 2)?;
    let sum = match !folded(segment) {
        // In UDP, 0 means no checksum.
        0 if protocol == UDP => 0xffff,
        sum => sum,
    };
    segment[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

/// Protocol of an IPv4 packet, and start and end of its segment in bytes; `None` if the header is cut off.
fn ipv4(packet: &[u8]) -> Option<(u8, usize, usize)> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let protocol = *packet.get(9)?;
    Some((protocol, header, total))
}

/// Like [`ipv4`] for an IPv6 packet: the segment starts after the extension headers.
fn ipv6(packet: &[u8]) -> Option<(u8, usize, usize)> {
    let payload = usize::from(u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]));
    let (mut protocol, mut at) = (*packet.get(6)?, 40);
    // Hop-by-hop, routing, destination options.
    while let 0 | 43 | 60 = protocol {
        protocol = *packet.get(at)?;
        at += 8 + usize::from(*packet.get(at + 1)?) * 8;
    }
    Some((protocol, at, 40 + payload))
}

/// Ones' complement sum of all 16-bit words (RFC 1071).
pub(crate) fn folded(bytes: &[u8]) -> u16 {
    let mut sum = 0u64;
    let mut words = bytes.chunks_exact(2);
    for word in &mut words {
        sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        sum += u64::from(*last) << 8;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment after the given headers, with the sum of the pseudo header in its checksum field.
    fn frame(
        tags: &[u8],
        ethertype: u16,
        packet: &[u8],
        addresses: &[u8],
        segment: &[u8],
    ) -> Vec<u8> {
        let (protocol, field) = match segment.len() {
            0..20 => (UDP, 6),
            _ => (TCP, 16),
        };
        let mut pseudo = addresses.to_vec();
        pseudo.extend([0, protocol]);
        pseudo.extend((segment.len() as u16).to_be_bytes());
        let mut frame = vec![2; 12];
        frame.extend(tags);
        frame.extend(ethertype.to_be_bytes());
        frame.extend(packet);
        let start = frame.len();
        frame.extend(segment);
        frame[start + field..start + field + 2].copy_from_slice(&folded(&pseudo).to_be_bytes());
        // Padding of Ethernet does not belong to the segment.
        frame.extend([0xee; 3]);
        frame
    }

    /// The receiver's check: pseudo header and segment sum to all ones.
    fn is_right(addresses: &[u8], protocol: u8, segment: &[u8]) -> bool {
        let mut all = addresses.to_vec();
        all.extend([0, protocol]);
        all.extend((segment.len() as u16).to_be_bytes());
        all.extend(segment);
        folded(&all) == 0xffff
    }

    #[test]
    fn tcp_and_udp_over_ipv4_and_ipv6_with_tags_and_options() {
        let v4 = [10, 0, 0, 1, 10, 0, 0, 2];
        let v6: Vec<u8> = (0..32).collect();
        for (segment, protocol) in [(vec![0x55; 33], TCP), (vec![0xaa; 13], UDP)] {
            for tags in [
                &[][..],
                &[0x81, 0, 0, 7],
                &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2],
            ] {
                let mut ip = vec![
                    0x46,
                    0,
                    0,
                    24 + segment.len() as u8,
                    0,
                    0,
                    0,
                    0,
                    64,
                    protocol,
                    0,
                    0,
                ];
                ip.extend(v4);
                ip.extend([1, 1, 1, 0]);
                let mut f = frame(tags, 0x0800, &ip, &v4, &segment);
                assert!(finish_checksum(&mut f));
                let start = 14 + tags.len() + 24;
                assert!(is_right(&v4, protocol, &f[start..start + segment.len()]));

                let mut ip = vec![0x60, 0, 0, 0, 0, 16 + segment.len() as u8, 0, 64];
                ip.extend(&v6);
                ip.extend([protocol, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                let mut f = frame(tags, 0x86dd, &ip, &v6, &segment);
                assert!(finish_checksum(&mut f));
                let start = 14 + tags.len() + 56;
                assert!(is_right(&v6, protocol, &f[start..start + segment.len()]));
            }
        }
    }

    #[test]
    fn incomplete_segments_stay_unchanged() {
        let mut ip = vec![
            0x45, 0, 0, 40, 0, 0, 0, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        ip.extend([0x55; 20]);
        let mut whole = vec![2; 12];
        whole.extend([8, 0]);
        whole.extend(&ip);
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            assert!(!finish_checksum(&mut cut), "{length}");
            assert_eq!(cut, whole[..length]);
        }
        assert!(finish_checksum(&mut whole.clone()));
        whole[23] = 1;
        assert!(!finish_checksum(&mut whole), "ICMP");
    }
}
