//! Dissector: reads a frame's bytes into the values that filters compare, in plain Rust.
//!
//! It reads what the generated parser can read, with equal limits, so that it finds a flow's packets in a capture. A header
//! that the frame cuts off counts as absent.

use smallvec::SmallVec;

use crate::filter::{FieldValues, Value};
use crate::library::{Body, Element, HeaderOptions, Kind, Library, Protocol, ProtocolId, Target};

/// The headers of a frame and their byte offsets. A frame is parsed once, as on a switch, and then read or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(pub(crate) SmallVec<[(ProtocolId, usize); 6]>);

/// Identifier of a field of the library: looked up once by name, and then used to read many frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldId {
    protocol: ProtocolId,
    index: usize,
}

impl Library {
    /// Field values that filters see in a frame that arrived at `port`.
    pub fn dissect(&self, frame: &[u8], port: u32) -> FieldValues {
        let mut values = FieldValues::new();
        let protocols = self.protocols.iter();
        let metadata = protocols.filter(|protocol| matches!(protocol.body, Body::Metadata { .. }));
        for protocol in metadata {
            values.add_protocol(&protocol.filter);
            for field in protocol
                .fields
                .iter()
                .filter_map(|field| field.filter.as_ref())
            {
                values.add_value(&field.name, Value::Number(u128::from(port)));
            }
        }
        let mut rest = frame;
        let mut at = Some(self.root);
        while let Some(id) = at {
            at = self.header(id, &mut rest, Some(&mut values)).1;
        }
        values
    }

    /// Parses a frame into its headers.
    #[inline]
    pub fn parsed(&self, frame: &[u8]) -> Headers {
        Headers(self.headers(frame))
    }

    /// Identifier of the field with this name in filters; `None` if there is no such field.
    pub fn field_id(&self, name: &str) -> Option<FieldId> {
        let field = self.field(name)?;
        Some(FieldId {
            protocol: field.protocol,
            index: field.index,
        })
    }

    /// Appends to `key` everything that filters on `fields` can see in a frame that arrived at `port`.
    /// Frames with equal keys match the same filters. `headers` are the headers of this frame.
    #[inline]
    pub fn ask(
        &self,
        fields: &[FieldId],
        frame: &[u8],
        headers: &Headers,
        port: u32,
        key: &mut Vec<u8>,
    ) {
        const NUMBER: u8 = 1;
        const TEXT: u8 = 2;
        let mut message: Option<FieldValues> = None;
        // A frame has fewer than 256 headers, and a library has fewer than 65,536 protocols.
        key.push(headers.0.len() as u8);
        for (id, _) in &headers.0 {
            key.extend((*id as u16).to_le_bytes());
        }
        for field in fields {
            let protocol = &self.protocols[field.protocol];
            if let Body::Message(elements) = &protocol.body {
                let values = headers.begin(field.protocol).and_then(|begin| {
                    let values = message.get_or_insert_with(|| {
                        let mut values = FieldValues::new();
                        read_message(protocol, elements, &frame[begin..], &mut values);
                        values
                    });
                    values.value(&protocol.fields[field.index].filter.as_ref()?.name)
                });
                match values {
                    None => key.push(0),
                    Some(Value::Number(number)) => {
                        key.push(NUMBER);
                        key.extend(number.to_le_bytes());
                    }
                    Some(Value::Text { bytes, length }) => {
                        key.push(TEXT);
                        key.extend(length.to_le_bytes());
                        key.extend(bytes.len().to_le_bytes());
                        key.extend(bytes);
                    }
                }
                continue;
            }
            let number = match protocol.body {
                Body::Metadata { .. } => Some(u128::from(port)),
                _ => self.number(*field, frame, headers),
            };
            match number {
                None => key.push(0),
                Some(number) => {
                    key.push(NUMBER);
                    let bytes = protocol.fields[field.index].bits.div_ceil(8).min(16);
                    key.extend(&number.to_le_bytes()[..bytes as usize]);
                }
            }
        }
    }

    /// Value of a field in a frame; `None` if the frame lacks the field's header. `headers` are the headers of this frame.
    #[inline]
    pub fn number(&self, field: FieldId, frame: &[u8], headers: &Headers) -> Option<u128> {
        let begin = headers.begin(field.protocol)?;
        let protocol = &self.protocols[field.protocol];
        let is_header = !matches!(protocol.body, Body::Message(_));
        is_header.then(|| protocol.number(&frame[begin..], field.index))
    }

