//! Elements of registers and digests that are not plain numbers, as a foreign controller writes and reads them.

use crate::support::raw::*;
use crate::support::*;
use p4rt::rpc::Code;
use p4rt::v1;
use p4rt::v1::entity::Entity as Kind;
use p4rt::v1::p4_data::Data;
use p4rt::v1::stream_message_response::Update as Told;
use p4rt::v1::write_request::Atomicity;
use softswitch::dataplane::Loader;

const TYPED: &[u8] = include_bytes!("../support/typed.p4");

fn data(data: Data) -> v1::P4Data {
    v1::P4Data { data: Some(data) }
}

fn bits(value: &[u8]) -> v1::P4Data {
    data(Data::Bitstring(value.to_vec()))
}

fn structure(members: Vec<v1::P4Data>) -> v1::P4Data {
    data(Data::Struct(v1::P4StructLike { members }))
}

fn inner(a: u8, b: u8) -> v1::P4Data {
    structure(vec![bits(&[a]), bits(&[b])])
}

/// 5,000 cells each: more than a step of the driver, and than a response.
const ARRAYS: &str = "#include <core.p4>
#include <psa.p4>
header b_h { bit<8> v; }
struct headers_t { b_h b; }
struct meta_t {}
struct empty_t {}
parser IP(packet_in p, out headers_t h, inout meta_t m, in psa_ingress_parser_input_metadata_t i, in empty_t a, in empty_t b) {
    state start { p.extract(h.b); transition accept; }
}
control I(inout headers_t h, inout meta_t m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) {
    Register<bit<200>, bit<32>>(5000) cells;
    Counter<bit<32>, bit<32>>(5000, PSA_CounterType_t.PACKETS) counters;
    Meter<bit<32>>(5000, PSA_MeterType_t.PACKETS) meters;
    apply {
        bit<32> at = (bit<32>)h.b.v;
        cells.write(at, 1);
        counters.count(at);
        meters.execute(at);
        send_to_port(o, (PortId_t)2);
    }
}
control ID(packet_out p, out empty_t a, out empty_t b, out empty_t c, inout headers_t h, in meta_t m, in psa_ingress_output_metadata_t o) {
    apply { p.emit(h.b); }
}
parser EP(packet_in p, out headers_t h, inout meta_t m, in psa_egress_parser_input_metadata_t i, in empty_t a, in empty_t b, in empty_t c) {
    state start { p.extract(h.b); transition accept; }
}
control E(inout headers_t h, inout meta_t m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) { apply {} }
control ED(packet_out p, out empty_t a, out empty_t b, inout headers_t h, in meta_t m, in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t d) {
    apply { p.emit(h.b); }
}
PSA_Switch(IngressPipeline(IP(), I(), ID()), PacketReplicationEngine(), EgressPipeline(EP(), E(), ED()), BufferingQueueingEngine()) main;
";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_array_is_written_and_read_whole() {
    let (instance, ..) = switch_running(ARRAYS.as_bytes());
    let mut raw = Raw::primary_of(&instance, ARRAYS.as_bytes()).await;
    let register_id = id(&raw.index.registers, "I.cells");
    let counter_id = id(&raw.index.counters, "I.counters");
    let meter_id = id(&raw.index.meters, "I.meters");
    let at = |index: Option<i64>| index.map(|index| v1::Index { index });
    let cell = |index, value: Option<&[u8]>| {
        Kind::RegisterEntry(v1::RegisterEntry {
            register_id,
            index: at(index),
            data: value.map(bits),
        })
    };
    let count = |index, packets: Option<i64>| {
        Kind::CounterEntry(v1::CounterEntry {
            counter_id,
            index: at(index),
            data: packets.map(|packet_count| v1::CounterData {
                packet_count,
                byte_count: 0,
            }),
        })
    };
    let config = v1::MeterConfig {
        cir: 10,
        cburst: 10,
        pir: 20,
        pburst: 20,
        ..Default::default()
    };
    let meter = |index, config| {
        Kind::MeterEntry(v1::MeterEntry {
            meter_id,
            index: at(index),
            config,
            counter_data: None,
        })
    };
    let wide = [0x80; 25];
    raw.put(Modify, cell(None, Some(&wide))).await;
    raw.put(Modify, cell(Some(4000), Some(&[7]))).await;
    raw.put(Modify, count(None, Some(5))).await;
    raw.put(Modify, count(Some(4000), Some(6))).await;
    raw.put(Modify, meter(None, Some(config))).await;
    raw.put(Modify, meter(Some(4000), None)).await;
    // Both updates are rolled back: the second value does not fit the register.
    let batch = vec![
        (Modify, cell(None, Some(&[1]))),
        (Modify, count(None, Some(1))),
        (Modify, meter(None, None)),
        (Modify, cell(Some(5000), Some(&[1]))),
    ];
    let results = raw.write_as(batch, Atomicity::RollbackOnError).await;
    assert_eq!(results[3], Code::OutOfRange);

    let all = raw.read(cell(None, None)).await;
    let due = |n: i64| cell(Some(n), Some(if n == 4000 { &[7] } else { &wide }));
    assert!(all.into_iter().eq((0..5000).map(due)));
    let all = raw.read(count(None, None)).await;
    let due = |n: i64| count(Some(n), Some(if n == 4000 { 6 } else { 5 }));
    assert!(all.into_iter().eq((0..5000).map(due)));
    let all = raw.read(meter(None, None)).await;
    let due = |n: i64| meter(Some(n), (n != 4000).then_some(config));
    assert!(all.into_iter().eq((0..5000).map(due)));
}

