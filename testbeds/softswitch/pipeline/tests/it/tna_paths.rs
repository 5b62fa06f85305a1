//! The paths of a packet through a Tofino.

use crate::support;
use crate::support::tna::{Tna, settled};
use crate::support::{one, sent, through};
use pipeline::{
    Config, CounterValue, DropReason, Executor, MirrorSession, MulticastNode, MulticastTree, Switch,
};

/// A byte that selects the action of ingress, and the payload.
const BYTE: &str = "state go { pkt.extract(hdr.b); transition accept; }";

#[test]
fn a_field_is_invalid_until_it_is_assigned() {
    let mut switch = Tna {
        parser: BYTE,
        ingress: "
            if (hdr.b.v == 1) { tm.ucast_egress_port = 0; }
            if (hdr.b.v == 2) { tm.ucast_egress_port = 3; invalidate(tm.ucast_egress_port); }
            if (hdr.b.v == 3) {
                if (!is_validated(tm.ucast_egress_port)) { tm.ucast_egress_port = 5; }
                if (!is_validated(tm.ucast_egress_port)) { tm.ucast_egress_port = 6; }
            }",
        ..Tna::default()
    }
    .load();
    assert_eq!(through(&mut switch, &[0, 9]), [], "nothing was asked for");
    assert_eq!(through(&mut switch, &[1, 9]), [(0, vec![1, 9])], "port 0");
    assert_eq!(through(&mut switch, &[2, 9]), []);
    assert_eq!(through(&mut switch, &[3, 9]), [(5, vec![3, 9])]);
    assert_eq!(switch.stats().dropped(DropReason::Ingress), 2);
}

#[test]
fn intrinsic_metadata_come_before_the_packet() {
    let mut switch = Tna {
        decls: "header seen_h { bit<16> port; bit<48> mac; bit<48> parsed; bit<64> own; }",
        headers: "seen_h s;",
        meta: "bit<64> own;",
        port_metadata: "meta.own = port_metadata_unpack<bit<64>>(pkt);",
        ingress: "hdr.s.setValid(); hdr.s.port = (bit<16>) ig.ingress_port; hdr.s.mac = ig.ingress_mac_tstamp;
                  hdr.s.parsed = prsr.global_tstamp; hdr.s.own = meta.own; tm.ucast_egress_port = 1;",
        ..Tna::default()
    }
    .load();
    switch.set_port_metadata(300, &[1, 2, 3]);
    switch.handle_packet(0x0102_0304_0506, 300, &[0xaa]);
    let expected = [
        &[1, 44][..],
        &[1, 2, 3, 4, 5, 6],
        &[1, 2, 3, 4, 5, 6],
        &[1, 2, 3, 0, 0, 0, 0, 0],
        &[0xaa],
    ];
    assert_eq!(sent(&mut switch), [(1, expected.concat())]);
    switch.handle_packet(0, 512, &[0xaa]);
    assert_eq!(switch.stats().dropped(DropReason::InvalidPort), 1);
}

#[test]
fn ingress_drops_unparsed_packets_unless_it_reads_the_error() {
    let parser = "state go { pkt.extract(hdr.b); transition select(hdr.b.v) { 1: two; 2: reject; 3: nothing; default: accept; } }
                  state two { pkt.extract(hdr.c); transition accept; }
                  state nothing { transition select(hdr.b.v) { 9: accept; } }";
    let blind = Tna {
        headers: "byte_h b; byte_h c;",
        parser,
        ..Tna::default()
    };
    let mut switch = blind.load();
    assert_eq!(through(&mut switch, &[0]), [(1, vec![0])]);
    for packet in [&[1][..], &[], &[3]] {
        assert_eq!(through(&mut switch, packet), [], "{packet:?}");
    }
    assert_eq!(switch.stats().dropped(DropReason::Parser), 3);
    let rejected = through(&mut switch, &[2]);
    assert_eq!(
        rejected,
        [(1, vec![2])],
        "`reject` ends parsing, and is no error"
    );
    let mut switch = Tna {
        ingress: "hdr.c.setValid(); hdr.c.v = (bit<8>) prsr.parser_err; tm.ucast_egress_port = 1;",
        ..blind
    }
    .load();
    assert_eq!(
        through(&mut switch, &[1]),
        [(1, vec![1, 0x22])],
        "partial header, and no source to extract from"
    );
    assert_eq!(through(&mut switch, &[2]), [(1, vec![2, 0])], "reject");
    assert_eq!(through(&mut switch, &[3]), [], "no match");
}

