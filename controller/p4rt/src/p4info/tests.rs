use super::*;
use crate::config;
use p4lang::p4info::*;
use p4lang::runtime::MatchKind;

fn preamble(id: u32, name: &str, alias: &str) -> Preamble {
    Preamble {
        id,
        name: name.into(),
        alias: alias.into(),
        ..Preamble::default()
    }
}

fn key(id: u32, name: &str, bitwidth: u32, kind: MatchKind) -> MatchField {
    MatchField {
        id,
        name: name.into(),
        bitwidth,
        match_type: MatchType::Standard(kind),
        annotations: vec![],
        structured: vec![],
        type_name: None,
    }
}

fn element(name: &str, bitwidth: u32, signed: bool, boolean: bool) -> ElementField {
    ElementField {
        name: name.into(),
        bitwidth,
        signed,
        boolean,
    }
}

/// A small program with one of everything that is translated.
pub(crate) fn sample() -> P4Info {
    let action = |id, name: &str, params: &[(&str, u32)]| Action {
        preamble: preamble(id, name, name.rsplit('.').next().unwrap()),
        params: params
            .iter()
            .zip(1..)
            .map(|(&(name, bitwidth), id)| Param {
                id,
                name: name.into(),
                bitwidth,
                annotations: vec![],
                structured: vec![],
                type_name: None,
            })
            .collect(),
    };
    let table = |id, name: &str, match_fields, actions: &[(u32, ActionScope)]| Table {
        preamble: preamble(id, name, name.rsplit('.').next().unwrap()),
        match_fields,
        action_refs: actions
            .iter()
            .map(|&(id, scope)| ActionRef {
                id,
                scope,
                annotations: vec![],
                structured: vec![],
            })
            .collect(),
        const_default_action_id: 0,
        initial_default_action_id: 0x0100_0002,
        initial_default_args: vec![(1, vec![0, 7])],
        implementation_id: 0,
        direct_resource_ids: vec![],
        size: 1024,
        is_const_table: false,
        has_initial_entries: false,
        idle_timeout: true,
    };
    P4Info {
        arch: "psa".into(),
        tables: vec![
            table(
                0x0200_0001,
                "Ingress.forward",
                vec![key(1, "hdr.ethernet.dst", 48, MatchKind::Exact)],
                &[
                    (0x0100_0001, ActionScope::TableAndDefault),
                    (0x0100_0002, ActionScope::DefaultOnly),
                ],
            ),
            table(
                0x0200_0002,
                "Ingress.acl",
                vec![
                    key(1, "hdr.ipv4.src", 32, MatchKind::Ternary),
                    key(2, "hdr.ipv4.dst", 32, MatchKind::Lpm),
                    key(3, "meta.epoch", 16, MatchKind::Range),
                    key(4, "hdr.ipv4.protocol", 8, MatchKind::Optional),
                ],
                &[
                    (0x0100_0001, ActionScope::TableOnly),
                    (0x0100_0002, ActionScope::TableAndDefault),
                ],
            ),
        ],
        actions: vec![
            action(0x0100_0001, "Ingress.send", &[("port", 9), ("class", 8)]),
            action(0x0100_0002, "Ingress.drop", &[]),
        ],
        counters: vec![Counter {
            preamble: preamble(0x1200_0001, "Ingress.fired", "fired"),
            unit: Unit::Both,
            size: 16,
            index_type: None,
        }],
        registers: vec![
            Register {
                preamble: preamble(0x1600_0001, "Ingress.last_seen", "last_seen"),
                element: vec![element("", 48, false, false)],
                struct_name: None,
                size: 8,
                data_type: Some(DataType::Bit(48)),
                index_type: None,
            },
            Register {
                preamble: preamble(0x1600_0002, "Ingress.cells", "cells"),
                element: vec![
                    element("sum", 32, true, false),
                    element("bitmap", 32, false, false),
                    element("full", 1, false, true),
                ],
                struct_name: Some("cell_t".into()),
                size: 4,
                data_type: Some(DataType::Struct("cell_t".into())),
                index_type: None,
            },
        ],
        controller_packet_metadata: vec![ControllerPacketMetadata {
            preamble: preamble(0x0400_0001, "packet_in", "packet_in"),
            metadata: vec![PacketMetadata {
                id: 1,
                name: "ingress_port".into(),
                bitwidth: 9,
                annotations: vec![],
                type_name: None,
            }],
        }],
        types: TypeInfo {
            structs: std::collections::BTreeMap::from([(
                "cell_t".into(),
                vec![
                    ("sum".into(), DataType::Int(32)),
                    ("bitmap".into(), DataType::Bit(32)),
                    ("full".into(), DataType::Bool),
                ],
            )]),
            ..TypeInfo::default()
        },
        ..P4Info::default()
    }
}

