//! Whole entries: idle timeouts, direct counters and meters, notes, batches; and a program that takes over from another.

use crate::support;
use crate::support::v1model::V1;
use crate::support::{Psa, through};
use p4lang::runtime::{CloneSession, MulticastGroup, Replica};
use pipeline::{
    Bound, Config, CounterValue, DirectChange, EntryAction, EntryRef, EntryState, EntryWrite,
    FieldKey, MeterConfig, Note, ProfileError, ReconcileError, Switch, TableError,
};

const MS: u64 = 1_000_000;

fn program(table: &str, locals: &str) -> Switch {
    load(&text(table, locals))
}

fn text(table: &str, locals: &str) -> String {
    let locals = format!(
        "direct_counter(CounterType.packets_and_bytes) c;
        direct_meter<bit<2>>(MeterType.packets) m;
        register<bit<8>>(4) r;
        counter(4, CounterType.packets) n;
        action forward(bit<9> port) {{ s.egress_spec = port; c.count(); m.read(meta.colour); }}
        action other(bit<8> v) {{ hdr.x.b = v; c.count(); m.read(meta.colour); }}
        {locals}
        table t {{
            key = {{ hdr.x.a: exact; }}
            actions = {{ forward; other; NoAction; }}
            counters = c; meters = m; support_timeout = true;
            {table}
        }}"
    );
    let program = V1 {
        locals: &locals,
        meta: "bit<2> colour;",
        ingress: "t.apply(); n.count((bit<32>) hdr.x.a); r.write(0, hdr.x.b);",
        ..V1::default()
    };
    program.text()
}

fn load(text: &str) -> Switch {
    support::load(text, Config::default())
}

fn key(a: u128) -> Vec<FieldKey> {
    vec![FieldKey::Masked {
        value: a.into(),
        mask: 0xff.into(),
    }]
}

fn write(a: u128, port: u64) -> EntryWrite {
    EntryWrite {
        key: key(a),
        priority: 0,
        action: EntryAction::Own(Bound {
            index: Some(0),
            params: [port].into(),
        }),
        meter: None,
        clear_meter_counts: false,
        counter: None,
        idle_timeout_ns: 0,
        note: None,
    }
}

fn state(switch: &Switch, now_ns: u64, a: u128) -> EntryState {
    let table = switch.table_position("ingress.t").unwrap();
    let number = switch.entry_number(table, 0, &key(a)).unwrap();
    switch.entry_state(now_ns, table, number).unwrap()
}

fn idle(switch: &mut Switch, now_ns: u64) -> Vec<FieldKey> {
    switch.handle_timeout(now_ns);
    std::iter::from_fn(|| switch.poll_idle())
        .flat_map(|(_, entry)| entry.key)
        .collect()
}

#[test]
fn an_entry_that_no_packet_finds_is_reported_once_per_timeout() {
    let mut switch = program("", "");
    let timed = |a, ms| EntryWrite {
        idle_timeout_ns: ms * MS,
        ..write(a, 1)
    };
    assert_eq!(switch.poll_timeout(), None);
    switch.insert_whole(0, 0, timed(1, 10)).unwrap();
    switch.insert_whole(0, 0, timed(2, 25)).unwrap();
    switch.insert_whole(0, 0, write(3, 1)).unwrap();
    assert_eq!(switch.poll_timeout(), Some(10 * MS));
    assert_eq!(idle(&mut switch, 10 * MS - 1), []);

    switch.handle_packet(4 * MS, 0, &[1, 0]);
    assert_eq!(state(&switch, 9 * MS, 1).since_hit_ns, 5 * MS);
    assert_eq!(idle(&mut switch, 10 * MS), [], "it was found in between");
    assert_eq!(switch.poll_timeout(), Some(14 * MS));
    assert_eq!(idle(&mut switch, 14 * MS), key(1));
    assert_eq!(idle(&mut switch, 15 * MS), [], "its time begins anew");
    assert_eq!(idle(&mut switch, 24 * MS), key(1));
    assert_eq!(idle(&mut switch, 25 * MS), key(2));
    assert_eq!(
        state(&switch, 25 * MS, 1).since_hit_ns,
        21 * MS,
        "being reported is no hit"
    );

    // A program that is written to before it runs.
    let mut saved = program("", "");
    saved.insert_whole(0, 0, timed(1, 10)).unwrap();
    saved.insert_whole(0, 0, write(2, 1)).unwrap();
    saved.start(50 * MS);
    assert_eq!(idle(&mut saved, 50 * MS), []);
    assert_eq!(saved.poll_timeout(), Some(60 * MS));
    assert_eq!(state(&saved, 51 * MS, 2).since_hit_ns, MS);

    // A changed timeout counts from the change; an entry without one, or a missing entry, never expires.
    switch.modify_whole(26 * MS, 0, timed(1, 3)).unwrap();
    assert_eq!(switch.poll_timeout(), Some(29 * MS));
    switch.modify_whole(26 * MS, 0, write(1, 1)).unwrap();
    switch.delete_whole(0, 0, key(2)).unwrap();
    assert_eq!(switch.poll_timeout(), None);
    assert_eq!(switch.idle_lost(), 0);
}

