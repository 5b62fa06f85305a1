//! The internet checksums of a frame, by whole sums over its bytes (RFC 1071).
//!
//! The model of a run's proof works with these. The P4 text that a switch runs works with differences (RFC 1624) and shares
//! nothing with this file, so a mistake in one of them shows as a frame that differs.

use std::ops::Range;

use crate::dissect::Headers;
use crate::library::Library;

/// A checksum of a frame, and the bytes that it covers.
#[derive(Debug)]
struct Covered {
    /// The first of the checksum's two bytes.
    checksum: usize,
    /// The addresses of the pseudo-header; empty without one.
    addresses: Range<usize>,
    /// The header or segment that it covers, as 16-bit words from its first byte on. A last odd byte counts as the upper half
    /// of a word.
    covered: Range<usize>,
    /// Length and protocol number of the pseudo-header.
    pseudo: u64,
    /// UDP writes 0xffff for 0, and 0 for "no checksum" (RFC 768).
    is_udp: bool,
}

/// All internet checksums of a frame.
#[derive(Debug)]
pub(crate) struct Checksums(Vec<Covered>);

/// The network header that carries a transport.
struct Network {
    addresses: Range<usize>,
    /// The first byte behind its payload.
    end: usize,
}

/// What behind a transport header belongs to its checksum, as the lengths of the packet say.
pub(crate) struct Segment {
    begin: usize,
    /// May lie beyond the frame where only its first bytes were recorded.
    end: usize,
}

impl Segment {
    /// The segment of a frame's transport header; `None` without one.
    pub fn of(library: &Library, headers: &Headers, frame: &[u8]) -> Option<Segment> {
        let mut network = None;
        for (id, start) in &headers.0 {
            let name = library.protocols[*id].name.as_str();
            network = Network::of(name, *start, frame).or(network);
            let end = match name {
                "udp" => start + word(frame, start + 4),
                "tcp" | "icmp" | "icmpv6" => network.as_ref()?.end,
                _ => continue,
            };
            return Some(Segment { begin: *start, end });
        }
        None
    }

    /// Whether a header of a frame belongs to the packet, and not to the padding behind it.
    pub fn holds(&self, begin: usize, bytes: usize) -> bool {
        begin <= self.begin || begin + bytes <= self.end
    }
}

impl Network {
    fn of(name: &str, start: usize, frame: &[u8]) -> Option<Network> {
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
    /// Those of a frame whose headers stand at these places.
    pub fn of(library: &Library, headers: &Headers, frame: &[u8]) -> Checksums {
        let mut all = Vec::new();
        let mut addresses = 0..0;
        let segment = Segment::of(library, headers, frame);
        for (id, start) in &headers.0 {
            let protocol = &library.protocols[*id];
            let name = protocol.name.as_str();
            if let Some(network) = Network::of(name, *start, frame) {
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
                // A user's: its own header, whatever else.
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

    /// The sum that each checksum covers, itself included, by ones' complement: 0 where it is right.
    pub fn errors(&self, frame: &[u8]) -> Vec<u16> {
        let errors = self.0.iter().map(|covered| covered.error(frame));
        errors.collect()
    }

    /// Writes the checksums of a changed frame such that each is as wrong as before: right if it was right. The innermost comes
    /// first, since those in front of it cover it.
    pub fn restore(&self, frame: &mut [u8], errors: &[u16]) {
        for (covered, error) in self.0.iter().zip(errors).rev() {
            covered.write(frame, *error);
        }
    }

    /// Makes the checksum right that stands at a byte of a frame.
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
        // In the sum, a checksum at an odd byte has its halves the other way round.
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