#[test]
fn egress_drops_nothing_for_its_parser() {
    let mut switch = Tna {
        egress_parser: "state go { pkt.extract(hdr.b); transition select(hdr.b.v) { 1: accept; } }",
        egress: "hdr.b.setValid(); hdr.b.v = (bit<8>) prsr.parser_err;",
        ..Tna::default()
    }
    .load();
    assert_eq!(through(&mut switch, &[7, 8]), [(1, vec![1, 8])], "no match");
    assert_eq!(through(&mut switch, &[]), [(1, vec![0x22])], "too short");
}

#[test]
fn a_packet_is_resubmitted_once_with_eight_bytes() {
    let mut switch = Tna {
        decls: "header again_h { bit<64> data; }",
        headers: "again_h a; byte_h b;",
        port_metadata: "",
        parser: "state go { transition select(ig.resubmit_flag) { 1: second; default: first; } }
                 state first { pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.b); transition accept; }
                 state second { pkt.extract(hdr.a); pkt.extract(hdr.b); transition accept; }",
        ingress: "tm.ucast_egress_port = 1; tm.mcast_grp_a = 4; dprsr.mirror_type = 1; dprsr.resubmit_type = 2;
                  dprsr.digest_type = 1; hdr.b.v = hdr.b.v + 1; if (ig.resubmit_flag == 1) { dprsr.mirror_type = 0; invalidate(tm.mcast_grp_a); invalidate(dprsr.resubmit_type); }",
        deparser_locals: "Resubmit(2) again; Mirror(1) mirror; Digest<byte_h>(1) learn;",
        deparser: "if (dprsr.resubmit_type == 2) { again.emit<again_h>({0x1122334455667788}); }
                   if (dprsr.mirror_type == 1) { mirror.emit(5); }
                   if (dprsr.digest_type == 1) { learn.pack(hdr.b); }
                   pkt.emit(hdr);",
        ..Tna::default()
    }
    .load();
    let again = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 8, 9];
    assert_eq!(through(&mut switch, &[7, 9]), [(1, again.to_vec())]);
    assert_eq!(
        switch.stats().drops().map(|(_, n)| n).sum::<u64>(),
        0,
        "nothing else was tried"
    );
    let learnt: Vec<_> = std::iter::from_fn(|| switch.poll_digest()).collect();
    assert_eq!(learnt.len(), 2, "the digest goes in both passes");
    assert_eq!(learnt[0].fields, [1, 8], "a header: valid, then its field");
}

#[test]
fn a_second_resubmission_drops_the_packet() {
    let mut switch = Tna {
        ingress: "tm.ucast_egress_port = 1; dprsr.resubmit_type = 0;",
        deparser_locals: "Resubmit() again;",
        deparser: "if (dprsr.resubmit_type == 0) { again.emit(); } pkt.emit(hdr);",
        ..Tna::default()
    }
    .load();
    assert_eq!(through(&mut switch, &[7]), []);
    assert_eq!(switch.stats().dropped(DropReason::Ingress), 1);
}

#[test]
fn types_that_are_never_assigned_request_nothing() {
    let mut switch = Tna {
        parser: BYTE,
        deparser_locals: "Resubmit(0) again; Mirror(0) mirror; Digest<byte_h>(0) learn;",
        // The types read as 0.
        deparser: "if (dprsr.resubmit_type == 0) { again.emit(); }
                   if (dprsr.mirror_type == 0) { mirror.emit(5); }
                   if (dprsr.digest_type == 0) { learn.pack(hdr.b); }
                   pkt.emit(hdr);",
        ..Tna::default()
    }
    .load();
    assert_eq!(through(&mut switch, &[7]), [(1, vec![7])]);
    assert_eq!(switch.poll_digest(), None);
    assert_eq!(switch.stats().dropped(DropReason::NoSession), 0);
}

fn tree(id: u16, nodes: Vec<MulticastNode>) -> MulticastTree {
    MulticastTree {
        id,
        nodes,
        ecmp: Vec::new(),
    }
}

