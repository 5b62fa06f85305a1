//! Changes header fields in a frame's bytes: the model that proves a run. It computes checksums as full sums over the frame.

use super::{NewValue, Rewrite};
use crate::checksums::{Checksums, Segment};
use crate::dissect::Headers;
use crate::library::Library;

impl Rewrite {
    /// Changes the fields of a frame. `headers` are its headers ([`Library::parsed`], before any
    /// change). A drawn change flips the bits of `mask`.
    ///
    /// If checksums are updated, a header in the padding behind the packet stays unchanged, and so
    /// do addresses whose transport checksum is not parsed.
    pub fn apply(&self, library: &Library, headers: &Headers, frame: &mut [u8], mask: u128) {
        let sums = self
            .mends
            .then(|| Checksums::locate(library, headers, frame));
        let errors = sums.as_ref().map(|sums| sums.errors(frame));
        let segment = Segment::parse(library, headers, frame);
        for change in &self.changes {
            let mut found = headers.0.iter().filter(|(id, _)| *id == change.protocol);
            let Some((id, start)) = found.next() else {
                continue;
            };
            let protocol = &library.protocols[*id];
            let bytes = protocol.header_bits() as usize / 8;
            let is_padding = segment.as_ref().is_some_and(|s| !s.holds(*start, bytes));
            let is_address = ["src", "dst"].contains(&change.field.as_str());
            let is_bound = is_address && is_bound(&protocol.name, *start, frame, segment.is_some());
            if self.mends && (is_padding || is_bound) {
                continue;
            }
            let begin = start * 8 + change.begin;
            let old = read(frame, begin, change.bits);
            let new = match change.to {
                NewValue::Set(value) => value,
                NewValue::Xor(mask) => old ^ mask,
                NewValue::Drawn => old ^ mask,
            };
            write(frame, begin, change.bits, new);
        }
        if let (Some(sums), Some(errors)) = (sums, errors) {
            sums.restore(frame, &errors);
        }
    }
}

/// Whether a network header's addresses belong to a checksum that is not parsed. `has_transport`: a transport header is.
fn is_bound(name: &str, start: usize, frame: &[u8], has_transport: bool) -> bool {
    match name {
        "ipv4" => {
            let is_first = frame[start + 6] & 0x1f == 0 && frame[start + 7] == 0;
            let has_sum = matches!(frame[start + 9], 6 | 17 | 33 | 136);
            is_first && has_sum && !has_transport
        }
        "ipv6" => match frame[start + 6] {
            6 | 17 | 58 | 33 | 136 => !has_transport,
            // Extension headers: the headers behind them are not parsed.
            0 | 43 | 44 | 51 | 60 | 135 | 139 | 140 => true,
            _ => false,
        },
        _ => false,
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
