//! A frame's bytes to the values that filters compare, in plain Rust.
//!
//! It reads what the generated parser can read, with the same limits, so that a flow's packets can be told apart in a
//! capture. A header that the frame ends inside is absent.

use crate::filter::{FieldValues, Value};
use crate::library::{Body, Library, Options, PayloadLength, Protocol, ProtocolId, Resp, Target};

impl Library {
    /// What filters see in a frame that came in by `port`.
    pub fn dissect(&self, frame: &[u8], port: u32) -> FieldValues {
        let mut values = FieldValues::new();
        for protocol in &self.protocols {
            if let Body::Metadata { .. } = protocol.body {
                for field in protocol
                    .fields
                    .iter()
                    .filter_map(|field| field.filter.as_ref())
                {
                    values.set_number(&field.name, u128::from(port));
                }
            }
        }
        let mut rest = frame;
        let mut at = Some(self.root);
        // Bytes that the network header accounts for; `None` if it says nothing, or less than the headers take.
        let mut segment: Option<usize> = None;
        while let Some(id) = at {
            at = self.header(id, &mut rest, &mut segment, &mut values);
        }
        values
    }

    /// The headers that are whole in a frame, and at which byte each begins.
    pub(crate) fn headers(&self, frame: &[u8]) -> Vec<(ProtocolId, usize)> {
        let (mut found, mut values) = (Vec::new(), FieldValues::new());
        let (mut rest, mut at, mut segment) = (frame, Some(self.root), None);
        while let Some(id) = at {
            let begin = frame.len() - rest.len();
            at = self.header(id, &mut rest, &mut segment, &mut values);
            if values.protocols.contains(&self.protocols[id].filter) {
                found.push((id, begin));
            }
        }
        found
    }

    /// Reads one protocol; returns what follows.
    fn header(
        &self,
        id: ProtocolId,
        rest: &mut &[u8],
        segment: &mut Option<usize>,
        values: &mut FieldValues,
    ) -> Option<ProtocolId> {
        let protocol = &self.protocols[id];
        if let Body::Resp(resp) = protocol.body {
            read_resp(protocol, resp, rest, values);
            return None;
        }
        let bytes = protocol.header_bits() as usize / 8;
        let numbers = read_fields(protocol, rest.get(..bytes)?);
        values.add_protocol(&protocol.filter);
        for (field, value) in protocol.fields.iter().zip(&numbers) {
            if let Some(filter) = &field.filter {
                values.set_number(&filter.name, *value);
            }
        }
        let length = match protocol.options() {
            None => bytes,
            Some(options) => header_length(options, &numbers)?,
        };
        *rest = rest.get(length..)?;
        *segment = match protocol.payload_length() {
            Some(PayloadLength::Total(index)) => (numbers[index] as usize).checked_sub(length),
            Some(PayloadLength::AfterHeader(index)) => Some(numbers[index] as usize),
            None => segment.and_then(|segment| segment.checked_sub(length)),
        };
        let edge = protocol.next.iter().find(|edge| {
            edge.when
                .iter()
                .zip(&protocol.select)
                .all(|(when, index)| when.is_none_or(|when| when == numbers[*index]))
        })?;
        match edge.to {
            Target::Protocol(to) if !edge.needs_payload || *segment != Some(0) => Some(to),
            _ => None,
        }
    }
}

fn header_length(options: Options, numbers: &[u128]) -> Option<usize> {
    let words = numbers[options.length] as usize;
    (words >= options.first_word as usize).then_some(words * 4)
}

/// The fields' values, most significant bit first.
fn read_fields(protocol: &Protocol, header: &[u8]) -> Vec<u128> {
    let mut at = 0;
    protocol
        .fields
        .iter()
        .map(|field| {
            let end = at + field.bits as usize;
            let value = (at..end).fold(0, |value, bit| {
                value << 1 | u128::from(header[bit / 8] >> (7 - bit % 8) & 1)
            });
            at = end;
            value
        })
        .collect()
}

