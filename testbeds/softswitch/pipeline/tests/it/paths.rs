//! PSA's packet paths (PSA 1.2, section 6): the metadata that is carried along each, and who sees it.

use crate::support::{Psa, sent, through};
use p4lang::runtime::{CloneSession, MulticastGroup, Replica};
use pipeline::{Config, DropReason, Ports, RECIRCULATE_PORT, RecirculationLink};

/// A header that ingress and egress read and write: one byte selects the action, the others record what was seen.
const TAG: &str = "header tag_h { bit<8> todo; bit<8> a; bit<8> b; bit<8> c; }";

fn replicas(list: &[(u32, u16)]) -> Vec<Replica> {
    list.iter()
        .map(|(port, instance)| Replica {
            port: *port,
            instance: *instance,
        })
        .collect()
}

fn session(id: u32, list: &[(u32, u16)], class: u32, length: u32) -> CloneSession {
    CloneSession {
        id,
        replicas: replicas(list),
        class_of_service: class,
        packet_length_bytes: length,
    }
}

#[test]
fn ingress_drops_by_default() {
    let mut switch = Psa {
        ingress: "ostd.egress_port = (PortId_t) 1;",
        ..Psa::default()
    }
    .load();
    assert!(through(&mut switch, &[1, 2, 3]).is_empty());
    assert_eq!(switch.stats().dropped(DropReason::Ingress), 1);
}

#[test]
fn an_unparsed_packet_passes_whole() {
    let mut switch = Psa::default().load();
    assert_eq!(through(&mut switch, &[1, 2, 3]), [(1, vec![1, 2, 3])]);
    assert_eq!(through(&mut switch, &[]), [(1, vec![])]);
    assert_eq!(
        (switch.stats().received, switch.stats().transmitted),
        (2, 2)
    );
}

#[test]
fn an_invalid_port_drops() {
    let mut switch = Psa::default().load_with(Config {
        ports: Ports::Only([2, 3].into()),
        ..Config::default()
    });
    assert!(through(&mut switch, &[1]).is_empty());
    assert_eq!(switch.stats().dropped(DropReason::InvalidPort), 1);
    switch.set_ports(Ports::Only([1].into()));
    assert_eq!(through(&mut switch, &[1]).len(), 1);
}

/// `todo` bits: 1 drop, 2 resubmit (once), 4 multicast to group 5, 8 clone to session 3.
fn replicator() -> Psa<'static> {
    Psa {
        decls: TAG,
        headers: "tag_h tag;",
        parser: "state start { pkt.extract(hdr.tag); transition accept; }",
        egress_parser: "state start { pkt.extract(hdr.tag); transition accept; }",
        ingress: "
            bit<8> todo = hdr.tag.todo;
            hdr.tag.a = 0xaa;
            send_to_port(ostd, (PortId_t) 1);
            ostd.class_of_service = (ClassOfService_t) 6;
            if (todo & 1 != 0) { ostd.drop = true; }
            if (todo & 2 != 0 && istd.packet_path != PSA_PacketPath_t.RESUBMIT) { ostd.resubmit = true; }
            if (todo & 4 != 0) { ostd.multicast_group = (MulticastGroup_t) 5; }
            if (todo & 8 != 0) { ostd.clone = true; ostd.clone_session_id = (CloneSessionId_t) 3; }",
        egress: "
            hdr.tag.b = (bit<8>) (EgressInstanceUint_t) istd.instance;
            hdr.tag.c = (bit<8>) (ClassOfServiceUint_t) istd.class_of_service;
            if (istd.packet_path == PSA_PacketPath_t.CLONE_I2E) { hdr.tag.c = hdr.tag.c | 0x80; }
            if (istd.packet_path == PSA_PacketPath_t.NORMAL_MULTICAST) { hdr.tag.c = hdr.tag.c | 0x40; }",
        ..Psa::default()
    }
}

