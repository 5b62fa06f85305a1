//! The ghost control of a Tofino 2, which receives changed queue lengths.

use crate::support::program::Dice;
use crate::support::tna::Tna;
use crate::support::{load, sent};
use p4lang::runtime::Value;
use pipeline::{Config, EgressQueues, Scheduler, Switch};

const OBJECTS: &str = "
    struct said_t { bit<32> queue; bit<32> cells; }
    Register<bit<32>, bit<11>>(2048) ping;
    Register<bit<32>, bit<11>>(2048) pong;
    Register<bit<11>, bit<1>>(1) told;
    Register<said_t, bit<11>>(2048) reports;";

/// Stores its reports in order, and each queue's length in one of two copies.
const GHOST: &str = "
control G(in ghost_intrinsic_metadata_t gh) {
    RegisterAction<bit<32>, bit<11>, bit<32>>(ping) put_ping = {
        void apply(inout bit<32> cell) { cell = (bit<32>) gh.qlength; }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(pong) put_pong = {
        void apply(inout bit<32> cell) { cell = (bit<32>) gh.qlength; }
    };
    RegisterAction<bit<11>, bit<1>, bit<11>>(told) next = {
        void apply(inout bit<11> count, out bit<11> rv) { rv = count; count = count + 1; }
    };
    RegisterAction<said_t, bit<11>, bit<32>>(reports) put = {
        void apply(inout said_t cell) {
            cell.queue = 16w0 ++ 3w0 ++ gh.pipe_id ++ gh.qid;
            cell.cells = (bit<32>) gh.qlength;
        }
    };
    apply {
        if (gh.isValid()) { put.execute(next.execute(0)); }
        if (gh.ping_pong == 1) { put_ping.execute(gh.qid); } else { put_pong.execute(gh.qid); }
    }
}
Pipeline(IP(), I(), ID(), EP(), E(), ED(), G()) pipe;";

/// Port 1 in every pipe sends 8 Mbit/s. A packet contains its port in two bytes, its queue, and the queue whose length it
/// asks for in two bytes; it leaves with that length in front.
fn switch() -> Switch {
    let text = Tna {
        include: "t2na.p4",
        decls: &format!("{OBJECTS} header said_h {{ bit<32> cells; }} header ask_h {{ bit<16> port; bit<8> qid; bit<16> of; }}"),
        headers: "said_h said; ask_h ask;",
        parser: "state go { pkt.extract(hdr.ask); transition accept; }",
        locals: "
            RegisterAction<bit<32>, bit<11>, bit<32>>(ping) get_ping = {
                void apply(inout bit<32> cell, out bit<32> rv) { rv = cell; }
            };
            RegisterAction<bit<32>, bit<11>, bit<32>>(pong) get_pong = {
                void apply(inout bit<32> cell, out bit<32> rv) { rv = cell; }
            };",
        ingress: "
            hdr.said.setValid();
            if (gh.ping_pong == 0) { hdr.said.cells = get_ping.execute(hdr.ask.of[10:0]); }
            else { hdr.said.cells = get_pong.execute(hdr.ask.of[10:0]); }
            tm.ucast_egress_port = hdr.ask.port[8:0]; tm.qid = hdr.ask.qid[6:0];
            tm.bypass_egress = 1;",
        ..Tna::default()
    }
    .text()
    .replace("Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;", GHOST)
    .replace(
        "inout ingress_intrinsic_metadata_for_tm_t tm)",
        "inout ingress_intrinsic_metadata_for_tm_t tm, in ghost_intrinsic_metadata_t gh)",
    );
    let queues = EgressQueues {
        depth: 100,
        scheduler: Scheduler::StrictPriority,
        rate_bps: None,
        port_rates_bps: [(1, 8_000_000), (129, 8_000_000)].into(),
    };
    load(
        &text,
        Config {
            egress_queues: queues,
            ..Config::default()
        },
    )
}

fn packet(port: u16, qid: u8, of: u16, length: usize) -> Vec<u8> {
    let mut packet = port.to_be_bytes().to_vec();
    packet.push(qid);
    packet.extend(of.to_be_bytes());
    packet.resize(length, 0);
    packet
}

/// The reports to the ghosts, as stored in pipe 0: pipe and number of the queue, cells.
fn reports(switch: &Switch, n: u64) -> Vec<(u128, u128, u128)> {
    let word = |v: &Value| v.limb(0).into();
    let report = |i| {
        let cell = switch.register_read("reports", i).expect("a cell");
        let (queue, cells): (u128, u128) = (word(&cell[0]), word(&cell[1]));
        (queue >> 11, queue & 0x7ff, cells)
    };
    (0..n).map(report).collect()
}

#[test]
fn a_ghost_receives_reports_of_joining_and_leaving_packets() {
    let mut switch = switch();
    // The first packet passes directly; queued packets are 4 bytes longer than received ones: 81 to 160 bytes take two
    // cells.
    for length in [100, 100, 70] {
        switch.handle_packet(0, 0, &packet(1, 2, 0, length));
    }
    // In pipe 1, whose queue belongs to port 1 there.
    switch.handle_packet(0, 0, &packet(129, 0, 0, 100));
    switch.handle_packet(0, 0, &packet(129, 9, 0, 300));
    let queue = 1 << 4 | 2;
    assert_eq!(
        reports(&switch, 4),
        [(0, queue, 2), (0, queue, 3), (1, 1 << 4 | 7, 4), (0, 0, 0)]
    );
    // A packet that arrives now sees the length.
    sent(&mut switch);
    switch.handle_packet(0, 0, &packet(5, 0, 1 << 4 | 2, 10));
    assert_eq!(sent(&mut switch)[0].1[..4], 3u32.to_be_bytes());
    while let Some(due) = switch.poll_timeout() {
        switch.handle_timeout(due);
    }
    let left = &reports(&switch, 6)[3..];
    assert_eq!(left, [(0, queue, 1), (1, 1 << 4 | 7, 0), (0, queue, 0)]);
    sent(&mut switch);
    switch.handle_packet(1, 0, &packet(5, 0, 1 << 4 | 2, 10));
    assert_eq!(sent(&mut switch)[0].1[..4], [0; 4]);
}

#[test]
fn every_pipe_has_a_ghost() {
    let mut switch = switch();
    switch.report_queue(0, 3, 0x123, 777);
    switch.report_queue(0, 0, 0x124, 1 << 40);
    for port in [0, 128, 256, 384] {
        for (of, cells) in [(0x123, 777), (0x124, (1 << 18) - 1), (0x125, 0u32)] {
            switch.handle_packet(0, port, &packet(5, 0, of, 10));
            assert_eq!(sent(&mut switch)[0].1[..4], cells.to_be_bytes(), "{port}");
        }
    }
    assert_eq!(
        reports(&switch, 2),
        [(3, 0x123, 777), (0, 0x124, (1 << 18) - 1)]
    );
}

#[test]
fn reports_add_up() {
    let mut switch = switch();
    let mut dice = Dice::new(3);
    let mut now_ns = 0;
    for _ in 0..120 {
        now_ns += dice.word() % 100_000;
        while let Some(due) = switch.poll_timeout().filter(|due| *due <= now_ns) {
            switch.handle_timeout(due);
        }
        let port = [1, 129][dice.below(2)];
        let frame = packet(port, dice.below(8) as u8, 0, 10 + dice.below(300));
        switch.handle_packet(now_ns, 0, &frame);
    }
    while let Some(due) = switch.poll_timeout() {
        switch.handle_timeout(due);
    }
    assert_eq!(sent(&mut switch).len(), 120);
    // Each queue's length changes by a packet's one to four cells, is never below 0, and is 0 in the end.
    let all = reports(&switch, 2048);
    let all: Vec<_> = all.into_iter().filter(|r| r.1 != 0).collect();
    assert!(all.len() > 100, "{}", all.len());
    for pipe in 0..2 {
        for class in 0..8 {
            let queue = all.iter().filter(|r| (r.0, r.1) == (pipe, 1 << 4 | class));
            let lengths: Vec<i128> = [0].into_iter().chain(queue.map(|r| r.2 as i128)).collect();
            for pair in lengths.windows(2) {
                assert!((1..=4).contains(&(pair[1] - pair[0]).abs()), "{lengths:?}");
            }
            assert_eq!(lengths.last(), Some(&0));
        }
    }
}
