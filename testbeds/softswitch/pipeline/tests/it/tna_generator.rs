//! The packet generators of a Tofino's pipes.

use crate::support;
use crate::support::sent;
use crate::support::tna::{Tna, settled};
use pipeline::{Config, DropReason, GeneratorApp, GeneratorError, ReconcileError, Switch, Trigger};

/// Sets or stops an application of pipe 0.
fn set(
    switch: &mut Switch,
    now_ns: u64,
    app: u32,
    config: Option<GeneratorApp>,
) -> Result<(), GeneratorError> {
    switch.set_generator(now_ns, 0, (0, &[]), app, config)
}

/// An application with two bytes of the buffer, from 16 on.
fn app(trigger: Trigger) -> GeneratorApp {
    GeneratorApp {
        trigger,
        offset: 16,
        length: 2,
        batches: 1,
        packets: 1,
        batch_gap_ns: 0,
        packet_gap_ns: 0,
        port: 68,
    }
}

#[test]
fn the_generator_makes_packets_in_virtual_time() {
    let mut switch = Tna {
        ingress: "hdr.b.setValid(); hdr.b.v = (bit<8>) ig.ingress_port; tm.ucast_egress_port = 1;",
        ..Tna::default()
    }
    .load();
    let app = |trigger| {
        Some(GeneratorApp {
            trigger,
            offset: 16,
            length: 2,
            batches: 2,
            packets: 2,
            batch_gap_ns: 100,
            packet_gap_ns: 10,
            port: 68,
        })
    };
    let packet = |header: [u8; 6]| (1, [&[68][..], &header, &[0xaa, 0xbb]].concat());
    let all = |app: u8| [[0, 0], [0, 1], [1, 0], [1, 1]].map(|[b, p]| packet([app, 0, 0, b, 0, p]));
    let once = app(Trigger::OneShot { after_ns: 500 });
    let buffer = (16, &[0xaa, 0xbb][..]);
    switch.set_generator(1000, 0, buffer, 3, once).unwrap();
    let mut times = Vec::new();
    let mut got = Vec::new();
    while let Some(due) = switch.poll_timeout() {
        times.push(due);
        switch.handle_timeout(due);
        got.extend(sent(&mut switch));
    }
    assert_eq!(got, all(3));
    assert_eq!(times, [1500, 1510, 1600, 1610], "from start to start");

    set(
        &mut switch,
        2000,
        1,
        app(Trigger::Periodic { period_ns: 1000 }),
    )
    .unwrap();
    switch.handle_timeout(4999);
    assert_eq!(sent(&mut switch), [all(1), all(1)].concat());
    set(&mut switch, 5000, 1, None).unwrap();
    assert_eq!(switch.poll_timeout(), None);
}

/// A run of maximum size must be made step by step, and must end when the application is set again.
#[test]
fn a_start_of_the_generator_may_have_any_number_of_packets() {
    let mut switch = Tna {
        ingress: "tm.ucast_egress_port = 1;",
        ..Tna::default()
    }
    .load();
    let most = |trigger, batches| GeneratorApp {
        trigger,
        offset: 0,
        length: 0,
        batches,
        packets: 65_536,
        batch_gap_ns: 0,
        packet_gap_ns: 1,
        port: 68,
    };
    let once = Trigger::OneShot { after_ns: 0 };
    let set = |switch: &mut Switch, app| set(switch, 0, 1, app).unwrap();
    set(&mut switch, Some(most(once, 65_536)));
    let mut last = None;
    while switch.poll_timeout().is_some_and(|due| due <= 70_000) {
        switch.handle_timeout(70_000);
        let mut made = sent(&mut switch);
        assert!(made.len() <= 256, "what arrives meanwhile is not held up");
        last = made.pop();
    }
    // 65,536 packets of the first batch, and 4,466 of the second, which starts when the first ends.
    assert_eq!(last, Some((1, vec![1, 0, 0, 1, 0x11, 0x71])));
    set(&mut switch, None);
    assert_eq!(switch.poll_timeout(), None, "the rest does not come");

    // A start without packets every nanosecond.
    let often = Trigger::Periodic { period_ns: 1 };
    set(&mut switch, Some(most(often, 0)));
    assert_eq!(switch.poll_timeout(), None);

    let down = |ports: &[u32]| {
        let ports = ports.iter().copied().collect();
        Some(most(Trigger::PortDown { ports }, 1))
    };
    set(&mut switch, down(&[2]));
    set(&mut switch, down(&[]));
    switch.port_down(0, 2);
    assert_eq!(switch.poll_timeout(), None, "it is the former that waited");
}