fn node(rid: u16, xid: Option<u16>, ports: &[u32]) -> MulticastNode {
    MulticastNode {
        rid,
        xid,
        ports: ports.to_vec(),
        lags: Vec::new(),
    }
}

#[test]
fn unicast_groups_and_cpu_are_each_by_themselves() {
    let mut switch = Tna {
        parser: BYTE,
        ingress:
            "tm.ucast_egress_port = 2; tm.mcast_grp_a = 10; tm.mcast_grp_b = 11; tm.copy_to_cpu = 1;
                  dprsr.drop_ctl = hdr.b.v[2:0];",
        ..Tna::default()
    }
    .load_with(Config {
        cpu_port: 64,
        ..Config::default()
    });
    switch
        .set_multicast_tree(&tree(10, vec![node(1, None, &[3, 4])]))
        .unwrap();
    switch
        .set_multicast_tree(&tree(11, vec![node(1, None, &[5])]))
        .unwrap();
    let mut ports = |drop_ctl: u8| -> Vec<u32> {
        let sent = through(&mut switch, &[drop_ctl]);
        sent.into_iter().map(|(port, _)| port).collect()
    };
    assert_eq!(ports(0), [2, 3, 4, 5, 64]);
    assert_eq!(ports(1), [64]);
    assert_eq!(ports(2), [2, 3, 4, 5]);
    assert_eq!(ports(3), []);
    assert_eq!(ports(4), [2, 3, 4, 5, 64], "reserved in ingress");
}

#[test]
fn two_levels_of_multicast_are_pruned() {
    let mut switch = Tna {
        decls: "header copy_h { bit<16> rid; bit<8> first; bit<16> length; } header ask_h { bit<16> xid; bit<16> yid; bit<16> rid; bit<16> h1; bit<16> h2; }",
        headers: "copy_h c; ask_h a;",
        parser: "state go { pkt.extract(hdr.a); transition accept; }",
        ingress: "tm.mcast_grp_a = 1; tm.level1_exclusion_id = hdr.a.xid; tm.level2_exclusion_id = hdr.a.yid[8:0];
                  tm.rid = hdr.a.rid; tm.level1_mcast_hash = hdr.a.h1[12:0]; tm.level2_mcast_hash = hdr.a.h2[12:0];
                  hdr.a.setInvalid();",
        egress: "hdr.c.setValid(); hdr.c.rid = eg.egress_rid; hdr.c.first = (bit<8>) eg.egress_rid_first; hdr.c.length = eg.pkt_length;",
        ..Tna::default()
    }
    .load();
    switch
        .set_multicast_tree(&MulticastTree {
            id: 1,
            nodes: vec![
                node(7, Some(100), &[10, 11]),
                MulticastNode {
                    lags: vec![vec![20, 21, 22]],
                    ..node(8, None, &[12])
                },
            ],
            ecmp: vec![vec![node(9, None, &[30]), node(9, None, &[31])]],
        })
        .unwrap();
    switch.set_pruned_ports(3, [11, 12].into());
    let mut copies = |ask: [u16; 5]| {
        let mut packet = ask.map(u16::to_be_bytes).concat();
        packet.push(0xaa);
        let sent = through(&mut switch, &packet);
        let copy = |(port, b): (u32, Vec<u8>)| {
            assert_eq!(b[3..], [0, 5, 0xaa], "one byte, and a check sequence");
            (port, u16::from_be_bytes([b[0], b[1]]), b[2])
        };
        sent.into_iter().map(copy).collect::<Vec<_>>()
    };
    assert_eq!(
        copies([0, 0, 0, 0, 0]),
        [(10, 7, 1), (11, 7, 0), (12, 8, 1), (20, 8, 0), (30, 9, 1)]
    );
    assert_eq!(
        copies([100, 0, 0, 5, 2]),
        [(12, 8, 1), (22, 8, 0), (31, 9, 1)],
        "L1 exclusion; hashes pick the LAG's and the ECMP's member"
    );
    assert_eq!(
        copies([0, 3, 7, 0, 0]),
        [(10, 7, 1), (12, 8, 1), (20, 8, 0), (30, 9, 1)],
        "L2 exclusion within the node of that rid only"
    );
    assert_eq!(
        copies([0, 3, 8, 0, 1]),
        [(10, 7, 1), (11, 7, 0), (21, 8, 1), (30, 9, 1)],
        "the first that is left is the first"
    );
}