    /// Complete headers of a frame, each with its byte offset in the frame.
    #[inline]
    pub(crate) fn headers(&self, frame: &[u8]) -> SmallVec<[(ProtocolId, usize); 6]> {
        let mut found = SmallVec::new();
        let (mut rest, mut at) = (frame, Some(self.root));
        while let Some(id) = at {
            let begin = frame.len() - rest.len();
            let (is_there, next) = self.header(id, &mut rest, None);
            if is_there {
                found.push((id, begin));
            }
            at = next;
        }
        found
    }

    /// Reads the fields of one protocol into `values`. Returns whether the frame has the protocol, and the next protocol.
    #[inline]
    fn header(
        &self,
        id: ProtocolId,
        rest: &mut &[u8],
        values: Option<&mut FieldValues>,
    ) -> (bool, Option<ProtocolId>) {
        let protocol = &self.protocols[id];
        if let Body::Message(elements) = &protocol.body {
            let mut unasked = FieldValues::new();
            let values = values.unwrap_or(&mut unasked);
            read_message(protocol, elements, rest, values);
            return (values.has_protocol(&protocol.filter), None);
        }
        let bytes = protocol.header_bits() as usize / 8;
        let Some(header) = rest.get(..bytes) else {
            return (false, None);
        };
        if let Some(values) = values {
            values.add_protocol(&protocol.filter);
            for (index, field) in protocol.fields.iter().enumerate() {
                if let Some(filter) = &field.filter {
                    let number = protocol.number(header, index);
                    values.add_value(&filter.name, Value::Number(number));
                }
            }
        }
        (true, next(protocol, header, rest))
    }
}

impl Headers {
    /// Byte offset of a protocol's header in the frame; `None` if the frame lacks the header.
    #[inline]
    fn begin(&self, protocol: ProtocolId) -> Option<usize> {
        let mut headers = self.0.iter();
        let (_, begin) = headers.find(|(id, _)| *id == protocol)?;
        Some(*begin)
    }
}

impl Protocol {
    /// Value of the protocol's field with this index, read from the bytes of its header.
    #[inline]
    pub(crate) fn number(&self, header: &[u8], index: usize) -> u128 {
        let field = &self.fields[index];
        let begin = field.begin as usize;
        bits(header, begin, begin + field.bits as usize)
    }
}

/// Returns the protocol that follows a header. Moves `rest` behind the header if the header is complete.
#[inline]
fn next(protocol: &Protocol, header: &[u8], rest: &mut &[u8]) -> Option<ProtocolId> {
    let length = match protocol.options() {
        None => protocol.header_bits() as usize / 8,
        Some(options) => header_length(options, protocol, header)?,
    };
    *rest = rest.get(length..)?;
    let edge = protocol.next.iter().find(|edge| {
        let mut compared = edge.when.iter().zip(&protocol.select);
        compared
            .all(|(when, index)| when.is_none_or(|when| when == protocol.number(header, *index)))
    })?;
    match edge.to {
        Target::Protocol(to) => Some(to),
        _ => None,
    }
}

#[inline]
fn header_length(options: HeaderOptions, protocol: &Protocol, header: &[u8]) -> Option<usize> {
    let words = protocol.number(header, options.length) as usize;
    (words >= options.first_word as usize).then_some(words * 4)
}

/// Bits `at..end` of a header, numbered from the most significant bit of its first byte.
#[inline]
fn bits(header: &[u8], at: usize, end: usize) -> u128 {
    let bytes = &header[at / 8..end.div_ceil(8)];
    if at.is_multiple_of(8) && end.is_multiple_of(8) && bytes.len() <= 8 {
        return u128::from(
            bytes
                .iter()
                .fold(0_u64, |value, byte| value << 8 | u64::from(*byte)),
        );
    }
    // Masks the bits before and behind the field in the first and last byte: a field of up to 128 bits may touch 17 bytes.
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate() {
        let first = (at / 8 + index) * 8;
        let byte = u128::from(*byte) & (0xff >> at.saturating_sub(first));
        let behind = (first + 8).saturating_sub(end);
        value = value << (8 - behind) | byte >> behind;
    }
    value
}

