use super::*;
use crate::table::key::FieldKey;
use crate::table::packing::{MAX_WORDS, Packing};
use crate::table::rows::Head;
use num_bigint::BigUint;
use proptest::prelude::*;

/// The reference: of all matching rows, the first in the rows' order.
fn scan(rows: &Rows, key: &[u64]) -> Option<Index> {
    let fits = rows.iter().filter(|row| rows.matches(*row, key));
    fits.min_by(|a, b| rows.order(*a, *b))
}

fn field(kind: Kind, width: u32) -> FieldSpec {
    FieldSpec {
        name: String::new(),
        kind,
        width,
        flips_sign: false,
    }
}

/// A change, generated from numbers: rank, fields, or a row to remove.
type Change = (i32, [BigUint; 3], [BigUint; 3], bool);

/// Width of the numbers from which fields are made.
const BITS: u32 = 256;

/// Few distinct values at few positions, so that entries overlap, nest and coincide; at the upper end, at the lower end
/// and across words.
fn value() -> impl Strategy<Value = BigUint> {
    prop_oneof![
        (0u8..16, 0u32..BITS - 3).prop_map(|(v, at)| BigUint::from(v) << at),
        (0u8..4, 0u8..4).prop_map(|(a, b)| {
            let (a, b) = (BigUint::from(a), BigUint::from(b));
            a << (BITS - 2) | &b << (BITS - 68) | b << 60
        }),
        any::<[u8; BITS as usize / 8]>().prop_map(|bytes| BigUint::from_bytes_be(&bytes)),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let values = || [value(), value(), value()];
    (1i32..6, values(), values(), prop::bool::weighted(0.3))
}

struct Both {
    rows: Rows,
    structures: Vec<Structure>,
    fields: Vec<FieldSpec>,
}

impl Both {
    fn new(fields: Vec<FieldSpec>) -> Both {
        let rows = Rows::new(Packing::new(&fields), false, 0);
        let mut structures = vec![Structure::new(&fields)];
        structures.push(Structure::Linear(Linear::default()));
        structures.push(Structure::BitVectors(BitVectors::from_rows(&rows)));
        structures.push(Structure::TupleSpace(TupleSpace::from_rows(&rows)));
        Both {
            rows,
            structures,
            fields,
        }
    }

    fn key(&self, rank: i32, a: &[BigUint], b: &[BigUint]) -> (i32, Vec<FieldKey>) {
        let mut prefix_len = 0;
        let field = |(spec, (a, b)): (&FieldSpec, (&BigUint, &BigUint))| {
            // The upper bits, so that wide fields differ in front and narrow ones differ at all.
            let (a, b) = (a >> (BITS - spec.width), b >> (BITS - spec.width));
            let full = (BigUint::from(1u8) << spec.width) - 1u8;
            let mask = match spec.kind {
                Kind::Exact => full,
                Kind::Optional => full * u8::from(b.bit(0)),
                Kind::Ternary => b,
                Kind::Lpm => {
                    let len = b % (spec.width + 1);
                    prefix_len = u32::try_from(len).unwrap_or(0);
                    &full ^ (&full >> prefix_len)
                }
                Kind::Range => {
                    let (low, high) = (a.clone().min(b.clone()), a.max(b));
                    return FieldKey::Range {
                        low: (&low).into(),
                        high: (&high).into(),
                    };
                }
            };
            FieldKey::Masked {
                value: (&(a & &mask)).into(),
                mask: (&mask).into(),
            }
        };
        let pairs = self.fields.iter().zip(a.iter().zip(b));
        let fields: Vec<FieldKey> = pairs.map(field).collect();
        let priority = self.fields.iter().any(|f| f.kind.wants_priority());
        (if priority { rank } else { prefix_len as i32 }, fields)
    }

    /// Applies a change to each structure, including the one that changes its kind by itself.
    fn insert(&mut self, (rank, fields): (i32, Vec<FieldKey>)) {
        let mut words = Vec::new();
        self.rows.packing.pack_entry(&fields, true, &mut words);
        if self.rows.find(rank, &words).is_some() {
            return;
        }
        let head = Head {
            rank,
            action: None,
            is_const: false,
            indirect: None,
        };
        let row = self.rows.add(head, &words, &[]);
        for (i, structure) in self.structures.iter_mut().enumerate() {
            match structure {
                Structure::Linear(linear) if i > 0 => linear.insert(&self.rows, row),
                Structure::BitVectors(vectors) if i > 0 => vectors.insert(&self.rows, row),
                _ => structure.insert(&self.rows, row),
            }
        }
    }

    fn remove(&mut self, row: Index) {
        for (i, structure) in self.structures.iter_mut().enumerate() {
            match structure {
                Structure::Linear(linear) if i > 0 => linear.remove(row),
                Structure::BitVectors(vectors) if i > 0 => vectors.remove(&self.rows, row),
                Structure::TupleSpace(space) if i > 0 => space.remove(&self.rows, row),
                _ => structure.remove(&self.rows, row),
            }
        }
        self.rows.take(row);
    }

    fn check(&self, values: &[BigUint]) -> Result<(), TestCaseError> {
        let mut slots = Vec::new();
        for (spec, value) in self.fields.iter().zip(values) {
            let mut limbs = (value >> (BITS - spec.width)).to_u64_digits();
            limbs.resize(spec.slots() as usize, 0);
            slots.extend(limbs);
        }
        let in_order: Vec<u32> = (0..slots.len() as u32).collect();
        let key = self.rows.packing.plan(&in_order).pack::<MAX_WORDS>(&slots);
        let key = &key[..self.rows.packing.words];
        let expected = scan(&self.rows, key);
        for structure in &self.structures {
            prop_assert_eq!(structure.find(&self.rows, key), expected, "{:?}", structure);
        }
        Ok(())
    }
}

fn shapes() -> impl Strategy<Value = Vec<FieldSpec>> {
    use Kind::*;
    prop_oneof![
        Just(vec![field(Lpm, 32)]),
        Just(vec![field(Lpm, 7), field(Exact, 5)]),
        Just(vec![field(Exact, 16), field(Lpm, 48)]),
        Just(vec![field(Lpm, 128)]),
        Just(vec![field(Exact, 3), field(Lpm, 67)]),
        Just(vec![field(Lpm, 128), field(Exact, 8)]),
        Just(vec![field(Ternary, 4), field(Range, 3), field(Optional, 2)]),
        Just(vec![
            field(Lpm, 32),
            field(Ternary, 128),
            field(Optional, 9)
        ]),
        Just(vec![field(Range, 16), field(Range, 128), field(Exact, 2)]),
        Just(vec![
            field(Ternary, 60),
            field(Range, 70),
            field(Ternary, 1)
        ]),
        Just(vec![field(Lpm, 160)]),
        Just(vec![field(Exact, 256), field(Lpm, 129)]),
        Just(vec![field(Range, 192), field(Ternary, 200)]),
        Just(vec![field(Ternary, 3), field(Range, 256)]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_support::cases(512)))]

    /// Whatever is inserted and removed, every structure must agree with a scan: for random keys, and for keys near
    /// entries.
    #[test]
    fn all_structures_find_what_a_scan_finds(
        fields in shapes(),
        changes in prop::collection::vec(change(), 0..200),
        keys in prop::collection::vec([value(), value(), value()], 8),
    ) {
        let mut both = Both::new(fields);
        for (i, (rank, a, b, remove)) in changes.iter().enumerate() {
            let n = both.rows.len();
            if *remove && n > 0 {
                let row = both.rows.iter().nth(a[0].count_ones() as usize % n).unwrap();
                both.remove(row);
            } else {
                both.insert(both.key(*rank, a, b));
            }
            both.check(a)?;
            if i % 16 == 0 {
                both.check(b)?;
            }
        }
        for key in &keys {
            both.check(key)?;
        }
        for (_, a, _, _) in &changes {
            both.check(a)?;
        }
        for row in both.rows.iter().collect::<Vec<_>>() {
            both.remove(row);
        }
        both.check(&keys[0])?;
    }
}

