//! Changes of header fields: as P4 text, and on a frame's bytes, which must come to the same.
//!
//! Checksums are mended by what changed (RFC 1624, equation 3), so that one that was wrong before stays as wrong as it was.

use crate::dissect::Headers;
use crate::generate::writer::Writer;
use crate::library::{Body, Library, ProtocolId};

/// What becomes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// This value.
    Set(u128),
    /// These bits turn over.
    Xor(u128),
    /// Bits turn over that are drawn for each packet.
    Drawn,
}

/// Changes of some fields, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    changes: Vec<Change>,
    /// Whether the checksums over what changes follow.
    mends: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    protocol: ProtocolId,
    /// In P4: `hdr.ipv4`.
    header: String,
    /// In P4: `ecn`.
    field: String,
    /// Its bits in the header.
    begin: usize,
    bits: usize,
    to: To,
    /// Protocols over whose checksum it goes.
    summed_by: Vec<ProtocolId>,
}

/// Why a field cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// No such field.
    #[error("no field is called `{0}`")]
    Unknown(String),
    /// It is no part of a header, or not at a fixed place in it.
    #[error("`{0}` is no field of fixed size in a header")]
    NoHeader(String),
    /// Forwarding goes by it.
    #[error("`{0}` says where the packet goes, which faults leave alone")]
    Forwarding(String),
    /// weir's own protocol.
    #[error("`{0}` belongs to weir's own aggregation, which a switch reads")]
    Own(String),
    /// The rest of the frame is laid out by it, so nothing can be mended.
    #[error("the rest of the frame is laid out by `{0}`: its checksums cannot be mended")]
    Layout(String),
    /// The value has more bits.
    #[error("`{field}` has {bits} bits")]
    TooLarge {
        /// The field.
        field: String,
        /// How many it has.
        bits: u32,
    },
    /// Nothing changes.
    #[error("this leaves `{0}` as it is")]
    Nothing(String),
}

/// Headers with a checksum in a field of this name.
const CHECKSUM: &str = "checksum";
/// In the sums of transport headers (RFC 768, 9293, 8200).
const PSEUDO_HEADER: [(&str, &str); 4] = [
    ("ipv4", "src"),
    ("ipv4", "dst"),
    ("ipv6", "src"),
    ("ipv6", "dst"),
];
const TRANSPORTS: [&str; 2] = ["tcp", "udp"];

impl Rewrite {
    /// Changes of fields by their names in filters.
    pub fn new(
        library: &Library,
        changes: &[(&str, To)],
        mends: bool,
    ) -> Result<Rewrite, RewriteError> {
        let changes = changes
            .iter()
            .map(|(name, to)| Change::new(library, name, *to, mends))
            .collect::<Result<_, _>>()?;
        Ok(Rewrite { changes, mends })
    }

