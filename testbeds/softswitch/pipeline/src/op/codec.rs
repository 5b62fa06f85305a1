//! Moves the fields of a value between slots and bytes, by plans that are computed at load.
//!
//! A field of up to 64 bits within eight bytes takes one load and two shifts; runs of aligned 32-bit fields take a loop that
//! vectorizes. All other fields are left to `exec::fields`, which works bit by bit.

use crate::bits;
use crate::simd::widest;

#[derive(Debug, Clone, Copy)]
pub struct LayoutField {
    /// First slot of the field, relative to the value's first slot.
    pub slot: u32,
    /// Position of the field's first bit, relative to the value's first bit, without a preceding varbit field.
    pub offset: u32,
    /// Width of the field in bits (of a varbit field: the maximum).
    pub width: u32,
}

/// The plan to move the fields of one layout without a varbit between slots and bytes.
#[derive(Debug, Clone, Default)]
pub struct Codec {
    /// Length of the value in bytes, including the padded last byte.
    bytes: usize,
    loads: Vec<Load>,
    runs: Vec<FieldRun>,
    rest: Vec<LayoutField>,
    stores: Vec<Store>,
    pieces: Vec<Piece>,
    /// Contributions to the checksum of slots that hold at most 32 bits.
    narrow: Vec<Term>,
    wide: Vec<Term>,
}

/// The load of a field: slot = the big-endian 64-bit word at byte `from` << `left` >> `right`.
#[derive(Debug, Clone, Copy)]
struct Load {
    slot: u32,
    from: u32,
    left: u8,
    right: u8,
}

/// A run of `n` fields of 32 bits each, in bytes from `byte` on and in slots from `slot` on.
#[derive(Debug, Clone, Copy)]
struct FieldRun {
    slot: u32,
    byte: u32,
    n: u32,
}

/// A step that appends bytes of the value, in order.
#[derive(Debug, Clone, Copy)]
enum Store {
    Run(FieldRun),
    /// Appends the 64-bit words that the pieces with index `first` to `end` − 1 form, cut to `bytes` bytes in total.
    Words {
        first: u32,
        end: u32,
        bytes: u32,
    },
}

/// The part of an appended 64-bit word that comes from one slot: the slot << `left` >> `right`.
#[derive(Debug, Clone, Copy)]
struct Piece {
    slot: u32,
    left: u8,
    right: u8,
    /// Whether the piece is the last of its word.
    last: bool,
}

/// A slot's part of the one's complement sum: its 32-bit halves, each << `shift`. A narrow field has only one half.
#[derive(Debug, Clone, Copy)]
struct Term {
    slot: u32,
    shift: u32,
}

/// Minimum number of fields in a run of 32-bit fields that is worth a loop.
pub const RUN: usize = 4;

impl Codec {
    /// Computes the plan for consecutive fields from bit 0 on, with `bits` bits in total.
    pub fn new(fields: &[LayoutField], bits: u32) -> Codec {
        let mut codec = Codec {
            bytes: bits.div_ceil(8) as usize,
            ..Codec::default()
        };
        let mut left = fields;
        let mut words: Vec<LayoutField> = Vec::new();
        while let Some((field, others)) = left.split_first() {
            let n = run_length(left);
            if n >= RUN {
                codec.words(&std::mem::take(&mut words));
                let run = FieldRun {
                    slot: field.slot,
                    byte: field.offset / 8,
                    n: n as u32,
                };
                codec.runs.push(run);
                codec.stores.push(Store::Run(run));
                left = &left[n..];
            } else {
                codec.load(field);
                words.push(*field);
                left = others;
            }
        }
        codec.words(&words);
        for field in fields {
            codec.term(field);
        }
        codec
    }

    fn load(&mut self, field: &LayoutField) {
        let LayoutField {
            slot,
            offset,
            width,
        } = *field;
        let end = (offset + width).div_ceil(8);
        let from = end.saturating_sub(8);
        let left = offset.checked_sub(from * 8);
        match left.filter(|left| width > 0 && left + width <= 64) {
            Some(left) => self.loads.push(Load {
                slot,
                from,
                left: left as u8,
                right: (64 - width) as u8,
            }),
            None => self.rest.push(*field),
        }
    }

    /// Plans the 64-bit words in which adjacent fields are appended; the first field starts at a byte.
    fn words(&mut self, fields: &[LayoutField]) {
        let (Some(first), Some(last)) = (fields.first(), fields.last()) else {
            return;
        };
        let (start, end) = (first.offset, last.offset + last.width);
        let first = self.pieces.len() as u32;
        let mut left = fields;
        for word in (start..end).step_by(64) {
            // In order: a field that ends before a word is in none of the later ones.
            let done = |f: &&LayoutField| f.offset + f.width <= word;
            left = &left[left.iter().take_while(done).count()..];
            for field in left.iter().take_while(|f| f.offset < word + 64) {
                self.piece(field, word);
            }
            if let Some(piece) = self.pieces.last_mut() {
                piece.last = true;
            }
        }
        self.stores.push(Store::Words {
            first,
            end: self.pieces.len() as u32,
            bytes: (end - start).div_ceil(8),
        });
    }

