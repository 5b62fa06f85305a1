//! Changes of header fields. text.rs writes them as P4 for a switch, frame.rs makes them on a frame's bytes for the proof, and
//! the two share no computation of a checksum.

mod covers;
mod frame;
pub(crate) mod text;

use std::collections::BTreeSet;

use crate::library::{Body, Library, ProtocolId};
use covers::{Cover, Coverage, covers};

/// The new value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// This value.
    Set(u128),
    /// The old value with these bits flipped.
    Xor(u128),
    /// The old value with bits flipped that are drawn for each packet.
    Drawn,
}

/// Changes of some fields, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    changes: Vec<Change>,
    /// Whether the checksums over the changed fields follow.
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
    /// The checksums that follow the change; none where they are left.
    covers: Vec<Cover>,
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
    /// It follows other fields itself.
    #[error("`{0}` is a checksum, and checksums are to follow the fields")]
    Checksum(String),
    /// The ICRC covers it, a CRC-32 at the end of the packet, where no parser reads.
    #[error("`{0}` is covered by RoCE's ICRC, which a switch cannot mend")]
    Icrc(String),
    /// A checksum covers it, or may, whose range nothing says.
    #[error(
        "`{field}` may be covered by `{checksum}`, which a switch cannot mend: only the checksums of IPv4, UDP, TCP, ICMP and ICMPv6 are known to cover what stands behind them"
    )]
    UnknownChecksum {
        /// The field.
        field: String,
        /// The checksum's name.
        checksum: String,
    },
    /// Nothing changes.
    #[error("this leaves `{0}` as it is")]
    Nothing(String),
}

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

    /// The headers and fields that change, in P4's names: `hdr.ipv4`, `ecn`.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let changes = self.changes.iter();
        changes.map(|change| (change.header.as_str(), change.field.as_str()))
    }

    /// The protocols that a program must parse for it.
    pub(crate) fn protocols(&self, library: &Library) -> BTreeSet<ProtocolId> {
        let mut protocols = BTreeSet::new();
        for change in &self.changes {
            protocols.insert(change.protocol);
            for cover in &change.covers {
                protocols.insert(cover.by);
                protocols.extend(covers::between(library, cover.by, change.protocol));
            }
        }
        // The length of a segment stands in the network header, of UDP's in its own.
        let mut covers = self.changes.iter().flat_map(|change| &change.covers);
        if covers.any(|cover| cover.coverage.is_behind()) {
            let all = library.protocols.iter().enumerate();
            let networks = all.filter(|(_, protocol)| protocol.payload_length().is_some());
            protocols.extend(networks.map(|(id, _)| id));
        }
        protocols
    }

    /// Whether the checksums over the changed fields follow.
    pub fn mends(&self) -> bool {
        self.mends
    }

    /// Whether they follow and any checksum covers a changed field.
    pub fn has_sums_to_mend(&self) -> bool {
        self.mends && !self.sums().is_empty()
    }

    /// A changed field, in P4's names, that the ICRC of a RoCEv2 packet covers; it does not follow.
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

    /// How many bits the field has whose bits are drawn, if there is one.
    pub fn drawn_bits(&self) -> Option<usize> {
        let mut drawn = self.changes.iter().filter(|change| change.to == To::Drawn);
        drawn.next().map(|change| change.bits)
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
