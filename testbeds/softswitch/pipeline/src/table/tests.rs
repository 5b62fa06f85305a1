use super::*;
use crate::externs::counter::{CounterKind, CounterValue};
use num_bigint::BigUint;
use p4lang::runtime::{Match, Value};
use proptest::prelude::*;

fn table(fields: &[(&str, Kind, u32)], size: u64) -> Table {
    let spec = Spec {
        name: "t".into(),
        fields: fields
            .iter()
            .map(|(name, kind, width)| FieldSpec {
                name: (*name).into(),
                kind: *kind,
                width: *width,
                flips_sign: false,
            })
            .collect(),
        actions: vec![
            ActionSpec {
                counts: true,
                meters: true,
                name: "go".into(),
                params: vec![("port".into(), 9)],
                default_only: false,
                table_only: false,
            },
            ActionSpec {
                counts: true,
                meters: true,
                name: "miss".into(),
                params: vec![],
                default_only: true,
                table_only: false,
            },
        ],
        const_default: false,
        const_entries: false,
        size,
        implementation: None,
        direct_meter: None,
        idle_timeout: false,
        direct_counter: Some((
            "c".into(),
            CounterKind {
                packets: true,
                bytes: true,
            },
        )),
    };
    Table::new(spec, Bound::nothing())
}

fn refused<T: std::fmt::Debug>(result: Result<T, TableError>) -> String {
    result.unwrap_err().to_string()
}

fn entry(key: &[(&str, Match)], priority: i32, port: u128) -> TableEntry {
    TableEntry {
        table: "t".into(),
        key: key
            .iter()
            .map(|(f, m)| FieldMatch {
                field: (*f).into(),
                value: m.clone(),
            })
            .collect(),
        priority,
        action: ActionCall {
            name: "go".into(),
            params: vec![("port".into(), port.into())],
        },
    }
}

fn look(table: &Table, key: &[u64]) -> Option<Index> {
    let in_order: Vec<Slot> = (0..key.len() as Slot).collect();
    table.lookup(key, &table.key_plan(&in_order))
}

fn port(table: &mut Table, key: &[u64]) -> Option<u64> {
    let found = look(table, key);
    found.map(|_| table.action(found).params[0])
}

#[test]
fn exact_entries_are_inserted_modified_deleted() {
    let mut t = table(&[("a", Kind::Exact, 16), ("b", Kind::Exact, 128)], 2);
    let key = |a, b| [("a", Match::exact(a)), ("b", Match::exact(b))];
    t.insert(&entry(&key(1, 2), 0, 3)).unwrap();
    assert_eq!(
        t.insert(&entry(&key(1, 2), 0, 4)),
        Err(TableError::DuplicateEntry)
    );
    t.insert(&entry(&key(1, 2 << 64), 0, 5)).unwrap();
    assert_eq!(t.insert(&entry(&key(2, 2), 0, 4)), Err(TableError::Full(2)));
    assert_eq!(port(&mut t, &[1, 2, 0]), Some(3));
    assert_eq!(port(&mut t, &[1, 0, 2]), Some(5));
    assert_eq!(port(&mut t, &[2, 2, 0]), None);
    t.modify(&entry(&key(1, 2), 0, 7)).unwrap();
    assert_eq!(port(&mut t, &[1, 2, 0]), Some(7));
    assert_eq!(
        t.modify(&entry(&key(9, 2), 0, 7)).err(),
        Some(TableError::NotFound)
    );
    let removed = t.delete(&entry(&key(1, 2), 0, 0)).unwrap();
    assert_eq!(port(&mut t, &[1, 2, 0]), None);
    assert_eq!(
        t.delete(&entry(&key(1, 2), 0, 0)).err(),
        Some(TableError::NotFound)
    );
    t.restore(removed);
    assert_eq!(port(&mut t, &[1, 2, 0]), Some(7));
}

