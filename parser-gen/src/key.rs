//! What tells the packets of one key from those of another: a hash of header fields, as P4 text and on a frame's bytes,
//! which must come to the same.
//!
//! It is the CRC-32 of IEEE 802.3, which PSA, v1model and Tofino have by name. A CRC is linear, so it decides nothing by
//! itself: the decision function mixes what comes of it. A field whose header a packet lacks counts as 0, and each field is
//! as wide as its bytes, since targets pad a list of odd bits differently.

use std::sync::Arc;

use crate::dissect::Headers;
use crate::generate::writer::Writer;
use crate::library::{Body, Library, ProtocolId};
use crate::program::Arch;

/// The most fields of a key.
pub const MAX_FIELDS: usize = 16;

/// Fields whose values are a packet's key, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketKey {
    fields: Vec<Part>,
    /// The fields stand in pairs, one of each end of a connection, and the smaller end comes first: both directions have one
    /// key.
    both_ways: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    protocol: ProtocolId,
    /// In P4: `hdr.ipv4`.
    header: String,
    /// In P4: `src`.
    field: String,
    /// Which of the protocol's it is.
    index: usize,
    bits: usize,
}

/// What a switch makes of a key. Both are linear, of different fields' orders.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash {
    /// What tells keys apart.
    pub hash: u32,
    /// Where it is looked for.
    pub place: u32,
    /// The key itself.
    pub key: Arc<[u8]>,
}

/// In how many ways a key's cell may be found.
pub const WAYS: usize = 4;

impl KeyHash {
    /// What a cell holds of the key of a flow with this salt; never 0, which is an empty cell's.
    #[must_use]
    pub fn print(&self, salt: u32) -> u32 {
        (self.hash ^ salt).max(1)
    }

    /// The cells that may be its own, in the order in which they are asked, where each way has 2 to the power of `bits` cells.
    #[must_use]
    pub fn cells(&self, salt: u32, bits: u32) -> [u32; WAYS] {
        let (print, place) = (self.hash ^ salt, self.place ^ salt);
        let (low, high) = (u32::MAX >> (32 - bits), 32 - bits);
        let cells = [place & low, place >> high, print & low, print >> high];
        std::array::from_fn(|way| (way as u32) << bits | cells[way])
    }
}

/// Why fields are no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No such field.
    #[error("no field is called `{0}`")]
    Unknown(String),
    /// It is no part of a header, or not at a fixed place in it.
    #[error("`{0}` is no field of fixed size in a header")]
    NoHeader(String),
    /// None, or too many.
    #[error("a key has 1 to {MAX_FIELDS} fields; found {0}")]
    Count(usize),
    /// It says nothing more the second time.
    #[error("`{0}` is named twice")]
    Twice(String),
}

/// Puts the hash of values that are there already into a variable of 32 bits.
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
    /// Fields by their names in filters.
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

    /// Fields of the two ends of a connection: which of them sends makes no difference. The two of a pair are equally wide.
    pub fn both_ways(library: &Library, pairs: &[[&str; 2]]) -> Result<PacketKey, KeyError> {
        let key = PacketKey::new(library, pairs.as_flattened())?;
        Ok(PacketKey {
            both_ways: true,
            ..key
        })
    }

    /// Whether fields are compared with each other, which not every target can.
    #[must_use]
    pub fn is_both_ways(&self) -> bool {
        self.both_ways
    }

    /// The hashes of the key of a frame, whose headers these are.
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

    /// The protocols that a program must parse for it.
    pub(crate) fn protocols(&self) -> impl Iterator<Item = ProtocolId> {
        self.fields.iter().map(|part| part.protocol)
    }

    /// What stands before a control's `apply`: for the hash alone, or for the place too. `tag` ends all names, so that a
    /// control may have several keys.
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

    /// Statements that put the hash into a variable of 32 bits.
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

    /// The same behind [`PacketKey::write`]: where the key is looked for, as the hash of the fields the other way round.
    pub(crate) fn write_place(&self, arch: Arch, tag: &str, into: &str, w: &mut Writer) {
        let parts = (0..self.fields.len()).rev();
        let parts = parts.map(|part| format!("part{part}{tag}"));
        crc_of(arch, (&format!("crc_of_place{tag}"), into), parts, w);
    }

    /// The smaller end comes first: by the first field in which the two differ.
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
        w.line("// Which end sends makes no difference.");
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
        assert_eq!(told(&["ip.src", "ip.src"]), "`ip.src` is named twice");
        assert_eq!(told(&[]), "a key has 1 to 16 fields; found 0");
        assert_eq!(
            told(&["redis.command"]),
            "`redis.command` is no field of fixed size in a header"
        );
    }

    /// A UDP datagram from one end to another.
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
        // Ports that have changed sides are another connection, but between the same addresses.
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