/// A struct without fields has no slots: its cells are empty but exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cells_without_fields_are_written_read_and_kept() {
    let text = ARRAYS
        .replace(
            "Counter<",
            "Register<empty_t, bit<32>>(5) nothing; Counter<",
        )
        .replace(
            "counters.count(at);",
            "nothing.write(at, {}); counters.count(at);",
        );
    let (instance, one, two) = switch_running(text.as_bytes());
    let mut raw = Raw::primary_of(&instance, text.as_bytes()).await;
    let register_id = id(&raw.index.registers, "I.nothing");
    let cell = |index: Option<i64>, data: Option<v1::P4Data>| {
        Kind::RegisterEntry(v1::RegisterEntry {
            register_id,
            index: index.map(|index| v1::Index { index }),
            data,
        })
    };
    let nothing = || Some(structure(vec![]));
    raw.put(Modify, cell(None, nothing())).await;
    raw.put(Modify, cell(Some(4), nothing())).await;
    assert!(one.send(&[3]));
    assert_eq!(two.receive(TIMEOUT), Some(vec![3]));
    let all: Vec<_> = (0..5).map(|n| cell(Some(n), nothing())).collect();
    assert_eq!(raw.read(cell(None, None)).await, all);
    assert_eq!(raw.read(cell(Some(4), None)).await, all[4..]);
    let refused = vec![
        (Modify, cell(Some(5), nothing())),
        (Modify, cell(Some(4), Some(bits(&[0])))),
        (Modify, cell(None, Some(structure(vec![bits(&[0])])))),
    ];
    assert_eq!(
        raw.write(refused).await,
        [
            Code::OutOfRange,
            Code::InvalidArgument,
            Code::InvalidArgument
        ]
    );
    let request = v1::SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        election_id: Some(v1::Uint128 { high: 0, low: 1 }),
        action: v1::set_forwarding_pipeline_config_request::Action::ReconcileAndCommit.into(),
        config: Some(v1::ForwardingPipelineConfig {
            p4info: Some(p4rt::p4info::to_proto(
                &loader().load(text.as_bytes()).unwrap().p4info,
            )),
            p4_device_config: text.clone().into_bytes(),
            cookie: None,
        }),
        ..Default::default()
    };
    raw.grpc
        .set_forwarding_pipeline_config(request)
        .await
        .unwrap();
    assert_eq!(raw.read(cell(None, None)).await, all);
}

