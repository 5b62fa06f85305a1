//! Every kind of entity, as a foreign controller writes and reads it.

use crate::support::raw::*;
use crate::support::*;
use p4rt::rpc::Code;
use p4rt::v1;
use p4rt::v1::entity::Entity as Kind;

fn counted(packets: i64, bytes: i64) -> v1::CounterData {
    v1::CounterData {
        byte_count: bytes,
        packet_count: packets,
    }
}

const SLOW: v1::MeterConfig = v1::MeterConfig {
    cir: 1,
    cburst: 1,
    pir: 2,
    pburst: 2,
    eburst: 0,
};

fn at(index: i64) -> Option<v1::Index> {
    Some(v1::Index { index })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn attached_data_is_read_with_the_entry_and_alone() {
    let (instance, one, two) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let mut entry = raw.entry("watched", &[9], "count_and_send", &[2]);
    entry.meter_config = Some(Box::new(SLOW));
    entry.counter_data = Some(counted(5, 500));
    entry.metadata = b"mine".to_vec();
    entry.idle_timeout_ns = 3_600_000_000_000;
    raw.put(Insert, Kind::TableEntry(entry.clone())).await;
    for _ in 0..4 {
        let frame = frame_from([0, 0, 0, 0, 0, 9], 0);
        assert!(one.send(&frame));
        assert_eq!(two.receive(TIMEOUT), Some(frame));
    }
    let key = v1::TableEntry {
        action: None,
        meter_config: None,
        counter_data: None,
        metadata: Vec::new(),
        idle_timeout_ns: 0,
        ..entry.clone()
    };
    let all = v1::TableEntry {
        table_id: entry.table_id,
        meter_config: Some(Box::default()),
        counter_data: Some(v1::CounterData::default()),
        meter_counter_data: Some(Box::default()),
        time_since_last_hit: Some(v1::table_entry::IdleTimeout::default()),
        ..Default::default()
    };
    let read = raw.read(Kind::TableEntry(all)).await;
    let [Kind::TableEntry(read)] = &read[..] else {
        panic!("{read:?}")
    };
    assert!(read.time_since_last_hit.unwrap().elapsed_ns < 3_600_000_000_000);
    let marked = read.meter_counter_data.as_deref().unwrap();
    let colours = [marked.green, marked.yellow, marked.red];
    assert_eq!(
        colours.map(|c| c.unwrap().packet_count).iter().sum::<i64>(),
        4
    );
    assert!(colours[2].unwrap().packet_count >= 1, "{marked:?}");
    let expected = v1::TableEntry {
        counter_data: Some(counted(9, 740)),
        meter_counter_data: read.meter_counter_data.clone(),
        time_since_last_hit: read.time_since_last_hit,
        ..entry.clone()
    };
    assert_eq!(*read, expected, "read as it was written");

    // Data that is not requested is not returned; a filter that does not match returns nothing.
    let plain = |metadata: &[u8]| v1::TableEntry {
        table_id: entry.table_id,
        metadata: metadata.to_vec(),
        ..Default::default()
    };
    let read = raw.read(Kind::TableEntry(plain(b"mine"))).await;
    let bare = v1::TableEntry {
        meter_config: None,
        counter_data: None,
        ..entry.clone()
    };
    assert_eq!(read, [Kind::TableEntry(bare)]);
    assert_eq!(raw.read(Kind::TableEntry(plain(b"other"))).await, []);

    let counter = |table_entry, data| {
        Kind::DirectCounterEntry(Box::new(v1::DirectCounterEntry { table_entry, data }))
    };
    let expected = [counter(Some(key.clone()), Some(counted(9, 740)))];
    assert_eq!(raw.read(counter(None, None)).await, expected, "all tables");
    raw.put(Modify, counter(Some(key.clone()), Some(counted(1, 1))))
        .await;
    let expected = [counter(Some(key.clone()), Some(counted(1, 1)))];
    assert_eq!(raw.read(counter(Some(key.clone()), None)).await, expected);
    let meter = |config, counter_data| {
        Kind::DirectMeterEntry(Box::new(v1::DirectMeterEntry {
            table_entry: Some(key.clone()),
            config,
            counter_data,
        }))
    };
    assert_eq!(raw.read(meter(None, None)).await, [meter(Some(SLOW), None)]);
    raw.put(Modify, meter(None, Some(v1::MeterCounterData::default())))
        .await;
    let zero = v1::MeterCounterData {
        green: Some(counted(0, 0)),
        yellow: Some(counted(0, 0)),
        red: Some(counted(0, 0)),
    };
    assert_eq!(
        raw.read(meter(None, Some(zero))).await,
        [meter(None, Some(zero))],
        "green again, and nothing counted"
    );

    let mut strange = entry.clone();
    strange.meter_config = Some(Box::new(v1::MeterConfig { eburst: 1, ..SLOW }));
    let timed = v1::TableEntry {
        idle_timeout_ns: 1,
        ..raw.entry("forward", &[1], "send", &[1])
    };
    let counting = v1::TableEntry {
        counter_data: Some(counted(0, 0)),
        ..raw.entry("forward", &[1], "send", &[1])
    };
    let mut gone = key.clone();
    gone.r#match[0].field_match_type = Some(v1::field_match::FieldMatchType::Exact(
        v1::field_match::Exact {
            value: vec![8].into(),
        },
    ));
    let refused = [
        (Insert, counter(Some(key), None)),
        (Modify, Kind::TableEntry(strange)),
        (Insert, Kind::TableEntry(timed)),
        (Insert, Kind::TableEntry(counting)),
        (Modify, counter(Some(gone), None)),
    ];
    assert_eq!(
        raw.write(refused.to_vec()).await,
        [
            Code::InvalidArgument,
            Code::InvalidArgument,
            Code::InvalidArgument,
            Code::InvalidArgument,
            Code::NotFound
        ]
    );
}