#[test]
fn the_generator_answers_events() {
    let mut switch = Tna {
        parser: "state go { transition select(ig.ingress_port) { 69: accept; default: byte; } } state byte { pkt.extract(hdr.b); transition accept; }",
        ingress: "if (hdr.b.isValid() && hdr.b.v == 0x77) { hdr.b.v = 0x12; tm.ucast_egress_port = 68; }
                  else { tm.ucast_egress_port = 1; }",
        ..Tna::default()
    }
    .load();
    let app = |trigger| {
        Some(GeneratorApp {
            trigger,
            offset: 0,
            length: 0,
            batches: 1,
            packets: 1,
            batch_gap_ns: 0,
            packet_gap_ns: 0,
            port: 69,
        })
    };
    let down = Trigger::PortDown {
        ports: [33, 34].into(),
    };
    set(&mut switch, 0, 2, app(down)).unwrap();
    let wanted = Trigger::Recirculation {
        value: 0x1200_0000,
        mask: 0xff00_0000,
    };
    set(&mut switch, 0, 4, app(wanted)).unwrap();
    for port in [33, 34, 33, 35] {
        switch.port_down(10, port);
    }
    let down = |port| (1, vec![2, 0, 0, port, 0, 0]);
    assert_eq!(settled(&mut switch), [down(33), down(34)], "each once");
    switch.handle_packet(20, 0, &[0x77, 0xa, 0xb, 0xc, 0xd]);
    let back = (1, vec![0x12, 0xa, 0xb, 0xc, 0xd]);
    let made = (1, vec![4, 0xa, 0xb, 0xc, 0, 0]);
    assert_eq!(settled(&mut switch), [back, made]);
}

#[test]
fn every_packet_of_a_start_is_made() {
    let program = Tna::default();
    let mut switch = Switch::new(support::compile(&program.text()), Config::default()).unwrap();
    let most = GeneratorApp {
        batches: 2,
        packets: 65_536,
        ..app(Trigger::OneShot { after_ns: 1 })
    };
    set(&mut switch, 0, 1, Some(most)).unwrap();
    let mut last = None;
    let mut made = 0;
    while switch.poll_timeout().is_some() {
        switch.handle_timeout(1);
        while let Some(packet) = switch.poll_transmit() {
            made += 1;
            last = Some(packet.bytes);
        }
    }
    assert_eq!(made, 131_072);
    assert_eq!(last.unwrap()[..6], [1, 0, 0, 1, 0xff, 0xff]);
    assert_eq!(switch.stats().made, 131_072);
    assert!(switch.stats().drops().all(|(_, packets)| packets == 0));
}

#[test]
fn starts_without_room_are_counted() {
    let mut switch = Tna::default().load();
    let slow = GeneratorApp {
        batches: 2,
        batch_gap_ns: 1 << 60,
        ..app(Trigger::Periodic { period_ns: 1 })
    };
    set(&mut switch, 0, 1, Some(slow)).unwrap();
    let mut made = 0;
    // Too many starts to handle one by one.
    let now = 1 << 55;
    while switch.poll_timeout().is_some_and(|due| due <= now) {
        switch.handle_timeout(now);
        made += sent(&mut switch).len();
    }
    assert_eq!(made, 1024, "a first batch of each");
    let lost = switch.stats().dropped(DropReason::GeneratorFull);
    assert_eq!(lost, now - 1024);
    assert_eq!(switch.poll_timeout(), Some(now + 1));
}

#[test]
fn refused_settings_change_nothing() {
    let mut switch = Tna::default().load();
    let running = app(Trigger::Periodic { period_ns: 10 });
    let buffer = (16, &[0xaa, 0xbb][..]);
    switch
        .set_generator(0, 0, buffer, 1, Some(running.clone()))
        .unwrap();
    let down = Trigger::PortDown {
        ports: [1, 130].into(),
    };
    let period = Trigger::Periodic { period_ns: 0 };
    let wrong = |change: fn(&mut GeneratorApp)| {
        let mut config = running.clone();
        change(&mut config);
        Some(config)
    };
    use GeneratorError::*;
    let refused = [
        (0, 1, Some(app(down)), OtherPipe(130, 0)),
        (0, 1, Some(app(Trigger::Deparser)), Deparser),
        (0, 1, Some(app(period)), NoPeriod),
        (0, 1, wrong(|c| c.length = 16_369), Buffer(16, 16_369)),
        (
            0,
            1,
            wrong(|c| c.offset = usize::MAX),
            Buffer(usize::MAX, 2),
        ),
        (0, 1, wrong(|c| c.batches = 65_537), TooMany(65_537)),
        (0, 1, wrong(|c| c.packets = 65_538), TooMany(65_538)),
        (0, 1, wrong(|c| c.port = 128), Port(128)),
        (0, 8, Some(running.clone()), App(8, 8)),
        (0, 2, None, NotSet(0, 2)),
        (4, 1, None, Pipe(4)),
    ];
    for (pipe, number, config, error) in refused {
        let told = switch.set_generator(5, pipe, (16, &[1, 2]), number, config);
        assert_eq!(told, Err(error));
    }
    let beyond = switch.set_generator(5, 0, (16_383, &[1, 2]), 1, None);
    assert_eq!(beyond, Err(Buffer(16_383, 2)));
    switch.handle_timeout(20);
    let made = (1, vec![1, 0, 0, 0, 0, 0, 0xaa, 0xbb]);
    assert_eq!(sent(&mut switch), [made.clone(), made]);
}

