//! Action profiles and selectors: members and groups that entries share.

use crate::support::v1model::V1;
use crate::support::{call, entry, through};
use p4lang::runtime::{Match, TableEntry};
use pipeline::{
    EntryAction, EntryWrite, FieldKey, GroupMember, Indirect, OneShotAction, Ports, ProfileError,
    ProfileGroup, Switch, TableError,
};

const FORWARD: &str = "action forward(bit<9> port) { s.egress_spec = port; }
    action mark(bit<8> v) { hdr.x.b = v; s.egress_spec = 1; }
    action other() {}";

fn profile() -> Switch {
    let locals = format!(
        "{FORWARD}
        action_profile(3) ap;
        table t {{ key = {{ hdr.x.a: exact; }} actions = {{ forward; mark; NoAction; }} implementation = ap; }}
        table u {{ key = {{ hdr.x.b: exact; }} actions = {{ forward; mark; NoAction; }} implementation = ap; }}"
    );
    let program = V1 {
        locals: &locals,
        ingress: "t.apply(); u.apply();",
        ..V1::default()
    };
    program.load()
}

fn selector() -> Switch {
    selector_with("")
}

/// A selector with further properties of the table.
fn selector_with(properties: &str) -> Switch {
    let locals = format!(
        "{FORWARD}
        action_selector(HashAlgorithm.identity, 8, 16) sel;
        table t {{
            key = {{ hdr.x.a: exact; hdr.x.b: selector; }}
            actions = {{ forward; NoAction; }}
            implementation = sel;
            {properties}
        }}"
    );
    let program = V1 {
        locals: &locals,
        ingress: "t.apply();",
        ..V1::default()
    };
    program.load()
}

fn group(members: &[(u32, u32)]) -> ProfileGroup {
    ProfileGroup {
        members: members.iter().map(|m| (*m).into()).collect(),
        max_size: 0,
    }
}

fn at(table: &str, field: &str, v: u128) -> TableEntry {
    entry(table, &[(field, Match::exact(v))], 0, "", &[])
}

fn forward(port: u128) -> p4lang::runtime::ActionCall {
    call("ingress.forward", &[("port", port)])
}

#[test]
fn a_member_changes_for_all_entries_that_name_it() {
    let mut switch = profile();
    assert_eq!(switch.profiles().next().map(|p| p.size), Some(3));
    switch.insert_member("ingress.ap", 1, &forward(4)).unwrap();
    let (one, two) = (at("ingress.t", "hdr.x.a", 1), at("ingress.u", "hdr.x.b", 2));
    switch.insert_indirect(&one, Indirect::Member(1)).unwrap();
    switch.insert_indirect(&two, Indirect::Member(1)).unwrap();
    assert_eq!(through(&mut switch, &[1, 0])[0].0, 4);
    assert_eq!(through(&mut switch, &[0, 2])[0].0, 4);
    switch.modify_member("ingress.ap", 1, &forward(5)).unwrap();
    assert_eq!(through(&mut switch, &[1, 0])[0].0, 5);
    assert_eq!(through(&mut switch, &[0, 2])[0].0, 5);
    assert_eq!(through(&mut switch, &[0, 0])[0].0, 0, "a miss");
    assert_eq!(switch.indirect(&one), Ok(Some(Indirect::Member(1))));
    assert_eq!(switch.members("ingress.ap"), Ok(vec![(1, forward(5))]));
}

#[test]
fn an_entry_may_have_an_action_of_its_own() {
    let mut switch = profile();
    let own = TableEntry {
        action: forward(6),
        ..at("ingress.t", "hdr.x.a", 1)
    };
    switch.insert_entry(&own).unwrap();
    assert_eq!(through(&mut switch, &[1, 0])[0].0, 6);
    switch
        .insert_member("ingress.ap", 9, &call("ingress.mark", &[("v", 7)]))
        .unwrap();
    switch.modify_indirect(&own, Indirect::Member(9)).unwrap();
    assert_eq!(through(&mut switch, &[1, 0]), [(1, vec![1, 7])]);
    switch.modify_entry(&own).unwrap();
    assert_eq!(through(&mut switch, &[1, 0])[0].0, 6);
    assert_eq!(switch.indirect(&own), Ok(None));
}

