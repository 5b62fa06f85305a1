//! v1model's extern objects and functions in programs.

use crate::support::v1model::V1;
use crate::support::{call, entry, one, sent, through};
use p4lang::runtime::Match;
use pipeline::{Config, CounterValue, DigestMessage, EventKind, Executor, MeterConfig};

#[test]
fn a_wrong_checksum_is_reported_and_a_right_one_written() {
    let program = V1 {
        decls: "struct sum_t { bit<16> sum; }",
        meta: "bit<16> sum;",
        parser: "state start { pkt.extract(hdr.x); meta.sum = 0xfbfa; transition accept; }",
        verify: "verify_checksum(hdr.x.a != 9, { hdr.x.a, hdr.x.b, 16w1 }, meta.sum, HashAlgorithm.csum16);",
        ingress: "s.egress_spec = 1 + (bit<9>) s.checksum_error;",
        compute: "update_checksum(hdr.x.a == 4, { 16w0x0102, hdr.x.a, hdr.x.b }, meta.sum, HashAlgorithm.csum16);
            if (hdr.x.a == 4) { hdr.x.b = meta.sum[7:0]; }",
        ..V1::default()
    };
    let mut switch = program.load();
    // 0x0404 + 1 = 0x0405, complement 0xfbfa.
    let sum = !(0x0102u16 + 0x0404);
    assert_eq!(
        through(&mut switch, &[4, 4]),
        [(1, vec![4, sum as u8])],
        "right"
    );
    assert_eq!(through(&mut switch, &[5, 4]), [(2, vec![5, 4])], "wrong");
    assert_eq!(
        through(&mut switch, &[9, 4]),
        [(1, vec![9, 4])],
        "the condition is false"
    );
}

#[test]
fn a_parser_sets_its_error_and_no_checksum_error() {
    let program = V1 {
        parser: "state start {
                s.checksum_error = 1;
                s.parser_error = error.NoMatch;
                pkt.extract(hdr.x);
                transition accept;
            }",
        ingress: "
            s.egress_spec = 1;
            if (s.checksum_error != 0) { s.egress_spec = 2; }
            if (s.parser_error == error.PacketTooShort) { s.egress_spec = s.egress_spec + 4; }
            else if (s.parser_error != error.NoError) { s.egress_spec = 3; }",
        ..V1::default()
    };
    for executor in [Executor::Fast, Executor::Reference, Executor::Both] {
        let mut switch = program.load_with(Config {
            executor,
            ..Config::default()
        });
        assert_eq!(through(&mut switch, &[1, 2]), [(1, vec![1, 2])]);
        assert_eq!(switch.stats().parser_errors, 0);
        assert_eq!(through(&mut switch, &[1]), [(5, vec![1])], "{executor:?}");
        assert_eq!(switch.stats().parser_errors, 1);
        assert_eq!(switch.take_differences(), [""; 0]);
    }
}

#[test]
fn each_block_has_its_own_steps() {
    let program = V1 {
        meta: "bit<8> left;",
        parser: "
            state start { pkt.extract(hdr.x); meta.left = hdr.x.a; transition again; }
            state again {
                meta.left = meta.left - 1;
                transition select(meta.left) { 0: accept; default: again; }
            }",
        ingress: "
            for (bit<8> i = 0; i < hdr.x.b; i = i + 1) { meta.left = meta.left + 1; }
            s.egress_spec = 1;",
        ..V1::default()
    };
    for executor in [Executor::Fast, Executor::Reference, Executor::Both] {
        let mut switch = program.load_with(Config {
            executor,
            max_steps: 50,
            ..Config::default()
        });
        assert_eq!(one(&mut switch, &[40, 40]), [40, 40]);
        assert_eq!(switch.stats().out_of_steps, 0, "{executor:?}");
        through(&mut switch, &[60, 60]);
        assert_eq!(switch.stats().out_of_steps, 2, "{executor:?}");
        assert_eq!(switch.take_differences(), [""; 0]);
    }
}

