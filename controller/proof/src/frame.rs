//! A captured frame as the recorder hands it to the judge, and the hash that identifies it.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;

/// Direction in which a frame passed a port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Towards the switch.
    In,
    /// Out of the switch.
    Out,
}

/// One captured frame that passed a switch's port.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'f> {
    /// Time at which the frame passed the port, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Direction of the frame, seen from the switch.
    pub way: Way,
    /// Length of the frame on the link in bytes, without FCS.
    pub wire_len: u32,
    /// Identity of the frame: a hash of all its bytes.
    pub identity: Identity,
    /// The frame's first bytes: as many as the filters and effects of the scenario read.
    pub bytes: &'f [u8],
}

/// Hash of a frame: equal frames have equal identities, and two different frames collide with probability 2^-64.
///
/// Two frames of UDP over IPv4 also count as equal if one has no UDP checksum, and the other has the right one: the kernel fills in
/// checksums when it splits a bundle of frames, so a frame may have one at one port of a switch and none at another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(u64);

impl Identity {
    /// The identity as a number, to store it.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The identity that [`Identity::to_bits`] returned as this number.
    #[must_use]
    pub fn from_bits(bits: u64) -> Identity {
        Identity(bits)
    }
}

/// Seeded hash that identifies frames. Senders do not know the seed, so they cannot construct two frames that collide.
#[derive(Debug, Clone, Copy)]
pub struct Digest(u64);

impl Digest {
    /// A digest with this seed. The recorder and the judge of a run must use the same seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Digest {
        Digest(seed)
    }

    /// Identity of a frame from its recorded bytes and its length, since `bytes` may be only the first part. The UDP checksum of a
    /// frame that is not whole cannot be verified, and does not count.
    #[must_use]
    pub fn of(self, bytes: &[u8], wire_len: u32) -> Identity {
        let mut hasher = FixedState::with_seed(self.0).build_hasher();
        match udp_datagram(bytes) {
            Some(udp) => {
                let (before, rest) = bytes.split_at(udp.start + UDP_CHECKSUM);
                let (checksum, payload) = rest.split_at(2);
                let is_whole = bytes.len() == wire_len as usize;
                let counts = is_whole && !udp.is_checksum_right(bytes);
                hasher.write(before);
                hasher.write(if counts { checksum } else { &[0, 0] });
                hasher.write(payload);
            }
            None => hasher.write(bytes),
        }
        hasher.write_u32(wire_len);
        Identity(hasher.finish())
    }
}

/// Position of the checksum in the UDP header, and length of that header, in bytes.
const UDP_CHECKSUM: usize = 6;
const UDP_HEADER: usize = 8;

/// Positions of the headers of UDP over IPv4 in a frame.
#[derive(Debug, Clone, Copy)]
struct UdpPosition {
    /// Start of the IPv4 header.
    ip: usize,
    /// Start of the UDP header.
    start: usize,
}

/// Finds UDP over IPv4 in a frame with up to two VLAN tags; `None` for other frames, and for fragments.
fn udp_datagram(frame: &[u8]) -> Option<UdpPosition> {
    const UDP: u8 = 17;
    let number = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut ip = 14;
    while ip <= 18 && matches!(number(ip - 2)?, 0x8100 | 0x88a8) {
        ip += 4;
    }
    let first = *frame.get(ip)?;
    let header = usize::from(first & 15) * 4;
    let is_udp = number(ip - 2)? == 0x0800
        && first >> 4 == 4
        && header >= 20
        && *frame.get(ip + 9)? == UDP
        && number(ip + 6)? & 0x3fff == 0;
    let start = ip + header;
    (is_udp && frame.len() >= start + UDP_HEADER).then_some(UdpPosition { ip, start })
}

impl UdpPosition {
    /// Whether the datagram in a whole frame has the right checksum, or none (0).
    fn is_checksum_right(self, frame: &[u8]) -> bool {
        let datagram = &frame[self.start..];
        if datagram[UDP_CHECKSUM..UDP_HEADER] == [0, 0] {
            return true;
        }
        let length = u16::from_be_bytes([datagram[4], datagram[5]]);
        let Some(datagram) = datagram.get(..usize::from(length)) else {
            return false;
        };
        let addresses = &frame[self.ip + 12..self.ip + 20];
        let sum = sum(addresses) + 17 + u64::from(length) + sum(datagram);
        usize::from(length) >= UDP_HEADER && sum.is_multiple_of(0xffff)
    }
}

