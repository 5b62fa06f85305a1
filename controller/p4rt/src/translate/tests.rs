use super::*;
use crate::bytes::BytesError;
use crate::p4info::tests::sample;
use crate::rpc::Code;
use p4lang::runtime::{FieldMatch, Match, Replica};
use v1::field_match::FieldMatchType;

fn index() -> Index {
    Index::new(sample()).unwrap()
}

fn send(port: u128) -> ActionCall {
    ActionCall {
        name: "Ingress.send".into(),
        params: vec![("port".into(), port.into()), ("class".into(), 0.into())],
    }
}

fn field(field: &str, value: Match) -> FieldMatch {
    FieldMatch {
        field: field.into(),
        value,
    }
}

fn forward(mac: u128, port: u128) -> TableEntry {
    TableEntry {
        table: "Ingress.forward".into(),
        key: vec![field("hdr.ethernet.dst", Match::exact(mac))],
        priority: 0,
        action: send(port),
    }
}

fn acl() -> TableEntry {
    TableEntry {
        table: "Ingress.acl".into(),
        key: vec![
            field("hdr.ipv4.src", Match::ternary(0x0a00_0000, 0xff00_00ff)),
            field("hdr.ipv4.dst", Match::lpm(0x0a01_0000, 16)),
            field("meta.epoch", Match::range(1, 3)),
            field("hdr.ipv4.protocol", Match::optional(6)),
        ],
        priority: 10,
        action: send(3),
    }
}

fn group(replicas: &[(u32, u16)]) -> MulticastGroup {
    let replicas = replicas
        .iter()
        .map(|&(port, instance)| Replica { port, instance })
        .collect();
    MulticastGroup { id: 7, replicas }
}

#[test]
fn every_item_survives_the_round_trip() {
    let index = index();
    let counter = Some(CounterValue {
        packets: 3,
        bytes: u64::MAX,
    });
    for item in [
        Item::TableEntry(forward(0x0200_0000_0001, 1)),
        Item::TableEntry(acl()),
        Item::DefaultAction {
            table: "Ingress.forward".into(),
            action: Some(send(511)),
        },
        Item::DefaultAction {
            table: "Ingress.forward".into(),
            action: None,
        },
        Item::MulticastGroup(group(&[(1, 1), (1, 2), (0xffff_fffd, 0)])),
        Item::CloneSession(CloneSession {
            id: 100,
            replicas: group(&[(5, 0)]).replicas,
            class_of_service: 2,
            packet_length_bytes: 128,
        }),
        Item::Register {
            name: "Ingress.last_seen".into(),
            index: Some(7),
            fields: vec![(1 << 47).into()],
        },
        Item::Register {
            name: "Ingress.cells".into(),
            index: None,
            fields: vec![0xffff_ffff.into(), 0.into(), 1.into()],
        },
        Item::Counter {
            name: "Ingress.fired".into(),
            index: Some(0),
            value: counter,
        },
        Item::Counter {
            name: "Ingress.fired".into(),
            index: None,
            value: None,
        },
    ] {
        let entity = item.to_entity(&index).unwrap();
        assert_eq!(Item::from_entity(&entity, &index, Part::Whole), Ok(item));
    }
}

#[test]
fn aliases_are_names() {
    let mut entry = forward(1, 1);
    entry.table = "forward".into();
    entry.action.name = "send".into();
    let entity = Item::TableEntry(entry).to_entity(&index()).unwrap();
    let decoded = Item::from_entity(&entity, &index(), Part::Whole);
    assert_eq!(decoded, Ok(Item::TableEntry(forward(1, 1))));
}

