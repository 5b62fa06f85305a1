//! Payload slices: bytes at an offset in the payload of TCP or UDP, matched without a protocol file: `tcp.payload[4:2]`.
//!
//! The slices that filters name become the elements of one message behind the carrier. The carrier's other payload protocols
//! are then not parsed, since a parser reads a payload only once.

use std::ops::Range;

use super::schema::{CarrierFile, ElementFile, ProtocolFile, WhenFile};

/// Protocols whose payload filters can name slices of.
const CARRIERS: [&str; 2] = ["tcp", "udp"];
/// Maximum length of one payload slice in bytes.
const MAX_LENGTH: usize = 16;
/// Maximum byte offset in the payload at which a slice may end: a parser has to extract all bytes before it.
const MAX_END: usize = 128;
/// Maximum length in bytes of a message element that fills a gap between two slices.
const MAX_GAP: usize = 16;

/// Slice of a payload. Filters write `tcp.payload[offset:length]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PayloadSlice {
    carrier: &'static str,
    offset: usize,
    length: usize,
}

/// Why a parser cannot read these payload slices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// The slice has no bytes, or more than the maximum.
    #[error("`{0}`: a slice must have 1 to {MAX_LENGTH} bytes")]
    Length(PayloadSlice),
    /// The slice ends too far behind the beginning of the payload.
    #[error("`{0}`: a slice must end within the first {MAX_END} bytes of the payload")]
    TooFar(PayloadSlice),
    /// These two slices share bytes, so a parser cannot read both.
    #[error("`{0}` and `{1}` overlap: write slices that do not overlap")]
    Overlap(PayloadSlice, PayloadSlice),
}

impl std::fmt::Display for PayloadSlice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PayloadSlice {
            carrier,
            offset,
            length,
        } = self;
        write!(f, "{carrier}.payload[{offset}:{length}]")
    }
}

impl PayloadSlice {
    /// Payload slices that a filter's text names, each with its byte range in the text; skips malformed slices.
    pub fn named_in(filter: &str) -> Vec<(PayloadSlice, Range<usize>)> {
        let mut found = Vec::new();
        for (at, _) in filter.match_indices(".payload[") {
            let carrier = CARRIERS.iter().find(|name| {
                let before = filter[..at].strip_suffix(**name);
                before.is_some_and(|before| {
                    !before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
                })
            });
            let open = at + ".payload".len();
            let inside = filter[open..]
                .find(']')
                .map(|end| &filter[open..=open + end]);
            let bounds = inside.and_then(bounds);
            if let (Some(carrier), Some(inside), Some((offset, length))) = (carrier, inside, bounds)
            {
                let slice = PayloadSlice {
                    carrier,
                    offset,
                    length,
                };
                found.push((slice, at - carrier.len()..open + inside.len()));
            }
        }
        found
    }

    fn end(self) -> usize {
        self.offset.saturating_add(self.length)
    }

    /// The slice as an element of a message: a number if it is as long as one of the integer types, otherwise a text.
    fn element(self) -> ElementFile {
        let name = Some(format!("at{}", self.offset));
        let element = ElementFile {
            filter: Some(self.to_string()),
            about: "bytes of the payload".to_owned(),
            ..ElementFile::default()
        };
        match self.length {
            1 | 2 | 3 | 4 | 6 | 8 => ElementFile {
                number: name,
                bits: Some(8 * self.length as u32),
                ..element
            },
            _ => ElementFile {
                text: name,
                bytes: Some(self.length),
                ..element
            },
        }
    }
}

/// Parses the offset and length of a payload slice: `[4:2]`, or `[4]` for one byte.
pub(crate) fn bounds(text: &str) -> Option<(usize, usize)> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten()
    };
    match inside.split_once(':') {
        Some((offset, length)) => Some((number(offset)?, number(length)?)),
        None => Some((number(inside)?, 1)),
    }
}