    /// Adds the parts of a field that are within the 64-bit word of the packet that starts at bit `word`, slot by slot.
    fn piece(&mut self, field: &LayoutField, word: u32) {
        let (word, end) = (i64::from(word), i64::from(field.offset + field.width));
        for limb in 0..field.width.div_ceil(64) {
            let (low, high) = (
                end - 64 * i64::from(limb),
                i64::from(field.offset).max(end - 64 * i64::from(limb + 1)),
            );
            if high < word + 64 && low > word {
                let left = word + 64 - low;
                self.pieces.push(Piece {
                    slot: field.slot + limb,
                    left: left.max(0) as u8,
                    right: (-left).max(0) as u8,
                    last: false,
                });
            }
        }
    }

    fn term(&mut self, field: &LayoutField) {
        let end = field.offset + field.width;
        let terms = if field.width <= 32 {
            &mut self.narrow
        } else {
            &mut self.wide
        };
        for limb in 0..field.width.div_ceil(64) {
            terms.push(Term {
                slot: field.slot + limb,
                shift: (16 - end % 16) % 16,
            });
        }
    }

    /// Whether [`Codec::load_all`] alone can read a value: it has 8 bytes or more, and no field takes several loads.
    pub fn is_plain(&self) -> bool {
        self.bytes >= 8 && self.rest.is_empty()
    }

    /// Reads the fields of a value from its bytes, if [`Self::is_plain`].
    #[inline(always)]
    pub fn load_all(&self, frame: &mut [u64], bytes: &[u8]) {
        for run in &self.runs {
            run.read(frame, bytes);
        }
        for load in &self.loads {
            let from = load.from as usize;
            let Some(Ok(word)) = bytes.get(from..from + 8).map(<[u8; 8]>::try_from) else {
                continue;
            };
            let word = u64::from_be_bytes(word);
            frame[load.slot as usize] = word << load.left >> load.right;
        }
    }

    /// Reads the fields of the value that starts at bit `at` of the packet, which contains all of it.
    pub fn read(&self, frame: &mut [u64], packet: &[u8], at: usize) {
        if !at.is_multiple_of(8) {
            return self.read_unaligned(frame, packet, at);
        }
        let bytes = &packet[at / 8..at / 8 + self.bytes];
        if bytes.len() < 8 {
            self.read_short(frame, bytes);
        } else {
            self.load_all(frame, bytes);
        }
        for field in &self.rest {
            read_one(frame, packet, at, field);
        }
    }

    #[inline(never)]
    fn read_short(&self, frame: &mut [u64], bytes: &[u8]) {
        let word = bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        let word = word << (64 - 8 * bytes.len().max(1) as u32);
        for load in &self.loads {
            frame[load.slot as usize] = word << load.left >> load.right;
        }
    }

    #[cold]
    fn read_unaligned(&self, frame: &mut [u64], packet: &[u8], at: usize) {
        for load in &self.loads {
            let field = LayoutField {
                slot: load.slot,
                offset: load.from * 8 + u32::from(load.left),
                width: 64 - u32::from(load.right),
            };
            read_one(frame, packet, at, &field);
        }
        for run in &self.runs {
            for i in 0..run.n {
                let field = LayoutField {
                    slot: run.slot + i,
                    offset: (run.byte + 4 * i) * 8,
                    width: 32,
                };
                read_one(frame, packet, at, &field);
            }
        }
        for field in &self.rest {
            read_one(frame, packet, at, field);
        }
    }

    /// Appends the value's bytes to `out`, the last byte padded with zeroes. It appends whole words, then removes excess bytes
    /// of the last one.
    #[inline(always)]
    pub fn write(&self, frame: &[u64], out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(self.bytes + 8);
        match self.stores[..] {
            [Store::Words { .. }] => store(&self.pieces, frame, out),
            _ => self.write_parts(frame, out),
        }
        out.truncate(start + self.bytes);
    }

    #[inline(never)]
    fn write_parts(&self, frame: &[u64], out: &mut Vec<u8>) {
        for part in &self.stores {
            let start = out.len();
            match *part {
                Store::Words { first, end, bytes } => {
                    store(&self.pieces[first as usize..end as usize], frame, out);
                    out.truncate(start + bytes as usize);
                }
                Store::Run(run) => {
                    out.resize(start + 4 * run.n as usize, 0);
                    run.write(frame, &mut out[start..]);
                }
            }
        }
    }

