//! Packs keys into dense 64-bit words. A packed key is a bit string: first the exact fields, then others as declared, last the
//! LPM field; its first bit is the most significant of word 0.
//!
//! A 5-tuple takes five slots in the frame and two words here, so that hashing, masking and comparing cost less than half. In a
//! table with exact fields and an LPM field, each entry is a single prefix of the packed key.

use super::key::{FieldKey, FieldSpec, Kind};
use crate::bits::Slot;
use crate::bits::mask;
use p4lang::runtime::Value;
use std::cmp::Ordering;

/// Maximum number of 64-bit words of a packed key.
pub const MAX_WORDS: usize = 64;

/// A run of bits of one slot that is copied to one word of a packed key.
#[derive(Debug, Clone, Copy)]
struct KeyPiece {
    slot: u32,
    slot_shift: u32,
    mask: u64,
    word: u32,
    word_shift: u32,
}

/// The plan to pack a key directly from the frame: positions of the key's bits in slots and in the packed key.
#[derive(Debug, Clone, Default)]
pub struct KeyPlan(Vec<KeyPiece>);

/// The position of a key field in the packed bit string.
#[derive(Debug, Clone, Copy)]
struct FieldPosition {
    at: usize,
    width: u32,
    kind: Kind,
}

/// The order and the positions of a table's key fields in packed keys.
#[derive(Debug, Clone)]
pub struct Packing {
    pieces: Vec<KeyPiece>,
    /// Positions of the key fields, in order of declaration.
    places: Vec<FieldPosition>,
    /// Number of 64-bit words of a packed key.
    pub words: usize,
    /// Number of bits of a packed key.
    pub bits: usize,
    /// Mask of the packed key's bits outside range fields; `None`: there is no range field.
    fixed: Option<Box<[u64]>>,
}

impl Packing {
    /// Creates the packing of keys whose fields are in consecutive slots.
    pub fn new(fields: &[FieldSpec]) -> Packing {
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by_key(|i| match fields[*i].kind {
            Kind::Exact => 0,
            Kind::Lpm => 2,
            _ => 1,
        });
        let mut starts = Vec::new();
        let mut slot = 0;
        for field in fields {
            starts.push(slot);
            slot += field.slots();
        }
        let mut packing = Packing {
            pieces: Vec::new(),
            places: fields
                .iter()
                .map(|f| FieldPosition {
                    at: 0,
                    width: f.width,
                    kind: f.kind,
                })
                .collect(),
            words: 0,
            bits: 0,
            fixed: None,
        };
        for i in order {
            let width = fields[i].width;
            packing.places[i].at = packing.bits;
            for limb in (0..fields[i].slots()).rev() {
                packing.piece(starts[i] + limb, (width - limb * 64).min(64));
            }
        }
        packing.words = packing.bits.div_ceil(64);
        if fields.iter().any(|f| f.kind == Kind::Range) {
            let mut fixed = vec![0; packing.words];
            for place in packing.places.iter().filter(|p| p.kind != Kind::Range) {
                put(&mut fixed, place.at, place.width, &Value::ones(place.width));
            }
            packing.fixed = Some(fixed.into());
        }
        packing
    }

    /// Appends the low `width` bits of a slot to the bit string of a packed key.
    fn piece(&mut self, slot: u32, mut width: u32) {
        while width > 0 {
            let room = 64 - self.bits as u32 % 64;
            let n = width.min(room);
            self.pieces.push(KeyPiece {
                slot,
                slot_shift: width - n,
                mask: mask(n),
                word: self.bits as u32 / 64,
                word_shift: room - n,
            });
            self.bits += n as usize;
            width -= n;
        }
    }

    /// The plan to pack a key whose fields start at these slots.
    pub fn plan(&self, slots: &[Slot]) -> KeyPlan {
        let placed = |p: &KeyPiece| KeyPiece {
            slot: slots[p.slot as usize],
            ..*p
        };
        KeyPlan(self.pieces.iter().map(placed).collect())
    }
}

impl KeyPlan {
    /// Packs the key in the frame's slots; `N` must be at least [`Packing::words`].
    #[inline(always)]
    pub fn pack<const N: usize>(&self, slots: &[u64]) -> [u64; N] {
        let mut words = [0; N];
        // Most keys have one field.
        if let [p] = &self.0[..] {
            words[0] = (slots[p.slot as usize] >> p.slot_shift & p.mask) << p.word_shift;
            return words;
        }
        for p in &self.0 {
            words[p.word as usize] |=
                (slots[p.slot as usize] >> p.slot_shift & p.mask) << p.word_shift;
        }
        words
    }
}