#[test]
fn a_clone_is_made_even_of_a_dropped_packet_from_the_bytes_before_the_parser() {
    let mut switch = replicator().load();
    switch
        .set_clone_session(&session(3, &[(7, 9), (8, 1)], 2, 0))
        .unwrap();
    let clones = [(7, vec![9, 0, 9, 0x82, 77]), (8, vec![9, 0, 1, 0x82, 77])];
    assert_eq!(
        through(&mut switch, &[9, 0, 0, 0, 77]),
        clones,
        "clone and drop"
    );
    assert_eq!(switch.stats().dropped(DropReason::Ingress), 1);
    let mut all = clones.to_vec();
    all[0].1[0] = 8;
    all[1].1[0] = 8;
    all.push((1, vec![8, 0xaa, 0, 6, 77]));
    assert_eq!(
        through(&mut switch, &[8, 0, 0, 0, 77]),
        all,
        "clone and send"
    );
}

#[test]
fn a_clone_is_cut_to_the_sessions_length() {
    let mut switch = replicator().load();
    switch
        .set_clone_session(&session(3, &[(7, 0)], 0, 5))
        .unwrap();
    assert_eq!(
        through(&mut switch, &[9, 0, 0, 0, 1, 2, 3, 4]),
        [(7, vec![9, 0, 0, 0x80, 1])]
    );
    assert_eq!(
        through(&mut switch, &[9, 0, 0, 0]),
        [(7, vec![9, 0, 0, 0x80])]
    );
}

#[test]
fn a_clone_to_nowhere_is_counted() {
    let mut switch = replicator().load();
    assert!(through(&mut switch, &[9, 0, 0, 0]).is_empty());
    assert_eq!(switch.stats().dropped(DropReason::NoSession), 1);
}

#[test]
fn session_zero_is_the_controllers() {
    let mut switch = Psa {
        ingress: "ostd.clone = true;",
        ..Psa::default()
    }
    .load();
    assert_eq!(through(&mut switch, &[5]), [(pipeline::CPU_PORT, vec![5])]);
}

#[test]
fn multicast_beats_unicast_and_gives_instances() {
    let mut switch = replicator().load();
    let group = MulticastGroup {
        id: 5,
        replicas: replicas(&[(2, 20), (3, 30), (3, 31)]),
    };
    switch.set_multicast_group(&group).unwrap();
    let expected = [
        (2, vec![4, 0xaa, 20, 0x46]),
        (3, vec![4, 0xaa, 30, 0x46]),
        (3, vec![4, 0xaa, 31, 0x46]),
    ];
    assert_eq!(through(&mut switch, &[4, 0, 0, 0]), expected);
    assert!(
        through(&mut switch, &[5, 0, 0, 0]).is_empty(),
        "drop beats multicast"
    );
}

#[test]
fn an_empty_group_drops() {
    let mut switch = replicator().load();
    assert!(through(&mut switch, &[4, 0, 0, 0]).is_empty(), "unknown");
    switch
        .set_multicast_group(&MulticastGroup {
            id: 5,
            replicas: vec![],
        })
        .unwrap();
    assert!(through(&mut switch, &[4, 0, 0, 0]).is_empty(), "empty");
    assert_eq!(switch.stats().dropped(DropReason::EmptyGroup), 2);
}

#[test]
fn resubmit_beats_multicast_and_drop_beats_resubmit() {
    let mut switch = replicator().load();
    switch
        .set_multicast_group(&MulticastGroup {
            id: 5,
            replicas: replicas(&[(2, 0)]),
        })
        .unwrap();
    assert_eq!(
        through(&mut switch, &[6, 0, 0, 0]),
        [(2, vec![6, 0xaa, 0, 0x46])],
        "once round, then multicast"
    );
    assert!(through(&mut switch, &[7, 0, 0, 0]).is_empty());
    assert_eq!(
        switch.stats().dropped(DropReason::Ingress),
        1,
        "one pass only"
    );
}