    /// The one's complement sum of the value's 16-bit words, the last one padded with zeroes (RFC 1071).
    ///
    /// 2^16 is 1 modulo 2^16 − 1, so a field counts at its position, whatever words it straddles.
    pub fn ones_complement_sum(&self, frame: &[u64]) -> u16 {
        let mut sum = 0;
        for term in &self.narrow {
            sum += frame[term.slot as usize] << term.shift;
        }
        for term in &self.wide {
            let value = frame[term.slot as usize];
            sum += ((value & 0xffff_ffff) << term.shift) + (value >> 32 << term.shift);
        }
        crate::externs::checksum::fold(sum)
    }
}

/// Appends the words that these pieces form.
#[inline(always)]
fn store(pieces: &[Piece], frame: &[u64], out: &mut Vec<u8>) {
    let mut word = 0;
    for piece in pieces {
        word |= frame[piece.slot as usize] << piece.left >> piece.right;
        if piece.last {
            out.extend_from_slice(&word.to_be_bytes());
            word = 0;
        }
    }
}

impl FieldRun {
    fn read(self, frame: &mut [u64], bytes: &[u8]) {
        let from = &bytes[self.byte as usize..(self.byte + 4 * self.n) as usize];
        let to = &mut frame[self.slot as usize..(self.slot + self.n) as usize];
        widest(
            #[inline(always)]
            || {
                for (slot, value) in to.iter_mut().zip(from.as_chunks().0) {
                    *slot = u32::from_be_bytes(*value).into();
                }
            },
        );
    }

    fn write(self, frame: &[u64], bytes: &mut [u8]) {
        let from = &frame[self.slot as usize..(self.slot + self.n) as usize];
        widest(
            #[inline(always)]
            || {
                for (to, value) in bytes.as_chunks_mut().0.iter_mut().zip(from) {
                    *to = (*value as u32).to_be_bytes();
                }
            },
        );
    }
}

/// Number of 32-bit fields at the start of `fields` that are consecutive in slots and in bytes.
pub fn run_length(fields: &[LayoutField]) -> usize {
    let Some(first) = fields.first().filter(|f| f.offset.is_multiple_of(8)) else {
        return 0;
    };
    let follows = |(i, f): (u32, &LayoutField)| {
        f.width == 32 && f.slot == first.slot + i && f.offset == first.offset + 32 * i
    };
    (0..).zip(fields).take_while(|x| follows(*x)).count()
}

fn read_one(frame: &mut [u64], packet: &[u8], at: usize, field: &LayoutField) {
    let slot = field.slot as usize;
    let n = field.width.div_ceil(64).max(1) as usize;
    bits::read_limbs(
        packet,
        at + field.offset as usize,
        field.width,
        &mut frame[slot..slot + n],
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Consecutive fields in consecutive slots from 1 on.
    fn fields(widths: &[u32]) -> (Vec<LayoutField>, u32, usize) {
        let (mut slot, mut offset) = (1, 0);
        let mut fields = Vec::new();
        for &width in widths {
            fields.push(LayoutField {
                slot,
                offset,
                width,
            });
            slot += width.div_ceil(64).max(1);
            offset += width;
        }
        (fields, offset, slot as usize)
    }

    fn width() -> impl Strategy<Value = u32> {
        prop_oneof![4 => Just(32u32), 2 => 1u32..=16, 2 => 0u32..=64, 1 => 65u32..=200]
    }

    proptest! {
        #[test]
        fn as_bit_by_bit(
            widths in prop::collection::vec(width(), 1..24),
            packet in prop::collection::vec(any::<u8>(), 700),
            at in 0usize..80,
        ) {
            let (fields, bits, slots) = fields(&widths);
            let codec = Codec::new(&fields, bits);
            for at in [at / 8 * 8, at] {
                let mut frame = vec![7; slots];
                let mut plain = frame.clone();
                codec.read(&mut frame, &packet[..(at + bits as usize).div_ceil(8)], at);
                for field in &fields {
                    read_one(&mut plain, &packet, at, field);
                }
                prop_assert_eq!(&frame, &plain);
            }
            let mut frame = vec![0; slots];
            codec.read(&mut frame, &packet, 0);
            let mut expected = vec![0; bits.div_ceil(8) as usize];
            for field in &fields {
                let at = field.slot as usize;
                let limbs = &frame[at..at + field.width.div_ceil(64) as usize];
                bits::write_limbs(&mut expected, field.offset as usize, field.width, limbs);
            }
            let mut out = vec![0xee];
            codec.write(&frame, &mut out);
            prop_assert_eq!(&out[1..], &expected[..]);
            let mut unit = crate::externs::checksum::ChecksumUnit::default();
            unit.add(&expected);
            prop_assert_eq!(codec.ones_complement_sum(&frame), unit.sum);
        }
    }
}