impl Packing {
    /// Appends an entry's packed values; if `with_masks`, also its packed masks. For ranges, these are lower and upper bounds.
    pub fn pack_entry(&self, key: &[FieldKey], with_masks: bool, to: &mut Vec<u64>) {
        let start = to.len();
        to.resize(start + self.words * if with_masks { 2 } else { 1 }, 0);
        let (values, masks) = to[start..].split_at_mut(self.words);
        for (place, field) in self.places.iter().zip(key) {
            let (FieldKey::Masked { value, mask }
            | FieldKey::Range {
                low: value,
                high: mask,
            }) = field;
            put(values, place.at, place.width, value);
            if with_masks {
                put(masks, place.at, place.width, mask);
            }
        }
    }

    /// Converts packed words to canonical forms of the fields, in order of declaration. An exact table has no masks: `None`.
    pub fn unpack(&self, values: &[u64], masks: Option<&[u64]>) -> Vec<FieldKey> {
        let field = |place: &FieldPosition| {
            let value = take(values, place.at, place.width);
            let mask = match masks {
                Some(masks) => take(masks, place.at, place.width),
                None => Value::ones(place.width),
            };
            match place.kind {
                Kind::Range => FieldKey::Range {
                    low: value,
                    high: mask,
                },
                _ => FieldKey::Masked { value, mask },
            }
        };
        self.places.iter().map(field).collect()
    }

    /// The order of two entries, given as packed values and masks: compares field by field as declared, like [`FieldKey`]s.
    pub fn order(&self, a: (&[u64], &[u64]), b: (&[u64], &[u64])) -> Ordering {
        // The masks of an exact table are empty, and equal.
        let compare = |a: &[u64], b: &[u64], p: &FieldPosition| match (a, b) {
            ([], _) | (_, []) => Ordering::Equal,
            _ => p.compare(a, b),
        };
        let of = |p: &FieldPosition| compare(a.0, b.0, p).then_with(|| compare(a.1, b.1, p));
        let mut fields = self.places.iter().map(of);
        fields.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }

    pub fn has_ranges(&self) -> bool {
        self.fixed.is_some()
    }

    /// Whether a packed key matches an entry's values and masks, without the check of ranges.
    #[inline(always)]
    pub fn matches(&self, key: &[u64], values: &[u64], masks: &[u64]) -> bool {
        let words = key.iter().zip(values).zip(masks);
        match &self.fixed {
            None => words.fold(0, |different, ((k, v), m)| different | ((k & m) ^ v)) == 0,
            Some(fixed) => {
                let mut words = words.zip(fixed);
                words.all(|(((k, v), m), fixed)| ((k & m) ^ v) & fixed == 0)
                    && self.in_ranges(key, values, masks)
            }
        }
    }

    /// Whether a packed key is within an entry's ranges.
    pub fn in_ranges(&self, key: &[u64], values: &[u64], masks: &[u64]) -> bool {
        let mut ranges = self.places.iter().filter(|p| p.kind == Kind::Range);
        ranges.all(|p| {
            if p.width > PART {
                return p.compare(values, key).is_le() && p.compare(key, masks).is_le();
            }
            let of = |words| part(words, p.at, p.width);
            (of(values)..=of(masks)).contains(&of(key))
        })
    }

    /// Writes to `to` an entry's mask of the bits that must be equal for it to match. For a range, this is the common prefix of
    /// both bounds, cut to whole nibbles, since each prefix length makes a further group to search.
    pub fn cover(&self, values: &[u64], masks: &[u64], to: &mut [u64]) {
        let Some(fixed) = &self.fixed else {
            to.copy_from_slice(masks);
            return;
        };
        for ((to, m), f) in to.iter_mut().zip(masks).zip(fixed) {
            *to = m & f;
        }
        for p in self.places.iter().filter(|p| p.kind == Kind::Range) {
            let below = p.differing(values, masks).next_multiple_of(4);
            if let Some(common @ 1..) = p.width.checked_sub(below) {
                put(to, p.at, p.width, &Value::prefix(p.width, common));
            }
        }
    }
}