#[test]
fn dont_cares_are_left_out_of_the_message() {
    let mut entry = acl();
    entry.key[0].value = Match::ternary(0, 0);
    entry.key[1].value = Match::lpm(0, 0);
    entry.key[2].value = Match::range(0, 0xffff);
    entry.key.pop();
    let message = table::entry_to_proto(&entry, &index()).unwrap();
    assert_eq!(message.r#match, []);
}

#[test]
fn a_deletion_looks_at_the_key_only() {
    let index = index();
    let mut message = table::entry_to_proto(&acl(), &index).unwrap();
    message.action = None;
    let unset = table::entry_from_proto(&message, &index, Part::Whole);
    assert_eq!(unset, Err(TranslateError::Unset { what: "action" }));
    let entry = table::entry_from_proto(&message, &index, Part::Key).unwrap();
    assert_eq!((entry.key, entry.action.params), (acl().key, vec![]));
}

/// Changes a valid entry, and expects that it is refused with this code and a message that contains `names`.
#[track_caller]
fn refused(change: impl Fn(&mut TableEntry), code: Code, names: &str) {
    let mut entry = acl();
    change(&mut entry);
    let error = table::entry_to_proto(&entry, &index()).unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(names), "{error}");
}

#[test]
fn bad_entries_are_refused_by_name() {
    use Code::{InvalidArgument, NotFound, OutOfRange, PermissionDenied};
    refused(
        |e| e.table = "Ingress.gone".into(),
        NotFound,
        "no table `Ingress.gone`",
    );
    refused(
        |e| e.action.name = "Ingress.gone".into(),
        NotFound,
        "no action `Ingress.gone`",
    );
    refused(
        |e| e.action.name = "Ingress.drop".into(),
        InvalidArgument,
        "no parameter `port`",
    );
    refused(
        |e| e.action.params[0].1 = 512.into(),
        OutOfRange,
        "`port`: the value does not fit into 9 bits",
    );
    refused(
        |e| drop(e.action.params.pop()),
        InvalidArgument,
        "parameter `class` is missing",
    );
    refused(
        |e| e.action.params[1].0 = "port".into(),
        InvalidArgument,
        "parameter `port` is given twice",
    );
    refused(|e| e.priority = 0, InvalidArgument, "priority 0");
    refused(
        |e| e.key[0].field = "hdr.ipv4.ttl".into(),
        InvalidArgument,
        "no key field `hdr.ipv4.ttl`",
    );
    refused(
        |e| e.key[1].field = "hdr.ipv4.src".into(),
        InvalidArgument,
        "`hdr.ipv4.src` is given twice",
    );
    refused(
        |e| e.key[0].value = Match::exact(1),
        InvalidArgument,
        "matched ternary, not exact",
    );
    refused(
        |e| e.key[0].value = Match::ternary(3, 1),
        InvalidArgument,
        "outside the mask",
    );
    refused(
        |e| e.key[1].value = Match::lpm(1, 31),
        InvalidArgument,
        "first 31",
    );
    refused(
        |e| e.key[1].value = Match::lpm(0, 33),
        InvalidArgument,
        "prefix length 33",
    );
    refused(
        |e| e.key[2].value = Match::range(3, 1),
        InvalidArgument,
        "3 is greater than 1",
    );
    refused(
        |e| e.key[3].value = Match::optional(256),
        OutOfRange,
        "8 bits",
    );
    refused(
        |e| {
            *e = forward(1, 1);
            e.action = ActionCall {
                name: "Ingress.drop".into(),
                params: vec![],
            };
        },
        PermissionDenied,
        "only as default action",
    );
    refused(
        |e| {
            *e = forward(1, 1);
            e.priority = 1;
        },
        InvalidArgument,
        "priority 1",
    );
    refused(
        |e| {
            *e = forward(1, 1);
            e.key.clear();
        },
        InvalidArgument,
        "key field `hdr.ethernet.dst` is missing",
    );
}