#[test]
fn attached_data_is_written_with_the_entry() {
    let mut switch = program("", "");
    let config = MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 2,
        pburst: 2,
    };
    let counter = CounterValue {
        packets: 5,
        bytes: 50,
    };
    let note = Note {
        metadata: b"mine".to_vec(),
        number: 7,
    };
    let whole = EntryWrite {
        meter: Some(config),
        counter: Some(counter),
        note: Some(Box::new(note.clone())),
        ..write(1, 1)
    };
    switch.insert_whole(0, 0, whole).unwrap();
    for _ in 0..4 {
        through(&mut switch, &[1, 0]);
    }
    let read = state(&switch, 0, 1);
    assert_eq!((read.meter, read.note), (Some(config), note));
    assert_eq!((read.counter.packets, read.counter.bytes), (9, 58));
    assert_eq!(
        read.meter_counts.map(|c| c.packets),
        [1, 1, 2],
        "green, yellow, red"
    );

    switch.begin();
    switch.modify_whole(0, 0, write(1, 2)).unwrap();
    let read = state(&switch, 0, 1);
    assert_eq!(
        (read.meter, read.counter.packets, read.note),
        (None, 9, Note::default()),
        "a counter stays, a meter does not"
    );
    let entry = EntryRef::Entry(0, key(1));
    let change = DirectChange {
        counter: Some(CounterValue::default()),
        meter: None,
        clear_meter_counts: true,
    };
    switch.change_direct(0, 0, &entry, &change).unwrap();
    switch
        .change_direct(0, 0, &EntryRef::Default, &change)
        .unwrap();
    switch.insert_whole(0, 0, write(2, 2)).unwrap();
    let read = state(&switch, 0, 1);
    assert_eq!(read.meter_counts, [CounterValue::default(); 3]);
    switch.rollback();
    let read = state(&switch, 0, 1);
    assert_eq!((read.meter, read.counter.packets), (Some(config), 9));
    assert_eq!(read.meter_counts.map(|c| c.packets), [1, 1, 2]);
    assert_eq!(switch.entry_number(0, 0, &key(2)), None);
}

#[test]
fn only_attached_data_of_a_constant_entry_changes() {
    let mut switch = program("const entries = { 1: forward(3); }", "");
    let refused = Err(ProfileError::Table(TableError::ConstTable));
    assert_eq!(switch.modify_whole(0, 0, write(1, 2)), refused);
    assert_eq!(switch.insert_whole(0, 0, write(2, 2)), refused);
    let counted = EntryWrite {
        action: EntryAction::Keep,
        counter: Some(CounterValue {
            packets: 3,
            bytes: 0,
        }),
        ..write(1, 0)
    };
    switch.modify_whole(0, 0, counted).unwrap();
    let read = state(&switch, 0, 1);
    assert!(read.is_const);
    assert_eq!(read.counter.packets, 3);
    assert_eq!(through(&mut switch, &[1, 0])[0].0, 3);
}

