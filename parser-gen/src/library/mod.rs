//! Protocol library: headers, the fields that filters may name, and which header follows which.
//!
//! `protocols/` has one YAML file per protocol, embedded in the crate. A loaded [`Library`] is consistent: every edge has a
//! target, every header is whole bytes, every filter name is unique. `schema` defines the format of a file, `load` converts it
//! into this model.

mod carriage;
mod error;
mod load;
mod message;
mod own;
mod payload;
mod protocol;
mod schema;

use carriage::Carriage;
pub use error::LibraryError;
pub(crate) use message::{Element, Kind};
pub use own::ProtocolSource;
pub(crate) use payload::bounds as payload_bounds;
pub use payload::{PayloadSlice, SliceError};

/// Protocol library: all protocols, in the order of their headers in a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) notes: Vec<Note>,
    pub(crate) root: ProtocolId,
    /// Filter names of protocols that are not parsed, since filters read payload slices in their position.
    pub(crate) hidden: Vec<String>,
    /// Filter names of protocols that no packet has, since no protocol carries them.
    pub(crate) uncarried: Vec<String>,
    carriage: Carriage,
}

/// Index into [`Library::protocols`].
pub(crate) type ProtocolId = usize;

/// Value of `meta.parse_note`: why a packet could not be parsed as deep as the filters need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Value of `meta.parse_note`, and index of the note's cell in the switch's counter `notes`.
    pub code: u8,
    /// Stable name of the note, for reports.
    pub name: String,
    /// Description of the note for people, one line.
    pub about: String,
}

/// Protocol of the library: a header, a message, or the metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    /// Name of the protocol in P4: of the header's instance and the parser's state.
    pub name: String,
    /// Name of the protocol in filters (`ip`), and first component of its fields' names.
    pub filter: String,
    /// Description of the protocol for people, one line.
    pub about: String,
    /// Content of the protocol: the metadata, a header or a message.
    pub(crate) body: Body,
    /// Fields of the protocol, in wire order.
    pub(crate) fields: Vec<Field>,
    /// Codes of notes that parsing this protocol can set, besides those of its options and of `next`.
    pub(crate) notes: Vec<u8>,
    /// Indexes of the fields that select the next protocol.
    pub(crate) select: Vec<usize>,
    /// Edges to the next protocol: the first edge that matches applies, and without a match the parse ends.
    pub(crate) next: Vec<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// The metadata: fields of the struct `meta`, which every packet has.
    Metadata { instance: String },
    /// A header of fixed size, perhaps with options.
    Header {
        type_name: String,
        /// Whether p4src/common/headers.p4 declares the header's type, and the controls there name its instance.
        common: bool,
        /// Whether the values that p4src/common/aggregate.p4 sums follow this header.
        values: bool,
        options: Option<HeaderOptions>,
        payload: Option<PayloadLength>,
    },
    /// Elements in sequence, some without a fixed length. Each element has an item in `fields`.
    Message(Vec<Element>),
}

/// Options of a header: 32-bit words behind its fixed part. A field of the header holds the header's length in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeaderOptions {
    /// Index of the field that holds the header's length in words, options included.
    pub length: usize,
    /// Length in words of the header without options.
    pub first_word: u32,
    /// Maximum length of the header in words, options included.
    pub max: u32,
    /// Code of the note for a header whose length field is below `first_word`.
    pub malformed: u8,
}

/// Field of a network header that holds the length of its payload in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PayloadLength {
    /// Index of the length field, which counts this header too.
    Total(usize),
    /// Index of the length field, which counts only the bytes behind this header.
    AfterHeader(usize),
}