/// The first command of a segment, as deep as the generated states read it.
fn read_resp(protocol: &Protocol, resp: Resp, rest: &[u8], values: &mut FieldValues) {
    let mut text = Cursor { rest };
    let Some(Read::Number(elements)) = text.number(b'*') else {
        return;
    };
    let Some(Read::Number(length)) = text.number(b'$') else {
        return;
    };
    if elements == 0 || length == 0 || length > resp.max_command {
        return;
    }
    let Some(command) = text.take(length) else {
        return;
    };
    match text.take(2) {
        Some(b"\r\n") => {}
        _ => return,
    }
    let key = if elements >= 2 {
        text.number(b'$')
    } else {
        None
    };
    // A segment that turns out not to be RESP has no Redis command at all.
    if let Some(Read::Malformed) = key {
        return;
    }
    let names: Vec<_> = protocol
        .fields
        .iter()
        .filter_map(|field| field.filter.as_ref())
        .collect();
    values.add_protocol(&protocol.filter);
    let [command_name, key_name] = names.as_slice() else {
        return;
    };
    values.set(
        &command_name.name,
        Value::Text {
            bytes: command.to_vec(),
            length,
        },
    );
    let key_length = match key {
        Some(Read::Number(length)) => length,
        // The digits are there, the end of the line is cut off: the length is known, the bytes are not.
        Some(Read::Cut(length)) => {
            values.set(
                &key_name.name,
                Value::Text {
                    bytes: Vec::new(),
                    length,
                },
            );
            return;
        }
        _ => return,
    };
    let seen = key_length.min(text.rest.len());
    let bytes = text.rest[..seen].to_vec();
    if elements == 3 && key_length <= resp.max_key && seen == key_length {
        // The third element's length is read, to see where the command ends.
        text.rest = &text.rest[seen..];
        match text.take(2) {
            Some(b"\r\n") | None => {}
            _ => {
                values.protocols.remove(&protocol.filter);
                values.values.remove(&command_name.name);
                return;
            }
        }
        // Its line end is beyond what the parser looks at.
        let mut value = Cursor {
            rest: &text.rest[..text.rest.len().min(4)],
        };
        if let Some(Read::Malformed) = value.number(b'$') {
            values.protocols.remove(&protocol.filter);
            values.values.remove(&command_name.name);
            return;
        }
    }
    values.set(
        &key_name.name,
        Value::Text {
            bytes,
            length: key_length,
        },
    );
}

/// What a RESP length turned out to be.
enum Read {
    Number(usize),
    /// Four bytes of it are there and say how long; the line's end is not.
    Cut(usize),
    /// More than three digits.
    TooLong,
    Malformed,
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(n)?;
        self.rest = tail;
        Some(head)
    }

    /// A marker, one to three digits without a leading zero, CR LF. `None` if fewer than four bytes are left.
    fn number(&mut self, marker: u8) -> Option<Read> {
        let head: &[u8; 4] = self.take(4)?.try_into().ok()?;
        let digit = |byte: u8| usize::from(byte - b'0');
        let (value, ending) = match *head {
            [m, ..] if m != marker => return Some(Read::Malformed),
            [_, a @ b'0'..=b'9', b'\r', b'\n'] => return Some(Read::Number(digit(a))),
            [_, a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r'] => (digit(a) * 10 + digit(b), &b"\n"[..]),
            [_, a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                (digit(a) * 100 + digit(b) * 10 + digit(c), &b"\r\n"[..])
            }
            _ => return Some(Read::Malformed),
        };
        Some(match self.take(ending.len()) {
            None => Read::Cut(value),
            Some(found) if found == ending => Read::Number(value),
            Some(_) if ending.len() == 2 => Read::TooLong,
            Some(_) => Read::Malformed,
        })
    }
}
