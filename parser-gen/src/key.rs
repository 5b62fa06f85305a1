//! Packet keys: hashes of header fields that distinguish packets of different keys. The P4 text and the computation on a frame's
//! bytes must give equal hashes.
//!
//! The hash is the CRC-32 of IEEE 802.3, which PSA, v1model and Tofino have by name. A CRC is linear, so it is never a decision
//! by itself: the decision function mixes it. A field whose header is absent counts as 0, and each field is padded to whole
//! bytes, since targets pad a list of odd widths differently.

use std::sync::Arc;

use crate::arch::Arch;
use crate::dissect::Headers;
use crate::library::{Body, Library, ProtocolId};
use crate::writer::Writer;

/// Maximum number of fields in a key.
pub const MAX_FIELDS: usize = 16;

/// Fields whose values, in order, are a packet's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketKey {
    fields: Vec<Part>,
    /// Whether the fields are pairs, one field of each end of a connection, of which the smaller
    /// end comes first, so that both directions of the connection have one key.
    both_ways: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    protocol: ProtocolId,
    /// Name in P4 of the header that has the field: `hdr.ipv4`.
    header: String,
    /// Name of the field in P4: `src`.
    field: String,
    /// Index of the field in its protocol.
    index: usize,
    bits: usize,
}

/// A packet's key, and its two CRC-32 hashes as a switch computes them: over the fields in order and in reverse order.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash {
    /// CRC-32 of the fields in order; it distinguishes keys.
    pub hash: u32,
    /// CRC-32 of the fields in reverse order; it selects the register cells in which to search for the key.
    pub place: u32,
    /// Bytes of the key itself: the values of its fields, in order.
    pub key: Arc<[u8]>,
}

/// Number of ways of a table of keys. A key may be in one register cell of each way.
pub const WAYS: usize = 4;

impl KeyHash {
    /// Fingerprint of the key that a register cell stores, for a flow with this salt; never 0, which marks an empty cell.
    #[must_use]
    pub fn print(&self, salt: u32) -> u32 {
        (self.hash ^ salt).max(1)
    }

    /// Indexes of the register cells that may hold the key, in search order. Each way of the table has 2^`bits` cells.
    #[must_use]
    pub fn cells(&self, salt: u32, bits: u32) -> [u32; WAYS] {
        let (print, place) = (self.hash ^ salt, self.place ^ salt);
        let (low, high) = (u32::MAX >> (32 - bits), 32 - bits);
        let cells = [place & low, place >> high, print & low, print >> high];
        std::array::from_fn(|way| (way as u32) << bits | cells[way])
    }
}

/// Why a list of fields is not a valid key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The library has no field of this name.
    #[error("no field is called `{0}`")]
    Unknown(String),
    /// The field is not in a header, or at no fixed position in it.
    #[error("`{0}` is not a header field of fixed size")]
    NoHeader(String),
    /// The list of fields is empty or too long; it has this many fields.
    #[error("a key must have 1 to {MAX_FIELDS} fields; found {0}")]
    Count(usize),
    /// The list contains the field twice.
    #[error("`{0}` occurs twice")]
    Twice(String),
}

/// Writes statements that put the CRC of variables, in this order, into a 32-bit variable.
fn crc_of(
    arch: Arch,
    (crc, into): (&str, &str),
    parts: impl Iterator<Item = String>,
    w: &mut Writer,
) {
    let list = format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "));
    w.line(match arch {
        Arch::Psa => format!("{into} = {crc}.get_hash({list});"),
        Arch::Tna => format!("{into} = {crc}.get({list});"),
        Arch::V1model => {
            format!("hash({into}, HashAlgorithm.crc32, 32w0, {list}, 64w0x100000000);")
        }
    });
}