#[test]
fn a_group_without_copies_is_a_drop() {
    let mut switch = Tna {
        ingress: "tm.mcast_grp_b = 9;",
        ..Tna::default()
    }
    .load();
    assert_eq!(through(&mut switch, &[1]), []);
    assert_eq!(switch.stats().dropped(DropReason::EmptyGroup), 1);
}

/// Mirrors in ingress to the session in the first byte, with a two-byte header.
fn ingress_mirror() -> Switch {
    Tna {
        decls: "header mirror_h { bit<16> tag; }",
        headers: "byte_h b; byte_h added;",
        parser: BYTE,
        ingress: "tm.ucast_egress_port = 1; dprsr.mirror_type = 1; hdr.added.setValid(); hdr.added.v = 0xee;
                  if (hdr.b.v[7:7] == 1) { dprsr.drop_ctl = 1; }",
        deparser_locals: "Mirror(1) mirror;",
        deparser: "if (dprsr.mirror_type == 1) { mirror.emit<mirror_h>((MirrorId_t) (bit<16>) (hdr.b.v & 0x7f), {0xabcd}); }
                   pkt.emit(hdr);",
        ..Tna::default()
    }
    .load()
}

#[test]
fn ingress_mirrors_the_received_packet() {
    let mut switch = ingress_mirror();
    let session = |port, max_length| {
        Some(MirrorSession {
            port: Some(port),
            max_length,
            ..MirrorSession::default()
        })
    };
    switch.set_mirror_session(5, session(9, None)).unwrap();
    switch.set_mirror_session(6, session(9, Some(4))).unwrap();
    assert!(switch.set_mirror_session(0, session(9, None)).is_err());
    let copy = vec![0xab, 0xcd, 5, 1, 2];
    let whole = vec![5, 0xee, 1, 2];
    assert_eq!(through(&mut switch, &[5, 1, 2]), [(9, copy), (1, whole)]);
    let cut = vec![0xab, 0xcd, 6, 1];
    assert_eq!(through(&mut switch, &[6, 1, 2])[0], (9, cut));
    let dropped = vec![0xab, 0xcd, 0x85, 1];
    assert_eq!(
        through(&mut switch, &[0x85, 1]),
        [(9, dropped)],
        "dropped, yet mirrored"
    );
    assert_eq!(switch.stats().dropped(DropReason::NoSession), 0);
    assert_eq!(through(&mut switch, &[7, 1]).len(), 1);
    assert_eq!(
        through(&mut switch, &[0, 1]).len(),
        1,
        "session 0 is reserved"
    );
    assert_eq!(switch.stats().dropped(DropReason::NoSession), 2);
}

#[test]
fn a_mirrored_copy_may_go_to_groups_and_the_cpu() {
    let mut switch = ingress_mirror();
    switch
        .set_multicast_tree(&tree(
            3,
            vec![node(4, Some(8), &[11]), node(5, None, &[12])],
        ))
        .unwrap();
    let session = MirrorSession {
        groups: [Some(3), None],
        copy_to_cpu: true,
        exclusion: (8, 0),
        ..MirrorSession::default()
    };
    switch.set_mirror_session(5, Some(session)).unwrap();
    let copy = vec![0xab, 0xcd, 0x85];
    let cpu = pipeline::CPU_PORT;
    assert_eq!(
        through(&mut switch, &[0x85]),
        [(12, copy.clone()), (cpu, copy)]
    );
}