/// Reads the fields of a message into `values`, element by element, until an element does not match the bytes.
fn read_message(protocol: &Protocol, elements: &[Element], rest: &[u8], values: &mut FieldValues) {
    let mut rest = rest;
    let mut number: Option<u128> = None;
    for (index, element) in elements.iter().enumerate() {
        let filter = protocol.fields[index].filter.as_ref();
        let text = |values: &mut FieldValues, bytes: &[u8], length: usize| {
            if let Some(filter) = filter {
                let bytes = bytes.to_vec();
                values.set(&filter.name, Value::Text { bytes, length });
            }
        };
        match &element.kind {
            Kind::Literal(bytes) => {
                let Some(tail) = rest.strip_prefix(bytes.as_slice()) else {
                    return;
                };
                rest = tail;
            }
            Kind::Number { .. } | Kind::Decimal { .. } | Kind::Varint { .. } => {
                let Some((value, length)) = read_number(&element.kind, rest) else {
                    return;
                };
                rest = &rest[length..];
                number = Some(value);
                if let Some(filter) = filter {
                    values.set_number(&filter.name, value);
                }
                if let Kind::Number { bits, signed: true } = element.kind
                    && value >> (bits - 1) == 1
                {
                    values.add_protocol(&protocol.filter);
                    return;
                }
            }
            Kind::Fixed(length) => {
                let Some((bytes, tail)) = rest.split_at_checked(*length) else {
                    return;
                };
                text(values, bytes, *length);
                rest = tail;
            }
            Kind::Counted { less, max, walked } => {
                let length = number.and_then(|number| number.checked_sub(u128::from(*less)));
                let Some(length) =
                    length.map(|length| usize::try_from(length).unwrap_or(usize::MAX))
                else {
                    return;
                };
                let seen = length.min(rest.len());
                if *walked && (length > *max || seen < length) {
                    return;
                }
                text(values, &rest[..seen], length);
                rest = &rest[seen..];
            }
            Kind::Until { ends, stops, max } => {
                if rest.is_empty() {
                    return;
                }
                let seen = &rest[..rest.len().min(max + 1)];
                match seen.iter().position(|byte| ends.contains(byte)) {
                    Some(length) => {
                        text(values, &seen[..length], length);
                        if stops.contains(&seen[length]) {
                            values.add_protocol(&protocol.filter);
                            return;
                        }
                        rest = &rest[length + 1..];
                    }
                    // The text is longer than the parser reads.
                    None => {
                        values.add_protocol(&protocol.filter);
                        text(values, &seen[..seen.len().min(*max)], usize::MAX);
                        return;
                    }
                }
            }
        }
        values.add_protocol(&protocol.filter);
    }
}

/// Reads a number of an element from the beginning of `rest`: the number's value, and its length in bytes.
fn read_number(kind: &Kind, rest: &[u8]) -> Option<(u128, usize)> {
    match kind {
        Kind::Number { bits, .. } => {
            let bytes = rest.get(..*bits as usize / 8)?;
            let value = bytes
                .iter()
                .fold(0, |value, byte| value << 8 | u128::from(*byte));
            Some((value, bytes.len()))
        }
        Kind::Decimal { max, end } => {
            let length = rest.iter().take(max + 1).position(|byte| byte == end)?;
            let digits = &rest[..length];
            let is_number = digits.iter().all(u8::is_ascii_digit);
            let is_canonical = length > 0 && (length == 1 || digits[0] != b'0');
            let value = digits
                .iter()
                .fold(0, |value, digit| value * 10 + u128::from(digit & 0x0f));
            (is_number && is_canonical).then_some((value, length + 1))
        }
        Kind::Varint { max } => {
            let last = rest.iter().take(*max).position(|byte| byte & 0x80 == 0)?;
            let is_canonical = last == 0 || rest[last] != 0;
            let groups = rest[..=last].iter().rev();
            let value = groups.fold(0, |value, byte| value << 7 | u128::from(byte & 0x7f));
            is_canonical.then_some((value, last + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::bits;

    #[test]
    fn bits_are_read_from_any_bit_to_any_other() {
        let header: Vec<u8> = (1..=18_u8).map(|byte| byte.wrapping_mul(73)).collect();
        let one_by_one = |at: usize, end: usize| {
            (at..end).fold(0, |value, bit| {
                value << 1 | u128::from(header[bit / 8] >> (7 - bit % 8) & 1)
            })
        };
        for at in 0..16 {
            for end in at..=at + 128 {
                assert_eq!(bits(&header, at, end), one_by_one(at, end), "{at}..{end}");
            }
        }
    }
}