/// P4Runtime has no keys of `int<W>`: bounds are sent as bits, in the order of signed numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ranges_of_signed_keys() {
    use v1::field_match::{FieldMatchType, Range};
    let text = ARRAYS
        .replace(
            "Counter<",
            "action mark(bit<8> v) { h.b.v = v; }
             table t {
                 key = { (int<8>) h.b.v: range @name(\"n\"); }
                 actions = { mark; NoAction; }
                 default_action = NoAction();
             }
             Counter<",
        )
        .replace("counters.count(at);", "t.apply(); counters.count(at);");
    let (instance, one, two) = switch_running(text.as_bytes());
    let mut raw = Raw::primary_of(&instance, text.as_bytes()).await;
    let (table_id, action) = (id(&raw.index.tables, "I.t"), raw.action("I.mark", &[0x55]));
    let entry = |low: &[u8], high: &[u8]| {
        let range = Range {
            low: low.to_vec().into(),
            high: high.to_vec().into(),
        };
        Kind::TableEntry(v1::TableEntry {
            table_id,
            r#match: vec![v1::FieldMatch {
                field_id: 1,
                field_match_type: Some(FieldMatchType::Range(range)),
            }],
            priority: 1,
            action: Some(v1::TableAction {
                r#type: Some(v1::table_action::Type::Action(action.clone())),
            }),
            ..Default::default()
        })
    };
    let crossing = entry(&[0xfb], &[3]);
    raw.put(Insert, crossing.clone()).await;
    let read = raw.read(crossing.clone()).await;
    assert_eq!(read, std::slice::from_ref(&crossing));
    for (value, found) in [
        (0xfa, 0xfa),
        (0xfb, 0x55),
        (0, 0x55),
        (3, 0x55),
        (4, 4),
        (0x80, 0x80),
        (0x7f, 0x7f),
    ] {
        assert!(one.send(&[value]));
        assert_eq!(two.receive(TIMEOUT), Some(vec![found]), "{value:#x}");
    }
    let refused = vec![
        (Insert, crossing),
        (Insert, entry(&[3], &[0xfb])),
        (Insert, entry(&[0], &[0xff])),
        (Insert, entry(&[0x80], &[0x7f])),
        (Insert, entry(&[1, 0], &[1, 1])),
        (Insert, entry(&[], &[1])),
    ];
    assert_eq!(
        raw.write(refused).await,
        [
            Code::AlreadyExists,
            Code::InvalidArgument,
            Code::InvalidArgument,
            Code::InvalidArgument,
            Code::OutOfRange,
            Code::OutOfRange
        ],
        "there; empty; empty; a don't-care spelt out; too wide; no bytes"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cell_of_structs_and_translated_values() {
    let (instance, one, two) = switch_running(TYPED);
    let mut raw = Raw::primary_of(&instance, TYPED).await;
    let register_id = id(&raw.index.registers, "cells");
    let cell = |data: Option<v1::P4Data>| {
        Kind::RegisterEntry(v1::RegisterEntry {
            register_id,
            index: Some(v1::Index { index: 1 }),
            data,
        })
    };
    let value = |a: u8, wide: &[u8]| {
        structure(vec![
            inner(a, 0xff),
            data(Data::Bool(true)),
            bits(b"blue"),
            bits(wide),
        ])
    };
    raw.put(Modify, cell(Some(value(6, &[1, 0xfe])))).await;
    assert_eq!(
        raw.read(cell(None)).await,
        [cell(Some(value(6, &[1, 0xfe])))]
    );
    let frame = vec![9; 60];
    assert!(one.send(&frame));
    assert_eq!(two.receive(TIMEOUT), Some(frame));
    assert_eq!(
        raw.read(cell(None)).await,
        [cell(Some(value(7, &[1, 0xfe])))],
        "the program's own field, and the others as they were"
    );
    let refused = vec![
        (Modify, cell(Some(value(0, &[2, 0])))),
        (Modify, cell(Some(inner(0, 0)))),
        (Modify, cell(None)),
    ];
    assert_eq!(
        raw.write(refused).await,
        [
            Code::OutOfRange,
            Code::InvalidArgument,
            Code::InvalidArgument
        ],
        "32 bits for the client, 9 in the program"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_digest_of_headers() {
    let (instance, one, _two) = switch_running(TYPED);
    let mut raw = Raw::primary_of(&instance, TYPED).await;
    let digest_id = id(&raw.index.digests, "learn_t");
    let on = v1::DigestEntry {
        digest_id,
        config: Some(v1::digest_entry::Config::default()),
    };
    raw.put(Insert, Kind::DigestEntry(on)).await;
    assert!(one.send(&frame_from([1, 2, 3, 4, 5, 6], 0x0800)));
    let Told::Digest(list) = raw.next().await else {
        panic!("a list")
    };
    let ethernet = v1::P4Header {
        is_valid: true,
        bitstrings: vec![
            vec![2, 0, 0, 0, 0, 1],
            vec![1, 2, 3, 4, 5, 6],
            vec![0x08, 0x00],
        ],
    };
    let expected = structure(vec![
        bits(&[1, 2, 3, 4, 5, 6]),
        data(Data::Header(ethernet)),
        data(Data::Header(v1::P4Header::default())),
        inner(1, 0),
    ]);
    assert_eq!(list.data, [expected], "the tag is not there");
}

/// The error of a read's only query.
fn error_of(status: &tonic::Status) -> p4rt::status::UpdateError {
    let results = p4rt::status::results(status, 1).unwrap_or_else(|| panic!("{status}"));
    results[0].clone().unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_value_beyond_the_control_planes_type_is_not_sent() {
    let (instance, one, two) = switch_running(TYPED);
    let mut raw = Raw::primary_of(&instance, TYPED).await;
    let register_id = id(&raw.index.registers, "far");
    let cells = |index| {
        Kind::RegisterEntry(v1::RegisterEntry {
            register_id,
            index,
            data: None,
        })
    };
    let frame = vec![9; 60];
    assert!(one.send(&frame));
    assert_eq!(two.receive(TIMEOUT), Some(frame));
    let at = |index| cells(Some(v1::Index { index }));
    let read = raw.try_read(at(1)).await.unwrap_err();
    assert_eq!(read.code(), tonic::Code::OutOfRange);
    assert!(
        read.message().ends_with("does not fit into 32 bits"),
        "{read}"
    );
    // A read of all cells returns the others.
    let request = v1::ReadRequest {
        device_id: DEVICE,
        entities: vec![v1::Entity {
            entity: Some(cells(None)),
        }],
        ..Default::default()
    };
    let mut responses = raw.grpc.read(request).await.unwrap().into_inner();
    let told = responses.message().await.unwrap().unwrap().entities;
    assert_eq!(told.len(), 1);
    assert_eq!(Some(raw.read(at(0)).await.remove(0)), told[0].entity);
    let end = responses.message().await.unwrap_err();
    assert_eq!(end.code(), tonic::Code::OutOfRange);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn only_inserts_and_defaults_assign_names() {
    let (instance, ..) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let unknown = raw.entry("vrfs", b"never written", "set_vrf", b"0");
    assert_eq!(raw.read(Kind::TableEntry(unknown.clone())).await, []);
    let counter = Kind::DirectCounterEntry(Box::new(v1::DirectCounterEntry {
        table_entry: Some(unknown.clone()),
        data: None,
    }));
    let read = raw.try_read(counter).await.unwrap_err();
    assert_eq!(error_of(&read).code, Code::NotFound);
    let unknown = Kind::TableEntry(unknown);
    let written = vec![(Modify, unknown.clone()), (Delete, unknown)];
    assert_eq!(raw.write(written).await, [Code::NotFound; 2]);
    // The number that a name would get.
    let number = Kind::TableEntry(raw.entry("vrfs", b"1023", "set_vrf", b"0"));
    raw.put(Insert, number.clone()).await;
    assert_eq!(raw.read(number.clone()).await, [number]);
    let named = Kind::TableEntry(raw.entry("vrfs", b"red", "set_vrf", b"blue"));
    raw.put(Insert, named.clone()).await;
    assert_eq!(raw.read(named.clone()).await, [named]);
}

/// Longer metadata than a client accepts would be an error of the transport.
const BRIEF: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn long_client_strings_are_shortened_in_errors() {
    let (instance, ..) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    for (name, says) in [
        ("9".repeat(1_000_000), "exceeds 10 bits"),
        ("n".repeat(2000), "has 2000 bytes; the maximum is 1024"),
    ] {
        let key = raw.entry("vrfs", name.as_bytes(), "set_vrf", b"0");
        let param = raw.entry("vrfs", b"0", "set_vrf", name.as_bytes());
        for entry in [key, param] {
            let told = raw.refusal(Insert, Kind::TableEntry(entry)).await;
            assert!(told.contains(says) && told.len() < BRIEF, "{told}");
        }
    }
    let request = v1::WriteRequest {
        device_id: DEVICE,
        role: "r".repeat(100_000),
        ..Default::default()
    };
    let told = raw.grpc.write(request).await.unwrap_err();
    assert_eq!(told.code(), tonic::Code::NotFound);
    assert!(told.message().len() < BRIEF, "{told}");

    let with_info = |change: fn(&mut p4rt::config::P4Info)| {
        let mut info = p4rt::p4info::to_proto(&p4info());
        change(&mut info);
        let config = v1::ForwardingPipelineConfig {
            p4info: Some(info),
            p4_device_config: PROGRAM.to_vec(),
            cookie: None,
        };
        v1::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            action: v1::set_forwarding_pipeline_config_request::Action::Verify.into(),
            config: Some(config),
            ..Default::default()
        }
    };
    let type_width = with_info(|info| {
        use p4rt::config::{p4_new_type_spec::Representation, p4_new_type_translation::SdnType};
        let types = info.type_info.get_or_insert_default();
        let vrf = types.new_types.get_mut("vrf_t").expect("a new type");
        if let Some(Representation::TranslatedType(translated)) = &mut vrf.representation {
            translated.sdn_type = Some(SdnType::SdnBitwidth(2_000_000_000));
        }
    });
    let set_width = with_info(|info| info.value_sets[0].r#match[0].bitwidth = 2_000_000_000);
    for (request, says) in [
        (
            type_width,
            "`vrf_t` has bit width 2000000000; the maximum is 2048",
        ),
        (set_width, "has bit width 2000000000; the maximum is 2048"),
    ] {
        let told = raw.grpc.set_forwarding_pipeline_config(request).await;
        let told = told.unwrap_err();
        assert_eq!(told.code(), tonic::Code::InvalidArgument, "{told}");
        let message = told.message();
        assert!(message.contains(says) && message.len() < BRIEF, "{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_field_without_a_name_is_the_members_value() {
    let (instance, ..) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let exact = v1::field_match::Exact {
        value: vec![1, 0, 0].into(),
    };
    let member = v1::FieldMatch {
        field_id: 1,
        field_match_type: Some(v1::field_match::FieldMatchType::Exact(exact)),
    };
    let entry = v1::ValueSetEntry {
        value_set_id: id(&raw.index.value_sets, "tagged"),
        members: vec![v1::ValueSetMember {
            r#match: vec![member],
        }],
    };
    let told = raw.refusal(Modify, Kind::ValueSetEntry(entry)).await;
    assert_eq!(
        told,
        "the member's value: the value does not fit into 16 bits"
    );
}