/// "may be left unset for MODIFY updates, in which case the action specification … will not be modified" (9.1.2).
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_entry_keeps_its_action_where_a_modification_names_none() {
    let (instance, _one, _two) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let entry = raw.entry("watched", &[9], "count_and_send", &[2]);
    raw.put(Insert, Kind::TableEntry(entry.clone())).await;
    let changed = v1::TableEntry {
        metadata: b"mine".to_vec(),
        counter_data: Some(counted(5, 500)),
        ..entry.clone()
    };
    let without_action = v1::TableEntry {
        action: None,
        ..changed.clone()
    };
    raw.put(Modify, Kind::TableEntry(without_action.clone()))
        .await;
    let all = v1::TableEntry {
        table_id: entry.table_id,
        counter_data: Some(v1::CounterData::default()),
        ..Default::default()
    };
    let read = raw.read(Kind::TableEntry(all)).await;
    assert_eq!(read, [Kind::TableEntry(changed)]);
    let fresh = raw.entry("watched", &[8], "count_and_send", &[2]);
    let fresh = v1::TableEntry {
        action: None,
        ..fresh
    };
    let refused = vec![
        (Insert, Kind::TableEntry(fresh.clone())),
        (Modify, Kind::TableEntry(fresh)),
    ];
    let codes = raw.write(refused).await;
    assert_eq!(codes, [Code::InvalidArgument, Code::NotFound]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_clone_session_has_a_class_that_there_is() {
    use v1::packet_replication_engine_entry::Type;
    let (instance, _one, _two) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let session = |class_of_service| {
        let session = v1::CloneSessionEntry {
            session_id: 6,
            class_of_service,
            ..Default::default()
        };
        Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
            r#type: Some(Type::CloneSessionEntry(session)),
        })
    };
    let updates = vec![(Insert, session(256)), (Insert, session(255))];
    let codes = raw.write(updates).await;
    assert_eq!(codes, [Code::InvalidArgument, Code::Ok]);
}