#[test]
fn payloads_take_part_in_checksums() {
    let program = V1 {
        meta: "bit<16> sum;",
        verify: "verify_checksum_with_payload(true, { hdr.x.a, 8w0 }, 16w0xfafc, HashAlgorithm.csum16);",
        ingress: "s.egress_spec = 1 + (bit<9>) s.checksum_error;",
        compute: "update_checksum_with_payload(true, { hdr.x.a, hdr.x.b }, meta.sum, HashAlgorithm.csum16);
            hdr.x.a = meta.sum[15:8]; hdr.x.b = meta.sum[7:0];",
        ..V1::default()
    };
    let mut switch = program.load();
    // 0x0300 + 0x0203 = 0x0503; with 0x0307 for the second.
    let [high, low] = (!(0x0307u16 + 0x0203)).to_be_bytes();
    assert_eq!(
        through(&mut switch, &[3, 7, 2, 3]),
        [(1, vec![high, low, 2, 3])]
    );
    assert_eq!(through(&mut switch, &[3, 7, 2, 4])[0].0, 2);
}

#[test]
fn hashes_of_every_algorithm() {
    let hash = |algorithm: &str, base: &str, max: &str| {
        let ingress = format!(
            "bit<16> r; hash(r, HashAlgorithm.{algorithm}, {base}, {{ hdr.x.a, hdr.x.b }}, {max});
             hdr.x.a = r[15:8]; hdr.x.b = r[7:0]; s.egress_spec = 1;"
        );
        let program = V1 {
            ingress: &ingress,
            ..V1::default()
        };
        let out = one(&mut program.load(), b"12");
        u16::from_be_bytes([out[0], out[1]])
    };
    let all = "32w0x10000";
    assert_eq!(hash("identity", "16w0", all), 0x3132);
    assert_eq!(hash("xor16", "16w0", all), 0x3132);
    assert_eq!(hash("csum16", "16w0", all), !0x3132);
    // CRC-16/ARC and CRC-32 of "12".
    assert_eq!(hash("crc16", "16w0", all), 0x4594);
    assert_eq!(hash("crc16_custom", "16w0", all), 0x4594);
    assert_eq!(hash("crc32", "16w0", all), 0x44cd);
    assert_eq!(hash("identity", "16w5", "16w10"), 5 + 0x3132 % 10);
    assert_eq!(hash("identity", "16w5", "16w0"), 5, "no range: the base");
    assert!((100..104).contains(&hash("random", "16w100", "16w4")));
}

#[test]
fn random_numbers_stay_in_their_range_and_follow_the_seed() {
    let program = V1 {
        ingress: "random(hdr.x.a, (bit<8>) 10, (bit<8>) 13); random(hdr.x.b, 8w7, 8w7); s.egress_spec = 1;",
        ..V1::default()
    };
    let draw = |seed| {
        let mut switch = program.load_with(Config {
            seed,
            ..Config::default()
        });
        let drawn = (0..64).map(|_| one(&mut switch, &[0, 0]));
        drawn.collect::<Vec<_>>()
    };
    let first = draw(1);
    assert!(first.iter().all(|p| (10..=13).contains(&p[0]) && p[1] == 7));
    for value in 10..=13 {
        assert!(first.iter().any(|p| p[0] == value), "{value}");
    }
    assert_eq!(first, draw(1));
    assert_ne!(first, draw(2));
}

#[test]
fn registers_read_into_their_argument() {
    let program = V1 {
        locals: "register<bit<8>>(4) r;",
        ingress:
            "bit<8> before; r.read(before, (bit<32>) hdr.x.a); r.write((bit<32>) hdr.x.a, hdr.x.b);
            hdr.x.b = before; s.egress_spec = 1;",
        ..V1::default()
    };
    let mut switch = program.load();
    assert_eq!(one(&mut switch, &[2, 7]), [2, 0]);
    assert_eq!(one(&mut switch, &[2, 9]), [2, 7]);
    assert_eq!(one(&mut switch, &[200, 9]), [200, 0], "beyond the end");
    assert_eq!(switch.register_read("ingress.r", 2), Ok(vec![9.into()]));
}