#[test]
fn egress_mirrors_the_sent_packet() {
    let mut switch = Tna {
        decls: "header mirror_h { bit<8> tag; }",
        headers: "byte_h b;",
        egress_parser: BYTE,
        egress: "if (hdr.b.v < 0x10) { dprsr.mirror_type = 0; dprsr.drop_ctl = hdr.b.v[2:0]; hdr.b.v = hdr.b.v | 0x40; }",
        egress_deparser_locals: "Mirror(0) mirror;",
        egress_deparser: "if (dprsr.mirror_type == 0) { mirror.emit<mirror_h>(2, {0x99}); } pkt.emit(hdr);",
        ..Tna::default()
    }
    .load();
    let session = MirrorSession {
        port: Some(9),
        ..MirrorSession::default()
    };
    switch.set_mirror_session(2, Some(session)).unwrap();
    // The copy also passes egress, which leaves it unchanged because of its first byte, 0x99.
    let (whole, copy) = ((1, vec![0x40, 7]), (9, vec![0x99, 0x40, 7]));
    assert_eq!(through(&mut switch, &[0, 7]), [whole, copy]);
    assert_eq!(through(&mut switch, &[1, 7]), [(9, vec![0x99, 0x41, 7])]);
    assert_eq!(
        through(&mut switch, &[4, 7]),
        [(1, vec![0x44, 7])],
        "bit 2: no mirror"
    );
    assert_eq!(
        through(&mut switch, &[0x20, 7]),
        [(1, vec![0x20, 7])],
        "type never assigned"
    );
}

#[test]
fn a_mirror_header_has_32_bytes_at_most() {
    let refused = Tna {
        decls: "header mirror_h { bit<264> tag; }",
        ingress: "dprsr.mirror_type = 1;",
        deparser_locals: "Mirror(1) mirror;",
        deparser: "if (dprsr.mirror_type == 1) { mirror.emit<mirror_h>(2, {0}); }",
        ..Tna::default()
    }
    .refused();
    assert!(refused.to_string().contains("33 bytes"), "{refused}");
}

#[test]
fn egress_may_be_bypassed() {
    let mut switch = Tna {
        parser: BYTE,
        ingress: "tm.ucast_egress_port = 1; tm.bypass_egress = hdr.b.v[0:0];",
        egress: "dprsr.drop_ctl = 1;",
        ..Tna::default()
    }
    .load();
    assert_eq!(through(&mut switch, &[1]), [(1, vec![1])]);
    assert_eq!(through(&mut switch, &[2]), []);
    assert_eq!(switch.stats().dropped(DropReason::Egress), 1);
}

/// Sends the packet around once by the port that it names, and counts passes in each pipe.
fn counting() -> Switch {
    Tna {
        decls: "header turn_h { bit<16> port; bit<8> count; }",
        headers: "turn_h t;",
        parser: "state go { pkt.extract(hdr.t); transition accept; }",
        locals: "Register<bit<8>, bit<1>>(2, 100) passes;
                 RegisterAction<bit<8>, bit<1>, bit<8>>(passes) pass = {
                     void apply(inout bit<8> value, out bit<8> now) { value = value + 1; now = value; }
                 };
                 Counter<bit<32>, bit<1>>(2, CounterType_t.PACKETS) met;",
        ingress: "hdr.t.count = pass.execute(1); met.count(1);
                  if (hdr.t.port == 0) { tm.ucast_egress_port = 1; }
                  else { tm.ucast_egress_port = hdr.t.port[8:0]; hdr.t.port = 0; }",
        ..Tna::default()
    }
    .load()
}

#[test]
fn each_pipe_has_registers_of_its_own() {
    let mut switch = counting();
    let mut run = |port: u16| {
        let [a, b] = port.to_be_bytes();
        switch.handle_packet(0, 0, &[a, b, 0]);
        settled(&mut switch)
    };
    assert_eq!(run(0), [(1, vec![0, 0, 101])]);
    assert_eq!(run(68), [(1, vec![0, 0, 103])], "twice through pipe 0");
    assert_eq!(
        run(128 + 68),
        [(1, vec![0, 0, 101])],
        "pipe 1 for the first time"
    );
    assert_eq!(run(384 + 70), [(1, vec![0, 0, 101])], "pipe 3");
    assert_eq!(run(64), [(64, vec![0, 0, 106])], "an ordinary port");
    switch.set_loopback_ports([64].into());
    switch.handle_packet(0, 0, &[0, 64, 0]);
    assert_eq!(settled(&mut switch), [(1, vec![0, 0, 108])], "in loopback");

    let name = "I.passes";
    assert_eq!(
        switch.register_read(name, 1),
        Ok(vec![108.into()]),
        "pipe 0's"
    );
    let pipes: Vec<_> = (0..4)
        .map(|p| switch.register_read_pipe(p, name, 1).unwrap()[0].clone())
        .collect();
    assert_eq!(pipes, [108, 101, 100, 101]);
    assert_eq!(
        switch.counter_read("I.met", 1).unwrap().packets,
        10,
        "all pipes'"
    );
    assert_eq!(switch.counter_read_pipe(1, "I.met", 1).unwrap().packets, 1);
    switch.register_write(name, 1, &[7.into()]).unwrap();
    let mut written = (0..4).map(|p| switch.register_read_pipe(p, name, 1).unwrap());
    assert!(written.all(|cell| cell == [7]), "a write goes to all");
}