/// A number that is congruent, modulo 65,535, to the sum of all big-endian words of 16 bits.
fn sum(bytes: &[u8]) -> u64 {
    let add = |sum: u64, word: [u8; 8]| {
        let word = u64::from_be_bytes(word);
        sum + (word >> 32) + (word & 0xffff_ffff)
    };
    let (words, rest) = bytes.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    add(words.iter().fold(0, |sum, word| add(sum, *word)), last)
}

/// Hasher that passes identities through unchanged, since they are random already.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AsItIs(u64);

/// Builds [`AsItIs`] for hash maps whose keys are identities.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plainly;

impl BuildHasher for Plainly {
    type Hasher = AsItIs;

    fn build_hasher(&self) -> AsItIs {
        AsItIs(0)
    }
}

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 ^= word;
    }
}

#[cfg(test)]
impl From<u8> for Identity {
    fn from(byte: u8) -> Identity {
        Identity(byte.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP with an odd payload, between VLAN tags and padding, with the right checksum.
    fn frame(tags: &[u8], options: &[u8], padding: &[u8]) -> (Vec<u8>, usize) {
        let mut frame = [&[2; 12], tags, &[8, 0]].concat();
        frame.push(0x45 + options.len() as u8 / 4);
        frame.extend([0, 0, 31, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(options);
        let start = frame.len();
        frame.extend([0x12, 0x34, 0, 9, 0, 11, 0, 0, b'a', b'b', b'c']);
        // 0x0a00 + 1 + 0x0a00 + 2 + 17 + 11 + 0x1234 + 9 + 11 + 0x6162 + 0x6300, folded and inverted.
        let checksum: u16 = !0xeac9_u16;
        frame[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
        frame.extend(padding);
        (frame, start + 6)
    }

    fn identity(frame: &[u8]) -> Identity {
        Digest::of_seed(5).of(frame, frame.len() as u32)
    }

    #[test]
    fn a_right_udp_checksum_counts_as_none() {
        let tag = [0x81, 0, 0, 5];
        for (tags, options, padding) in [
            (&[][..], &[][..], &[][..]),
            (&tag, &[1; 4], &[0; 17]),
            (&[tag, tag].concat(), &[], &[7]),
        ] {
            let (right, checksum) = frame(tags, options, padding);
            let mut other = right.clone();
            other[checksum..checksum + 2].fill(0);
            assert_eq!(identity(&right), identity(&other));
            // A wrong one, and each other byte.
            for at in 0..right.len() {
                let mut other = right.clone();
                other[at] ^= 1;
                assert_ne!(identity(&right), identity(&other), "{at}");
            }
            // The first part of a frame, of whose checksum nothing is known.
            let first = |frame: &[u8]| {
                let first = &frame[..right.len() - padding.len() - 1];
                Digest::of_seed(5).of(first, frame.len() as u32)
            };
            let mut wrong = right.clone();
            wrong[checksum] ^= 1;
            assert_eq!(first(&right), first(&wrong));
        }
    }

    #[test]
    fn other_checksums_count() {
        let (udp, checksum) = frame(&[], &[], &[]);
        let mut tcp = udp.clone();
        tcp[23] = 6;
        let mut fragment = udp.clone();
        fragment[20] = 0x20;
        let mut long = udp.clone();
        long[39] = 200;
        let ipv6 = [&udp[..12], &[0x86, 0xdd, 0x60], &udp[15..]].concat();
        let short = udp[..41].to_vec();
        for frame in [tcp, fragment, long, ipv6, short] {
            let mut other = frame.clone();
            other[checksum] = 0;
            if let Some(last) = other.get_mut(checksum + 1) {
                *last = 0;
            }
            assert_ne!(identity(&frame), identity(&other), "{frame:?}");
        }
    }
}