/// Packets could not name other ids: v1model's `mcast_grp` has 16 bits, its sessions have 32.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn groups_and_sessions_have_numbers_that_packets_can_name() {
    use v1::packet_replication_engine_entry::Type;
    let (instance, _one, _two) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let entry = |kind| {
        Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(kind) })
    };
    let replica = |port: u32, instance| v1::Replica {
        instance,
        port_kind: Some(v1::replica::PortKind::Port(p4rt::bytes::encode(
            port.into(),
        ))),
    };
    let group = |multicast_group_id, replica| {
        entry(Type::MulticastGroupEntry(v1::MulticastGroupEntry {
            multicast_group_id,
            replicas: vec![replica],
            ..Default::default()
        }))
    };
    let session = |session_id, replica| {
        entry(Type::CloneSessionEntry(v1::CloneSessionEntry {
            session_id,
            replicas: vec![replica],
            ..Default::default()
        }))
    };
    let updates = vec![
        (Insert, group(65_535, replica(510, 65_535))),
        (Insert, group(65_536, replica(1, 1))),
        (Insert, group(1, replica(511, 1))),
        (Insert, group(1, replica(1, 65_536))),
        (Insert, session(u32::MAX, replica(1, 1))),
        (Insert, session(1, replica(512, 1))),
        (Insert, session(1, replica(1, 65_536))),
    ];
    let codes = raw.write(updates).await;
    let (good, bad) = (Code::Ok, Code::InvalidArgument);
    assert_eq!(codes, [good, bad, bad, bad, good, bad, bad]);
    let told = raw.refusal(Insert, group(65_536, replica(1, 1))).await;
    assert_eq!(
        told,
        "multicast group 65536; the program's ids have 16 bits"
    );
    let told = raw.refusal(Insert, group(1, replica(1, 65_536))).await;
    assert!(
        told.contains("instance 65536 does not fit into 16 bits"),
        "{told}"
    );
    let told = raw.refusal(Insert, group(1, replica(511, 1))).await;
    assert!(told.contains("port 511 does not exist"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn meters_are_configured_and_count_by_colour() {
    let (instance, one, _two) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let meter_id = id(&raw.index.meters, "rate");
    let meter = |index, config, counter_data| {
        Kind::MeterEntry(v1::MeterEntry {
            meter_id,
            index,
            config,
            counter_data,
        })
    };
    raw.put(Modify, meter(at(1), Some(SLOW), None)).await;
    assert_eq!(
        raw.read(meter(None, None, None)).await,
        [None, Some(SLOW), None, None]
            .iter()
            .zip(0..)
            .map(|(config, cell)| meter(at(cell), *config, None))
            .collect::<Vec<_>>()
    );
    for _ in 0..5 {
        assert!(one.send(&frame_from([0, 0, 0, 0, 0, 1], 0)));
    }
    // Once this frame comes out, all others have been processed.
    raw.put(
        Insert,
        Kind::TableEntry(raw.entry("forward", &[2, 0, 0, 0, 0, 1], "send", &[1])),
    )
    .await;
    assert!(one.send(&frame_from([0; 6], 0)));
    assert!(one.receive(TIMEOUT).is_some());
    let asked = Some(v1::MeterCounterData::default());
    let read = raw.read(meter(at(1), None, asked)).await;
    let [Kind::MeterEntry(read)] = &read[..] else {
        panic!("{read:?}")
    };
    let counts = read.counter_data.unwrap();
    let colours = [counts.green, counts.yellow, counts.red].map(|c| c.unwrap());
    assert_eq!(colours.iter().map(|c| c.packet_count).sum::<i64>(), 5);
    assert_eq!(colours.iter().map(|c| c.byte_count).sum::<i64>(), 300);
    assert!(colours[2].packet_count >= 2, "{counts:?}");

    let refused = vec![
        (Insert, meter(at(0), None, None)),
        (Modify, meter(at(-1), None, None)),
        (Modify, meter(at(4), None, None)),
        (
            Modify,
            meter(at(0), Some(v1::MeterConfig { cir: -1, ..SLOW }), None),
        ),
    ];
    assert_eq!(
        raw.write(refused).await,
        [
            Code::InvalidArgument,
            Code::InvalidArgument,
            Code::OutOfRange,
            Code::InvalidArgument
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_value_set_is_written_whole() {
    let (instance, ..) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let value_set_id = id(&raw.index.value_sets, "tagged");
    let set = |values: &[u8]| {
        let member = |value: &u8| v1::ValueSetMember {
            r#match: vec![v1::FieldMatch {
                field_id: 1,
                field_match_type: Some(v1::field_match::FieldMatchType::Exact(
                    v1::field_match::Exact {
                        value: vec![*value].into(),
                    },
                )),
            }],
        };
        Kind::ValueSetEntry(v1::ValueSetEntry {
            value_set_id,
            members: values.iter().map(member).collect(),
        })
    };
    raw.put(Modify, set(&[7, 8])).await;
    let all = Kind::ValueSetEntry(v1::ValueSetEntry::default());
    assert_eq!(raw.read(all.clone()).await, [set(&[7, 8])]);
    let refused = vec![
        (Insert, set(&[1])),
        (Modify, set(&[1, 1])),
        (Modify, set(&[1, 2, 3, 4, 5])),
    ];
    assert_eq!(
        raw.write(refused).await,
        [
            Code::InvalidArgument,
            Code::AlreadyExists,
            Code::ResourceExhausted
        ]
    );
    let one = |r#match| {
        Kind::ValueSetEntry(v1::ValueSetEntry {
            value_set_id,
            members: vec![v1::ValueSetMember { r#match }],
        })
    };
    let told = raw.refusal(Modify, one(vec![])).await;
    assert!(told.ends_with("tagged: a member lacks its value"), "{told}");
    let stray = v1::FieldMatch {
        field_id: 9,
        field_match_type: None,
    };
    let told = raw.refusal(Modify, one(vec![stray])).await;
    assert!(told.ends_with("tagged has no field with id 9"), "{told}");
    raw.put(Modify, set(&[])).await;
    assert_eq!(raw.read(all).await, [set(&[])]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn selectors_are_programmed_by_groups_or_in_one_shot() {
    use v1::table_action::Type as Does;
    let (instance, one, two) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let action_profile_id = id(&raw.index.action_profiles, "balance");
    let member = |raw: &Raw, member_id, port| {
        Kind::ActionProfileMember(v1::ActionProfileMember {
            action_profile_id,
            member_id,
            action: Some(raw.action("send", &[port])),
        })
    };
    let group = |members: &[(u32, i32)]| {
        use v1::action_profile_group::{Member, member::WatchKind};
        let member = |(member_id, weight): &(u32, i32)| Member {
            member_id: *member_id,
            weight: *weight,
            watch_kind: Some(WatchKind::WatchPort(vec![2])),
        };
        Kind::ActionProfileGroup(v1::ActionProfileGroup {
            action_profile_id,
            group_id: 5,
            members: members.iter().map(member).collect(),
            max_size: 8,
        })
    };
    let naming = |raw: &Raw, does| {
        let mut entry = raw.entry("balanced", &[0x88, 0xb5], "send", &[1]);
        entry.action = Some(v1::TableAction { r#type: Some(does) });
        Kind::TableEntry(entry)
    };
    let (m1, m2) = (member(&raw, 1, 1), member(&raw, 2, 2));
    let indirect = naming(&raw, Does::ActionProfileGroupId(5));
    let direct = naming(&raw, Does::Action(raw.action("send", &[1])));
    let batch = vec![
        (Insert, m1.clone()),
        (Insert, m2.clone()),
        (Insert, m1.clone()),
        (Insert, group(&[(1, 1), (3, 1)])),
        (Insert, group(&[(1, 0)])),
        (Insert, group(&[(2, 3)])),
        (Insert, direct),
        (Insert, indirect.clone()),
        (Delete, m2.clone()),
        (Delete, group(&[])),
        (Insert, group(&[(1, 9)])),
    ];
    use Code::*;
    assert_eq!(
        raw.write(batch).await,
        [
            Ok,
            Ok,
            AlreadyExists,
            NotFound,
            InvalidArgument,
            Ok,
            InvalidArgument,
            Ok,
            FailedPrecondition,
            FailedPrecondition,
            AlreadyExists
        ]
    );
    let frame = frame_from([0; 6], 0x88b5);
    assert!(one.send(&frame));
    assert_eq!(two.receive(TIMEOUT), Some(frame.clone()));
    let members = Kind::ActionProfileMember(v1::ActionProfileMember::default());
    assert_eq!(raw.read(members).await, [m1.clone(), m2.clone()]);
    let groups = Kind::ActionProfileGroup(v1::ActionProfileGroup::default());
    assert_eq!(raw.read(groups).await, [group(&[(2, 3)])]);
    let table_id = id(&raw.index.tables, "balanced");
    let entries = Kind::TableEntry(v1::TableEntry {
        table_id,
        ..Default::default()
    });
    let named = raw.read(entries.clone()).await;
    assert_eq!(named, std::slice::from_ref(&indirect));

    let shot = |raw: &Raw, port, weight| v1::ActionProfileAction {
        action: Some(raw.action("send", &[port])),
        weight,
        watch_kind: None,
    };
    let set = v1::ActionProfileActionSet {
        action_profile_actions: vec![shot(&raw, 1, 2), shot(&raw, 1, 2)],
    };
    let one_shot = naming(&raw, Does::ActionProfileActionSet(set));
    let mixed = raw.write(vec![(Modify, one_shot.clone())]).await;
    assert_eq!(mixed, [InvalidArgument], "one way or the other");
    let cleared = vec![
        (Delete, indirect),
        (Delete, group(&[])),
        (Delete, m1.clone()),
        (Delete, m2),
        (Insert, one_shot.clone()),
        (Insert, m1),
    ];
    assert_eq!(
        raw.write(cleared).await,
        [Ok, Ok, Ok, Ok, Ok, InvalidArgument]
    );
    assert_eq!(raw.read(entries).await, [one_shot]);
    assert!(two.send(&frame));
    assert_eq!(one.receive(TIMEOUT), Some(frame));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn strings_stand_for_values() {
    let (instance, ..) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let red = raw.entry("vrfs", b"red", "set_vrf", b"blue");
    let number = raw.entry("vrfs", b"7", "set_vrf", b"red");
    raw.put(Insert, Kind::TableEntry(red.clone())).await;
    raw.put(Insert, Kind::TableEntry(number.clone())).await;
    let all = Kind::TableEntry(v1::TableEntry {
        table_id: red.table_id,
        ..Default::default()
    });
    assert_eq!(
        raw.read(all).await,
        [Kind::TableEntry(red.clone()), Kind::TableEntry(number)]
    );
    let wide = raw.entry("vrfs", b"1024", "set_vrf", b"red");
    let empty = raw.entry("vrfs", b"", "set_vrf", b"red");
    let refused = [red, wide, empty].map(|entry| (Insert, Kind::TableEntry(entry)));
    assert_eq!(
        raw.write(refused.to_vec()).await,
        [Code::AlreadyExists, Code::OutOfRange, Code::OutOfRange]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn constant_entries_are_marked_in_reads() {
    let (instance, ..) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let table_id = id(&raw.index.tables, "fixed");
    let all = Kind::TableEntry(v1::TableEntry {
        table_id,
        ..Default::default()
    });
    let fixed = v1::TableEntry {
        is_const: true,
        ..raw.entry("fixed", &[0xff], "send", &[1])
    };
    assert_eq!(raw.read(all).await, [Kind::TableEntry(fixed)]);
    let own = Kind::TableEntry(raw.entry("fixed", &[0xff], "send", &[2]));
    let mut default = raw.entry("fixed", &[], "send", &[2]);
    default.r#match.clear();
    default.is_default_action = true;
    let mut noted = raw.entry("fixed", &[0xff], "send", &[1]);
    noted.action = None;
    let unchanged = Kind::TableEntry(noted.clone());
    noted.metadata = b"mine".to_vec();
    let refused = vec![
        (Modify, own.clone()),
        (Delete, own.clone()),
        (Insert, own),
        (Modify, Kind::TableEntry(default)),
        (Modify, Kind::TableEntry(noted)),
    ];
    assert_eq!(raw.write(refused).await, [Code::PermissionDenied; 5]);
    assert_eq!(raw.write(vec![(Modify, unchanged)]).await, [Code::Ok]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn everything_is_read_by_wildcards_in_responses_of_bounded_size() {
    let (instance, ..) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let big = vec![7; 600_000];
    for port in 1..=8 {
        let entry = v1::TableEntry {
            metadata: big.clone(),
            ..raw.entry("forward", &[port], "send", &[port])
        };
        raw.put(Insert, Kind::TableEntry(entry)).await;
    }
    let wildcards = vec![
        Kind::ExternEntry(v1::ExternEntry::default()),
        Kind::TableEntry(v1::TableEntry::default()),
        Kind::ActionProfileMember(v1::ActionProfileMember::default()),
        Kind::ActionProfileGroup(v1::ActionProfileGroup::default()),
        Kind::MeterEntry(v1::MeterEntry::default()),
        Kind::DirectMeterEntry(Box::default()),
        Kind::CounterEntry(v1::CounterEntry::default()),
        Kind::DirectCounterEntry(Box::default()),
        Kind::ValueSetEntry(v1::ValueSetEntry::default()),
        Kind::RegisterEntry(v1::RegisterEntry::default()),
        Kind::DigestEntry(v1::DigestEntry::default()),
    ];
    let entity = |kind| v1::Entity { entity: Some(kind) };
    let request = v1::ReadRequest {
        device_id: DEVICE,
        entities: wildcards.into_iter().map(entity).collect(),
        ..Default::default()
    };
    let mut responses = raw.grpc.read(request).await.unwrap().into_inner();
    let (mut entities, mut messages) = (0, 0);
    // Our limit is below the 4 MiB that a client accepts by default.
    while let Some(response) = responses.message().await.unwrap() {
        messages += 1;
        entities += response.entities.len();
    }
    // 8 and 1 entries, 4 cells each of a meter, a counter and two registers, a value set.
    assert_eq!(entities, 9 + 16 + 1);
    assert!(messages > 1, "{messages}");

    let nothing = v1::ReadRequest {
        device_id: DEVICE,
        entities: vec![v1::Entity { entity: None }, v1::Entity::default()],
        ..Default::default()
    };
    let mut answer = raw.grpc.read(nothing).await.unwrap().into_inner();
    let status = answer.message().await.unwrap_err();
    let results = p4rt::status::results(&status, 2).unwrap();
    let codes = results.into_iter().map(|r| r.unwrap_err().code);
    assert_eq!(codes.collect::<Vec<_>>(), [Code::InvalidArgument; 2]);
    let one = Kind::ExternEntry(v1::ExternEntry {
        extern_type_id: 0x81,
        ..Default::default()
    });
    assert_eq!(raw.write(vec![(Insert, one)]).await, [Code::Unimplemented]);
}

/// P4Runtime 1.4, section 9.1: `NoAction` is the default action if the program names none; P4Info lists it, and reads and
/// writes accept it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_default_action_that_the_program_does_not_name_is_no_action() {
    let text = String::from_utf8(PROGRAM.to_vec()).unwrap();
    let without = text.replacen("        default_action = drop();\n", "", 1);
    assert_ne!(without, text);
    let (instance, ..) = switch_running(without.as_bytes());
    let mut raw = Raw::primary_of(&instance, without.as_bytes()).await;
    let entry = |raw: &Raw, action: Option<(&str, &[u8])>| {
        let of = |(name, param)| v1::TableAction {
            r#type: Some(v1::table_action::Type::Action(raw.action(name, param))),
        };
        v1::TableEntry {
            table_id: id(&raw.index.tables, "forward"),
            is_default_action: true,
            action: action.map(of),
            ..Default::default()
        }
    };
    let all = Kind::TableEntry(entry(&raw, None));
    let nothing = v1::TableEntry {
        action: Some(v1::TableAction {
            r#type: Some(v1::table_action::Type::Action(v1::Action {
                action_id: id(&raw.index.actions, "NoAction"),
                params: Vec::new(),
            })),
        }),
        ..entry(&raw, None)
    };
    assert_eq!(
        raw.read(all.clone()).await,
        [Kind::TableEntry(nothing.clone())]
    );
    let send = entry(&raw, Some(("send", &[2])));
    raw.put(Modify, Kind::TableEntry(send.clone())).await;
    assert_eq!(raw.read(all.clone()).await, [Kind::TableEntry(send)]);
    raw.put(Modify, Kind::TableEntry(nothing.clone())).await;
    assert_eq!(
        raw.read(all.clone()).await,
        [Kind::TableEntry(nothing.clone())]
    );
    let in_entry = v1::TableEntry {
        action: nothing.action,
        ..raw.entry("forward", &[1], "send", &[2])
    };
    assert_ne!(
        raw.write(vec![(Insert, Kind::TableEntry(in_entry))]).await,
        [Code::Ok],
        "only as the default"
    );
}
