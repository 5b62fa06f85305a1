//! Writes by name, listings, batches that are rolled back.

use crate::support;
use crate::support::{Psa, call, entry};
use p4lang::runtime::{CloneSession, Match, MulticastGroup, Replica};
use pipeline::{CounterValue, ReplicationError, Switch, TableError};

fn loaded() -> Switch {
    Psa {
        decls: "header x_h { bit<8> v; }",
        headers: "x_h x;",
        parser: "state start { pkt.extract(hdr.x); transition accept; }",
        locals: "
            Register<bit<8>, bit<8>>(4) r;
            Counter<bit<64>, bit<8>>(4, PSA_CounterType_t.PACKETS) c;
            action go(bit<8> v) { hdr.x.v = v; }
            table t { key = { hdr.x.v: exact; } actions = { go; NoAction; } size = 2; }",
        ingress: "t.apply(); r.write(0, hdr.x.v); c.count(0); send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    }
    .load()
}

fn e(key: u128, value: u128) -> p4lang::runtime::TableEntry {
    entry(
        "ingress.t",
        &[("hdr.x.v", Match::exact(key))],
        0,
        "ingress.go",
        &[("v", value)],
    )
}

/// All state that a batch may change.
fn all(switch: &Switch) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        switch.entries("ingress.t").unwrap(),
        switch.default_action("ingress.t").unwrap(),
        switch.multicast_groups(),
        switch.clone_sessions(),
        (0..4)
            .map(|i| switch.register_read("ingress.r", i).unwrap())
            .collect::<Vec<_>>(),
        (0..4)
            .map(|i| switch.counter_read("ingress.c", i).unwrap())
            .collect::<Vec<_>>(),
    )
}

fn group(id: u32, ports: &[u32]) -> MulticastGroup {
    MulticastGroup {
        id,
        replicas: ports
            .iter()
            .map(|p| Replica {
                port: *p,
                instance: 0,
            })
            .collect(),
    }
}

fn session(id: u32) -> CloneSession {
    CloneSession {
        id,
        replicas: group(1, &[4]).replicas,
        class_of_service: 3,
        packet_length_bytes: 9,
    }
}

#[test]
fn a_failed_batch_leaves_no_trace() {
    let mut switch = loaded();
    switch.insert_entry(&e(1, 1)).unwrap();
    switch.insert_entry(&e(2, 2)).unwrap();
    switch.set_multicast_group(&group(1, &[1])).unwrap();
    switch.set_multicast_group(&group(2, &[2])).unwrap();
    switch.set_clone_session(&session(1)).unwrap();
    switch.register_write("ingress.r", 1, &[7.into()]).unwrap();
    let before = all(&switch);
    let result = switch.atomically(|s| {
        s.modify_entry(&e(1, 9))?;
        s.delete_entry(&e(1, 0))?;
        s.insert_entry(&e(3, 3))?;
        s.set_default_action("ingress.t", Some(&call("ingress.go", &[("v", 4)])))?;
        s.set_multicast_group(&group(1, &[3, 4])).unwrap();
        s.set_multicast_group(&group(5, &[3])).unwrap();
        s.delete_multicast_group(2).unwrap();
        s.delete_clone_session(1).unwrap();
        s.set_clone_session(&session(4)).unwrap();
        s.register_write("ingress.r", 1, &[8.into()]).unwrap();
        s.counter_write(
            "ingress.c",
            2,
            CounterValue {
                packets: 5,
                bytes: 0,
            },
        )
        .unwrap();
        s.insert_entry(&e(4, 4))
    });
    assert_eq!(result, Err(TableError::Full(2)));
    assert_eq!(all(&switch), before);
    // And the table still works.
    switch.delete_entry(&e(1, 0)).unwrap();
    switch.insert_entry(&e(4, 4)).unwrap();
    assert_eq!(support::one(&mut switch, &[4]), [4]);
}

#[test]
fn a_good_batch_stays() {
    let mut switch = loaded();
    switch.atomically(|s| s.insert_entry(&e(1, 5))).unwrap();
    switch.rollback();
    assert_eq!(support::one(&mut switch, &[1]), [5]);
}

#[test]
fn groups_and_sessions_are_checked_and_listed_by_id() {
    let mut switch = loaded();
    assert_eq!(
        switch.set_multicast_group(&group(0, &[1])),
        Err(ReplicationError::ZeroId)
    );
    assert_eq!(
        switch.set_multicast_group(&group(1, &[1, 1])),
        Err(ReplicationError::Twice {
            port: 1,
            instance: 0
        })
    );
    let mut v1model = support::v1model::V1::default().load();
    v1model.set_multicast_group(&group(1, &[510])).unwrap();
    for port in [511, 99_999] {
        let refused = v1model.set_multicast_group(&group(1, &[port])).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("port {port} does not exist: this architecture has ports 0 to 510")
        );
    }
    assert_eq!(
        switch.delete_multicast_group(1),
        Err(ReplicationError::NotFound)
    );
    assert_eq!(
        switch.delete_clone_session(1),
        Err(ReplicationError::NotFound)
    );
    for id in [9, 3, 7] {
        switch.set_multicast_group(&group(id, &[1])).unwrap();
        switch.set_clone_session(&session(id)).unwrap();
    }
    assert_eq!(
        switch
            .multicast_groups()
            .iter()
            .map(|g| g.id)
            .collect::<Vec<_>>(),
        [3, 7, 9]
    );
    assert_eq!(
        switch.clone_sessions(),
        [session(3), session(7), session(9)]
    );
}

#[test]
fn unknown_names_are_refused() {
    let mut switch = loaded();
    let mut wrong = e(1, 1);
    wrong.table = "ingress.nothing".into();
    assert_eq!(switch.insert_entry(&wrong), Err(TableError::NoSuchTable));
    assert_eq!(
        switch.entries("t"),
        Err(TableError::NoSuchTable),
        "names are fully qualified"
    );
    assert_eq!(
        switch.tables().map(|t| t.name.clone()).collect::<Vec<_>>(),
        ["ingress.t"]
    );
}