impl PacketKey {
    /// Builds a key from fields, whose names are those in filters.
    pub fn new(library: &Library, names: &[&str]) -> Result<PacketKey, KeyError> {
        if names.is_empty() || names.len() > MAX_FIELDS {
            return Err(KeyError::Count(names.len()));
        }
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(KeyError::Twice((*name).to_owned()));
            }
        }
        let fields = names.iter().map(|name| Part::new(library, name));
        Ok(PacketKey {
            fields: fields.collect::<Result<_, _>>()?,
            both_ways: false,
        })
    }

    /// Builds a key from pairs of fields of a connection's two ends, of equal width, so that both directions have one key.
    pub fn both_ways(library: &Library, pairs: &[[&str; 2]]) -> Result<PacketKey, KeyError> {
        let key = PacketKey::new(library, pairs.as_flattened())?;
        Ok(PacketKey {
            both_ways: true,
            ..key
        })
    }

    /// Whether the key compares two fields with each other, which not every switch can do.
    #[must_use]
    pub fn is_both_ways(&self) -> bool {
        self.both_ways
    }

    /// Computes the key of a frame and the key's hashes. `headers` are the headers of this frame.
    pub fn hash(&self, library: &Library, frame: &[u8], headers: &Headers) -> KeyHash {
        let values = self.fields.iter().map(|part| {
            let start = headers.0.iter().find(|(id, _)| *id == part.protocol);
            let value = start.map_or(0, |(id, start)| {
                library.protocols[*id].number(&frame[*start..], part.index)
            });
            value.to_be_bytes()[16 - part.bytes()..].to_vec()
        });
        let mut values: Vec<Vec<u8>> = values.collect();
        if self.both_ways {
            let end = |side: usize| values.iter().skip(side).step_by(2);
            if end(0).gt(end(1)) {
                values.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
            }
        }
        let key = values.concat();
        values.reverse();
        KeyHash {
            hash: crc32fast::hash(&key),
            place: crc32fast::hash(&values.concat()),
            key: key.into(),
        }
    }

    /// Protocols that a program must parse to read the key.
    pub(crate) fn protocols(&self) -> impl Iterator<Item = ProtocolId> {
        self.fields.iter().map(|part| part.protocol)
    }

    /// Writes the declarations before a control's `apply`: for [`KeyHash::hash`], and for [`KeyHash::place`] if
    /// `has_place`. `tag` is appended to all names, so that one control can have several keys.
    pub(crate) fn write_state(&self, arch: Arch, tag: &str, has_place: bool, w: &mut Writer) {
        for name in ["crc", "crc_of_place"]
            .iter()
            .take(1 + usize::from(has_place))
        {
            match arch {
                Arch::Psa => w.line(format!(
                    "Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) {name}{tag};"
                )),
                Arch::Tna => w.line(format!("Hash<bit<32>>(HashAlgorithm_t.CRC32) {name}{tag};")),
                Arch::V1model => {}
            }
        }
        for (number, part) in self.fields.iter().enumerate() {
            let bits = 8 * part.bytes();
            w.line(format!("bit<{bits}> part{number}{tag} = 0;"));
        }
    }

    /// Writes statements that put [`KeyHash::hash`] into the 32-bit variable `into`.
    pub(crate) fn write(&self, arch: Arch, tag: &str, into: &str, w: &mut Writer) {
        for (number, part) in self.fields.iter().enumerate() {
            let field = format!("{}.{}", part.header, part.field);
            let value = format!("part{number}{tag}");
            w.open(format!("if ({}.isValid())", part.header));
            w.line(match part.bits % 8 {
                0 => format!("{value} = {field};"),
                _ => format!("{value} = (bit<{}>) {field};", 8 * part.bytes()),
            });
            w.close();
        }
        if self.both_ways {
            self.write_order(tag, w);
        }
        let parts = 0..self.fields.len();
        let parts = parts.map(|part| format!("part{part}{tag}"));
        crc_of(arch, (&format!("crc{tag}"), into), parts, w);
    }

    /// Writes statements, behind those of [`PacketKey::write`], that put [`KeyHash::place`] into the variable `into`.
    pub(crate) fn write_place(&self, arch: Arch, tag: &str, into: &str, w: &mut Writer) {
        let parts = (0..self.fields.len()).rev();
        let parts = parts.map(|part| format!("part{part}{tag}"));
        crc_of(arch, (&format!("crc_of_place{tag}"), into), parts, w);
    }

    /// Writes statements that put the smaller end of the connection first, by the first pair whose fields differ.
    fn write_order(&self, tag: &str, w: &mut Writer) {
        let part = |number: usize| format!("part{number}{tag}");
        let pairs = (0..self.fields.len()).step_by(2);
        let is_greater = pairs.clone().rev().fold(String::new(), |rest, one| {
            let (own, other) = (part(one), part(one + 1));
            match rest.as_str() {
                "" => format!("{own} > {other}"),
                rest => format!("{own} > {other} || ({own} == {other} && ({rest}))"),
            }
        });
        w.line("// Both directions of a connection have the same key.");
        w.open(format!("if ({is_greater})"));
        for one in pairs {
            let bits = 8 * self.fields[one].bytes();
            w.line(format!("bit<{bits}> end{one}{tag} = {};", part(one)));
            w.line(format!("{} = {};", part(one), part(one + 1)));
            w.line(format!("{} = end{one}{tag};", part(one + 1)));
        }
        w.close();
    }
}