#[test]
fn the_message_says_the_same() {
    assert_eq!(from_proto(&to_proto(&sample())), Ok(sample()));
}

#[test]
fn objects_are_found_by_id_name_and_alias() {
    let index = Index::from_proto(&to_proto(&sample())).unwrap();
    assert_eq!(
        index.tables.named("Ingress.acl"),
        index.tables.with_id(0x0200_0002)
    );
    assert_eq!(index.tables.named("acl"), index.tables.with_id(0x0200_0002));
    assert_eq!(index.tables.named("send"), None);
    assert_eq!(index.actions.named("send").unwrap().params[0].bitwidth, 9);
}

#[test]
fn an_alias_does_not_hide_a_name() {
    let mut info = sample();
    info.actions[0].preamble.alias = "Ingress.drop".into();
    let index = Index::new(info).unwrap();
    assert_eq!(
        index.actions.named("Ingress.drop").unwrap().preamble.id,
        0x0100_0002
    );
}

#[test]
fn broken_messages_are_refused() {
    let mut twice = sample();
    twice.actions[1].preamble.id = twice.actions[0].preamble.id;
    assert!(matches!(
        Index::new(twice),
        Err(DecodeError::Duplicate {
            section: "action",
            ..
        })
    ));

    let mut headless = to_proto(&sample());
    headless.tables[1].preamble = None;
    assert_eq!(
        from_proto(&headless),
        Err(DecodeError::NoPreamble {
            section: "table",
            position: 1
        })
    );

    let mut negative = to_proto(&sample());
    negative.actions[0].params[0].bitwidth = -1;
    assert!(matches!(
        from_proto(&negative),
        Err(DecodeError::Width { bitwidth: -1, .. })
    ));

    // Values of so many bits would be made, for each match.
    let mut wide = to_proto(&sample());
    wide.tables[0].match_fields[0].bitwidth = 2049;
    let error = from_proto(&wide).unwrap_err().to_string();
    assert!(
        error.ends_with("has bit width 2049; the maximum is 2048"),
        "{error}"
    );
    wide.tables[0].match_fields[0].bitwidth = 2048;
    assert!(from_proto(&wide).is_ok());
    let mut translated = |bitwidth| {
        use config::p4_new_type_spec::Representation;
        use config::p4_new_type_translation::SdnType;
        let translation = config::P4NewTypeTranslation {
            uri: "u".into(),
            sdn_type: Some(SdnType::SdnBitwidth(bitwidth)),
        };
        let spec = config::P4NewTypeSpec {
            representation: Some(Representation::TranslatedType(translation)),
            ..Default::default()
        };
        let types = wide.type_info.get_or_insert_default();
        types.new_types.insert("n".repeat(100_000), spec);
        from_proto(&wide)
    };
    assert!(translated(2048).is_ok());
    for bitwidth in [2049, 2_000_000_000, -1] {
        let error = translated(bitwidth).unwrap_err();
        assert!(matches!(error, DecodeError::Width { .. }), "{error}");
        assert!(error.to_string().len() < 100, "{error}");
    }

    let mut matchless = to_proto(&sample());
    matchless.tables[0].match_fields[0].r#match = None;
    assert!(matches!(
        from_proto(&matchless),
        Err(DecodeError::NoMatchType { .. })
    ));
}
