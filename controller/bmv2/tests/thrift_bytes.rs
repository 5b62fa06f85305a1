//! What goes over the wire, byte for byte, and what comes back.
//!
//! The server is written from the description of Thrift's binary protocol ("strict" form): big-endian numbers; a message
//! is 0x8001, 0, type, name, sequence number and a struct; a struct is fields of type, number and value, closed by 0.
//! Nothing here uses the client's own encoder.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;

use bmv2::device::{Device, DeviceError};
use bmv2::program::Program;
use bmv2::thrift::{ActionEntry, Counts, KeyPart, Mirror, RawEntry, Reason, Runtime, ThriftError};
use p4lang::runtime::{CloneSession, Match, MulticastGroup, Replica, entry};
use p4rt::client::{Query, UpdateType};
use p4rt::translate::{CounterValue, Item};

const TIMEOUT: Duration = Duration::from_secs(10);

const CALL: u8 = 1;
const REPLY: u8 = 2;
const EXCEPTION: u8 = 3;

/// Bytes, put together from the protocol's description.
#[derive(Clone, Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn raw(mut self, bytes: &[u8]) -> Bytes {
        self.0.extend(bytes);
        self
    }

    fn i32(self, value: i32) -> Bytes {
        self.raw(&value.to_be_bytes())
    }

    fn i64(self, value: i64) -> Bytes {
        self.raw(&value.to_be_bytes())
    }

    fn string(self, value: impl AsRef<[u8]>) -> Bytes {
        let value = value.as_ref();
        self.i32(value.len() as i32).raw(value)
    }

    fn field(self, kind: u8, number: i16) -> Bytes {
        self.raw(&[kind]).raw(&number.to_be_bytes())
    }

    fn field_bool(self, number: i16, value: bool) -> Bytes {
        self.field(2, number).raw(&[u8::from(value)])
    }

    fn field_i32(self, number: i16, value: i32) -> Bytes {
        self.field(8, number).i32(value)
    }

    fn field_i64(self, number: i16, value: i64) -> Bytes {
        self.field(10, number).i64(value)
    }

    fn field_string(self, number: i16, value: impl AsRef<[u8]>) -> Bytes {
        self.field(11, number).string(value)
    }

    fn field_struct(self, number: i16) -> Bytes {
        self.field(12, number)
    }

    /// A list of `count` elements of a type follows.
    fn field_list(self, number: i16, kind: u8, count: i32) -> Bytes {
        self.field(15, number).raw(&[kind]).i32(count)
    }

    fn stop(self) -> Bytes {
        self.raw(&[0])
    }
}

const STRINGS: u8 = 11;
const STRUCTS: u8 = 12;
const I64S: u8 = 10;

fn bytes() -> Bytes {
    Bytes::default()
}

fn message(kind: u8, name: &str, sequence: i32, body: Bytes) -> Vec<u8> {
    let head = bytes()
        .raw(&[0x80, 0x01, 0, kind])
        .string(name)
        .i32(sequence);
    head.raw(&body.0).0
}

/// A call that begins with the context 0, as all of `standard`'s that name an object do.
fn call(method: &str) -> (String, Bytes) {
    (format!("standard:{method}"), bytes().field_i32(1, 0))
}

/// What is expected, and what is answered.
struct Exchange {
    name: String,
    request: Bytes,
    answer_kind: u8,
    answer: Bytes,
}

impl Exchange {
    /// The request's and the answer's struct, both without their end.
    fn new((name, context): (String, Bytes), request: Bytes, answer: Bytes) -> Exchange {
        Exchange {
            name,
            request: context.raw(&request.0).stop(),
            answer_kind: REPLY,
            answer: answer.stop(),
        }
    }
}

/// A switch that expects these calls and no other; joining it tells what it missed.
fn switch(script: Vec<Exchange>) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        for (sequence, exchange) in (1..).zip(script) {
            let expected = message(CALL, &exchange.name, sequence, exchange.request);
            let mut got = vec![0; expected.len()];
            stream.read_exact(&mut got).unwrap();
            assert_eq!(got, expected, "{}", exchange.name);
            // The answer carries the method's name alone.
            let method = exchange.name.split(':').nth(1).unwrap();
            let answer = message(exchange.answer_kind, method, sequence, exchange.answer);
            stream.write_all(&answer).unwrap();
        }
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty(), "more was sent than expected: {rest:02x?}");
    };
    (address, std::thread::spawn(serve))
}