#[test]
fn used_members_stay_and_unknown_ones_are_refused() {
    let mut switch = profile();
    let here = at("ingress.t", "hdr.x.a", 1);
    let member = Indirect::Member(1);
    assert_eq!(
        switch.insert_indirect(&here, member),
        Err(ProfileError::NotFound)
    );
    switch.insert_member("ingress.ap", 1, &forward(4)).unwrap();
    assert_eq!(
        switch.insert_member("ingress.ap", 1, &forward(4)),
        Err(ProfileError::Duplicate)
    );
    assert_eq!(
        switch.insert_member("ingress.ap", 2, &call("ingress.other", &[])),
        Err(ProfileError::Action(TableError::NoSuchAction(
            "ingress.other".into(),
            vec![
                "ingress.forward".into(),
                "ingress.mark".into(),
                "NoAction".into()
            ]
        )))
    );
    assert_eq!(
        switch.modify_member("ingress.ap", 2, &forward(4)),
        Err(ProfileError::NotFound)
    );
    assert_eq!(
        switch.insert_group("ingress.ap", 1, &[(1, 1)]),
        Err(ProfileError::NoSelector)
    );
    assert_eq!(
        switch.insert_member("ingress.no", 1, &forward(4)),
        Err(ProfileError::NoSuchProfile)
    );
    switch.insert_indirect(&here, member).unwrap();
    assert_eq!(
        switch.delete_member("ingress.ap", 1),
        Err(ProfileError::InUse)
    );
    switch.delete_entry(&here).unwrap();
    switch.delete_member("ingress.ap", 1).unwrap();
    for id in 1..=3 {
        switch.insert_member("ingress.ap", id, &forward(4)).unwrap();
    }
    assert_eq!(
        switch.insert_member("ingress.ap", 4, &forward(4)),
        Err(ProfileError::Full(3))
    );
}

#[test]
fn a_selector_picks_by_its_fields_and_the_weights() {
    let mut switch = selector();
    for (id, port) in [(1, 11), (2, 12)] {
        switch
            .insert_member("ingress.sel", id, &forward(port))
            .unwrap();
    }
    switch
        .insert_group("ingress.sel", 7, &[(1, 3), (2, 1)])
        .unwrap();
    switch
        .insert_indirect(&at("ingress.t", "hdr.x.a", 1), Indirect::Group(7))
        .unwrap();
    let ports = |switch: &mut Switch| {
        let port = |b: u8| through(switch, &[1, b])[0].0;
        (0..8).map(port).collect::<Vec<u32>>()
    };
    assert_eq!(ports(&mut switch), [11, 11, 11, 12, 11, 11, 11, 12]);
    switch.modify_group("ingress.sel", 7, &[(2, 2)]).unwrap();
    assert_eq!(ports(&mut switch), [12; 8]);
    let nobody: [(u32, u32); 0] = [];
    switch.modify_group("ingress.sel", 7, &nobody).unwrap();
    assert_eq!(ports(&mut switch), [0; 8], "an empty group does nothing");
    assert_eq!(switch.groups("ingress.sel"), Ok(vec![(7, group(&[]))]));
}

#[test]
fn groups_have_limits_and_members() {
    let mut switch = selector();
    switch.insert_member("ingress.sel", 1, &forward(4)).unwrap();
    let mut insert = |members: &[(u32, u32)]| switch.insert_group("ingress.sel", 1, members);
    assert_eq!(insert(&[(1, 9)]), Err(ProfileError::Full(8)));
    assert_eq!(insert(&[(1, 0)]), Err(ProfileError::BadWeight));
    assert_eq!(insert(&[(2, 1)]), Err(ProfileError::NotFound));
    assert_eq!(insert(&[(1, 1), (1, 1)]), Err(ProfileError::MemberTwice(1)));
    assert_eq!(insert(&[(1, 8)]), Ok(()));
    assert_eq!(
        switch.delete_member("ingress.sel", 1),
        Err(ProfileError::InUse)
    );
    switch.delete_group("ingress.sel", 1).unwrap();
    switch.delete_member("ingress.sel", 1).unwrap();
}