#[test]
fn a_resubmitted_packet_carries_original_bytes_metadata_and_port() {
    let mut switch = Psa {
        decls: TAG,
        headers: "tag_h tag;",
        meta: "bit<8> rounds;",
        carried: "bit<8> rounds;",
        parser: "state start {
            pkt.extract(hdr.tag);
            meta.rounds = 0;
            transition select(istd.packet_path) { PSA_PacketPath_t.RESUBMIT: again; default: accept; }
        }
        state again { meta.rounds = resubmitted.rounds; transition accept; }",
        ingress: "
            send_to_port(ostd, (PortId_t) (PortIdUint_t) istd.ingress_port);
            ostd.resubmit = meta.rounds < 3;
            hdr.tag.a = hdr.tag.a + 1;
            hdr.tag.b = meta.rounds;",
        deparser: "
            if (psa_resubmit(istd)) { resubmitted.rounds = meta.rounds + 1; }
            if (psa_normal(istd)) { hdr.tag.c = 0x55; }
            pkt.emit(hdr);",
        ..Psa::default()
    }
    .load();
    switch.handle_packet(0, 42, &[0, 0, 0, 0, 1]);
    assert_eq!(
        sent(&mut switch),
        [(42, vec![0, 1, 3, 0x55, 1])],
        "a was counted once: the bytes are the original"
    );
}

#[test]
fn endless_resubmission_ends() {
    let mut switch = Psa {
        ingress: "ostd.drop = false; ostd.resubmit = true;",
        ..Psa::default()
    }
    .load();
    assert!(through(&mut switch, &[1]).is_empty());
    assert_eq!(switch.stats().dropped(DropReason::PassLimit), 1);
}

#[test]
fn a_tree_of_clones_ends() {
    let mut switch = Psa {
        egress: "ostd.clone = true; ostd.clone_session_id = (CloneSessionId_t) 1; ostd.drop = true;",
        ..Psa::default()
    }
    .load_with(Config { max_work: 100, ..Config::default() });
    switch
        .set_clone_session(&session(1, &[(2, 0), (3, 0)], 0, 0))
        .unwrap();
    assert!(through(&mut switch, &[1]).is_empty());
    assert!(switch.stats().dropped(DropReason::WorkLimit) > 0);
    assert_eq!(switch.stats().dropped(DropReason::Egress), 101);
}

#[test]
fn normal_metadata_and_clone_metadata_reach_the_egress_parser() {
    let mut switch = Psa {
        decls: TAG,
        headers: "tag_h tag;",
        meta: "bit<8> got;",
        carried: "bit<8> x; bit<70> wide;",
        parser: "state start { pkt.extract(hdr.tag); transition accept; }",
        ingress: "
            send_to_port(ostd, (PortId_t) 1);
            ostd.clone = true;
            ostd.clone_session_id = (CloneSessionId_t) 1;",
        deparser: "
            normal.x = 0x11;
            normal.wide = 70w3 << 68;
            cloned.x = 0x22;
            pkt.emit(hdr);",
        egress_parser: "state start {
            pkt.extract(hdr.tag);
            transition select(istd.packet_path) {
                PSA_PacketPath_t.NORMAL_UNICAST: from_normal;
                PSA_PacketPath_t.CLONE_I2E: from_clone;
            }
        }
        state from_normal { meta.got = normal.x + (bit<8>) normal.wide[69:68]; transition accept; }
        state from_clone { meta.got = cloned_i2e.x + normal.x; transition accept; }",
        egress: "hdr.tag.a = meta.got;",
        ..Psa::default()
    }
    .load();
    switch
        .set_clone_session(&session(1, &[(2, 0)], 0, 0))
        .unwrap();
    assert_eq!(
        through(&mut switch, &[0; 4]),
        [(2, vec![0, 0x22, 0, 0]), (1, vec![0, 0x14, 0, 0])]
    );
}

#[test]
fn an_egress_clone_carries_deparsed_bytes_even_of_a_dropped_packet() {
    let mut switch = Psa {
        decls: TAG,
        headers: "tag_h tag;",
        meta: "bit<8> got;",
        carried: "bit<8> x;",
        egress_parser: "state start {
            pkt.extract(hdr.tag);
            meta.got = cloned_e2e.x;
            transition accept;
        }",
        egress: "
            hdr.tag.a = hdr.tag.a + 1;
            hdr.tag.b = meta.got;
            if (istd.packet_path != PSA_PacketPath_t.CLONE_E2E) {
                ostd.clone = true;
                ostd.clone_session_id = (CloneSessionId_t) 1;
                ostd.drop = hdr.tag.todo == 1;
            } else {
                hdr.tag.c = (bit<8>) (EgressInstanceUint_t) istd.instance;
            }",
        egress_deparser: "if (psa_clone_e2e(istd)) { cloned.x = 0x77; } pkt.emit(hdr);",
        ..Psa::default()
    }
    .load();
    switch
        .set_clone_session(&session(1, &[(2, 6)], 0, 0))
        .unwrap();
    assert_eq!(
        through(&mut switch, &[0; 5]),
        [(1, vec![0, 1, 0, 0, 0]), (2, vec![0, 2, 0x77, 6, 0])]
    );
    assert_eq!(
        through(&mut switch, &[1, 0, 0, 0]),
        [(2, vec![1, 2, 0x77, 6])]
    );
    assert_eq!(switch.stats().dropped(DropReason::Egress), 1);
}