/// P4Runtime 1.4, "Direct Resources": an action that does not execute them can have neither values nor configurations of
/// them.
#[test]
fn an_action_has_only_the_direct_objects_that_it_calls() {
    let program = Psa {
        decls: "header byte_h { bit<8> v; }",
        headers: "byte_h x;",
        parser: "state start { pkt.extract(hdr.x); transition accept; }",
        locals: "
            DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) c;
            DirectMeter(PSA_MeterType_t.PACKETS) m;
            action plain(bit<8> v) { hdr.x.v = v; }
            action counted(bit<8> v) { hdr.x.v = v; if (v == 1) { c.count(); } }
            action metered(bit<8> v) { hdr.x.v = v; PSA_MeterColor_t colour = m.execute(); }
            table t {
                key = { hdr.x.v: exact; }
                actions = { plain; counted; metered; }
                psa_direct_counter = c; psa_direct_meter = m;
            }",
        ingress: "t.apply();",
        ..Psa::default()
    };
    let mut switch = program.load();
    let with = |index, counter: bool, meter: bool| {
        let plain = write(u128::from(index) + 1, 7);
        let counts = CounterValue {
            packets: 5,
            bytes: 0,
        };
        let config = MeterConfig {
            cir: 1,
            cburst: 1,
            pir: 2,
            pburst: 2,
        };
        EntryWrite {
            action: EntryAction::Own(Bound {
                index: Some(index),
                params: [7].into(),
            }),
            counter: counter.then_some(counts),
            meter: meter.then_some(config),
            ..plain
        }
    };
    let refused = |action: &str, what| {
        let action = format!("ingress.{action}");
        Err(TableError::NotExecuted { action, what })
    };
    let mut insert = |write| switch.insert_whole(0, 0, write);
    assert_eq!(
        insert(with(0, true, false)),
        refused("plain", "counter").map_err(Into::into)
    );
    assert_eq!(
        insert(with(0, false, true)),
        refused("plain", "meter").map_err(Into::into)
    );
    assert_eq!(
        insert(with(1, false, true)),
        refused("counted", "meter").map_err(Into::into)
    );
    assert_eq!(
        insert(with(2, true, false)),
        refused("metered", "counter").map_err(Into::into)
    );
    assert_eq!(insert(with(0, false, false)), Ok(()));
    assert_eq!(insert(with(1, true, false)), Ok(()));
    assert_eq!(insert(with(2, false, true)), Ok(()));
    let keep = EntryWrite {
        action: EntryAction::Keep,
        ..with(0, true, false)
    };
    let kept = switch.modify_whole(0, 0, keep);
    assert_eq!(kept, refused("plain", "counter").map_err(Into::into));

    let mut next = program.load();
    next.reconcile(0, &switch).unwrap();
    let counted = |switch: &Switch| {
        let numbers = [1, 2, 3].map(|a| switch.entry_number(0, 0, &key(a)));
        numbers.map(|number| switch.entry_state(0, 0, number.unwrap()).unwrap().counter)
    };
    assert_eq!(counted(&next), counted(&switch));
}