#[test]
fn a_batch_is_taken_back_whole() {
    let mut switch = selector();
    switch.insert_member("ingress.sel", 1, &forward(4)).unwrap();
    switch.insert_group("ingress.sel", 1, &[(1, 1)]).unwrap();
    let here = at("ingress.t", "hdr.x.a", 1);
    switch.insert_indirect(&here, Indirect::Member(1)).unwrap();

    switch.begin();
    switch.insert_member("ingress.sel", 2, &forward(5)).unwrap();
    switch.modify_member("ingress.sel", 1, &forward(6)).unwrap();
    switch.modify_group("ingress.sel", 1, &[(2, 2)]).unwrap();
    switch.modify_indirect(&here, Indirect::Group(1)).unwrap();
    assert_eq!(through(&mut switch, &[1, 0])[0].0, 5);
    switch.rollback();

    assert_eq!(through(&mut switch, &[1, 0])[0].0, 4);
    assert_eq!(switch.members("ingress.sel"), Ok(vec![(1, forward(4))]));
    assert_eq!(
        switch.groups("ingress.sel"),
        Ok(vec![(1, group(&[(1, 1)]))])
    );
    assert_eq!(switch.indirect(&here), Ok(Some(Indirect::Member(1))));

    // Its own action instead.
    switch.begin();
    let mut own = here.clone();
    own.action = forward(7);
    switch.modify_entry(&own).unwrap();
    assert_eq!(switch.indirect(&here), Ok(None));
    switch.rollback();
    assert_eq!(switch.indirect(&here), Ok(Some(Indirect::Member(1))));
}

#[test]
fn only_ports_that_there_are_can_be_watched() {
    let mut switch = selector();
    switch.set_ports(Ports::Only([4].into()));
    let table = switch.table_position("ingress.t").unwrap();
    let shot = |port| {
        let mut write = one_shot(&[(4, 1)]);
        if let EntryAction::OneShot(actions) = &mut write.action {
            actions[0].watch_port = Some(port);
        }
        write
    };
    let absent = Err(ProfileError::NoSuchPort(5));
    assert_eq!(switch.insert_whole(0, table, shot(5)), absent);
    switch.insert_whole(0, table, shot(4)).unwrap();
    switch.delete_whole(table, 0, shot(4).key).unwrap();
    switch.insert_member("ingress.sel", 1, &forward(4)).unwrap();
    let watching = |port| GroupMember {
        member: 1,
        weight: 1,
        watch_port: Some(port),
    };
    assert_eq!(
        switch.insert_group("ingress.sel", 1, &[watching(5)]),
        absent
    );
    switch
        .insert_group("ingress.sel", 1, &[watching(4)])
        .unwrap();
    assert_eq!(
        switch.modify_group("ingress.sel", 1, &[watching(5)]),
        absent
    );
}

