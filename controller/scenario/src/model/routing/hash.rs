//! The hash by which switches distribute flows over paths: CRC-32 of addresses, protocol and ports.
//!
//! `FlowHash` of p4src/psa and p4src/v1model computes the same. A CRC alone does not suffice, because it is linear: one bit of
//! it may not depend on the few bits in which consecutive port numbers differ, and a seed per switch would only add a constant.
//! So a switch rotates the hash by its distance to the receiver, and multiplies it (Knuth, The Art of Computer Programming 3,
//! 6.4): the upper bits of a product depend on all other bits.

/// UDP port of the aggregation protocol. Its frames take the first of several paths, on which the summing switches are.
const AGGREGATION_PORT: u16 = 22_341;
const ETHERNET: usize = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Number of bits by which each hop rotates the hash further. It is coprime to 32: rotations repeat only after 32 hops.
const STEP: u32 = 7;
/// Multiplier of the rotated hash: 2^32 over the golden ratio, made odd (`FLOW_FACTOR` in p4src/common/forward.p4).
const FACTOR: u32 = 0x9E37_79B1;

/// The five-tuple that all packets of a connection share, and from which switches compute the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FiveTuple {
    /// IPv4 address of the sender.
    pub src: u32,
    /// IPv4 address of the receiver.
    pub dst: u32,
    /// IP protocol number: 6 is TCP, 17 is UDP.
    pub protocol: u8,
    /// Source port; 0 without TCP or UDP, and in fragments after the first.
    pub src_port: u16,
    /// Destination port; 0 without TCP or UDP, and in fragments after the first.
    pub dst_port: u16,
}

impl FiveTuple {
    /// The five-tuple of a frame; `None` if the frame is not IPv4, or has a VLAN tag.
    #[must_use]
    pub fn from_frame(frame: &[u8]) -> Option<FiveTuple> {
        let ip = frame.get(ETHERNET..ETHERNET + 20)?;
        if frame[12..ETHERNET] != ETHERTYPE_IPV4 {
            return None;
        }
        let word = |at: usize| u32::from_be_bytes([ip[at], ip[at + 1], ip[at + 2], ip[at + 3]]);
        let [src_port, dst_port] = ports(frame, ip).unwrap_or_default();
        Some(FiveTuple {
            src: word(12),
            dst: word(16),
            protocol: ip[9],
            src_port,
            dst_port,
        })
    }

    /// Whether the packets belong to the aggregation protocol.
    #[must_use]
    pub fn is_aggregation(&self) -> bool {
        self.protocol == UDP && self.dst_port == AGGREGATION_PORT
    }

    /// The hash that selects the path; 0, which selects the first path, for the aggregation protocol.
    #[must_use]
    pub fn hash(&self) -> u32 {
        if self.is_aggregation() {
            return 0;
        }
        let mut bytes = [0; 13];
        bytes[0..4].copy_from_slice(&self.src.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.dst.to_be_bytes());
        bytes[8] = self.protocol;
        bytes[9..11].copy_from_slice(&self.src_port.to_be_bytes());
        bytes[11..13].copy_from_slice(&self.dst_port.to_be_bytes());
        crc32fast::hash(&bytes)
    }
}

/// The hash of a frame's five-tuple; 0 if the frame is not IPv4, or has a VLAN tag.
#[must_use]
pub fn frame_hash(frame: &[u8]) -> u32 {
    FiveTuple::from_frame(frame).map_or(0, |flow| flow.hash())
}

/// Source and destination port of TCP or UDP; `None` if the frame has no complete header of these protocols.
fn ports(frame: &[u8], ip: &[u8]) -> Option<[u16; 2]> {
    let words = usize::from(ip[0] & 15);
    let is_first = ip[6] & 0x1F == 0 && ip[7] == 0;
    let header = match ip[9] {
        TCP => 20,
        UDP => 8,
        _ => return None,
    };
    if words < 5 || !is_first {
        return None;
    }
    let start = ETHERNET + 4 * words;
    let transport = frame.get(start..start + header)?;
    let port = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
    Some([port(0), port(2)])
}

/// Number of bits by which a switch rotates the hash if it is `hops` links away from the receiver's switch.
#[must_use]
pub fn turn(hops: u32) -> u8 {
    (hops * STEP % 32) as u8
}

/// Index of the path that the hash selects, from 0. `turn` is the rotation of the hash in bits, `ways` the number of paths.
#[must_use]
pub fn way(hash: u32, turn: u8, ways: u16) -> u16 {
    let mixed = hash.rotate_right(u32::from(turn)).wrapping_mul(FACTOR);
    (((mixed >> 16) * u32::from(ways)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ways_are_those_of_low_hashes() {
        // 1 is multiplied to 0x9E3779B1, 0.618 of 2^32; 2 to 0.236, 3 to 0.854.
        assert_eq!([0, 1, 2, 3].map(|hash| way(hash, 0, 4)), [0, 2, 0, 3]);
        assert_eq!(way(3 << 7, 7, 4), 3);
        assert!(
            (0..32)
                .map(turn)
                .collect::<std::collections::BTreeSet<_>>()
                .len()
                == 32
        );
    }

    /// Ports as a client's consecutive connections have them.
    #[test]
    fn ports_in_a_row_are_shared_out() {
        for dst in 2..60 {
            for hops in 1..6 {
                let flow = |number: u16| FiveTuple {
                    src: 0x0A00_0001,
                    dst: 0x0A00_0000 + dst,
                    protocol: TCP,
                    src_port: 40_000 + number,
                    dst_port: 80,
                };
                let second = (0..16)
                    .filter(|n| way(flow(*n).hash(), turn(hops), 2) == 1)
                    .count();
                assert!(
                    (1..16).contains(&second),
                    "{dst} {hops}: all of 16 on one way"
                );
            }
        }
    }

    #[test]
    fn what_is_no_flow_goes_the_first_way() {
        let mut frame = [0_u8; 60];
        assert_eq!(frame_hash(&frame), 0, "no IPv4");
        frame[12] = 8;
        frame[14] = 0x45;
        frame[23] = UDP;
        frame[34..38].copy_from_slice(&[1, 2, 0x57, 0x45]);
        let flow = FiveTuple::from_frame(&frame).unwrap();
        assert!(flow.is_aggregation() && flow.hash() == 0);
        frame[37] = 0x44;
        assert_ne!(frame_hash(&frame), 0);
        assert_eq!(
            FiveTuple::from_frame(&frame[..41]).unwrap().src_port,
            0,
            "half a header"
        );
        frame[20] = 0x20;
        assert_eq!(
            FiveTuple::from_frame(&frame).unwrap().src_port,
            0x0102,
            "a first fragment"
        );
        frame[21] = 1;
        assert_eq!(
            FiveTuple::from_frame(&frame).unwrap().src_port,
            0,
            "a later one"
        );
    }
}