/// Protocols that read the slices: one message for each carrier (TCP, UDP).
///
/// # Errors
///
/// If slices overlap, are too long, or end too far from the payload's beginning.
pub(super) fn protocols(slices: &[PayloadSlice]) -> Result<Vec<ProtocolFile>, SliceError> {
    let mut sorted = slices.to_vec();
    sorted.sort();
    sorted.dedup();
    for slice in &sorted {
        if !(1..=MAX_LENGTH).contains(&slice.length) {
            return Err(SliceError::Length(*slice));
        }
        if slice.end() > MAX_END {
            return Err(SliceError::TooFar(*slice));
        }
    }
    let of = |carrier: &'static str| {
        let own: Vec<PayloadSlice> = sorted
            .iter()
            .copied()
            .filter(|slice| slice.carrier == carrier)
            .collect();
        if let Some(pair) = own.windows(2).find(|pair| pair[0].end() > pair[1].offset) {
            return Err(SliceError::Overlap(pair[0], pair[1]));
        }
        Ok((!own.is_empty()).then(|| protocol(carrier, &own)))
    };
    let all: Result<Vec<_>, _> = CARRIERS.into_iter().map(of).collect();
    Ok(all?.into_iter().flatten().collect())
}

fn protocol(carrier: &str, slices: &[PayloadSlice]) -> ProtocolFile {
    let mut message = Vec::new();
    let mut at = 0;
    for slice in slices {
        while at < slice.offset {
            let bytes = (slice.offset - at).min(MAX_GAP);
            message.push(ElementFile {
                text: Some(format!("gap{at}")),
                bytes: Some(bytes),
                ..ElementFile::default()
            });
            at += bytes;
        }
        message.push(slice.element());
        at = slice.end();
    }
    ProtocolFile {
        name: format!("payload_{carrier}"),
        filter: format!("{carrier}.payload"),
        about: format!("what {carrier} carries"),
        message: Some(message),
        carried_by: vec![CarrierFile {
            by: carrier.to_owned(),
            // For any port.
            when: vec![WhenFile::Word("any".to_owned())],
        }],
        payload_of: Some(carrier.to_owned()),
        ..ProtocolFile::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(filter: &str) -> Vec<String> {
        let named = PayloadSlice::named_in(filter);
        for (slice, place) in &named {
            assert!(filter[place.clone()].starts_with(slice.carrier), "{filter}");
        }
        named.iter().map(|(slice, _)| slice.to_string()).collect()
    }

    #[test]
    fn slices_are_found_where_they_stand() {
        assert_eq!(
            named("tcp.payload[0:4] == 1 && (udp.payload[7] == 2 || tcp.payload[0:4] == 3)"),
            ["tcp.payload[0:4]", "udp.payload[7:1]", "tcp.payload[0:4]"]
        );
        for none in [
            "tcp.payload",
            "tcp.payload[x:2]",
            "tcp.payload[1:2",
            "ip.payload[0:1]",
            "xtcp.payload[0:1]",
            "a.tcp.payload[0:1]",
            "tcp.payload[-1:2]",
            "tcp.payload[99999999999999999999999:2]",
        ] {
            assert!(named(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let said = |filter: &str| {
            let slices: Vec<_> = PayloadSlice::named_in(filter)
                .into_iter()
                .map(|(slice, _)| slice)
                .collect();
            protocols(&slices).map_or_else(|error| error.to_string(), |_| String::new())
        };
        for (filter, message) in [
            (
                "tcp.payload[0:0] == 1",
                "`tcp.payload[0:0]`: a slice must have 1 to 16 bytes",
            ),
            (
                "tcp.payload[0:17] == 1",
                "`tcp.payload[0:17]`: a slice must have 1 to 16 bytes",
            ),
            (
                "udp.payload[127:2] == 1",
                "`udp.payload[127:2]`: a slice must end within the first 128 bytes of the payload",
            ),
            (
                "udp.payload[18446744073709551615:2] == 1",
                "`udp.payload[18446744073709551615:2]`: a slice must end within the first 128 bytes of the payload",
            ),
            (
                "tcp.payload[2:4] == 1 && tcp.payload[5:1] == 1",
                "`tcp.payload[2:4]` and `tcp.payload[5:1]` overlap: write slices that do not overlap",
            ),
            (
                "tcp.payload[2:4] == 1 && udp.payload[5:1] == 1 && tcp.payload[6] == 2",
                "",
            ),
        ] {
            assert_eq!(said(filter), message, "{filter}");
        }
    }
}