#[test]
fn a_member_whose_port_is_down_is_not_picked() {
    let mut switch = selector();
    for (id, port) in [(1, 4), (2, 5)] {
        let action = forward(port);
        switch.insert_member("ingress.sel", id, &action).unwrap();
    }
    let watching = |(member, port)| GroupMember {
        member,
        weight: 1,
        watch_port: Some(port),
    };
    let members = [(1, 4), (2, 5)].map(watching);
    switch.insert_group("ingress.sel", 7, &members).unwrap();
    let here = at("ingress.t", "hdr.x.a", 1);
    switch.insert_indirect(&here, Indirect::Group(7)).unwrap();
    let picked = |switch: &mut Switch| {
        let ports = (0..8).flat_map(|b| through(switch, &[1, b]));
        ports
            .map(|sent| sent.0)
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(picked(&mut switch), [4, 5].into());
    switch.set_port_up(4, false);
    assert_eq!(picked(&mut switch), [5].into());
    switch.set_port_up(5, false);
    assert_eq!(picked(&mut switch), [0].into(), "nothing is done");
    switch.set_port_up(4, true);
    assert_eq!(picked(&mut switch), [4].into());
    assert_eq!(switch.groups("ingress.sel").unwrap()[0].1.members, members);
}

#[test]
fn an_empty_group_has_an_action_of_its_own() {
    let mut switch = selector_with("psa_empty_group_action = forward(7);");
    switch.insert_member("ingress.sel", 1, &forward(4)).unwrap();
    let nobody: [(u32, u32); 0] = [];
    switch.insert_group("ingress.sel", 7, &nobody).unwrap();
    let here = at("ingress.t", "hdr.x.a", 1);
    switch.insert_indirect(&here, Indirect::Group(7)).unwrap();
    let port = |switch: &mut Switch| through(switch, &[1, 0])[0].0;
    assert_eq!(port(&mut switch), 7);
    let watching = GroupMember {
        member: 1,
        weight: 1,
        watch_port: Some(4),
    };
    switch.modify_group("ingress.sel", 7, &[watching]).unwrap();
    assert_eq!(port(&mut switch), 4);
    switch.set_port_up(4, false);
    assert_eq!(port(&mut switch), 7, "nobody is left");
}

fn one_shot(ports: &[(u128, u32)]) -> EntryWrite {
    let action = |(port, weight): &(u128, u32)| OneShotAction {
        call: forward(*port),
        weight: *weight,
        watch_port: None,
    };
    EntryWrite {
        key: vec![FieldKey::Masked {
            value: 1.into(),
            mask: 0xff.into(),
        }],
        priority: 0,
        action: EntryAction::OneShot(ports.iter().map(action).collect()),
        meter: None,
        clear_meter_counts: false,
        counter: None,
        idle_timeout_ns: 0,
        note: None,
    }
}

#[test]
fn an_entry_may_bring_its_actions_along() {
    let mut switch = selector();
    let table = switch.table_position("ingress.t").unwrap();
    let written = one_shot(&[(4, 3), (5, 1)]);
    let insert = |switch: &mut Switch, write| switch.insert_whole(0, table, write);
    insert(&mut switch, written.clone()).unwrap();
    let picked = |switch: &mut Switch, port| {
        let sent = (0..8).flat_map(|b| through(switch, &[1, b]));
        sent.filter(|sent| sent.0 == port).count()
    };
    assert_eq!((picked(&mut switch, 4), picked(&mut switch, 5)), (6, 2));
    assert_eq!(
        switch.entry_state(0, table, 0).unwrap().action,
        written.action,
        "read as it was written"
    );
    assert_eq!(
        switch.insert_member("ingress.sel", 1, &forward(4)),
        Err(ProfileError::Mixed)
    );
    assert_eq!(
        insert(&mut switch, one_shot(&[(4, 5)])),
        Err(ProfileError::Full(8))
    );
    // Refused before the actions are expanded by weight, which would take 16 GiB.
    let greatest = one_shot(&[(4, i32::MAX as u32), (5, i32::MAX as u32)]);
    assert_eq!(insert(&mut switch, greatest), Err(ProfileError::Full(8)));
    assert_eq!(
        insert(&mut switch, one_shot(&[(4, 1)])),
        Err(ProfileError::Table(TableError::DuplicateEntry))
    );

    switch.begin();
    switch.modify_whole(0, table, one_shot(&[(6, 1)])).unwrap();
    assert_eq!(picked(&mut switch, 6), 8);
    switch.delete_whole(table, 0, written.key.clone()).unwrap();
    insert(&mut switch, one_shot(&[(7, 8)])).unwrap();
    switch.rollback();
    assert_eq!((picked(&mut switch, 4), picked(&mut switch, 5)), (6, 2));

    // Nothing of the entry is left: the whole size is free again.
    switch.delete_whole(table, 0, written.key).unwrap();
    insert(&mut switch, one_shot(&[(7, 8)])).unwrap();
}