    /// What changes, as P4 has it: `hdr.ipv4`, `ecn`.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let changes = self.changes.iter();
        changes.map(|change| (change.header.as_str(), change.field.as_str()))
    }

    /// The protocols that a program must parse for it.
    pub(crate) fn protocols(&self) -> impl Iterator<Item = ProtocolId> {
        let changes = self.changes.iter();
        changes.flat_map(|change| std::iter::once(change.protocol).chain(change.summed_by.clone()))
    }

    /// Whether the checksums over what changes follow.
    pub fn mends(&self) -> bool {
        self.mends
    }

    /// The same, if there is a checksum over it.
    pub fn has_sums_to_mend(&self) -> bool {
        self.mends && !self.sums().is_empty()
    }

    fn sums(&self) -> Vec<ProtocolId> {
        let all = self.changes.iter().flat_map(|change| &change.summed_by);
        let mut sums: Vec<ProtocolId> = all.copied().collect();
        sums.sort_unstable();
        sums.dedup();
        sums
    }

    /// How many bits the field has whose bits are drawn, if there is one.
    pub fn drawn_bits(&self) -> Option<usize> {
        let mut drawn = self.changes.iter().filter(|change| change.to == To::Drawn);
        drawn.next().map(|change| change.bits)
    }

    /// Changes a frame, as far as it has these headers ([`Library::parsed`], before anything was changed). `mask` has the bits that are drawn.
    pub fn apply(&self, library: &Library, headers: &Headers, frame: &mut [u8], mask: u128) {
        let place = |id: ProtocolId| headers.0.iter().find(|(other, _)| *other == id);
        let mut sums: Vec<(ProtocolId, u32)> = self.sums().into_iter().map(|id| (id, 0)).collect();
        for change in &self.changes {
            let Some((_, start)) = place(change.protocol) else {
                continue;
            };
            let begin = start * 8 + change.begin;
            let old = read(frame, begin, change.bits);
            let new = match change.to {
                To::Set(value) => value,
                To::Xor(mask) => old ^ mask,
                To::Drawn => old ^ mask,
            };
            write(frame, begin, change.bits, new);
            let shift = change.shift();
            let words = (change.bits + shift).div_ceil(16);
            for id in &change.summed_by {
                if let Some((_, sum)) = sums.iter_mut().find(|(other, _)| other == id) {
                    for word in 0..words {
                        *sum += u32::from(!word_of(old, shift, word));
                        *sum += u32::from(word_of(new, shift, word));
                    }
                }
            }
        }
        for (id, changed) in sums {
            let protocol = &library.protocols[id];
            let (Some((_, start)), Some((begin, _))) = (place(id), protocol.place(CHECKSUM)) else {
                continue;
            };
            let begin = start * 8 + begin;
            let old = read(frame, begin, 16) as u16;
            let is_udp = protocol.name == "udp";
            // None was made (RFC 768).
            if is_udp && old == 0 {
                continue;
            }
            let mut sum = changed + u32::from(!old);
            sum = (sum & 0xFFFF) + (sum >> 16);
            sum = (sum & 0xFFFF) + (sum >> 16);
            let new = match !(sum as u16) {
                0 if is_udp => 0xFFFF,
                new => new,
            };
            write(frame, begin, 16, u128::from(new));
        }
    }

    /// The control that does the same to a packet's headers.
    pub(crate) fn write(&self, library: &Library, name: &str, w: &mut Writer) {
        let header = |id: ProtocolId| &library.protocols[id].name;
        w.open(match self.drawn_bits() {
            Some(bits) => format!("control {name}(inout headers_t hdr, in bit<{bits}> mask)"),
            None => format!("control {name}(inout headers_t hdr)"),
        });
        w.open("apply");
        for id in self.sums() {
            w.line(format!("bit<32> sum_{} = 0;", header(id)));
        }
        for (number, change) in self.changes.iter().enumerate() {
            let field = format!("{}.{}", change.header, change.field);
            w.open(format!("if ({}.isValid())", change.header));
            let shift = change.shift();
            let words = (change.bits + shift).div_ceil(16);
            let padded = |when: &str, w: &mut Writer| {
                let wide = 16 * words;
                let moved = match shift {
                    0 => format!("(bit<{wide}>) {field}"),
                    shift => format!("(bit<{wide}>) {field} << {shift}"),
                };
                w.line(format!("bit<{wide}> {when}{number} = {moved};"));
            };
            if !change.summed_by.is_empty() {
                padded("old", w);
            }
            w.line(match change.to {
                To::Set(value) => format!("{field} = {value:#x};"),
                To::Xor(mask) => format!("{field} = {field} ^ {mask:#x};"),
                To::Drawn => format!("{field} = {field} ^ mask;"),
            });
            if !change.summed_by.is_empty() {
                padded("new", w);
            }
            for id in &change.summed_by {
                let sum = format!("sum_{}", header(*id));
                for word in 0..words {
                    let (high, low) = (16 * word + 15, 16 * word);
                    w.line(format!(
                        "{sum} = {sum} + (bit<32>) (~old{number}[{high}:{low}]);"
                    ));
                    w.line(format!(
                        "{sum} = {sum} + (bit<32>) new{number}[{high}:{low}];"
                    ));
                }
            }
            w.close();
        }
        for id in self.sums() {
            let name = header(id);
            let (sum, checksum) = (format!("sum_{name}"), format!("hdr.{name}.{CHECKSUM}"));
            let is_udp = name == "udp";
            w.open(match is_udp {
                true => format!("if (hdr.{name}.isValid() && {checksum} != 0)"),
                false => format!("if (hdr.{name}.isValid())"),
            });
            w.line(format!("{sum} = {sum} + (bit<32>) (~{checksum});"));
            for _ in 0..2 {
                w.line(format!("{sum} = ({sum} & 0xffff) + ({sum} >> 16);"));
            }
            w.line(format!("{checksum} = ~{sum}[15:0];"));
            if is_udp {
                w.line("// 0 would say that there is none (RFC 768).");
                w.open(format!("if ({checksum} == 0)"));
                w.line(format!("{checksum} = 0xffff;"));
                w.close();
            }
            w.close();
        }
        w.close();
        w.close();
    }
}