#[test]
fn counters_count_packets_and_bytes() {
    let program = V1 {
        locals: "counter(4, CounterType.packets_and_bytes) c;
            direct_counter(CounterType.packets) d;
            action forward(bit<9> port) { s.egress_spec = port; }
            table t { key = { hdr.x.a: exact; } actions = { forward; NoAction; } counters = d; }",
        ingress: "c.count((bit<32>) hdr.x.a); t.apply();",
        ..V1::default()
    };
    let mut switch = program.load();
    let hit = entry(
        "ingress.t",
        &[("hdr.x.a", Match::exact(3))],
        0,
        "ingress.forward",
        &[("port", 2)],
    );
    switch.insert_entry(&hit).unwrap();
    for packet in [[3, 0, 0], [3, 1, 0], [1, 0, 0]] {
        through(&mut switch, &packet);
    }
    let counted = |packets, bytes| Ok(CounterValue { packets, bytes });
    assert_eq!(switch.counter_read("ingress.c", 3), counted(2, 6));
    assert_eq!(switch.counter_read("ingress.c", 1), counted(1, 3));
    assert_eq!(switch.direct_counter_table("ingress.d"), Some("ingress.t"));
    assert_eq!(
        switch.direct_counter_read("ingress.t", Some(&hit)),
        Ok(CounterValue {
            packets: 2,
            bytes: 0
        }),
        "without a call of count()"
    );
}

const RATES: MeterConfig = MeterConfig {
    cir: 1,
    cburst: 1,
    pir: 1,
    pburst: 2,
};

#[test]
fn meters_give_numbers() {
    let program = V1 {
        locals: "meter(4, MeterType.packets) m;",
        ingress: "m.execute_meter((bit<32>) hdr.x.a, hdr.x.b); s.egress_spec = 1;",
        ..V1::default()
    };
    let mut switch = program.load();
    assert_eq!(one(&mut switch, &[2, 9]), [2, 0], "unconfigured: green");
    switch
        .meter_configure("ingress.m", 2, Some(RATES), 0)
        .unwrap();
    let colours: Vec<u8> = (0..3).map(|_| one(&mut switch, &[2, 9])[1]).collect();
    assert_eq!(colours, [0, 1, 2]);
}

#[test]
fn direct_meters_belong_to_entries() {
    let program = V1 {
        meta: "bit<2> colour;",
        locals: "direct_meter<bit<2>>(MeterType.packets) m;
            action forward() { m.read(meta.colour); s.egress_spec = 1; }
            table t { key = { hdr.x.a: exact; } actions = { forward; NoAction; } meters = m; }",
        ingress: "t.apply(); hdr.x.b = (bit<8>) meta.colour;",
        ..V1::default()
    };
    let mut switch = program.load();
    let key = |v| {
        entry(
            "ingress.t",
            &[("hdr.x.a", Match::exact(v))],
            0,
            "ingress.forward",
            &[],
        )
    };
    switch.insert_entry(&key(3)).unwrap();
    switch.insert_entry(&key(4)).unwrap();
    assert_eq!(switch.direct_meter_table("ingress.m"), Some("ingress.t"));
    switch
        .direct_meter_configure("ingress.t", Some(&key(3)), Some(RATES), 0)
        .unwrap();
    assert_eq!(
        switch.direct_meter_config("ingress.t", Some(&key(3))),
        Ok(Some(RATES))
    );
    let colours: Vec<u8> = (0..3).map(|_| one(&mut switch, &[3, 9])[1]).collect();
    assert_eq!(colours, [0, 1, 2]);
    assert_eq!(one(&mut switch, &[4, 9]), [4, 0], "another entry");
    // A batch that is rolled back keeps the old configuration.
    switch.begin();
    switch
        .direct_meter_configure("ingress.t", Some(&key(3)), None, 0)
        .unwrap();
    switch.rollback();
    assert_eq!(
        switch.direct_meter_config("ingress.t", Some(&key(3))),
        Ok(Some(RATES))
    );
}

#[test]
fn digests_go_by_the_type_of_their_message() {
    let program = V1 {
        decls: "struct learned_t { bit<8> who; bit<9> port; }",
        ingress: "digest<learned_t>(1, { hdr.x.a, s.ingress_port }); s.egress_spec = 1;",
        ..V1::default()
    };
    let mut switch = program.load();
    switch.handle_packet(0, 300, &[7, 0]);
    assert_eq!(
        switch.poll_digest(),
        Some(DigestMessage {
            name: "learned_t".into(),
            fields: vec![7.into(), 300.into()]
        })
    );
    assert_eq!(switch.poll_digest(), None);
}