/// Runs `work` against a switch that expects these calls.
fn with_switch<T>(script: Vec<Exchange>, work: impl FnOnce(&mut Runtime) -> T) -> T {
    let (address, server) = switch(script);
    let mut runtime = Runtime::connect(address, TIMEOUT).unwrap();
    let result = work(&mut runtime);
    drop(runtime);
    server.join().unwrap();
    result
}

#[test]
fn an_entry_of_every_kind_of_match() {
    let key = [
        KeyPart::Exact(vec![0x0a, 0, 0, 1]),
        KeyPart::Lpm(vec![0x0a, 0], 9),
        KeyPart::Ternary(vec![1], vec![3]),
        KeyPart::Valid(true),
        KeyPart::Range(vec![0, 1], vec![0, 9]),
    ];
    let request = bytes()
        .field_string(2, "SwitchIngress.t")
        .field_list(3, STRUCTS, 5)
        .field_i32(1, 0)
        .field_struct(2)
        .field_string(1, [0x0a, 0, 0, 1])
        .stop()
        .stop()
        .field_i32(1, 1)
        .field_struct(3)
        .field_string(1, [0x0a, 0])
        .field_i32(2, 9)
        .stop()
        .stop()
        .field_i32(1, 2)
        .field_struct(4)
        .field_string(1, [1])
        .field_string(2, [3])
        .stop()
        .stop()
        .field_i32(1, 3)
        .field_struct(5)
        .field_bool(1, true)
        .stop()
        .stop()
        .field_i32(1, 4)
        .field_struct(6)
        .field_string(1, [0, 1])
        .field_string(2, [0, 9])
        .stop()
        .stop()
        .field_string(4, "SwitchIngress.act")
        .field_list(5, STRINGS, 2)
        .string([7])
        .string([0, 0, 0, 8])
        .field_struct(6)
        .field_i32(1, 20)
        .stop();
    let script = vec![Exchange::new(
        call("bm_mt_add_entry"),
        request,
        // Handles of BMv2 have a version in their upper half.
        bytes().field_i32(0, 0x0100_0003),
    )];
    let handle = with_switch(script, |runtime| {
        let data = [vec![7], vec![0, 0, 0, 8]];
        runtime.add_entry(
            "SwitchIngress.t",
            &key,
            "SwitchIngress.act",
            &data,
            Some(20),
        )
    });
    assert_eq!(handle.unwrap(), 0x0100_0003);
}

/// The very bytes, without any helper.
#[test]
fn a_call_in_full() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let expected = b"\x80\x01\x00\x01\
            \x00\x00\x00\x1bstandard:bm_mt_delete_entry\
            \x00\x00\x00\x01\
            \x08\x00\x01\x00\x00\x00\x00\
            \x0b\x00\x02\x00\x00\x00\x03a.t\
            \x08\x00\x03\x00\x00\x01\x02\
            \x00";
        let mut got = vec![0; expected.len()];
        stream.read_exact(&mut got).unwrap();
        assert_eq!(got, expected);
        let answer = b"\x80\x01\x00\x02\x00\x00\x00\x12bm_mt_delete_entry\x00\x00\x00\x01\x00";
        stream.write_all(answer).unwrap();
    });
    let mut runtime = Runtime::connect(address, TIMEOUT).unwrap();
    runtime.delete_entry("a.t", 258).unwrap();
    server.join().unwrap();
}

#[test]
fn tables_are_read() {
    let answer = bytes()
        .field_list(0, STRUCTS, 2)
        .field_list(1, STRUCTS, 1)
        .field_i32(1, 0)
        .field_struct(2)
        .field_string(1, [5])
        .stop()
        .stop()
        .field_struct(2)
        .stop()
        .field_i32(3, 9)
        .field_struct(4)
        .field_i32(1, 1)
        .field_string(2, "go")
        .field_list(3, STRINGS, 1)
        .string([1, 2])
        .stop()
        // The entry's life, which nobody asks for.
        .field_struct(5)
        .field_i32(1, 1000)
        .field_i32(2, 4)
        .stop()
        .stop()
        .field_list(1, STRUCTS, 1)
        .field_i32(1, 2)
        .field_struct(4)
        .field_string(1, [4])
        .field_string(2, [6])
        .stop()
        .stop()
        .field_struct(2)
        .field_i32(1, 77)
        .stop()
        .field_i32(3, 10)
        .field_struct(4)
        .field_i32(1, 3)
        .field_i32(5, 2)
        .stop()
        .stop();
    let script = vec![
        Exchange::new(
            call("bm_mt_get_entries"),
            bytes().field_string(2, "t"),
            answer,
        ),
        Exchange::new(
            call("bm_mt_get_default_entry"),
            bytes().field_string(2, "t"),
            bytes().field_struct(0).field_i32(1, 0).stop(),
        ),
    ];
    let (entries, default) = with_switch(script, |runtime| {
        (
            runtime.entries("t").unwrap(),
            runtime.default_entry("t").unwrap(),
        )
    });
    let expected = [
        RawEntry {
            key: vec![KeyPart::Exact(vec![5])],
            priority: None,
            handle: 9,
            action: ActionEntry::Action("go".into(), vec![vec![1, 2]]),
        },
        RawEntry {
            key: vec![KeyPart::Ternary(vec![4], vec![6])],
            priority: Some(77),
            handle: 10,
            action: ActionEntry::Group(2),
        },
    ];
    assert_eq!(entries, expected);
    assert_eq!(default, ActionEntry::None);
}