#[test]
fn spelt_out_dont_cares_are_refused_from_the_wire() {
    let index = index();
    let good = table::entry_to_proto(&acl(), &index).unwrap();
    let with = |position: usize, kind: FieldMatchType| {
        let mut message = good.clone();
        message.r#match[position].field_match_type = Some(kind);
        table::entry_from_proto(&message, &index, Part::Whole).unwrap_err()
    };
    use v1::field_match::{Exact, Lpm, Range, Ternary};
    for error in [
        with(
            0,
            FieldMatchType::Ternary(Ternary {
                value: vec![0].into(),
                mask: vec![0].into(),
            }),
        ),
        with(
            1,
            FieldMatchType::Lpm(Lpm {
                value: vec![0].into(),
                prefix_len: 0,
            }),
        ),
        with(
            2,
            FieldMatchType::Range(Range {
                low: vec![0].into(),
                high: vec![0xff, 0xff].into(),
            }),
        ),
    ] {
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.to_string().contains("leave the field out"), "{error}");
    }
    let negative = with(
        1,
        FieldMatchType::Lpm(Lpm {
            value: vec![0].into(),
            prefix_len: -1,
        }),
    );
    assert_eq!(negative.code(), Code::InvalidArgument);
    let empty = with(
        0,
        FieldMatchType::Ternary(Ternary {
            value: vec![].into(),
            mask: vec![1].into(),
        }),
    );
    assert_eq!(
        empty,
        TranslateError::Value {
            field: "hdr.ipv4.src".into(),
            source: BytesError::Empty
        }
    );
    assert_eq!(empty.code(), Code::OutOfRange);
    let kind = with(
        0,
        FieldMatchType::Exact(Exact {
            value: vec![1].into(),
        }),
    );
    assert!(matches!(
        kind,
        TranslateError::MatchKind {
            declared: "ternary",
            given: "exact",
            ..
        }
    ));
}