#[test]
fn assertions_are_counted_and_messages_ignored() {
    let program = V1 {
        ingress: "log_msg(\"a = {}\", { hdr.x.a }); log_msg(\"here\"); assert(hdr.x.a == 1); assume(true); s.egress_spec = 1;",
        ..V1::default()
    };
    let mut switch = program.load();
    through(&mut switch, &[1, 0]);
    through(&mut switch, &[2, 0]);
    assert_eq!(switch.stats().failed_assertions, 1);
    assert_eq!(switch.take_events().0, []);
}

/// Both executors must report messages and failures if requested.
#[test]
fn messages_and_failed_assertions_are_recorded() {
    let program = V1 {
        locals: r#"action noted() { log_msg("\\{{}\\} of {}: {}", { hdr.x.b, 8w7 ++ hdr.x.a, (int<8>) hdr.x.b }); }"#,
        ingress: r#"log_msg("here");
            log_msg("{} and", { hdr.x.a, hdr.x.b });
            noted();
            log_msg("{} {}", { hdr.x.a == 1 });
            assert(hdr.x.a == 1);
            assume(hdr.x.a != 2 && hdr.x.b == 255);
            s.egress_spec = 1;"#,
        ..V1::default()
    };
    for executor in [Executor::Fast, Executor::Reference, Executor::Both] {
        let mut switch = program.load_with(Config {
            executor,
            ..Config::default()
        });
        assert!(switch.set_logging());
        for (a, expected) in [
            (1, &["here", "1 and 255", "{255} of 1793: -1", "1 {}"][..]),
            (
                2,
                &[
                    "here",
                    "2 and 255",
                    "{255} of 1794: -1",
                    "0 {}",
                    "assert(hdr.x.a == 1)",
                    "assume(hdr.x.a != 2 && hdr.x.b == 255)",
                ],
            ),
        ] {
            assert_eq!(through(&mut switch, &[a, 255]), [(1, vec![a, 255])]);
            let (events, lost) = switch.take_events();
            let told: Vec<_> = events
                .iter()
                .map(|event| match &event.kind {
                    EventKind::Log { message } => message.as_str(),
                    EventKind::AssertionFailed { text, .. } => text.as_str(),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!((told, lost), (expected.to_vec(), 0), "{executor:?}");
            assert!(events.iter().all(|event| event.at.is_some()));
        }
        assert_eq!(switch.take_differences(), [""; 0]);
        // Also during and after a trace.
        switch.set_tracing(true);
        switch.set_tracing(false);
        through(&mut switch, &[1, 255]);
        assert_eq!(switch.take_events().0.len(), 4, "{executor:?}");
    }
    assert!(!V1::default().load().set_logging(), "it logs nothing");
}

#[test]
fn a_table_without_a_default_runs_the_noaction_that_it_lists() {
    let program = V1 {
        locals: "action forward() { s.egress_spec = 3; }
            table t { key = { hdr.x.a: exact; } actions = { forward; NoAction; } }",
        ingress: "switch (t.apply().action_run) {
                forward: { hdr.x.b = 1; }
                NoAction: { hdr.x.b = 2; }
                default: { hdr.x.b = 3; }
            }",
        ..V1::default()
    };
    let mut switch = program.load();
    assert_eq!(through(&mut switch, &[1, 0]), [(0, vec![1, 2])]);
    switch
        .set_default_action("ingress.t", Some(&call("ingress.forward", &[])))
        .unwrap();
    assert_eq!(through(&mut switch, &[1, 0]), [(3, vec![1, 1])]);
}

#[test]
fn range_optional_and_ternary_keys() {
    let program = V1 {
        locals: "action forward(bit<9> port) { s.egress_spec = port; }
            table t {
                key = { hdr.x.a: range; hdr.x.b: optional; }
                actions = { forward; NoAction; }
                const entries = {
                    (1..3, 7): forward(4);
                    (1..3, _): forward(5);
                    (_, 8): forward(6);
                }
            }",
        ingress: "t.apply();",
        ..V1::default()
    };
    let mut switch = program.load();
    let mut port = |packet: &[u8]| {
        switch.handle_packet(0, 0, packet);
        sent(&mut switch)[0].0
    };
    assert_eq!(port(&[2, 7]), 4);
    assert_eq!(port(&[3, 8]), 5, "the first entry that matches");
    assert_eq!(port(&[4, 8]), 6);
    assert_eq!(port(&[4, 7]), 0);
}