#[test]
fn the_longest_prefix_wins_in_any_order() {
    let mut t = table(&[("ip", Kind::Lpm, 32)], 10);
    let lpm = |value, prefix_len| [("ip", Match::lpm(value, prefix_len))];
    t.insert(&entry(&lpm(0x0a000000, 8), 0, 8)).unwrap();
    t.insert(&entry(&lpm(0x0a010100, 24), 0, 24)).unwrap();
    t.insert(&entry(&[], 0, 1)).unwrap();
    t.insert(&entry(&lpm(0x0a010000, 16), 0, 16)).unwrap();
    assert_eq!(port(&mut t, &[0x0a010105]), Some(24));
    assert_eq!(port(&mut t, &[0x0a010205]), Some(16));
    assert_eq!(port(&mut t, &[0x0a020205]), Some(8));
    assert_eq!(port(&mut t, &[0x0b020205]), Some(1));
    assert_eq!(
        refused(t.insert(&entry(&lpm(0x0a010105, 24), 0, 1))),
        "key field ip: the value has bits after its prefix"
    );
    assert_eq!(
        refused(t.insert(&entry(&lpm(0, 33), 0, 1))),
        "key field ip: the prefix is longer than the field"
    );
    let default = t.entries().find(|e| e.action.params[0].1 == 1).unwrap();
    assert!(default.key.is_empty(), "a don't-care is omitted");
}

#[test]
fn the_largest_priority_wins() {
    let mut t = table(
        &[
            ("f", Kind::Ternary, 8),
            ("r", Kind::Range, 16),
            ("o", Kind::Optional, 4),
        ],
        10,
    );
    let any = [("r", Match::range(10, 20))];
    t.insert(&entry(&any, 5, 1)).unwrap();
    t.insert(&entry(&[("f", Match::ternary(0x10, 0xf0))], 7, 2))
        .unwrap();
    t.insert(&entry(&[("o", Match::optional(3))], 9, 3))
        .unwrap();
    assert_eq!(port(&mut t, &[0x1f, 15, 3]), Some(3));
    assert_eq!(port(&mut t, &[0x1f, 15, 0]), Some(2));
    assert_eq!(port(&mut t, &[0x2f, 15, 0]), Some(1));
    assert_eq!(port(&mut t, &[0x2f, 21, 0]), None);
    assert_eq!(
        t.insert(&entry(&any, 0, 1)),
        Err(TableError::BadPriority(0))
    );
    assert_eq!(
        t.insert(&entry(&any, -1, 1)),
        Err(TableError::BadPriority(-1))
    );
    t.insert(&entry(&any, 6, 4)).unwrap();
    assert_eq!(
        port(&mut t, &[0x2f, 15, 0]),
        Some(4),
        "same key, another priority: another entry"
    );
    let priorities: Vec<i32> = t.entries().map(|e| e.priority).collect();
    assert_eq!(priorities, [9, 7, 6, 5]);
}

#[test]
fn bad_writes_are_refused_by_name() {
    let mut t = table(&[("a", Kind::Exact, 8)], 1);
    let a = [("a", Match::exact(1))];
    assert_eq!(
        t.insert(&entry(&[], 0, 1)),
        Err(TableError::MissingField("a".into()))
    );
    assert_eq!(
        refused(t.insert(&entry(&[("x", Match::exact(1))], 0, 1))),
        "no such key field: x (the key has a)"
    );
    assert_eq!(
        t.insert(&entry(&[a[0].clone(), a[0].clone()], 0, 1)),
        Err(TableError::FieldTwice("a".into()))
    );
    assert_eq!(
        refused(t.insert(&entry(&[("a", Match::exact(256))], 0, 1))),
        "value too wide: a has 8 bits"
    );
    assert_eq!(
        refused(t.insert(&entry(&[("a", Match::optional(1))], 0, 1))),
        "wrong match kind: key field a is matched `exact`"
    );
    assert_eq!(t.insert(&entry(&a, 3, 1)), Err(TableError::BadPriority(3)));
    assert_eq!(
        refused(t.insert(&entry(&a, 0, 512))),
        "value too wide: port has 9 bits"
    );
    let mut e = entry(&a, 0, 1);
    e.action.params.clear();
    assert_eq!(t.insert(&e), Err(TableError::MissingParam("port".into())));
    e.action.params = vec![("port".into(), 1.into()), ("x".into(), 1.into())];
    assert_eq!(
        refused(t.insert(&e)),
        "no such action parameter: x (the action has port)"
    );
    e.action = ActionCall {
        name: "miss".into(),
        params: vec![],
    };
    assert_eq!(
        refused(t.insert(&e)),
        "the table does not offer action miss here (it offers go)",
        "default only"
    );
    assert_eq!(
        t.set_default(Some(&e.action))
            .map(|a| t.spec.call(a.as_action()).name),
        Ok("NoAction".into())
    );
    assert_eq!(t.default_action(), e.action);
    let old = t.set_default(None).unwrap();
    assert_eq!(t.spec.call(old.as_action()).name, "miss");
    assert_eq!(t.default_action().name, "NoAction");
    t.spec.const_entries = true;
    assert_eq!(t.insert(&entry(&a, 0, 1)), Err(TableError::ConstTable));
    t.spec.const_default = true;
    assert_eq!(t.set_default(None), Err(TableError::ConstTable));
}