impl Change {
    fn new(library: &Library, name: &str, to: To, mends: bool) -> Result<Change, RewriteError> {
        let found = library
            .protocols
            .iter()
            .enumerate()
            .find_map(|(id, protocol)| {
                let index = protocol.fields.iter().position(|field| {
                    let filter = field.filter.as_ref();
                    filter.is_some_and(|filter| filter.name == name)
                })?;
                Some((id, protocol, index))
            });
        let (id, protocol, index) = found.ok_or_else(|| RewriteError::Unknown(name.to_owned()))?;
        let Body::Header { options, .. } = &protocol.body else {
            return Err(RewriteError::NoHeader(name.to_owned()));
        };
        if protocol.filter == "agg" {
            return Err(RewriteError::Own(name.to_owned()));
        }
        if name == "eth.dst" {
            return Err(RewriteError::Forwarding(name.to_owned()));
        }
        // What a network header carries is part of the sum over that.
        let is_network = protocol.payload_length().is_some();
        let lays_out = (is_network && protocol.select.contains(&index))
            || options.is_some_and(|options| options.length == index)
            || protocol
                .payload_length()
                .is_some_and(|payload| payload.field() == index)
            || protocol.fields[index].name == "length";
        if mends && lays_out {
            return Err(RewriteError::Layout(name.to_owned()));
        }
        let field = &protocol.fields[index];
        let full = crate::filter::typing::max_value(field.bits);
        let value = match to {
            To::Set(value) | To::Xor(value) => value,
            To::Drawn => 0,
        };
        if value > full {
            return Err(RewriteError::TooLarge {
                field: name.to_owned(),
                bits: field.bits,
            });
        }
        if to == To::Xor(0) {
            return Err(RewriteError::Nothing(name.to_owned()));
        }
        let begin: u32 = protocol.fields[..index]
            .iter()
            .map(|field| field.bits)
            .sum();
        let mut summed_by = Vec::new();
        if mends {
            if protocol.place(CHECKSUM).is_some() {
                summed_by.push(id);
            }
            if PSEUDO_HEADER.contains(&(protocol.name.as_str(), field.name.as_str())) {
                let all = library.protocols.iter().enumerate();
                let transports = all.filter(|(_, other)| TRANSPORTS.contains(&other.name.as_str()));
                summed_by.extend(transports.map(|(id, _)| id));
            }
        }
        Ok(Change {
            protocol: id,
            header: format!("hdr.{}", protocol.name),
            field: field.name.clone(),
            begin: begin as usize,
            bits: field.bits as usize,
            to,
            summed_by,
        })
    }

    /// How far its last bit is from the end of a 16-bit word of the header.
    fn shift(&self) -> usize {
        (16 - (self.begin + self.bits) % 16) % 16
    }
}

/// A 16-bit word, from the least significant on, of a value that is moved to the left.
fn word_of(value: u128, shift: usize, word: usize) -> u16 {
    match (16 * word).checked_sub(shift) {
        None => (value << shift) as u16,
        Some(right) => value.checked_shr(right as u32).unwrap_or(0) as u16,
    }
}

fn read(frame: &[u8], begin: usize, bits: usize) -> u128 {
    (begin..begin + bits).fold(0, |value, bit| {
        value << 1 | u128::from(frame[bit / 8] >> (7 - bit % 8) & 1)
    })
}

fn write(frame: &mut [u8], begin: usize, bits: usize, value: u128) {
    for (bit, power) in (begin..begin + bits).zip((0..bits).rev()) {
        let mask = 1 << (7 - bit % 8);
        if value >> power & 1 == 1 {
            frame[bit / 8] |= mask;
        } else {
            frame[bit / 8] &= !mask;
        }
    }
}