impl FieldPosition {
    /// Compares the values that the field has in two packed keys.
    fn compare(&self, a: &[u64], b: &[u64]) -> Ordering {
        let of = |(at, n)| part(a, at, n).cmp(&part(b, at, n));
        if self.width <= PART {
            return of((self.at, self.width));
        }
        let mut orders = self.parts().map(of);
        orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Number of bits of the field from the first one in which two packed keys differ to its end; 0: the keys have equal
    /// values.
    fn differing(&self, a: &[u64], b: &[u64]) -> u32 {
        let mut left = self.width;
        for (at, n) in self.parts() {
            let differ = part(a, at, n) ^ part(b, at, n);
            left -= n;
            if differ != 0 {
                return left + PART - differ.leading_zeros();
            }
        }
        0
    }

    /// Position and width in bits of each part of the field that is read at once, the uppermost first.
    fn parts(&self) -> impl Iterator<Item = (usize, u32)> + use<> {
        let (at, width) = (self.at, self.width);
        let starts = (0..width).step_by(PART as usize);
        starts.map(move |start| (at + start as usize, PART.min(width - start)))
    }
}

/// Writes the low `width` bits of `value` to `words` from bit `at` on, where all bits are 0.
fn put(words: &mut [u64], at: usize, width: u32, value: &Value) {
    let (mut at, mut left) = (at, width);
    while left > 0 {
        // The remaining bits end with the lowest bit of a limb.
        let n = (left - 1) % 64 + 1;
        left -= n;
        let limb = value.limb(left as usize / 64) & mask(n);
        let room = 64 - at as u32 % 64;
        if n <= room {
            words[at / 64] |= limb << (room - n);
        } else {
            words[at / 64] |= limb >> (n - room);
            words[at / 64 + 1] |= limb << (64 + room - n);
        }
        at += n as usize;
    }
}

/// Reads `width` bits of `words` from bit `at` on.
fn take(words: &[u64], at: usize, width: u32) -> Value {
    if width <= PART {
        return part(words, at, width).into();
    }
    let end = at + width as usize;
    let limb = |i: u32| part(words, end - (i as usize + 1) * 64, 64) as u64;
    let whole = width / 64;
    let mut limbs: Vec<u64> = (0..whole).map(limb).collect();
    limbs.push(part(words, at, width % 64) as u64);
    Value::from_limbs(&limbs)
}

/// Maximum number of bits of a field that are read at once.
const PART: u32 = u128::BITS;

/// Reads `width` ≤ [`PART`] bits of `words` from bit `at` on.
fn part(words: &[u64], at: usize, width: u32) -> u128 {
    let (mut at, mut left, mut value) = (at, width, 0u128);
    while left > 0 {
        let room = 64 - at as u32 % 64;
        let n = left.min(room);
        value |= u128::from(words[at / 64] >> (room - n) & mask(n)) << (left - n);
        at += n as usize;
        left -= n;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![
            Just(Kind::Exact),
            Just(Kind::Ternary),
            Just(Kind::Range),
            Just(Kind::Lpm)
        ]
    }

    /// Often a whole number of words, or nearly.
    fn width() -> impl Strategy<Value = u32> {
        let near = (1u32..6, 0u32..3).prop_map(|(words, more)| words * 64 + more - 2);
        prop_oneof![1u32..=320, near.prop_map(|width| width.min(320))]
    }

    proptest! {
        #[test]
        fn slots_and_entries_pack_alike(fields in proptest::collection::vec((width(), kind(), any::<[u64; 5]>()), 1..6)) {
            let specs: Vec<FieldSpec> = fields
                .iter()
                .map(|(width, kind, _)| FieldSpec { name: String::new(), kind: *kind, width: *width, flips_sign: false })
                .collect();
            let packing = Packing::new(&specs);
            let (mut slots, mut key) = (Vec::new(), Vec::new());
            for (spec, (_, _, value)) in specs.iter().zip(&fields) {
                let value = &Value::from_limbs(value) & &spec.max();
                slots.extend((0..spec.slots() as usize).map(|i| value.limb(i)));
                key.push(match spec.kind {
                    Kind::Range => FieldKey::Range { low: value.clone(), high: value },
                    _ => FieldKey::Masked { value, mask: spec.max() },
                });
            }
            let in_order: Vec<Slot> = (0..slots.len() as Slot).collect();
            let packed = packing.plan(&in_order).pack::<MAX_WORDS>(&slots);
            let mut entry = Vec::new();
            packing.pack_entry(&key, true, &mut entry);
            let (values, masks) = entry.split_at(packing.words);
            prop_assert_eq!(&packed[..packing.words], values);
            prop_assert!(packing.matches(&packed[..packing.words], values, masks));
            prop_assert_eq!(packing.unpack(values, Some(masks)), key);
            let mut cover = vec![0; packing.words];
            packing.cover(values, masks, &mut cover);
            let all: u32 = cover.iter().map(|w| w.count_ones()).sum();
            prop_assert_eq!(all as usize, packing.bits);
        }
    }
}