#[test]
fn a_new_program_takes_over_written_state() {
    let old_table = "const default_action = NoAction(); entries = { 9: forward(9); }";
    let mut old = program(old_table, "");
    old.delete_whole(0, 0, key(9)).unwrap();
    let timed = EntryWrite {
        idle_timeout_ns: 10 * MS,
        ..write(1, 5)
    };
    old.insert_whole(0, 0, timed).unwrap();
    let group = MulticastGroup {
        id: 1,
        replicas: vec![Replica {
            port: 1,
            instance: 0,
        }],
    };
    old.set_multicast_group(&group).unwrap();
    let session = CloneSession {
        id: 2,
        replicas: vec![],
        class_of_service: 1,
        packet_length_bytes: 9,
    };
    old.set_clone_session(&session).unwrap();
    through(&mut old, &[1, 77]);

    // Actions have other numbers here, and the table's own entry was deleted.
    let reordered = "entries = { 9: forward(9); } size = 7;";
    let mut new = program(
        reordered,
        "action first() {} table u { actions = { first; } }",
    );
    new.reconcile(20 * MS, &old).unwrap();
    assert_eq!(new.entry_number(0, 0, &key(9)), None);
    let kept = state(&new, 20 * MS, 1);
    assert_eq!(
        (kept.counter.packets, kept.idle_timeout_ns),
        (1, 10 * MS),
        "with its counter"
    );
    assert_eq!(new.multicast_groups(), [group]);
    assert_eq!(new.clone_sessions(), [session]);
    assert_eq!(new.register_read("ingress.r", 0), Ok(vec![77.into()]));
    assert_eq!(new.counter_read("ingress.n", 1).unwrap().packets, 1);
    assert_eq!(through(&mut new, &[1, 0])[0].0, 5);
    assert_eq!(new.poll_timeout(), Some(10 * MS), "timers go on");

    // Without the table the entry would be lost, so the program is refused.
    let bare = V1 {
        ingress: "s.egress_spec = 1;",
        ..V1::default()
    };
    let refused = bare.load().reconcile(0, &old).unwrap_err();
    let ReconcileError::Table { table, error } = refused else {
        panic!("{refused}")
    };
    assert_eq!(
        (table.as_str(), error),
        ("ingress.t", ProfileError::Table(TableError::NoSuchTable))
    );
}

#[test]
fn a_table_without_idle_timeouts_takes_none_over() {
    let mut old = program("", "");
    let without = text("", "").replace("support_timeout = true;", "");
    old.insert_whole(0, 0, write(1, 5)).unwrap();
    assert_eq!(load(&without).reconcile(0, &old), Ok(()));
    let timed = EntryWrite {
        idle_timeout_ns: MS,
        ..write(2, 5)
    };
    old.insert_whole(0, 0, timed).unwrap();
    let table = "ingress.t".to_owned();
    let error = ProfileError::Table(TableError::NoIdleTimeouts);
    assert_eq!(
        load(&without).reconcile(0, &old),
        Err(ReconcileError::Table { table, error })
    );
}

/// A rate in packets cannot become a rate in bytes.
#[test]
fn meters_with_another_unit_start_fresh() {
    let text = text(
        "default_action = forward(3);",
        "meter(2, MeterType.packets) k;",
    );
    let text = text.replace("t.apply();", "t.apply(); k.execute_meter(0, meta.colour);");
    let mut old = load(&text);
    let config = MeterConfig {
        cir: 10,
        cburst: 2,
        pir: 20,
        pburst: 4,
    };
    let metered = EntryWrite {
        meter: Some(config),
        ..write(1, 5)
    };
    old.insert_whole(0, 0, metered).unwrap();
    let change = DirectChange {
        counter: None,
        meter: Some(Some(config)),
        clear_meter_counts: false,
    };
    old.change_direct(0, 0, &EntryRef::Default, &change)
        .unwrap();
    old.meter_configure("ingress.k", 0, Some(config), 0)
        .unwrap();
    through(&mut old, &[1, 0]);
    through(&mut old, &[2, 0]);

    let kept = |of: &str| {
        let mut new = load(&text.replace(of, &of.replace("packets", "bytes")));
        new.reconcile(0, &old).unwrap();
        let entry = state(&new, 0, 1);
        assert_eq!(entry.counter.packets, 1, "the entry is there");
        [
            entry.meter,
            new.direct_meter_config("ingress.t", None).unwrap(),
            new.meter_config("ingress.k", 0).unwrap(),
        ]
    };
    let some = Some(config);
    assert_eq!(kept("MeterType.none"), [some, some, some]);
    assert_eq!(kept("(MeterType.packets) m;"), [None, None, some]);
    assert_eq!(kept("(2, MeterType.packets) k;"), [some, some, None]);
}