#[test]
fn numbers_nobody_declared_are_refused() {
    let index = index();
    let good = table::entry_to_proto(&forward(1, 1), &index).unwrap();
    let decode = |change: &dyn Fn(&mut v1::TableEntry)| {
        let mut message = good.clone();
        change(&mut message);
        table::entry_from_proto(&message, &index, Part::Whole).unwrap_err()
    };
    assert_eq!(
        decode(&|m| m.table_id = 9),
        TranslateError::UnknownId {
            kind: "table",
            id: 9
        }
    );
    assert!(matches!(
        decode(&|m| m.r#match[0].field_id = 9),
        TranslateError::UnknownField { .. }
    ));
    assert!(matches!(
        decode(&|m| m.r#match[0].field_match_type = None),
        TranslateError::Unset { .. }
    ));
    let action = |change: &dyn Fn(&mut v1::Action)| {
        decode(&|m| {
            let Some(v1::table_action::Type::Action(action)) =
                m.action.as_mut().unwrap().r#type.as_mut()
            else {
                panic!("an action")
            };
            change(action);
        })
    };
    assert!(matches!(
        action(&|a| a.action_id = 9),
        TranslateError::ActionNotOffered { .. }
    ));
    assert!(matches!(
        action(&|a| a.params[0].param_id = 9),
        TranslateError::UnknownField { .. }
    ));
    assert!(matches!(
        action(&|a| drop(a.params.pop())),
        TranslateError::Missing { .. }
    ));
}

#[test]
fn replication_is_checked() {
    let index = index();
    let code = |item: Item| item.to_entity(&index).unwrap_err().code();
    let zero = MulticastGroup {
        id: 0,
        replicas: vec![],
    };
    assert_eq!(code(Item::MulticastGroup(zero)), Code::InvalidArgument);
    assert_eq!(
        code(Item::MulticastGroup(group(&[(1, 1), (1, 1)]))),
        Code::InvalidArgument
    );

    let from = |port_kind, instance| {
        let replicas = vec![v1::Replica {
            port_kind,
            instance,
        }];
        let group = v1::MulticastGroupEntry {
            multicast_group_id: 1,
            replicas,
            metadata: vec![],
        };
        replication::group_from_proto(&group, Part::Whole)
    };
    let port = |bytes: &[u8]| Some(v1::replica::PortKind::Port(bytes.to_vec()));
    assert_eq!(
        from(port(&[0, 5]), 3).unwrap().replicas,
        [Replica {
            port: 5,
            instance: 3
        }]
    );
    assert_eq!(from(None, 0).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(from(port(&[]), 0).unwrap_err().code(), Code::OutOfRange);
    assert_eq!(
        from(port(&[1, 0, 0, 0, 0]), 0).unwrap_err().code(),
        Code::OutOfRange
    );
    assert_eq!(
        from(port(&[1]), 0x1_0000).unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[test]
fn cells_are_checked() {
    let index = index();
    let register = |cell, fields: &[u128]| {
        let item = Item::Register {
            name: "cells".into(),
            index: cell,
            fields: fields.iter().map(|n| (*n).into()).collect(),
        };
        item.to_entity(&index).map_err(|error| error.code())
    };
    assert!(register(Some(3), &[0, 0, 0]).is_ok());
    assert_eq!(register(Some(4), &[0, 0, 0]), Err(Code::OutOfRange));
    assert_eq!(register(Some(0), &[0, 0]), Err(Code::InvalidArgument));
    assert_eq!(register(Some(0), &[0, 1 << 32, 0]), Err(Code::OutOfRange));

    let id = index.registers.named("last_seen").unwrap().preamble.id;
    let decode = |cell, data| {
        let data = Some(v1::P4Data { data: Some(data) });
        let entry = v1::RegisterEntry {
            register_id: id,
            index: Some(v1::Index { index: cell }),
            data,
        };
        cells::register_from_proto(&entry, &index).map_err(|error| error.code())
    };
    use v1::p4_data::Data;
    assert!(decode(7, Data::Bitstring(vec![0; 9])).is_ok());
    assert_eq!(
        decode(-1, Data::Bitstring(vec![1])),
        Err(Code::InvalidArgument)
    );
    assert_eq!(decode(8, Data::Bitstring(vec![1])), Err(Code::OutOfRange));
    assert_eq!(
        decode(0, Data::Bitstring(vec![1; 7])),
        Err(Code::OutOfRange)
    );
    assert_eq!(decode(0, Data::Bool(true)), Err(Code::InvalidArgument));
}

#[test]
fn packet_metadata_follows_the_header() {
    let index = index();
    let header = index.controller_headers.named("packet_in").unwrap();
    let metadata = packet_metadata(header, &[510.into()]).unwrap();
    assert_eq!(
        metadata,
        [v1::PacketMetadata {
            metadata_id: 1,
            value: vec![1, 0xfe]
        }]
    );
    assert_eq!(packet_fields(header, &metadata), Ok(vec![510.into()]));
    assert!(packet_metadata(header, &[512.into()]).is_err());
    assert!(packet_metadata(header, &[]).is_err());
    assert!(matches!(
        packet_fields(header, &[]),
        Err(TranslateError::Missing { .. })
    ));
    let stray = v1::PacketMetadata {
        metadata_id: 7,
        value: vec![1],
    };
    assert!(matches!(
        packet_fields(header, &[stray]),
        Err(TranslateError::UnknownField { .. })
    ));
}

#[test]
fn what_is_not_supported_says_so() {
    let entity = |entity| v1::Entity { entity };
    let error = |kind| Item::from_entity(&entity(Some(kind)), &index(), Part::Whole).unwrap_err();
    let other = error(Kind::ExternEntry(v1::ExternEntry::default()));
    assert_eq!(
        (other.code(), other.to_string()),
        (
            Code::Unimplemented,
            "extern entries: not supported yet".into()
        )
    );
    let unset = Item::from_entity(&entity(None), &index(), Part::Whole);
    assert_eq!(unset, Err(TranslateError::Unset { what: "entity" }));
}