fn looping(rounds: u8) -> Psa<'static> {
    assert_eq!(rounds, 3, "the text below says 3");
    Psa {
        decls: TAG,
        headers: "tag_h tag;",
        meta: "bit<8> rounds;",
        carried: "bit<8> rounds;",
        parser: "state start {
            pkt.extract(hdr.tag);
            transition select(istd.packet_path) { PSA_PacketPath_t.RECIRCULATE: again; default: accept; }
        }
        state again { meta.rounds = recirculated.rounds; transition accept; }",
        ingress: "
            hdr.tag.a = hdr.tag.a + 1;
            hdr.tag.b = meta.rounds;
            if (hdr.tag.a == 4) { send_to_port(ostd, (PortId_t) 1); }
            else { send_to_port(ostd, PSA_PORT_RECIRCULATE); }
            if (istd.ingress_port == PSA_PORT_RECIRCULATE) { hdr.tag.c = 1; }",
        egress_parser: "state start { pkt.extract(hdr.tag); transition accept; }",
        egress_deparser: "
            if (psa_recirculate(istd, edstd)) { recirculated.rounds = hdr.tag.a; }
            pkt.emit(hdr);",
        ..Psa::default()
    }
}

#[test]
fn recirculation_takes_its_time_and_carries_deparsed_bytes_and_metadata() {
    let link = RecirculationLink {
        latency_ns: 1000,
        rate_bps: Some(8_000_000_000),
        queue: 4,
    };
    let mut switch = looping(3).load_with(Config {
        recirculation: link,
        ..Config::default()
    });
    switch.handle_packet(500, 0, &[0; 10]);
    // 10 bytes at 1 byte per nanosecond, then 1 µs.
    assert_eq!(switch.poll_timeout(), Some(1510));
    switch.handle_timeout(1509);
    assert_eq!(switch.poll_timeout(), Some(1510), "not early");
    let mut now = 0;
    while let Some(at) = switch.poll_timeout() {
        now = at;
        switch.handle_timeout(at);
    }
    assert_eq!(now, 500 + 3 * 1010);
    assert_eq!(sent(&mut switch), [(1, vec![0, 4, 3, 1, 0, 0, 0, 0, 0, 0])]);
    assert_eq!(switch.stats().recirculated, 3);
}

#[test]
fn the_recirculation_link_sends_one_after_the_other_and_is_bounded() {
    let link = RecirculationLink {
        latency_ns: 1000,
        rate_bps: Some(8_000_000_000),
        queue: 2,
    };
    let mut switch = looping(3).load_with(Config {
        recirculation: link,
        ..Config::default()
    });
    for _ in 0..3 {
        switch.handle_packet(0, 0, &[0; 10]);
    }
    assert_eq!(switch.recirculating(), 2);
    assert_eq!(switch.stats().dropped(DropReason::RecirculationFull), 1);
    assert_eq!(switch.poll_timeout(), Some(1010));
    switch.handle_timeout(1010);
    assert_eq!(switch.poll_timeout(), Some(1020));
}

#[test]
fn a_loop_without_latency_lets_time_pass() {
    let link = RecirculationLink {
        latency_ns: 0,
        rate_bps: None,
        queue: 2,
    };
    let mut switch = Psa {
        ingress: "send_to_port(ostd, PSA_PORT_RECIRCULATE);",
        ..Psa::default()
    }
    .load_with(Config {
        recirculation: link,
        ..Config::default()
    });
    switch.handle_packet(7, RECIRCULATE_PORT, &[1]);
    switch.handle_timeout(1_000_000);
    assert_eq!(switch.poll_timeout(), Some(1_000_001));
}