#[test]
fn a_batch_is_taken_back_in_every_pipe() {
    let mut switch = counting();
    for port in [68u16, 128 + 68, 384 + 70] {
        let [a, b] = port.to_be_bytes();
        switch.handle_packet(0, 0, &[a, b, 0]);
        settled(&mut switch);
    }
    let pipes = |switch: &Switch| {
        let cells = |p| {
            let passes = switch.register_read_pipe(p, "I.passes", 1).unwrap();
            let met = switch.counter_read_pipe(p, "I.met", 1).unwrap();
            (passes, met.packets)
        };
        (0..4).map(cells).collect::<Vec<_>>()
    };
    let before = pipes(&switch);
    assert!(before.iter().any(|cells| *cells != before[0]), "{before:?}");
    let nine = CounterValue {
        packets: 9,
        bytes: 9,
    };
    switch.begin();
    switch.register_write("I.passes", 1, &[7.into()]).unwrap();
    switch.counter_write("I.met", 1, nine).unwrap();
    switch.rollback();
    assert_eq!(pipes(&switch), before, "one cell");
    switch.begin();
    switch.register_write("I.passes", 1, &[7.into()]).unwrap();
    switch.register_fill("I.passes", &[8.into()]).unwrap();
    switch.register_fill("I.passes", &[9.into()]).unwrap();
    switch.counter_fill("I.met", nine).unwrap();
    switch
        .counter_write("I.met", 1, CounterValue::default())
        .unwrap();
    let changed = pipes(&switch);
    assert!(
        changed.iter().all(|cells| *cells == (vec![9.into()], 0)),
        "{changed:?}"
    );
    switch.rollback();
    assert_eq!(pipes(&switch), before, "all cells");
}

#[test]
fn a_program_that_takes_over_does_so_in_each_pipe() {
    let mut old = counting();
    for port in [0u16, 68, 128 + 68, 384 + 70] {
        let [a, b] = port.to_be_bytes();
        old.handle_packet(0, 0, &[a, b, 0]);
        settled(&mut old);
    }
    old.register_write("I.passes", 0, &[7.into()]).unwrap();
    let pipes = |switch: &Switch| {
        let cells = |pipe| {
            let passes = |row| switch.register_read_pipe(pipe, "I.passes", row).unwrap();
            let met = switch.counter_read_pipe(pipe, "I.met", 1).unwrap();
            (passes(0), passes(1), met.packets)
        };
        (0..4).map(cells).collect::<Vec<_>>()
    };
    let mut new = counting();
    new.reconcile(0, &old).unwrap();
    let cells = |passes: u128, met| (vec![7.into()], vec![passes.into()], met);
    let expected = [
        cells(105, 5),
        cells(101, 1),
        // This pipe had no packet: it has the initial cells with the writes.
        cells(100, 0),
        cells(101, 1),
    ];
    assert_eq!(pipes(&new), expected);
    new.handle_packet(0, 0, &[0, 128 + 68, 0]);
    assert_eq!(settled(&mut new), [(1, vec![0, 0, 102])], "pipe 1 goes on");
    new.handle_packet(0, 0, &[1, 68, 0]);
    assert_eq!(settled(&mut new), [(1, vec![0, 0, 101])], "pipe 2 begins");
}

