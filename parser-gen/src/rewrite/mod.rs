//! Changes of header fields. text.rs writes them as P4 for a switch, frame.rs applies them to a
//! frame's bytes for the proof; these two files share no computation of a checksum.

mod covers;
mod frame;
pub(crate) mod text;

use std::collections::BTreeSet;

use crate::library::{Body, Library, ProtocolId};
use covers::{Cover, Coverage, covers};

/// New value of a header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewValue {
    /// The field becomes this value.
    Set(u128),
    /// The field becomes its old value with these bits flipped.
    Xor(u128),
    /// The field becomes its old value with some bits flipped, which are drawn for each packet.
    Drawn,
}

/// Changes of header fields, in the order in which they apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    changes: Vec<Change>,
    /// Whether the switch updates the checksums that cover the changed fields.
    mends: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    protocol: ProtocolId,
    /// Name of the header in P4: `hdr.ipv4`.
    header: String,
    /// Name of the field in P4: `ecn`.
    field: String,
    /// Offset of the field in its header, in bits; `bits` is its width.
    begin: usize,
    bits: usize,
    to: NewValue,
    /// Checksums that are updated with the field; empty if checksums stay as they are.
    covers: Vec<Cover>,
}

/// Why a header field cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// The library has no field of this name.
    #[error("no field is called `{0}`")]
    Unknown(String),
    /// The field is not in a header, or has no fixed position in the header.
    #[error("`{0}` is not a header field of fixed size")]
    NoHeader(String),
    /// Switches forward packets by this field.
    #[error("`{0}` determines the packet's path; faults cannot change it")]
    Forwarding(String),
    /// The field belongs to weir's own protocol, the aggregation header.
    #[error("`{0}` belongs to weir's own aggregation header; faults cannot change it")]
    Own(String),
    /// The layout of the frame depends on this field, so checksums cannot be updated.
    #[error("the layout of the frame depends on `{0}`: its checksums cannot be mended")]
    Layout(String),
    /// The new value exceeds the field's width.
    #[error("`{field}` has {bits} bits")]
    TooLarge {
        /// Name of the field.
        field: String,
        /// Width of the field in bits.
        bits: u32,
    },
    /// The field is itself a checksum, which is updated with other fields.
    #[error("`{0}` is a checksum: the switch updates it when other fields change")]
    Checksum(String),
    /// The ICRC covers this field: a CRC-32 at the end of a RoCEv2 packet, which no parser reads.
    #[error("`{0}` is covered by RoCE's ICRC, which a switch cannot mend")]
    Icrc(String),
    /// The field is or may be covered by a checksum whose range is unknown.
    #[error(
        "`{field}` may be covered by `{checksum}`, which a switch cannot mend: only the checksums of IPv4, UDP, TCP, ICMP and ICMPv6 are known to cover the data after them"
    )]
    UnknownChecksum {
        /// Name of the field.
        field: String,
        /// Name of the checksum's field.
        checksum: String,
    },
    /// The change of this field has no effect.
    #[error("the new value of `{0}` equals the old one")]
    Nothing(String),
}

impl Rewrite {
    /// Builds changes of header fields; fields have their names in filters.
    pub fn new(
        library: &Library,
        changes: &[(&str, NewValue)],
        mends: bool,
    ) -> Result<Rewrite, RewriteError> {
        let changes = changes
            .iter()
            .map(|(name, to)| Change::new(library, name, *to, mends))
            .collect::<Result<_, _>>()?;
        Ok(Rewrite { changes, mends })
    }

    /// Header and field of each change, by their names in P4: `hdr.ipv4`, `ecn`.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let changes = self.changes.iter();
        changes.map(|change| (change.header.as_str(), change.field.as_str()))
    }

    /// Protocols that a program must parse for the rewrite.
    pub(crate) fn protocols(&self, library: &Library) -> BTreeSet<ProtocolId> {
        let mut protocols = BTreeSet::new();
        for change in &self.changes {
            protocols.insert(change.protocol);
            for cover in &change.covers {
                protocols.insert(cover.by);
                protocols.extend(covers::between(library, cover.by, change.protocol));
            }
        }
        // The length of a segment is in the network header; UDP's is in its own header.
        let mut covers = self.changes.iter().flat_map(|change| &change.covers);
        if covers.any(|cover| cover.coverage.is_behind()) {
            let all = library.protocols.iter().enumerate();
            let networks = all.filter(|(_, protocol)| protocol.payload_length().is_some());
            protocols.extend(networks.map(|(id, _)| id));
        }
        protocols
    }

    /// Whether the switch updates the checksums that cover the changed fields.
    pub fn mends(&self) -> bool {
        self.mends
    }

    /// Whether the changes make the switch update any checksum.
    pub fn has_sums_to_mend(&self) -> bool {
        self.mends && !self.sums().is_empty()
    }

    /// A changed field, by its names in P4, that the ICRC of a RoCEv2 packet covers; the ICRC is not updated.
    pub fn under_icrc(&self) -> Option<(&str, &str)> {
        let mut fields = self.fields();
        fields.find(|(header, field)| covers::is_under_icrc(header, field))
    }

    fn sums(&self) -> Vec<ProtocolId> {
        let all = self.changes.iter().flat_map(|change| &change.covers);
        let all = all.filter(|cover| cover.coverage != Coverage::Balanced);
        let mut sums: Vec<ProtocolId> = all.map(|cover| cover.by).collect();
        sums.sort_unstable();
        sums.dedup();
        sums
    }

    /// Width in bits of the field whose flipped bits are drawn for each packet; `None` if no change is drawn.
    pub fn drawn_bits(&self) -> Option<usize> {
        let mut drawn = self
            .changes
            .iter()
            .filter(|change| change.to == NewValue::Drawn);
        drawn.next().map(|change| change.bits)
    }
}

impl Change {
    fn new(
        library: &Library,
        name: &str,
        to: NewValue,
        mends: bool,
    ) -> Result<Change, RewriteError> {
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
        // The protocol number of a network header is part of the checksum over its payload.
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
        let full = crate::library::max_value(field.bits);
        let value = match to {
            NewValue::Set(value) | NewValue::Xor(value) => value,
            NewValue::Drawn => 0,
        };
        if value > full {
            return Err(RewriteError::TooLarge {
                field: name.to_owned(),
                bits: field.bits,
            });
        }
        if to == NewValue::Xor(0) {
            return Err(RewriteError::Nothing(name.to_owned()));
        }
        let begin: u32 = protocol.fields[..index]
            .iter()
            .map(|field| field.bits)
            .sum();
        let covers = match mends {
            true => covers(library, id, &field.name, name)?,
            false => Vec::new(),
        };
        Ok(Change {
            protocol: id,
            header: format!("hdr.{}", protocol.name),
            field: field.name.clone(),
            begin: begin as usize,
            bits: field.bits as usize,
            to,
            covers,
        })
    }
}