/// From a list to tuple space and back, past all limits.
#[test]
fn structures_take_over_from_each_other() {
    let mut both = Both::new(vec![field(Kind::Ternary, 32), field(Kind::Range, 16)]);
    both.structures.truncate(1);
    let mut seed = 1u64;
    let mut number = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        u128::from(seed) << 64 | u128::from(seed.rotate_left(32))
    };
    let upper = |number: u128| BigUint::from(number) << (BITS - 128);
    let mut kinds = Vec::new();
    let mut step = |both: &mut Both, key: &[BigUint]| {
        let kind = match both.structures[0] {
            Structure::Linear(_) => 'l',
            Structure::BitVectors(_) => 'b',
            _ => 't',
        };
        if kinds.last() != Some(&kind) {
            kinds.push(kind);
        }
        if both.rows.len() % 97 < 3 {
            both.check(key).unwrap();
        }
    };
    while both.rows.len() < 5000 {
        let (a, b) = (number(), number());
        // Masks of 0, 4, … 28 bits.
        let mask = !(u128::MAX >> (b % 8 * 4));
        let (values, masks) = ([a & mask, b].map(upper), [mask, b ^ a >> 7].map(upper));
        let key = both.key((a % 1000) as i32 + 1, &values, &masks);
        both.insert(key);
        step(&mut both, &[a, b].map(upper));
    }
    while both.rows.len() > 3 {
        let at = number() as usize % both.rows.len();
        let row = both.rows.iter().nth(at).unwrap();
        both.remove(row);
        step(&mut both, &[number(), number()].map(upper));
    }
    assert_eq!(kinds, ['l', 'b', 't', 'b', 'l']);
}
