//! TNA's queues between ingress and egress: their metadata in egress, colors, deflection.

use crate::support::sent;
use crate::support::tna::Tna;
use pipeline::{
    Config, DropReason, EgressQueues, MirrorSession, QueueThresholds, Scheduler, Switch,
};

/// Depths in cells, congestions, time in the queue, queue, class, deflection, replication.
const TOLD: &str =
    "header told_h { bit<16> enq; bit<16> deq; bit<8> enq_stat; bit<8> deq_stat; bit<32> waited;
                                    bit<8> qid; bit<8> deflected; bit<8> first; }";

/// A port of 8 Mbit/s: one byte per microsecond. Bytes of the packet: queue, color, whether it may be deflected.
fn switch(queues: EgressQueues) -> Switch {
    Tna {
        decls: TOLD,
        headers: "told_h t; byte_h q; byte_h c; byte_h d;",
        parser: "state go { pkt.extract(hdr.q); pkt.extract(hdr.c); pkt.extract(hdr.d); transition accept; }",
        ingress: "tm.ucast_egress_port = 1; tm.qid = (QueueId_t) hdr.q.v; tm.packet_color = hdr.c.v[1:0];
                  tm.deflect_on_drop = hdr.d.v[0:0]; tm.copy_to_cpu = hdr.d.v[1:1];",
        egress_parser: "state go { pkt.extract(hdr.q); pkt.extract(hdr.c); pkt.extract(hdr.d); transition accept; }",
        egress: "hdr.t.setValid(); hdr.t.enq = (bit<16>) eg.enq_qdepth; hdr.t.deq = (bit<16>) eg.deq_qdepth;
                 hdr.t.enq_stat = (bit<8>) eg.enq_congest_stat; hdr.t.deq_stat = (bit<8>) eg.deq_congest_stat;
                 hdr.t.waited = (bit<32>) eg.deq_timedelta; hdr.t.qid = (bit<8>) eg.egress_qid;
                 hdr.t.deflected = (bit<8>) eg.deflection_flag; hdr.t.first = (bit<8>) eg.egress_rid_first;",
        ..Tna::default()
    }
    .load_with(Config {
        egress_queues: queues,
        ..Config::default()
    })
}