#[test]
fn timestamps_and_ports_are_seen() {
    let mut switch = Psa {
        decls: "header seen_h { bit<64> at; bit<32> port; bit<64> out_at; bit<32> out_port; }",
        headers: "seen_h seen;",
        ingress: "
            hdr.seen.setValid();
            hdr.seen.at = (TimestampUint_t) istd.ingress_timestamp;
            hdr.seen.port = (PortIdUint_t) istd.ingress_port;
            send_to_port(ostd, (PortId_t) 9);",
        egress_parser: "state start { pkt.extract(hdr.seen); transition accept; }",
        egress: "
            hdr.seen.out_at = (TimestampUint_t) istd.egress_timestamp;
            hdr.seen.out_port = (PortIdUint_t) istd.egress_port;",
        ..Psa::default()
    }
    .load();
    switch.handle_packet(0x0102_0304_0506_0708, 0xfffffffd, &[]);
    let expected: Vec<u8> = [
        1, 2, 3, 4, 5, 6, 7, 8, 255, 255, 255, 253, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9,
    ]
    .to_vec();
    assert_eq!(sent(&mut switch), [(9, expected)]);

    // The packet has waited: ingress sees its arrival, egress its departure.
    switch.handle_arrival(0x0f, 0x0a, 1, &[]);
    let expected = [
        [0, 0, 0, 0, 0, 0, 0, 0x0a].as_slice(),
        &[0, 0, 0, 1],
        &[0, 0, 0, 0, 0, 0, 0, 0x0f],
        &[0, 0, 0, 9],
    ];
    assert_eq!(sent(&mut switch), [(9, expected.concat())]);
    // An arrival in the future counts as now.
    switch.handle_arrival(0x10, 0x20, 1, &[]);
    assert_eq!(sent(&mut switch)[0].1[..8], [0, 0, 0, 0, 0, 0, 0, 0x10]);
}

#[test]
fn a_parser_error_goes_on_to_ingress() {
    let mut switch = Psa {
        decls: TAG,
        headers: "tag_h tag;",
        parser: "state start { pkt.extract(hdr.tag); transition accept; }",
        ingress: "
            if (istd.parser_error == error.PacketTooShort) { send_to_port(ostd, (PortId_t) 8); }
            else if (istd.parser_error == error.NoError) { send_to_port(ostd, (PortId_t) 1); }",
        ..Psa::default()
    }
    .load();
    assert_eq!(through(&mut switch, &[1, 2, 3]), [(8, vec![1, 2, 3])]);
    assert_eq!(through(&mut switch, &[1, 2, 3, 4]), [(1, vec![1, 2, 3, 4])]);
    assert_eq!(switch.stats().parser_errors, 1);
}

#[test]
fn nothing_of_one_packet_is_seen_by_the_next() {
    let mut switch = Psa {
        decls: TAG,
        headers: "tag_h tag;",
        meta: "bit<8> kept;",
        parser: "state start {
            transition select(pkt.lookahead<bit<8>>()) { 1: parse; default: accept; }
        }
        state parse { pkt.extract(hdr.tag); meta.kept = 9; transition accept; }",
        locals: "bit<8> local;",
        ingress: "
            if (hdr.tag.isValid()) { local = 1; ostd.multicast_group = (MulticastGroup_t) 4; ostd.clone = true; }
            if (local == 0 && meta.kept == 0) { send_to_port(ostd, (PortId_t) 1); }",
        ..Psa::default()
    }
    .load();
    assert_eq!(
        through(&mut switch, &[1, 0, 0, 0]).len(),
        1,
        "to the controller"
    );
    assert_eq!(through(&mut switch, &[2, 0, 0, 0]), [(1, vec![2, 0, 0, 0])]);
}

#[test]
fn unfetched_messages_are_limited() {
    let mut switch = Psa::default().load_with(Config {
        transmit_limit: 2,
        ..Config::default()
    });
    for _ in 0..3 {
        switch.handle_packet(0, 0, &[1]);
    }
    assert_eq!(sent(&mut switch).len(), 2);
    assert_eq!(switch.stats().dropped(DropReason::TransmitFull), 1);
}
