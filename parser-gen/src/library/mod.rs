//! The protocol library: which headers exist, which fields filters may name, what follows what.
//!
//! One YAML file per protocol under `protocols/`, embedded in the crate. A loaded [`Library`] is consistent: every edge
//! leads somewhere, every header is whole bytes, every filter name is unique. `schema` is the files' shape,
//! `load` turns it into this model.

mod carriage;
mod load;
mod message;
mod own;
mod payload;
mod protocol;
mod schema;

use crate::filter::typing::max_value;

use carriage::Carriage;
pub use load::LibraryError;
pub(crate) use message::{Element, Kind};
pub use own::ProtocolSource;
pub(crate) use payload::bounds as payload_bounds;
pub use payload::{PayloadSlice, SliceError};

/// Every protocol, in the order in which headers stand in a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) notes: Vec<Note>,
    pub(crate) root: ProtocolId,
    /// Filter names of what is not read, since filters look at the bytes where it would stand.
    pub(crate) hidden: Vec<String>,
    /// Filter names of what no packet has, since nothing carries it.
    pub(crate) uncarried: Vec<String>,
    carriage: Carriage,
}

/// Index into [`Library::protocols`].
pub(crate) type ProtocolId = usize;

/// A value of `meta.parse_note`: why a packet could not be read as deep as the filters ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The value, and the index of the counter `notes`.
    pub code: u8,
    /// Stable name, for reports.
    pub name: String,
    /// One line for people.
    pub about: String,
}

/// One protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    /// Name in P4: the header's instance, the parser's state.
    pub name: String,
    /// Name in filters (`ip`), and the first part of its fields' names.
    pub filter: String,
    /// One line for people.
    pub about: String,
    /// What it is made of.
    pub(crate) body: Body,
    /// Fields in wire order.
    pub(crate) fields: Vec<Field>,
    /// Notes that reading it can set, besides those of its options and of `next`.
    pub(crate) notes: Vec<u8>,
    /// Indexes of the fields that choose what follows.
    pub(crate) select: Vec<usize>,
    /// What follows, first match wins; no match ends the parse.
    pub(crate) next: Vec<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// Fields of the struct `meta`; present in every packet.
    Metadata { instance: String },
    /// A header of fixed size, perhaps with options.
    Header {
        type_name: String,
        /// p4src/common/headers.p4 declares the type, and the controls there name the instance.
        common: bool,
        /// The values that p4src/common/aggregate.p4 sums follow.
        values: bool,
        options: Option<Options>,
        payload: Option<PayloadLength>,
    },
    /// Elements of which some have no fixed length, one after the other. Each has its entry in `fields`.
    Message(Vec<Element>),
}

/// 32-bit words that follow the fixed part, as many as a field says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    /// Index of the field that holds the header's length in words.
    pub length: usize,
    /// The length without options.
    pub first_word: u32,
    /// The largest length.
    pub max: u32,
    /// Note for a length below `first_word`.
    pub malformed: u8,
}

/// How a network header says how many bytes it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PayloadLength {
    /// The field counts this header too.
    Total(usize),
    /// The field counts what follows this header.
    AfterHeader(usize),
}

impl PayloadLength {
    /// Index of the field.
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
    /// How many bits of its header stand before it.
    pub begin: u32,
    pub filter: Option<FilterField>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterField {
    pub name: String,
    pub ty: FieldType,
    pub about: String,
}

/// What values a field takes in filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A number.
    Unsigned,
    /// One bit; its bare name tests for 1.
    Flag,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A MAC address.
    Mac,
    /// Bytes compared without regard to the case of ASCII letters.
    Name,
    /// Bytes.
    Text,
}

impl FieldType {
    /// "an IPv4 address".
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

    /// Compared as bytes rather than as a number.
    pub fn is_text(self) -> bool {
        matches!(self, FieldType::Name | FieldType::Text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    /// One per select field; `None` is any value.
    pub when: Vec<Option<u128>>,
    pub to: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Protocol(ProtocolId),
    Note(u8),
    End,
}

/// A field as filters see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldRef<'a> {
    pub(crate) protocol: ProtocolId,
    pub(crate) index: usize,
    /// Name in filters.
    pub name: &'a str,
    /// What values it takes.
    pub ty: FieldType,
    /// Width in bits; 0 for text.
    pub bits: u32,
    /// The largest number.
    pub(crate) max: u128,
    /// Longest text read, in bytes; 0 for numbers.
    pub max_bytes: usize,
    /// Whether each text has just as many.
    pub(crate) is_fixed: bool,
    /// Written with dots, carried with the length of each label.
    pub(crate) labels: bool,
    /// Bytes that the text does not hold, since they end it.
    pub(crate) ends: &'a [u8],
    /// One line for people.
    pub about: &'a str,
}

impl Library {
    /// The protocols, in wire order.
    pub fn protocols(&self) -> &[Protocol] {
        &self.protocols
    }

    /// Values of `meta.parse_note`.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Every field that filters may name, in wire order.
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

    /// Filter names of the protocols that no packet has, since nothing carries them.
    pub fn uncarried(&self) -> &[String] {
        &self.uncarried
    }

    /// The field that filters call `name`.
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

    /// The protocol that filters call `name`, if its presence can be tested.
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
    /// What a message is made of; nothing for a header.
    pub(crate) fn elements(&self) -> &[Element] {
        match &self.body {
            Body::Message(elements) => elements,
            _ => &[],
        }
    }

    /// Size of the fixed part.
    #[inline]
    pub(crate) fn header_bits(&self) -> u32 {
        self.fields.iter().map(|field| field.bits).sum()
    }

    /// Whether p4src/common names the header's instance.
    pub(crate) fn is_common(&self) -> bool {
        matches!(self.body, Body::Header { common: true, .. })
    }

    /// Whether the values that are summed follow the header.
    pub(crate) fn has_values(&self) -> bool {
        matches!(self.body, Body::Header { values: true, .. })
    }

    /// The first bit of a field in the header, and how many it has.
    pub(crate) fn place(&self, name: &str) -> Option<(usize, usize)> {
        let index = self.fields.iter().position(|field| field.name == name)?;
        let before: u32 = self.fields[..index].iter().map(|field| field.bits).sum();
        Some((before as usize, self.fields[index].bits as usize))
    }

    #[inline]
    pub(crate) fn options(&self) -> Option<Options> {
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