#[test]
fn cells_are_read_and_written() {
    let named = |name: &str| bytes().field_string(2, name);
    let script = vec![
        Exchange::new(
            call("bm_counter_read"),
            named("c").field_i32(3, 4),
            bytes()
                .field_struct(0)
                .field_i64(1, 640)
                .field_i64(2, 10)
                .stop(),
        ),
        Exchange::new(
            call("bm_counter_write"),
            named("c")
                .field_i32(3, 4)
                .field_struct(4)
                .field_i64(1, 1)
                .field_i64(2, 2)
                .stop(),
            bytes(),
        ),
        Exchange::new(
            call("bm_register_read"),
            named("r").field_i32(3, 7),
            bytes().field_i64(0, -1),
        ),
        Exchange::new(
            call("bm_register_read_all"),
            named("r"),
            bytes().field_list(0, I64S, 3).i64(1).i64(2).i64(3),
        ),
        Exchange::new(
            call("bm_register_write"),
            named("r").field_i32(3, 7).field_i64(4, 0xffff_ffff),
            bytes(),
        ),
        Exchange::new(
            call("bm_register_write_range"),
            named("r")
                .field_i32(3, 0)
                .field_i32(4, 2048)
                .field_i64(5, 9),
            bytes(),
        ),
    ];
    with_switch(script, |runtime| {
        let counts = |bytes, packets| Counts { bytes, packets };
        assert_eq!(runtime.read_counter("c", 4).unwrap(), counts(640, 10));
        runtime.write_counter("c", 4, counts(1, 2)).unwrap();
        assert_eq!(runtime.read_register("r", 7).unwrap(), -1);
        assert_eq!(runtime.read_register_whole("r").unwrap(), [1, 2, 3]);
        runtime.write_register("r", 7, 0xffff_ffff).unwrap();
        runtime.write_register_range("r", 0, 2048, 9).unwrap();
    });
}

#[test]
fn groups_sessions_and_programs() {
    let mc = |method: &str| (format!("simple_pre_lag:{method}"), bytes().field_i32(1, 0));
    let psa = |method: &str| (format!("psa_switch:{method}"), bytes());
    let plain = |method: &str| (format!("standard:{method}"), bytes());
    let script = vec![
        Exchange::new(
            mc("bm_mc_mgrp_create"),
            bytes().field_i32(2, 17),
            bytes().field_i32(0, 17),
        ),
        Exchange::new(
            mc("bm_mc_node_create"),
            bytes()
                .field_i32(2, 5)
                .field_string(3, "1010")
                .field_string(4, ""),
            bytes().field_i32(0, 2),
        ),
        Exchange::new(
            mc("bm_mc_node_associate"),
            bytes().field_i32(2, 17).field_i32(3, 2),
            bytes(),
        ),
        Exchange::new(
            psa("mirroring_session_add"),
            bytes()
                .field_i32(1, 6)
                .field_struct(2)
                .field_i32(1, 3)
                .field_i32(2, 8)
                .stop(),
            bytes(),
        ),
        Exchange::new(
            psa("mirroring_session_delete"),
            bytes().field_i32(1, 7),
            bytes().field_struct(1).field_i32(1, 1).stop(),
        ),
        Exchange::new(
            plain("bm_load_new_config"),
            bytes().field_string(1, "{}"),
            bytes(),
        ),
        Exchange::new(plain("bm_swap_configs"), bytes(), bytes()),
        Exchange::new(
            psa("get_time_elapsed_us"),
            bytes(),
            bytes().field_i64(0, 1_234_567),
        ),
    ];
    with_switch(script, |runtime| {
        let group = runtime.create_multicast_group(17).unwrap();
        let node = runtime.create_multicast_node(5, &[1, 3]).unwrap();
        runtime.associate_multicast_node(group, node).unwrap();
        let both = Mirror {
            port: Some(3),
            group: Some(8),
        };
        runtime.set_mirror(6, both).unwrap();
        let error = runtime.delete_mirror(7).unwrap_err().to_string();
        assert!(
            error.contains("there is no such session (SessionNotFound)"),
            "{error}"
        );
        runtime.load_config("{}").unwrap();
        runtime.swap().unwrap();
        assert_eq!(runtime.elapsed_us().unwrap(), 1_234_567);
    });
}