fn limited(depth: usize) -> EgressQueues {
    EgressQueues {
        depth,
        scheduler: Scheduler::StrictPriority,
        rate_bps: None,
        port_rates_bps: [(1, 8_000_000)].into(),
    }
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct EgressMetadata {
    port: u32,
    enq: u16,
    deq: u16,
    stats: (u8, u8),
    waited: u32,
    qid: u8,
    deflected: u8,
    first: u8,
}

fn egress_metadata((port, b): (u32, Vec<u8>)) -> EgressMetadata {
    EgressMetadata {
        port,
        enq: u16::from_be_bytes([b[0], b[1]]),
        deq: u16::from_be_bytes([b[2], b[3]]),
        stats: (b[4], b[5]),
        waited: u32::from_be_bytes([b[6], b[7], b[8], b[9]]),
        qid: b[10],
        deflected: b[11],
        first: b[12],
    }
}

/// 100 bytes in total: two cells.
fn packet(queue: u8, colour: u8, flags: u8) -> Vec<u8> {
    let mut packet = vec![queue, colour, flags];
    packet.resize(100, 0);
    packet
}

fn drain(switch: &mut Switch) -> Vec<EgressMetadata> {
    let mut all: Vec<EgressMetadata> = sent(switch).into_iter().map(egress_metadata).collect();
    while let Some(due) = switch.poll_timeout() {
        switch.handle_timeout(due);
        all.extend(sent(switch).into_iter().map(egress_metadata));
    }
    all
}

#[test]
fn egress_metadata_describes_the_queue() {
    let mut switch = switch(limited(10));
    for _ in 0..3 {
        switch.handle_packet(0, 0, &packet(2, 0, 0));
    }
    switch.handle_packet(0, 0, &packet(3, 0, 0));
    let all = drain(&mut switch);
    let seen: Vec<_> = all
        .iter()
        .map(|t| (t.qid, t.enq, t.deq, t.waited))
        .collect();
    // 113 bytes leave for each packet: waiting packets are sent 113 µs apart, the higher queue first.
    let expected = [
        (2, 0, 0, 0),
        (3, 0, 0, 113_000),
        (2, 0, 2, 226_000),
        // The field has 18 bits.
        (2, 2, 0, 339_000 & 0x3_ffff),
    ];
    assert_eq!(seen, expected);
    assert!(all.iter().all(|t| t.stats == (0, 0)), "no thresholds");
}

#[test]
fn a_full_queue_drops_and_bypassing_egress_is_no_way_around_it() {
    let mut switch = switch(limited(2));
    for _ in 0..5 {
        switch.handle_packet(0, 0, &packet(0, 0, 0));
    }
    assert_eq!(switch.stats().dropped(DropReason::QueueFull), 2);
    assert_eq!(drain(&mut switch).len(), 3);
    let mut bypassing = Tna {
        ingress: "tm.ucast_egress_port = 1; tm.bypass_egress = 1;",
        ..Tna::default()
    }
    .load_with(Config {
        egress_queues: limited(1),
        ..Config::default()
    });
    for n in 0..4 {
        bypassing.handle_packet(0, 0, &[n; 10]);
    }
    assert_eq!(bypassing.stats().dropped(DropReason::QueueFull), 2);
    assert_eq!(sent(&mut bypassing), [(1, vec![0; 10])]);
    assert_eq!(bypassing.poll_timeout(), Some(10_000), "10 bytes later");
    bypassing.handle_timeout(10_000);
    assert_eq!(sent(&mut bypassing), [(1, vec![1; 10])]);
}

#[test]
fn colours_are_refused_one_after_the_other() {
    let mut switch = switch(limited(100));
    switch.set_queue_thresholds(Some(QueueThresholds {
        red: 1,
        yellow: 3,
        green: 5,
    }));
    // The first packet passes directly; the second waits in an empty queue, and each adds two cells.
    let colours = [0, 3, 3, 0, 1, 2, 0, 0];
    let waits = |switch: &mut Switch, colour: u8| {
        let before = switch.stats().dropped(DropReason::QueueFull);
        switch.handle_packet(0, 0, &packet(0, colour, 0));
        switch.stats().dropped(DropReason::QueueFull) == before
    };
    let taken = colours.map(|colour| waits(&mut switch, colour));
    // Depths before each packet: -, 0, 2 (red refused), 2, 4 (yellow refused), 4 (the other yellow), 4, 6 (all refused).
    assert_eq!(taken, [true, true, false, true, false, false, true, false]);
    let stats: Vec<_> = drain(&mut switch).iter().map(|t| t.stats).collect();
    assert_eq!(stats, [(0, 0), (0, 2), (1, 1), (2, 0)]);
}

#[test]
fn packets_that_a_queue_refuses_may_be_deflected() {
    let mut switch = switch(limited(1));
    switch.set_deflection(Some((9, 4)));
    switch.handle_packet(0, 0, &packet(0, 0, 1));
    switch.handle_packet(0, 0, &packet(0, 0, 1));
    switch.handle_packet(0, 0, &packet(0, 0, 1));
    switch.handle_packet(0, 0, &packet(0, 0, 0));
    let deflected: Vec<_> = sent(&mut switch).into_iter().map(egress_metadata).collect();
    let seen: Vec<_> = deflected
        .iter()
        .map(|t| (t.port, t.qid, t.deflected))
        .collect();
    assert_eq!(seen, [(1, 0, 0), (9, 4, 1)]);
    assert_eq!(
        switch.stats().dropped(DropReason::QueueFull),
        1,
        "it did not ask for deflection"
    );
}

#[test]
fn a_copy_to_the_cpu_is_the_first_of_replication_0() {
    let mut switch = switch(EgressQueues::default());
    switch.handle_packet(0, 0, &packet(0, 0, 2));
    let all = drain(&mut switch);
    let first: Vec<_> = all.iter().map(|t| t.first).collect();
    assert_eq!(first, [0, 1], "unicast, CPU");
}

#[test]
fn mirrored_copies_have_the_sessions_queue_and_colour() {
    let mut switch = Tna {
        ingress: "dprsr.mirror_type = 1;",
        deparser_locals: "Mirror() mirror;",
        deparser: "if (dprsr.mirror_type == 1) { mirror.emit(7); }",
        decls: TOLD,
        headers: "told_h t; byte_h b;",
        egress: "hdr.t.setValid(); hdr.t.qid = (bit<8>) eg.egress_qid;",
        ..Tna::default()
    }
    .load_with(Config {
        egress_queues: limited(100),
        ..Config::default()
    });
    switch.set_queue_thresholds(Some(QueueThresholds {
        red: 0,
        yellow: 100,
        green: 100,
    }));
    let session = |colour| MirrorSession {
        port: Some(1),
        qid: 5,
        colour,
        ..MirrorSession::default()
    };
    switch.set_mirror_session(7, Some(session(3))).unwrap();
    for _ in 0..3 {
        switch.handle_packet(0, 0, &[1; 10]);
    }
    assert_eq!(switch.stats().dropped(DropReason::QueueFull), 1, "red");
    switch.set_mirror_session(7, Some(session(1))).unwrap();
    switch.handle_packet(0, 0, &[1; 10]);
    assert_eq!(switch.stats().dropped(DropReason::QueueFull), 1, "yellow");
    let all = drain(&mut switch);
    assert_eq!(all.iter().map(|t| t.qid).collect::<Vec<_>>(), [5, 5, 5]);
}