#[test]
fn direct_counters_belong_to_entries() {
    let mut t = table(&[("a", Kind::Exact, 8)], 4);
    let e = entry(&[("a", Match::exact(1))], 0, 1);
    t.insert(&e).unwrap();
    t.count(look(&t, &[1]), 100);
    t.count(look(&t, &[2]), 60);
    assert_eq!(
        *t.counter(Some(&t.entry_key(&e).unwrap())).unwrap(),
        CounterValue {
            packets: 1,
            bytes: 100
        }
    );
    assert_eq!(
        *t.counter(None).unwrap(),
        CounterValue {
            packets: 1,
            bytes: 60
        }
    );
}

/// The semantics of a table according to P4 and P4Runtime, in the simplest form.
#[derive(Default)]
struct Model(Vec<TableEntry>);

impl Model {
    fn place(&self, e: &TableEntry) -> Option<usize> {
        let same = |o: &TableEntry| o.priority == e.priority && o.key == e.key;
        self.0.iter().position(same)
    }

    /// Among matching entries, those with the largest priority, or else with the longest prefix.
    fn best(&self, fields: &[(&str, Kind, u32)], key: &[BigUint]) -> Vec<&TableEntry> {
        let value = |name: &str| &key[fields.iter().position(|f| f.0 == name).unwrap()];
        let number = |v: &Value| BigUint::from_bytes_be(&v.to_be_bytes());
        let wins = |e: &&TableEntry| {
            e.key.iter().all(|m| {
                let v = value(&m.field);
                match &m.value {
                    Match::Exact(x) | Match::Optional(x) => *v == number(x),
                    Match::Ternary { value, mask } => v & number(mask) == number(value),
                    Match::Lpm { value, prefix_len } => {
                        let width = fields.iter().find(|f| f.0 == m.field).unwrap().2;
                        (v ^ number(value)) >> (width - prefix_len) == BigUint::ZERO
                    }
                    Match::Range { low, high } => (number(low)..=number(high)).contains(v),
                }
            })
        };
        let rank = |e: &TableEntry| {
            let prefix = e.key.iter().find_map(|m| match &m.value {
                Match::Lpm { prefix_len, .. } => Some(*prefix_len),
                _ => None,
            });
            (e.priority, if e.priority == 0 { prefix } else { None })
        };
        let matching: Vec<&TableEntry> = self.0.iter().filter(wins).collect();
        let best = matching.iter().map(|e| rank(e)).max();
        matching
            .into_iter()
            .filter(|e| Some(rank(e)) == best)
            .collect()
    }
}

const SHAPES: &[&[(&str, Kind, u32)]] = &[
    &[("a", Kind::Exact, 3), ("b", Kind::Exact, 4)],
    &[("a", Kind::Exact, 2), ("b", Kind::Lpm, 6)],
    &[("a", Kind::Lpm, 4), ("b", Kind::Exact, 100)],
    &[("a", Kind::Lpm, 128), ("b", Kind::Exact, 8)],
    &[("a", Kind::Ternary, 4), ("b", Kind::Range, 3)],
    &[("a", Kind::Optional, 2), ("b", Kind::Lpm, 5)],
    &[("a", Kind::Exact, 256), ("b", Kind::Exact, 3)],
    &[("a", Kind::Lpm, 160), ("b", Kind::Exact, 129)],
    &[("a", Kind::Ternary, 200), ("b", Kind::Range, 192)],
    &[("a", Kind::Range, 130), ("b", Kind::Optional, 2048)],
];

/// A number of four bits, two at the upper end of the field and two at the lower end, which keeps the order.
fn spread(number: u128, width: u32) -> BigUint {
    match width {
        4.. => BigUint::from(number >> 2) << (width - 2) | BigUint::from(number & 3),
        _ => (number & 0xf >> (4 - width)).into(),
    }
}

