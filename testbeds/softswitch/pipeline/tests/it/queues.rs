//! Egress queues in virtual time: rates, depths, classes, and their metadata in v1model's egress.

use crate::support::Psa;
use crate::support::v1model::V1;
use p4lang::runtime::{CloneSession, MulticastGroup, Replica};
use pipeline::{CLASSES, Config, DropReason, EgressQueues, Scheduler, Switch};

/// 100 bytes take 100 µs.
const RATE_BPS: u64 = 8_000_000;

fn queues(depth: usize, scheduler: Scheduler) -> Config {
    Config {
        egress_queues: EgressQueues {
            depth,
            scheduler,
            rate_bps: Some(RATE_BPS),
            ..EgressQueues::default()
        },
        ..Config::default()
    }
}

/// Advances the switch's time, event by event; returns the packets that were sent, with their times.
fn departures(switch: &mut Switch, mut now_ns: u64, until_ns: u64) -> Vec<(u64, u32, Vec<u8>)> {
    let mut sent = Vec::new();
    loop {
        while let Some(t) = switch.poll_transmit() {
            sent.push((now_ns, t.port, t.bytes));
        }
        match switch.poll_timeout() {
            Some(due) if due <= until_ns => {
                assert!(due >= now_ns, "time does not run backwards");
                now_ns = due;
                switch.handle_timeout(now_ns);
            }
            _ => return sent,
        }
    }
}

fn times(sent: &[(u64, u32, Vec<u8>)]) -> Vec<u64> {
    sent.iter().map(|(time, ..)| time / 1000).collect()
}

fn frame(mark: u8, len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[0] = mark;
    frame
}

#[test]
fn packets_leave_one_after_the_other_at_the_rate() {
    for architecture in ["psa", "v1model"] {
        let config = queues(10, Scheduler::StrictPriority);
        let mut switch = match architecture {
            "psa" => Psa::default().load_with(config),
            _ => V1::default().load_with(config),
        };
        for mark in 0..4 {
            switch.handle_packet(0, 0, &frame(mark, 100));
        }
        // A packet waits while others wait; later the port is free again.
        switch.handle_packet(150_000, 0, &frame(4, 50));
        let sent = departures(&mut switch, 0, u64::MAX);
        assert_eq!(times(&sent), [0, 100, 200, 300, 400], "{architecture}");
        let marks: Vec<u8> = sent.iter().map(|(_, _, bytes)| bytes[0]).collect();
        assert_eq!(marks, [0, 1, 2, 3, 4], "{architecture}");
        switch.handle_packet(450_000, 0, &frame(5, 100));
        assert!(switch.poll_transmit().is_some(), "50 bytes took 50 µs");
        assert_eq!(switch.poll_timeout(), None);
    }
}

#[test]
fn a_rate_holds_though_the_caller_comes_late() {
    let mut switch = Psa::default().load_with(queues(10, Scheduler::StrictPriority));
    for mark in 0..4 {
        switch.handle_packet(0, 0, &frame(mark, 100));
    }
    switch.poll_transmit();
    switch.handle_timeout(250_000);
    let late: Vec<u8> = std::iter::from_fn(|| switch.poll_transmit())
        .map(|t| t.bytes[0])
        .collect();
    assert_eq!(late, [1, 2], "due at 100 and 200 µs");
    assert_eq!(switch.poll_timeout(), Some(300_000));
}