#[test]
fn pipes_may_run_programs_of_their_own() {
    let one = Tna {
        ingress: "tm.ucast_egress_port = 128 + 68;",
        ..Tna::default()
    };
    let text = one.text().replace(
        "Switch(pipe) main;",
        "control I2(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
             in ingress_intrinsic_metadata_from_parser_t prsr,
             inout ingress_intrinsic_metadata_for_deparser_t dprsr,
             inout ingress_intrinsic_metadata_for_tm_t tm) {
             apply { hdr.b.setValid(); hdr.b.v = 0x22; tm.ucast_egress_port = 5; }
         }
         Pipeline(IP(), I2(), ID(), EP(), E(), ED()) second;
         Switch(pipe, second) main;",
    );
    let mut switch = Switch::new(support::compile(&text), Config::default()).unwrap();
    switch.handle_packet(0, 0, &[1]);
    assert_eq!(settled(&mut switch), [(5, vec![0x22, 1])]);
    switch.handle_packet(0, 256, &[1]);
    assert_eq!(
        switch.stats().dropped(DropReason::InvalidPort),
        1,
        "pipe 2 runs nothing"
    );
}

#[test]
fn intrinsic_metadata_do_not_leave() {
    let program = Tna {
        egress: "hdr.b.setValid(); hdr.b.v = 0xbb;",
        ..Tna::default()
    };
    let text = program.text();
    for skipped in ["pkt.extract(eg); ", "pkt.advance(PORT_METADATA_SIZE); "] {
        assert!(text.contains(skipped));
        let mut switch = support::load(&text.replace(skipped, ""), pipeline::Config::default());
        assert_eq!(through(&mut switch, &[1, 2, 3]), [(1, vec![0xbb, 1, 2, 3])]);
    }
}

#[test]
fn fields_keep_values_written_before_their_header_is_valid() {
    for executor in [Executor::Fast, Executor::Both] {
        let config = pipeline::Config {
            executor,
            ..Default::default()
        };
        let mut switch = Tna {
            decls: "header note_h { bit<8> seen; bit<8> twice; }",
            headers: "byte_h b; note_h late; note_h never; byte_h[2] list;",
            meta: "note_h note; bit<8> same;",
            parser: "state go {
                         pkt.extract(hdr.b);
                         meta.note.seen = hdr.b.v;
                         hdr.late.seen = hdr.b.v;
                         hdr.late.setValid();
                         transition accept;
                     }",
            ingress: "tm.ucast_egress_port = 1;
                      hdr.never.seen = 9;
                      hdr.late.twice = meta.note.seen + hdr.never.seen;
                      // Two invalid headers are equal, whatever they hold.
                      if (hdr.never == meta.note) { hdr.list[1].v = 0x77; }
                      hdr.list[1].setValid();",
            ..Tna::default()
        }
        .load_with(config);
        assert_eq!(one(&mut switch, &[4, 0xaa]), [4, 4, 13, 0x77, 0xaa]);
        assert_eq!(switch.take_differences(), Vec::<String>::new());
    }
}

/// As in bf-p4c: padded to whole bytes, whether the compiler may choose the layout or not.
#[test]
fn headers_end_with_a_byte() {
    let mut switch = Tna {
        decls: "@flexible struct notes_t { bit<9> port; bit<3> kind; bool seen; }
                header bridged_h { bit<8> id; notes_t notes; @flexible bit<10> last; }
                header odd_h { bit<4> version; bit<9> flags; }",
        headers: "bridged_h bridged; odd_h odd;",
        parser: "state go { pkt.extract(hdr.odd); transition accept; }",
        ingress: "tm.ucast_egress_port = 1;
                  hdr.bridged.setValid();
                  hdr.bridged.id = 7;
                  hdr.bridged.notes = { 9w0x101, 3w5, true };
                  hdr.bridged.last = 10w0x2ab;
                  hdr.odd.flags = hdr.odd.flags + 1;",
        egress_parser: "state go { pkt.extract(hdr.bridged); pkt.extract(hdr.odd); transition accept; }",
        egress: "if (hdr.bridged.notes.port == 0x101 && hdr.bridged.notes.seen && hdr.bridged.last == 0x2ab) {
                     hdr.odd.version = hdr.odd.version + (bit<4>) (bit<3>) hdr.bridged.notes.kind;
                     hdr.bridged.setInvalid();
                 }",
        ..Tna::default()
    }
    .load();
    // Version 2, flags 0x0ff, and three padding bits.
    assert_eq!(one(&mut switch, &[0x27, 0xff, 0xee]), [0x78, 0x00, 0xee]);
}