proptest! {
    /// After inserts, changes, deletions and restores a table must behave as the model does; likewise if inserted in
    /// another order.
    #[test]
    fn a_table_is_its_model(
        shape in 0..SHAPES.len(),
        steps in prop::collection::vec((0..4u8, 1i32..6, [0u128..16, 0u128..16], [0u128..16, 0u128..16]), 0..60),
        keys in prop::collection::vec([0u128..16, 0u128..16], 24),
    ) {
        let fields = SHAPES[shape];
        let mut t = table(fields, 1000);
        let wants_priority = t.spec.wants_priority();
        let mut model = Model::default();
        for (i, (what, priority, a, b)) in steps.into_iter().enumerate() {
            let matches = fields.iter().zip(a.iter().zip(b)).filter_map(|((name, kind, width), (a, b))| {
                let full = (BigUint::from(1u8) << *width) - 1u8;
                let number = b as u32;
                let (a, b) = (spread(*a, *width), spread(b, *width));
                Some((*name, match kind {
                    Kind::Exact => Match::exact(&a),
                    Kind::Optional if !b.bit(0) => return None,
                    Kind::Optional => Match::optional(&a),
                    Kind::Lpm => {
                        // Long and short prefixes of wide fields.
                        let host = if number % 4 == 3 { *width - 1 } else { number.min(*width) };
                        if host == *width { return None }
                        Match::lpm(&(&a >> host << host), width - host)
                    }
                    Kind::Ternary if b == BigUint::ZERO => return None,
                    Kind::Ternary => Match::ternary(&(&a & &b), &b),
                    Kind::Range => {
                        let (low, high) = (a.clone().min(b.clone()), a.max(b));
                        if low == BigUint::ZERO && high == full { return None }
                        Match::range(&low, &high)
                    }
                }))
            });
            let matches: Vec<(&str, Match)> = matches.collect();
            let e = entry(&matches, if wants_priority { priority } else { 0 }, i as u128);
            let place = model.place(&e);
            match (what, place) {
                (0 | 1, None) => { prop_assert!(t.insert(&e).is_ok()); model.0.push(e); }
                (0 | 1, Some(_)) => prop_assert_eq!(t.insert(&e), Err(TableError::DuplicateEntry)),
                (2, Some(at)) => {
                    let old = t.modify(&e).unwrap();
                    if i % 3 == 0 { t.restore(old); } else { model.0[at] = e; }
                }
                (2, None) => prop_assert_eq!(t.modify(&e).err(), Some(TableError::NotFound)),
                (_, None) => prop_assert_eq!(t.delete(&e).err(), Some(TableError::NotFound)),
                (_, Some(at)) => {
                    let removed = t.delete(&e).unwrap();
                    if i % 3 == 0 { t.restore(removed); } else { model.0.remove(at); }
                }
            }
        }
        let mut other = table(fields, 1000);
        model.0.iter().rev().for_each(|e| drop(other.insert(e).unwrap()));
        let listed: Vec<TableEntry> = t.entries().collect();
        prop_assert_eq!(&listed, &other.entries().collect::<Vec<_>>());
        prop_assert!(listed.is_sorted_by_key(|e| Reverse(e.priority)));
        let sorted = |mut all: Vec<TableEntry>| { all.sort(); all };
        prop_assert_eq!(sorted(listed), sorted(model.0.clone()));
        for key in keys {
            let mut slots = Vec::new();
            let mut values = Vec::new();
            for ((_, _, width), v) in fields.iter().zip(key) {
                values.push(spread(v, *width));
                let mut limbs = values[values.len() - 1].to_u64_digits();
                limbs.resize(width.div_ceil(64) as usize, 0);
                slots.extend(limbs);
            }
            let found = port(&mut t, &slots);
            prop_assert_eq!(found, port(&mut other, &slots));
            prop_assert_eq!(look(&t, &slots), t.lookup_one_by_one(&slots));
            let best = model.best(fields, &values);
            match found {
                None => prop_assert!(best.is_empty()),
                Some(p) => prop_assert!(best.iter().any(|e| e.action.params[0].1 == u128::from(p))),
            }
        }
    }
}