impl Part {
    fn new(library: &Library, name: &str) -> Result<Part, KeyError> {
        let mut protocols = library.protocols.iter().enumerate();
        let found = protocols.find_map(|(id, protocol)| {
            let index = protocol.fields.iter().position(|field| {
                let filter = field.filter.as_ref();
                filter.is_some_and(|filter| filter.name == name)
            })?;
            Some((id, protocol, index))
        });
        let (id, protocol, index) = found.ok_or_else(|| KeyError::Unknown(name.to_owned()))?;
        let Body::Header { .. } = &protocol.body else {
            return Err(KeyError::NoHeader(name.to_owned()));
        };
        Ok(Part {
            protocol: id,
            header: format!("hdr.{}", protocol.name),
            field: protocol.fields[index].name.clone(),
            index,
            bits: protocol.fields[index].bits as usize,
        })
    }

    fn bytes(&self) -> usize {
        self.bits.div_ceil(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_key_is_told() {
        let library = Library::builtin();
        let told = |names: &[&str]| PacketKey::new(&library, names).unwrap_err().to_string();
        assert_eq!(told(&["tcp.sprt"]), "no field is called `tcp.sprt`");
        assert_eq!(told(&["ip.src", "ip.src"]), "`ip.src` occurs twice");
        assert_eq!(told(&[]), "a key must have 1 to 16 fields; found 0");
        assert_eq!(
            told(&["redis.command"]),
            "`redis.command` is not a header field of fixed size"
        );
    }

    /// A UDP datagram from one end (address and port) to another.
    fn datagram([from, to]: [(u32, u16); 2]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend(from.0.to_be_bytes());
        frame.extend(to.0.to_be_bytes());
        frame.extend(from.1.to_be_bytes());
        frame.extend(to.1.to_be_bytes());
        frame.extend([0, 8, 0, 0]);
        frame
    }

    #[test]
    fn both_directions_of_a_connection_have_one_key_and_no_other_connection_has_it() {
        let library = Library::builtin();
        let pairs = [["ip.src", "ip.dst"], ["udp.sport", "udp.dport"]];
        let key = PacketKey::both_ways(&library, &pairs).unwrap();
        let hash = |ends: [(u32, u16); 2]| {
            let frame = datagram(ends);
            key.hash(&library, &frame, &library.parsed(&frame)).key
        };
        let (low, high) = (0x0a00_0001, 0x0aff_0001);
        let mut seen = Vec::new();
        for (a, b) in [(low, high), (low, low)] {
            for (one, other) in [(7, 9), (9, 7), (7, 7)] {
                let ends = [(a, one), (b, other)];
                assert_eq!(hash(ends), hash([ends[1], ends[0]]), "{ends:?}");
                seen.push(hash(ends));
            }
        }
        // Swapped ports alone are another connection between equal addresses.
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 5);
    }

    #[test]
    fn a_header_that_a_frame_lacks_counts_as_0() {
        let library = Library::builtin();
        let key = PacketKey::new(&library, &["eth.src", "tcp.sport", "ip.ecn"]).unwrap();
        let hash = |frame: &[u8]| key.hash(&library, frame, &library.parsed(frame)).hash;
        let mut frame = vec![0xff; 14];
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        assert_eq!(hash(&frame), crc32fast::hash(&[2, 0, 0, 0, 0, 1, 0, 0, 0]));
        assert_eq!(hash(&[]), crc32fast::hash(&[0; 9]));
    }
}
