//! Internet checksums of a frame, computed as full sums over its bytes (RFC 1071).
//!
//! The model that proves a run uses them. The P4 text of a switch updates checksums incrementally (RFC 1624) and shares no
//! code with this file, so an error in either shows as a frame that differs.

use std::ops::Range;

use crate::dissect::Headers;
use crate::library::Library;

/// One checksum of a frame, and the bytes that it covers.
#[derive(Debug)]
struct Covered {
    /// Byte offset of the checksum in the frame; it takes two bytes.
    checksum: usize,
    /// Byte range in the frame of the pseudo-header's addresses; empty if the checksum has no pseudo-header.
    addresses: Range<usize>,
    /// Bytes of the covered header or segment, summed as 16-bit words from the first byte on; a last odd byte is an upper half.
    covered: Range<usize>,
    /// Sum of the segment's length and the protocol number in the pseudo-header; 0 without a pseudo-header.
    pseudo: u64,
    /// Whether the segment is UDP, which sends 0xffff for a checksum of 0, since 0 means "no checksum" (RFC 768).
    is_udp: bool,
}

/// All internet checksums of a frame.
#[derive(Debug)]
pub(crate) struct Checksums(Vec<Covered>);

/// Network header of a frame (IPv4 or IPv6) whose payload is a transport segment.
struct Network {
    addresses: Range<usize>,
    /// Byte offset in the frame at which the network header's payload ends, by the length in the header.
    end: usize,
}

/// Transport segment of a frame: the bytes that its checksum covers, by the lengths in the packet's headers.
pub(crate) struct Segment {
    begin: usize,
    /// Byte offset behind the segment. It may lie beyond the frame if only the frame's first bytes were recorded.
    end: usize,
}

impl Segment {
    /// The segment of a frame's transport header; `None` if the frame has no transport header.
    pub fn parse(library: &Library, headers: &Headers, frame: &[u8]) -> Option<Segment> {
        let mut network = None;
        for (id, start) in &headers.0 {
            let name = library.protocols[*id].name.as_str();
            network = Network::parse(name, *start, frame).or(network);
            let end = match name {
                "udp" => start + word(frame, start + 4),
                "tcp" | "icmp" | "icmpv6" => network.as_ref()?.end,
                _ => continue,
            };
            return Some(Segment { begin: *start, end });
        }
        None
    }

    /// Whether a header of `bytes` bytes at byte `begin` belongs to the packet rather than to the padding behind it.
    pub fn holds(&self, begin: usize, bytes: usize) -> bool {
        begin <= self.begin || begin + bytes <= self.end
    }
}

impl Network {
    fn parse(name: &str, start: usize, frame: &[u8]) -> Option<Network> {
        match name {
            "ipv4" => Some(Network {
                addresses: start + 12..start + 20,
                end: start + word(frame, start + 2),
            }),
            "ipv6" => Some(Network {
                addresses: start + 8..start + 40,
                end: start + 40 + word(frame, start + 4),
            }),
            _ => None,
        }
    }
}

impl Checksums {
    /// Finds the checksums of a frame. `headers` are the headers of this frame.
    pub fn locate(library: &Library, headers: &Headers, frame: &[u8]) -> Checksums {
        let mut all = Vec::new();
        let mut addresses = 0..0;
        let segment = Segment::parse(library, headers, frame);
        for (id, start) in &headers.0 {
            let protocol = &library.protocols[*id];
            let name = protocol.name.as_str();
            if let Some(network) = Network::parse(name, *start, frame) {
                addresses = network.addresses;
            }
            let bit = match protocol.place("checksum") {
                Some((bit, 16)) if bit % 8 == 0 => bit,
                _ => continue,
            };
            let header = start + protocol.header_bits() as usize / 8;
            let whole = segment.as_ref().map_or(header, |segment| segment.end);
            let segment = *start..whole.max(header);
            let (pseudo_header, covered) = match name {
                "ipv4" => {
                    let end = start + 4 * usize::from(frame[*start] & 15);
                    (None, *start..end.max(header))
                }
                "udp" => (Some(17), segment),
                "tcp" => (Some(6), segment),
                "icmpv6" => (Some(58), segment),
                "icmp" => (None, segment),
                // A protocol that a user declared: its checksum covers its own header only.
                _ => (None, *start..header),
            };
            all.push(Covered {
                checksum: start + bit / 8,
                addresses: match pseudo_header {
                    Some(_) => addresses.clone(),
                    None => 0..0,
                },
                pseudo: pseudo_header.map_or(0, |number: u64| number + covered.len() as u64),
                covered,
                is_udp: name == "udp",
            });
        }
        Checksums(all)
    }

    /// For each checksum, the ones' complement sum over the checksum and all bytes that it covers: 0 if the checksum is right.
    pub fn errors(&self, frame: &[u8]) -> Vec<u16> {
        let errors = self.0.iter().map(|covered| covered.error(frame));
        errors.collect()
    }

    /// Rewrites the checksums of a changed frame so that each has its `errors` value again: a right
    /// checksum stays right. Inner checksums are written first, since outer checksums cover them.
    pub fn restore(&self, frame: &mut [u8], errors: &[u16]) {
        for (covered, error) in self.0.iter().zip(errors).rev() {
            covered.write(frame, *error);
        }
    }

    /// Corrects the checksum at byte `at` of the frame.
    pub fn make_right(&self, frame: &mut [u8], at: usize) {
        let covered = self.0.iter().filter(|covered| covered.checksum == at);
        covered.for_each(|covered| covered.write(frame, 0));
    }
}

impl Covered {
    fn error(&self, frame: &[u8]) -> u16 {
        let sums = [&self.addresses, &self.covered].map(|range| {
            let end = range.end.min(frame.len());
            let bytes = frame.get(range.start..end).unwrap_or(&[]);
            let words = bytes.chunks(2).map(|pair| {
                let low = pair.get(1).copied().unwrap_or(0);
                u64::from(u16::from_be_bytes([pair[0], low]))
            });
            words.sum::<u64>()
        });
        ((self.pseudo + sums.iter().sum::<u64>()) % 0xffff) as u16
    }

    fn write(&self, frame: &mut [u8], error: u16) {
        let old = word(frame, self.checksum) as u16;
        let now = self.error(frame);
        if (self.is_udp && old == 0) || now == error {
            return;
        }
        // A checksum at an odd byte of the covered range counts with its halves swapped.
        let weight = match (self.checksum - self.covered.start) % 2 {
            0 => 1,
            _ => 0x100,
        };
        let wrong = (u32::from(error) + 0xffff - u32::from(now)) % 0xffff;
        let new = (u32::from(old) + wrong * weight) % 0xffff;
        let new = match new as u16 {
            0 if self.is_udp => 0xffff,
            new => new,
        };
        frame[self.checksum..self.checksum + 2].copy_from_slice(&new.to_be_bytes());
    }
}

fn word(frame: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]))
}