#[test]
fn a_full_queue_drops_and_counts_the_last_packet() {
    let program = Psa {
        ingress: "ostd.class_of_service = (ClassOfService_t) (istd.ingress_port == (PortId_t) 9 ? 8w1 : 8w0); send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    };
    let mut switch = program.load_with(queues(2, Scheduler::StrictPriority));
    for mark in 0..6 {
        switch.handle_packet(0, 0, &frame(mark, 100));
    }
    assert_eq!(switch.stats().dropped(DropReason::QueueFull), 3);
    switch.handle_packet(0, 9, &frame(6, 100));
    assert_eq!(
        switch.stats().dropped(DropReason::QueueFull),
        3,
        "another class has its own queue"
    );
    let sent = departures(&mut switch, 0, u64::MAX);
    let marks: Vec<u8> = sent.iter().map(|(_, _, bytes)| bytes[0]).collect();
    assert_eq!(marks, [0, 6, 1, 2], "the higher class first");
}

#[test]
fn ports_do_not_wait_for_each_other_and_those_without_a_rate_do_not_wait() {
    let config = Config {
        egress_queues: EgressQueues {
            port_rates_bps: [(1, RATE_BPS), (2, 2 * RATE_BPS)].into(),
            ..EgressQueues::default()
        },
        ..Config::default()
    };
    let program = Psa {
        ingress: "send_to_port(ostd, istd.ingress_port);",
        ..Psa::default()
    };
    let mut switch = program.load_with(config);
    for mark in 0..3 {
        for port in [1, 2, 3] {
            switch.handle_packet(0, port, &frame(mark, 100));
        }
    }
    let sent = departures(&mut switch, 0, u64::MAX);
    let of = |port| -> Vec<u64> {
        let sent = sent.iter().filter(|(_, p, _)| *p == port);
        sent.map(|(time, ..)| time / 1000).collect()
    };
    assert_eq!(of(1), [0, 100, 200]);
    assert_eq!(of(2), [0, 50, 100]);
    assert_eq!(of(3), [0, 0, 0]);
}

#[test]
fn weights_divide_the_rate_by_bytes() {
    let mut weights = [0; CLASSES];
    (weights[2], weights[5]) = (1, 3);
    let program = Psa {
        ingress: "ostd.class_of_service = (ClassOfService_t) (istd.ingress_port == (PortId_t) 5 ? 8w5 : 8w2); send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    };
    let mut switch = program.load_with(queues(1000, Scheduler::Weighted(weights)));
    for _ in 0..400 {
        // Bytes count, not packets.
        switch.handle_packet(0, 2, &frame(2, 200));
        switch.handle_packet(0, 5, &frame(5, 100));
        switch.handle_packet(0, 5, &frame(5, 100));
    }
    let sent = departures(&mut switch, 0, 40_000_000);
    let bytes = |mark: u8| -> usize {
        let sent = sent.iter().filter(|(_, _, bytes)| bytes[0] == mark);
        sent.map(|(_, _, bytes)| bytes.len()).sum()
    };
    let (two, five) = (bytes(2), bytes(5));
    assert!((two + five).abs_diff(40_000) <= 300, "{two} {five}");
    assert!(five.abs_diff(3 * two) <= 800, "{two} {five}");
}

#[test]
fn egress_runs_when_the_packet_leaves_and_sees_how_it_waited() {
    let program = V1 {
        decls: "header q_h { bit<32> enq; bit<32> delta; bit<32> enq_depth; bit<32> deq_depth; bit<32> now; }",
        egress_locals: "",
        ingress: "s.priority = 3; s.egress_spec = 1;",
        egress: "hdr.x.a = (bit<8>) s.enq_qdepth; hdr.x.b = (bit<8>) s.deq_qdepth;
                 if (s.enq_timestamp + (bit<32>) s.deq_timedelta != (bit<32>) s.egress_global_timestamp) { mark_to_drop(s); }
                 if ((bit<48>) s.deq_timedelta != s.egress_global_timestamp - s.ingress_global_timestamp) { mark_to_drop(s); }",
        ..V1::default()
    };
    let mut switch = program.load_with(queues(10, Scheduler::StrictPriority));
    for _ in 0..4 {
        switch.handle_packet(1_000_000, 0, &frame(0, 100));
    }
    let sent = departures(&mut switch, 1_000_000, u64::MAX);
    assert_eq!(times(&sent), [1000, 1100, 1200, 1300]);
    let depths: Vec<_> = sent.iter().map(|(_, _, b)| (b[0], b[1])).collect();
    assert_eq!(depths, [(0, 0), (0, 2), (1, 1), (2, 0)]);
}

#[test]
fn a_priority_goes_first_and_keeps_ingress_metadata() {
    let program = V1 {
        meta: "bit<8> m;",
        ingress: "meta.m = hdr.x.a; s.priority = hdr.x.b[2:0]; s.egress_spec = 1;",
        egress: "hdr.x.b = meta.m;",
        ..V1::default()
    };
    let mut switch = program.load_with(queues(10, Scheduler::StrictPriority));
    for (mark, priority) in [(1, 0), (2, 0), (3, 7), (4, 2)] {
        let mut f = frame(mark, 100);
        f[1] = priority;
        switch.handle_packet(0, 0, &f);
    }
    let sent = departures(&mut switch, 0, u64::MAX);
    let marks: Vec<_> = sent.iter().map(|(_, _, b)| (b[0], b[1])).collect();
    assert_eq!(marks, [(1, 1), (3, 3), (4, 4), (2, 2)]);
}

#[test]
fn copies_and_clones_wait_with_their_metadata() {
    let program = Psa {
        carried: "bit<8> m;",
        meta: "bit<8> m;",
        headers: "x_h x;",
        decls: "header x_h { bit<8> a; }",
        parser: "state start { pkt.extract(hdr.x); transition accept; }",
        ingress: "ostd.clone = true; ostd.clone_session_id = (CloneSessionId_t) 1; multicast(ostd, (MulticastGroup_t) 1);",
        deparser: "normal.m = hdr.x.a + 1; cloned.m = hdr.x.a + 2; pkt.emit(hdr);",
        egress_parser: "state start { pkt.extract(hdr.x); meta.m = istd.packet_path == PSA_PacketPath_t.CLONE_I2E ? cloned_i2e.m : normal.m; transition accept; }",
        egress: "hdr.x.a = meta.m;",
        ..Psa::default()
    };
    let mut switch = program.load_with(queues(10, Scheduler::StrictPriority));
    let replicas = |port| vec![Replica { port, instance: 0 }, Replica { port, instance: 1 }];
    let group = MulticastGroup {
        id: 1,
        replicas: replicas(1),
    };
    switch.set_multicast_group(&group).unwrap();
    let session = CloneSession {
        id: 1,
        replicas: replicas(2),
        class_of_service: 4,
        packet_length_bytes: 0,
    };
    switch.set_clone_session(&session).unwrap();
    switch.handle_packet(0, 0, &frame(10, 100));
    switch.handle_packet(0, 0, &frame(20, 100));
    let sent = departures(&mut switch, 0, u64::MAX);
    let of = |port| -> Vec<_> {
        let sent = sent.iter().filter(|(_, p, _)| *p == port);
        sent.map(|(time, _, b)| (time / 1000, b[0])).collect()
    };
    assert_eq!(of(1), [(0, 11), (100, 11), (200, 21), (300, 21)]);
    assert_eq!(of(2), [(0, 12), (100, 12), (200, 22), (300, 22)]);
}

#[test]
fn the_cpu_port_does_not_wait() {
    let program = Psa {
        ingress: "send_to_port(ostd, PSA_PORT_CPU);",
        ..Psa::default()
    };
    let mut switch = program.load_with(queues(1, Scheduler::StrictPriority));
    for mark in 0..5 {
        switch.handle_packet(0, 0, &frame(mark, 100));
    }
    assert_eq!(departures(&mut switch, 0, 0).len(), 5);
}