impl PayloadLength {
    /// Index of the length field in its header.
    pub fn field(self) -> usize {
        match self {
            PayloadLength::Total(field) | PayloadLength::AfterHeader(field) => field,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub name: String,
    pub bits: u32,
    /// Offset of the field in its header, in bits.
    pub begin: u32,
    pub filter: Option<FilterField>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterField {
    pub name: String,
    pub ty: FieldType,
    pub about: String,
}

/// Type of a field's values in filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A number.
    Unsigned,
    /// One bit; the field's name alone tests for 1.
    Flag,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A MAC address.
    Mac,
    /// Bytes that are compared without regard to the case of ASCII letters.
    Name,
    /// Bytes that are compared exactly.
    Text,
}

impl FieldType {
    /// Name of the type in messages, as in "an IPv4 address".
    pub fn describe(self) -> &'static str {
        match self {
            FieldType::Unsigned => "a number",
            FieldType::Flag => "a flag (0 or 1)",
            FieldType::Ipv4 => "an IPv4 address",
            FieldType::Ipv6 => "an IPv6 address",
            FieldType::Mac => "a MAC address",
            FieldType::Name | FieldType::Text => "a string",
        }
    }

    /// Whether values are compared as bytes rather than as numbers.
    pub fn is_text(self) -> bool {
        matches!(self, FieldType::Name | FieldType::Text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Required value of each select field for this edge; `None` matches any value.
    pub when: Vec<Option<u128>>,
    pub to: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Protocol(ProtocolId),
    Note(u8),
    End,
}

/// Field of a protocol, as filters use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldRef<'a> {
    pub(crate) protocol: ProtocolId,
    pub(crate) index: usize,
    /// Name of the field in filters.
    pub name: &'a str,
    /// Type of the field's values.
    pub ty: FieldType,
    /// Width of the field in bits; 0 for a text.
    pub bits: u32,
    /// Largest value of the field if it is a number.
    pub(crate) max: u128,
    /// Maximum length of the field in bytes if it is a text; 0 for a number.
    pub max_bytes: usize,
    /// Whether every text in this field has the maximum length.
    pub(crate) is_fixed: bool,
    /// Whether the field is a domain name: filters write it with dots, and packets carry the length of each label.
    pub(crate) labels: bool,
    /// Bytes that a text in this field cannot contain, since they end it.
    pub(crate) ends: &'a [u8],
    /// Description of the field for people, one line.
    pub about: &'a str,
}

/// Largest unsigned number of `bits` bits.
pub(crate) fn max_value(bits: u32) -> u128 {
    u128::MAX.checked_shr(128 - bits).unwrap_or(0)
}

impl Library {
    /// The protocols, in wire order.
    pub fn protocols(&self) -> &[Protocol] {
        &self.protocols
    }

    /// Notes: why packets could not be parsed as deep as filters need, by value of `meta.parse_note`.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// All fields that filters may name, in wire order.
    pub fn fields(&self) -> impl Iterator<Item = FieldRef<'_>> {
        self.protocols
            .iter()
            .enumerate()
            .flat_map(move |(id, protocol)| {
                protocol
                    .fields
                    .iter()
                    .enumerate()
                    .filter_map(move |(index, _)| self.field_at(id, index))
            })
    }

    /// Filter names of the protocols that no packet has, since no protocol carries them.
    pub fn uncarried(&self) -> &[String] {
        &self.uncarried
    }

    /// Field with this name in filters; `None` if there is no such field.
    pub fn field(&self, name: &str) -> Option<FieldRef<'_>> {
        self.fields().find(|field| field.name == name)
    }

    pub(crate) fn field_at(&self, protocol: ProtocolId, index: usize) -> Option<FieldRef<'_>> {
        let field = self.protocols.get(protocol)?.fields.get(index)?;
        let filter = field.filter.as_ref()?;
        let element = match &self.protocols[protocol].body {
            Body::Message(elements) => elements.get(index),
            _ => None,
        };
        Some(FieldRef {
            protocol,
            index,
            name: &filter.name,
            ty: filter.ty,
            bits: field.bits,
            max: match element.map(|element| &element.kind) {
                Some(Kind::Decimal { max, .. }) => 10_u128.pow(*max as u32) - 1,
                _ => max_value(field.bits),
            },
            max_bytes: element.map_or(0, |element| element.kind.max_bytes()),
            is_fixed: element.is_some_and(|element| matches!(element.kind, Kind::Fixed(_))),
            labels: element.is_some_and(|element| element.labels),
            ends: element.map_or(&[], |element| element.kind.ends()),
            about: &filter.about,
        })
    }

    /// Protocol of this name in filters; `None` if its presence cannot be tested.
    pub(crate) fn protocol_by_filter(&self, name: &str) -> Option<ProtocolId> {
        self.protocols
            .iter()
            .position(|p| p.filter == name && !matches!(p.body, Body::Metadata { .. }))
    }

    pub(crate) fn note_code(&self, name: &str) -> Option<u8> {
        self.notes
            .iter()
            .find(|note| note.name == name)
            .map(|note| note.code)
    }
}

impl Protocol {
    /// Elements of a message; empty for a header.
    pub(crate) fn elements(&self) -> &[Element] {
        match &self.body {
            Body::Message(elements) => elements,
            _ => &[],
        }
    }

    /// Width in bits of the header's fixed part.
    #[inline]
    pub(crate) fn header_bits(&self) -> u32 {
        self.fields.iter().map(|field| field.bits).sum()
    }

    /// Whether files of p4src/common name the header's instance.
    pub(crate) fn is_common(&self) -> bool {
        matches!(self.body, Body::Header { common: true, .. })
    }

    /// Whether the values that a switch sums follow the header.
    pub(crate) fn has_values(&self) -> bool {
        matches!(self.body, Body::Header { values: true, .. })
    }

    /// Offset of a field in its header, and the field's width, both in bits; `None` if the header lacks the field.
    pub(crate) fn place(&self, name: &str) -> Option<(usize, usize)> {
        let index = self.fields.iter().position(|field| field.name == name)?;
        let before: u32 = self.fields[..index].iter().map(|field| field.bits).sum();
        Some((before as usize, self.fields[index].bits as usize))
    }

    #[inline]
    pub(crate) fn options(&self) -> Option<HeaderOptions> {
        match self.body {
            Body::Header { options, .. } => options,
            _ => None,
        }
    }

    pub(crate) fn payload_length(&self) -> Option<PayloadLength> {
        match self.body {
            Body::Header { payload, .. } => payload,
            _ => None,
        }
    }
}