#[test]
fn every_refusal_has_its_reason() {
    let refused = |code: i32| bytes().field_struct(1).field_i32(1, code).stop();
    let script = [7, 17, 18, 25, 100, 1234].map(|code| {
        Exchange::new(
            call("bm_mt_reset_default_entry"),
            bytes().field_string(2, "t"),
            refused(code),
        )
    });
    let reasons = with_switch(script.into(), |runtime| {
        (0..6)
            .map(|_| match runtime.reset_default("t") {
                Err(ThriftError::Refused { refusal, .. }) => refusal.reason(),
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    });
    let expected = [
        Reason::InvalidTableName,
        Reason::DuplicateEntry,
        Reason::BadMatchKey,
        Reason::ImmutableTableEntries,
        Reason::Unspecified,
        Reason::Unknown,
    ];
    assert_eq!(reasons, expected);
}

/// What Thrift itself answers where the service or the method is unknown.
#[test]
fn a_switch_without_the_service_says_so() {
    let mut exchange = Exchange::new(
        ("psa_switch:mirroring_session_delete".into(), bytes()),
        bytes().field_i32(1, 7),
        bytes().field_string(1, "unknown service").field_i32(2, 1),
    );
    exchange.answer_kind = EXCEPTION;
    let error = with_switch(vec![exchange], |runtime| runtime.delete_mirror(7)).unwrap_err();
    let ThriftError::Application { call, message, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(
        (&call[..], &message[..]),
        ("psa_switch:mirroring_session_delete", "unknown service")
    );
}

#[test]
fn answers_that_make_no_sense_are_errors() {
    // An answer to another call, one of the wrong type, one that is cut off, one with a list longer than its bytes.
    let other_sequence = message(REPLY, "bm_mt_get_entries", 7, bytes().stop());
    let wrong_type = message(
        REPLY,
        "bm_mt_get_entries",
        1,
        bytes().field_i32(0, 1).stop(),
    );
    let cut = message(REPLY, "bm_mt_get_entries", 1, bytes().field(15, 0));
    let long = bytes().field_list(0, STRUCTS, i32::MAX);
    let long = message(REPLY, "bm_mt_get_entries", 1, long);
    for answer in [
        other_sequence,
        wrong_type,
        cut,
        long,
        b"HTTP/1.1 400\r\n".to_vec(),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn({
            let answer = answer.clone();
            move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut buffer = [0; 256];
                assert!(stream.read(&mut buffer).unwrap() > 0);
                stream.write_all(&answer).unwrap();
            }
        });
        let mut runtime = Runtime::connect(address, TIMEOUT).unwrap();
        let error = runtime.entries("t").unwrap_err();
        assert!(
            matches!(error, ThriftError::Exchange { .. }),
            "{answer:02x?}: {error}"
        );
        server.join().unwrap();
    }
}

#[test]
fn nobody_there() {
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let error = Runtime::connect(address, Duration::from_millis(50))
        .err()
        .unwrap();
    assert!(matches!(error, ThriftError::Connect { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()));
}

/// A program in the form of p4c's JSON, as far as it is read.
const JSON: &str = r#"{
  "header_types": [
    {"name": "ethernet_t", "id": 0, "fields": [["dst", 48, false], ["rest", "*"]]},
    {"name": "scalars_0", "id": 1, "fields": [["metadata_t.flows", 33, false], ["metadata_t.epoch", 16, false]]}
  ],
  "headers": [
    {"name": "ethernet", "id": 0, "header_type": "ethernet_t"},
    {"name": "scalars", "id": 1, "header_type": "scalars_0"}
  ],
  "actions": [
    {"name": "SwitchIngress.unicast", "id": 0, "runtime_data": [{"name": "port", "bitwidth": 32}]},
    {"name": "SwitchIngress.select", "id": 1, "runtime_data": [
      {"name": "cell", "bitwidth": 8}, {"name": "key", "bitwidth": 9}]}
  ],
  "pipelines": [{"name": "ingress", "tables": [
    {"name": "SwitchIngress.mac", "match_type": "exact", "type": "simple", "actions": ["SwitchIngress.unicast"],
     "key": [{"match_type": "exact", "name": "hdr.ethernet.dst", "target": ["ethernet", "dst"], "mask": null}]},
    {"name": "SwitchIngress.faults", "match_type": "range", "type": "simple", "actions": ["SwitchIngress.select"],
     "key": [
       {"match_type": "ternary", "name": "meta.flows", "target": ["scalars", "metadata_t.flows"], "mask": null},
       {"match_type": "range", "name": "meta.epoch", "target": ["scalars", "metadata_t.epoch"], "mask": null}]}
  ]}],
  "register_arrays": [{"name": "SwitchIngress.owners", "id": 0, "bitwidth": 32, "size": 2048}],
  "extern_instances": [{"name": "SwitchIngress.fired", "id": 0, "type": "Counter", "attribute_values": [
    {"name": "n_counters", "type": "hexstr", "value": "0x02"}, {"name": "type", "type": "string", "value": "packets"}]}]
}"#;

/// What the controller says to our own switch by P4Runtime, said to `psa_switch`.
#[test]
fn a_plan_is_written_by_name() {
    let program = Program::parse(JSON).unwrap();
    let mac = entry(
        "SwitchIngress.mac",
        &[("hdr.ethernet.dst", Match::exact(0x0200_0000_0007))],
        0,
        "SwitchIngress.unicast",
        &[("port", 3)],
    );
    // The fields in another order than the table's, parameters too; the priority is 5.
    let fault = entry(
        "SwitchIngress.faults",
        &[
            ("meta.epoch", Match::range(1, 2)),
            ("meta.flows", Match::ternary(1 << 32, 1 << 32)),
        ],
        5,
        "SwitchIngress.select",
        &[("key", 0x101), ("cell", 1)],
    );
    let group = MulticastGroup {
        id: 2,
        replicas: [(1, 1), (2, 1), (1, 2)]
            .map(|(port, instance)| Replica { port, instance })
            .into(),
    };
    let session = CloneSession {
        id: 9,
        replicas: vec![Replica {
            port: 0xffff_fffd,
            instance: 0,
        }],
        class_of_service: 0,
        packet_length_bytes: 0,
    };
    let mac_key = |request: Bytes| {
        request
            .field_list(3, STRUCTS, 1)
            .field_i32(1, 0)
            .field_struct(2)
            .field_string(1, [2, 0, 0, 0, 0, 7])
            .stop()
            .stop()
    };
    let mc = |method: &str| (format!("simple_pre_lag:{method}"), bytes().field_i32(1, 0));
    let script = vec![
        Exchange::new(
            call("bm_mt_add_entry"),
            mac_key(bytes().field_string(2, "SwitchIngress.mac"))
                .field_string(4, "SwitchIngress.unicast")
                .field_list(5, STRINGS, 1)
                .string([0, 0, 0, 3])
                .field_struct(6)
                .stop(),
            bytes().field_i32(0, 40),
        ),
        Exchange::new(
            call("bm_mt_add_entry"),
            bytes()
                .field_string(2, "SwitchIngress.faults")
                .field_list(3, STRUCTS, 2)
                .field_i32(1, 2)
                .field_struct(4)
                .field_string(1, [1, 0, 0, 0, 0])
                .field_string(2, [1, 0, 0, 0, 0])
                .stop()
                .stop()
                .field_i32(1, 4)
                .field_struct(6)
                .field_string(1, [0, 1])
                .field_string(2, [0, 2])
                .stop()
                .stop()
                .field_string(4, "SwitchIngress.select")
                .field_list(5, STRINGS, 2)
                .string([1])
                .string([1, 1])
                .field_struct(6)
                .field_i32(1, i32::MAX - 5)
                .stop(),
            bytes().field_i32(0, 41),
        ),
        Exchange::new(
            mc("bm_mc_mgrp_create"),
            bytes().field_i32(2, 2),
            bytes().field_i32(0, 2),
        ),
        Exchange::new(
            mc("bm_mc_node_create"),
            bytes()
                .field_i32(2, 1)
                .field_string(3, "110")
                .field_string(4, ""),
            bytes().field_i32(0, 0),
        ),
        Exchange::new(
            mc("bm_mc_node_associate"),
            bytes().field_i32(2, 2).field_i32(3, 0),
            bytes(),
        ),
        Exchange::new(
            mc("bm_mc_node_create"),
            bytes()
                .field_i32(2, 2)
                .field_string(3, "10")
                .field_string(4, ""),
            bytes().field_i32(0, 1),
        ),
        Exchange::new(
            mc("bm_mc_node_associate"),
            bytes().field_i32(2, 2).field_i32(3, 1),
            bytes(),
        ),
        Exchange::new(
            ("psa_switch:mirroring_session_add".into(), bytes()),
            bytes()
                .field_i32(1, 9)
                .field_struct(2)
                .field_i32(1, -3)
                .stop(),
            bytes(),
        ),
        Exchange::new(
            call("bm_register_write"),
            bytes()
                .field_string(2, "SwitchIngress.owners")
                .field_i32(3, 5)
                .field_i64(4, 0xffff_ffff),
            bytes(),
        ),
        // The entry is changed and removed by the handle that its addition was answered with.
        Exchange::new(
            call("bm_mt_modify_entry"),
            bytes()
                .field_string(2, "SwitchIngress.mac")
                .field_i32(3, 40)
                .field_string(4, "SwitchIngress.unicast")
                .field_list(5, STRINGS, 1)
                .string([0, 0, 0, 4]),
            bytes(),
        ),
        Exchange::new(
            call("bm_mt_delete_entry"),
            bytes()
                .field_string(2, "SwitchIngress.mac")
                .field_i32(3, 40),
            bytes(),
        ),
        Exchange::new(
            call("bm_counter_read"),
            bytes()
                .field_string(2, "SwitchIngress.fired")
                .field_i32(3, 0),
            bytes()
                .field_struct(0)
                .field_i64(1, 0)
                .field_i64(2, 0)
                .stop(),
        ),
        Exchange::new(
            call("bm_counter_read"),
            bytes()
                .field_string(2, "SwitchIngress.fired")
                .field_i32(3, 1),
            bytes()
                .field_struct(0)
                .field_i64(1, 64)
                .field_i64(2, 1)
                .stop(),
        ),
        Exchange::new(
            call("bm_register_read"),
            bytes()
                .field_string(2, "SwitchIngress.owners")
                .field_i32(3, 5),
            // A cell of 32 bits, as an older switch may extend it.
            bytes().field_i64(0, -1),
        ),
    ];
    let (address, server) = switch(script);
    let mut device = Device::connect(address, TIMEOUT, program).unwrap();
    let insert = |item| (UpdateType::Insert, item);
    device
        .write(&[
            insert(Item::TableEntry(mac.clone())),
            insert(Item::TableEntry(fault)),
            insert(Item::MulticastGroup(group)),
            insert(Item::CloneSession(session)),
            (
                UpdateType::Modify,
                Item::Register {
                    name: "SwitchIngress.owners".into(),
                    index: Some(5),
                    fields: vec![0xffff_ffff.into()],
                },
            ),
        ])
        .unwrap();
    let mut changed = mac.clone();
    changed.action.params[0].1 = 4.into();
    device
        .write(&[
            (UpdateType::Modify, Item::TableEntry(changed)),
            (UpdateType::Delete, Item::TableEntry(mac.clone())),
        ])
        .unwrap();
    let (position, error) = device
        .write(&[(UpdateType::Delete, Item::TableEntry(mac))])
        .unwrap_err();
    assert!(
        matches!((position, &error), (0, DeviceError::NotWritten(_))),
        "{error}"
    );
    let read = device.read(&[
        Query::Counter {
            name: "SwitchIngress.fired".into(),
            index: None,
        },
        Query::Register {
            name: "SwitchIngress.owners".into(),
            index: Some(5),
        },
    ]);
    let cell = |index, packets, bytes| Item::Counter {
        name: "SwitchIngress.fired".into(),
        index: Some(index),
        value: Some(CounterValue { packets, bytes }),
    };
    let owner = Item::Register {
        name: "SwitchIngress.owners".into(),
        index: Some(5),
        fields: vec![0xffff_ffff.into()],
    };
    assert_eq!(read.unwrap(), [cell(0, 0, 0), cell(1, 1, 64), owner]);
    drop(device);
    server.join().unwrap();
}