/// A Tofino 2 whose ingress deparser requests three bytes from the buffer's second word on.
fn asking() -> Switch {
    Tna {
        include: "t2na.p4",
        parser: "state go { transition select(ig.ingress_port) { 68: accept; default: byte; } }
                 state byte { pkt.extract(hdr.b); transition accept; }",
        ingress: "tm.ucast_egress_port = 1;
                  if (hdr.b.isValid()) { dprsr.pktgen = 1; dprsr.pktgen_address = 1; dprsr.pktgen_length = 3; }",
        deparser_locals: "Pktgen() generator;",
        deparser: "if (dprsr.pktgen == 1) { generator.emit(hdr.b); } pkt.emit(hdr);",
        ..Tna::default()
    }
    .load()
}

#[test]
fn a_deparser_starts_applications_as_all_else_does() {
    let mut switch = asking();
    let twice = GeneratorApp {
        batches: 2,
        packets: 3,
        batch_gap_ns: 100,
        packet_gap_ns: 10,
        ..app(Trigger::Deparser)
    };
    let buffer = (16, &[0xaa, 0xbb, 0xcc][..]);
    switch
        .set_generator(0, 0, buffer, 5, Some(twice.clone()))
        .unwrap();
    set(&mut switch, 0, 12, Some(app(Trigger::Deparser))).unwrap();
    // Another pipe's application is not triggered.
    let other = switch.set_generator(0, 1, (0, &[]), 6, Some(twice));
    other.unwrap();
    switch.handle_packet(1000, 0, &[7, 8]);
    let (mut times, mut got) = (vec![], sent(&mut switch));
    while let Some(due) = switch.poll_timeout() {
        switch.handle_timeout(due);
        let made = sent(&mut switch);
        times.extend(made.iter().map(|_| due));
        got.extend(made);
    }
    let packet = |app, batch, packet| (1, vec![app, 0, 0, batch, 0, packet, 7, 0xaa, 0xbb, 0xcc]);
    let expected = [
        (1, vec![7, 8]),
        packet(5, 0, 0),
        packet(12, 0, 0),
        packet(5, 0, 1),
        packet(5, 0, 2),
        packet(5, 1, 0),
        packet(5, 1, 1),
        packet(5, 1, 2),
    ];
    assert_eq!(got, expected);
    let gaps = [1000, 1000, 1010, 1020, 1120, 1130, 1140];
    assert_eq!(times, gaps, "from a batch's last packet to the next");
}

#[test]
fn the_generator_goes_on_in_a_program_that_takes_over() {
    let mut old = Tna::default().load();
    let buffer = (16, &[0xaa, 0xbb][..]);
    let three = GeneratorApp {
        packets: 3,
        packet_gap_ns: 10,
        ..app(Trigger::Periodic { period_ns: 100 })
    };
    old.set_generator(0, 0, buffer, 1, Some(three)).unwrap();
    let down = Trigger::PortDown {
        ports: [2, 3].into(),
    };
    set(&mut old, 0, 2, Some(app(down))).unwrap();
    old.port_down(50, 2);
    old.handle_timeout(100);
    assert_eq!(sent(&mut old).len(), 2, "one of three, and port 2's");

    let elsewhere = Tna {
        ingress: "tm.ucast_egress_port = 9;",
        ..Tna::default()
    };
    let mut new = elsewhere.load();
    new.reconcile(105, &old).unwrap();
    new.port_down(105, 2);
    new.port_down(105, 3);
    new.handle_timeout(210);
    let packet = |app, port, number| (9, vec![app, 0, 0, port, 0, number, 0xaa, 0xbb]);
    let expected = [
        packet(2, 3, 0),
        packet(1, 0, 1),
        packet(1, 0, 2),
        packet(1, 0, 0),
        packet(1, 0, 1),
    ];
    assert_eq!(sent(&mut new), expected);

    let refused = asking().reconcile(105, &old);
    assert_eq!(refused, Err(ReconcileError::Generator { pipe: 0, app: 1 }));
    set(&mut old, 105, 1, None).unwrap();
    set(&mut old, 105, 2, None).unwrap();
    assert_eq!(asking().reconcile(105, &old), Ok(()));
}
