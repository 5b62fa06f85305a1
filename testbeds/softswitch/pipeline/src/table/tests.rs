use super::*;
use p4lang::runtime::Match;
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
            })
            .collect(),
        actions: vec![
            ActionSpec {
                name: "go".into(),
                params: vec![("port".into(), 9)],
                default_only: false,
                table_only: false,
            },
            ActionSpec {
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
    Table::new(
        spec,
        Bound {
            index: None,
            params: Box::default(),
        },
    )
}

fn entry(key: &[(&str, Match)], priority: i32, port: u128) -> TableEntry {
    TableEntry {
        table: "t".into(),
        key: key
            .iter()
            .map(|(f, m)| FieldMatch {
                field: (*f).into(),
                value: *m,
            })
            .collect(),
        priority,
        action: ActionCall {
            name: "go".into(),
            params: vec![("port".into(), port)],
        },
    }
}

fn port(table: &mut Table, key: &[u64]) -> Option<u64> {
    let (hit, action) = table.lookup(key);
    hit.then(|| action.params[0])
}

#[test]
fn exact_entries_are_inserted_modified_deleted() {
    let mut t = table(&[("a", Kind::Exact, 16), ("b", Kind::Exact, 128)], 2);
    let key = |a, b| [("a", Match::Exact(a)), ("b", Match::Exact(b))];
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
        t.modify(&entry(&key(9, 2), 0, 7)),
        Err(TableError::NotFound)
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
    let lpm = |value, prefix_len| [("ip", Match::Lpm { value, prefix_len })];
    t.insert(&entry(&lpm(0x0a000000, 8), 0, 8)).unwrap();
    t.insert(&entry(&lpm(0x0a010100, 24), 0, 24)).unwrap();
    t.insert(&entry(&[], 0, 1)).unwrap();
    t.insert(&entry(&lpm(0x0a010000, 16), 0, 16)).unwrap();
    assert_eq!(port(&mut t, &[0x0a010105]), Some(24));
    assert_eq!(port(&mut t, &[0x0a010205]), Some(16));
    assert_eq!(port(&mut t, &[0x0a020205]), Some(8));
    assert_eq!(port(&mut t, &[0x0b020205]), Some(1));
    assert_eq!(
        t.insert(&entry(&lpm(0x0a010105, 24), 0, 1)),
        Err(TableError::BadMatch("ip".into()))
    );
    assert_eq!(
        t.insert(&entry(&lpm(0, 33), 0, 1)),
        Err(TableError::BadMatch("ip".into()))
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
    let any = [("r", Match::Range { low: 10, high: 20 })];
    t.insert(&entry(&any, 5, 1)).unwrap();
    t.insert(&entry(
        &[(
            "f",
            Match::Ternary {
                value: 0x10,
                mask: 0xf0,
            },
        )],
        7,
        2,
    ))
    .unwrap();
    t.insert(&entry(&[("o", Match::Optional(3))], 9, 3))
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
    let a = [("a", Match::Exact(1))];
    assert_eq!(
        t.insert(&entry(&[], 0, 1)),
        Err(TableError::MissingField("a".into()))
    );
    assert_eq!(
        t.insert(&entry(&[("x", Match::Exact(1))], 0, 1)),
        Err(TableError::NoSuchField("x".into()))
    );
    assert_eq!(
        t.insert(&entry(&[a[0], a[0]], 0, 1)),
        Err(TableError::FieldTwice("a".into()))
    );
    assert_eq!(
        t.insert(&entry(&[("a", Match::Exact(256))], 0, 1)),
        Err(TableError::ValueTooWide("a".into()))
    );
    assert_eq!(
        t.insert(&entry(&[("a", Match::Optional(1))], 0, 1)),
        Err(TableError::WrongMatchKind("a".into()))
    );
    assert_eq!(t.insert(&entry(&a, 3, 1)), Err(TableError::BadPriority(3)));
    assert_eq!(
        t.insert(&entry(&a, 0, 512)),
        Err(TableError::ValueTooWide("port".into()))
    );
    let mut e = entry(&a, 0, 1);
    e.action.params.clear();
    assert_eq!(t.insert(&e), Err(TableError::MissingParam("port".into())));
    e.action.params = vec![("port".into(), 1), ("x".into(), 1)];
    assert_eq!(t.insert(&e), Err(TableError::NoSuchParam("x".into())));
    e.action = ActionCall {
        name: "miss".into(),
        params: vec![],
    };
    assert_eq!(
        t.insert(&e),
        Err(TableError::NoSuchAction("miss".into())),
        "default only"
    );
    assert_eq!(
        t.set_default(Some(&e.action)).map(|a| a.name),
        Ok("NoAction".into())
    );
    assert_eq!(t.default_action(), e.action);
    assert_eq!(t.set_default(None).map(|a| a.name), Ok("miss".into()));
    assert_eq!(t.default_action().name, "NoAction");
    t.spec.const_entries = true;
    assert_eq!(t.insert(&entry(&a, 0, 1)), Err(TableError::ConstTable));
    t.spec.const_default = true;
    assert_eq!(t.set_default(None), Err(TableError::ConstTable));
}

#[test]
fn direct_counters_belong_to_entries() {
    let mut t = table(&[("a", Kind::Exact, 8)], 4);
    let e = entry(&[("a", Match::Exact(1))], 0, 1);
    t.insert(&e).unwrap();
    t.lookup(&[1]);
    t.count(100);
    t.lookup(&[2]);
    t.count(60);
    assert_eq!(
        *t.counter(Some(&e)).unwrap(),
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

proptest! {
    /// Against the definition: of all entries that match, one of the largest priority.
    #[test]
    fn grouped_search_finds_what_a_scan_finds(
        rows in proptest::collection::vec((1i32..6, 0u128..16, 0u128..16, 0u128..8, 0u128..8, any::<bool>()), 0..24),
        keys in proptest::collection::vec((0u64..16, 0u64..8), 16),
    ) {
        let mut t = table(&[("f", Kind::Ternary, 4), ("r", Kind::Range, 3)], 100);
        let mut kept: Vec<TableEntry> = Vec::new();
        for (i, (priority, value, mask, x, y, keep)) in rows.into_iter().enumerate() {
            let key = [
                ("f", Match::Ternary { value: value & mask, mask }),
                ("r", Match::Range { low: x.min(y), high: x.max(y) }),
            ];
            let e = entry(&key, priority, i as u128);
            if t.insert(&e).is_ok() {
                if keep { kept.push(e) } else { t.delete(&e).unwrap(); }
            }
        }
        for (f, r) in keys {
            let wins = |e: &&TableEntry| e.key.iter().all(|m| match m.value {
                Match::Ternary { value, mask } => u128::from(f) & mask == value,
                Match::Range { low, high } => (low..=high).contains(&u128::from(r)),
                _ => false,
            });
            let best = kept.iter().filter(wins).map(|e| e.priority).max();
            let found = port(&mut t, &[f, r]);
            let priority = found.map(|p| {
                let e = kept.iter().find(|e| e.action.params[0].1 == u128::from(p)).unwrap();
                assert!(wins(&e));
                e.priority
            });
            prop_assert_eq!(priority, best);
        }
    }
}
