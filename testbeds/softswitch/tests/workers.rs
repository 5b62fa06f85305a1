//! Several workers do to packets what one does: the same frames, counts and drops; a batch of writes is seen whole; a program
//! that cannot be divided runs on one.

mod support;

use p4lang::runtime::{ActionCall, FieldMatch, Match, MulticastGroup, Replica, TableEntry};
use pipeline::Switch;
use softswitch::dataplane::Loader;
use softswitch::driver::{self, Driver, PortCounters, Workers};
use softswitch::p4::P4Loader;
use softswitch::ports::PortIo;
use softswitch::ports::memory::{MemoryLink, link};
use std::collections::BTreeMap;
use std::time::Instant;
use support::{CPU_PORT, TIMEOUT};

const PORTS: u32 = 4;
const WORKERS: usize = 3;
const FRAMES: u32 = 120;

/// Entries that send on, copy, clone and send round again; counters; digests; two tables that are written together.
const PROGRAM: &str = "
#include <core.p4>
#include <v1model.p4>
header ethernet_h { bit<48> dst; bit<48> src; bit<16> type; }
header tag_h { bit<16> one; bit<16> two; bit<32> number; }
struct headers_t { ethernet_h ethernet; tag_h tag; }
struct metadata_t { bit<1> again; }
struct learnt_t { bit<48> src; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {
    state start { packet.extract(hdr.ethernet); packet.extract(hdr.tag); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {
    direct_counter(CounterType.packets_and_bytes) hits;
    counter(16, CounterType.packets) from_port;
    action learn() { digest<learnt_t>(1, { hdr.ethernet.src }); mark_to_drop(s); }
    action forward(bit<9> port) { s.egress_spec = port; }
    action spread(bit<16> group) { s.mcast_grp = group; }
    action copy(bit<9> port) { s.egress_spec = port; clone(CloneType.I2E, 5); }
    action again(bit<48> dst) { hdr.ethernet.dst = dst; s.egress_spec = 1; meta.again = 1; }
    table macs {
        key = { hdr.ethernet.dst: exact; }
        actions = { learn; forward; spread; copy; again; }
        default_action = learn();
        counters = hits;
    }
    action set_one(bit<16> v) { hdr.tag.one = v; }
    action set_two(bit<16> v) { hdr.tag.two = v; }
    table one { actions = { set_one; } default_action = set_one(0); }
    table two { actions = { set_two; } default_action = set_two(0); }
    apply {
        from_port.count((bit<32>) s.ingress_port);
        one.apply();
        macs.apply();
        two.apply();
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {
    apply { if (meta.again == 1) { recirculate_preserving_field_list(0); } }
}
control U(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
";

fn loader(workers: usize) -> P4Loader {
    let config = pipeline::Config {
        cpu_port: CPU_PORT,
        ..pipeline::Config::default()
    };
    P4Loader {
        config,
        workers,
        ..P4Loader::default()
    }
}

fn call(name: &str, params: &[(&str, u128)]) -> ActionCall {
    ActionCall {
        name: format!("I.{name}"),
        params: params
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).into()))
            .collect(),
    }
}

fn entry(dst: u128, action: ActionCall) -> TableEntry {
    TableEntry {
        table: "I.macs".into(),
        key: vec![FieldMatch {
            field: "hdr.ethernet.dst".into(),
            value: Match::exact(dst),
        }],
        priority: 0,
        action,
    }
}

/// Destinations 1 to 4 are ports, 10 a group, 11 is cloned to port 4 as well, 12 comes back as 3, others are not known.
fn entries() -> Vec<TableEntry> {
    let ports = (1..=4u128).map(|port| entry(port, call("forward", &[("port", port)])));
    ports
        .chain([
            entry(10, call("spread", &[("group", 7)])),
            entry(11, call("copy", &[("port", 2)])),
            entry(12, call("again", &[("dst", 3)])),
        ])
        .collect()
}

fn write(switch: &mut Switch) {
    for entry in entries() {
        switch.insert_entry(&entry).unwrap();
    }
    let replica = |port| Replica { port, instance: 0 };
    let group = MulticastGroup {
        id: 7,
        replicas: [1, 2, 4].map(replica).to_vec(),
    };
    switch.set_multicast_group(&group).unwrap();
    let session = p4lang::runtime::CloneSession {
        id: 5,
        replicas: vec![replica(4)],
        class_of_service: 0,
        packet_length_bytes: 0,
    };
    switch.set_clone_session(&session).unwrap();
}

fn frame(dst: u64, from: u32, number: u32) -> Vec<u8> {
    let mut frame = dst.to_be_bytes()[2..].to_vec();
    frame.extend(u64::from(from).to_be_bytes()[2..].iter());
    frame.extend([0x88, 0xb5, 0, 0, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(60 + (number % 7) as usize, 0xa5);
    frame
}

/// What arrives at each port: all kinds of frames.
fn traffic() -> Vec<(u32, Vec<u8>)> {
    let destinations = [1, 2, 3, 4, 10, 11, 12, 99];
    (0..FRAMES)
        .flat_map(|number| (1..=PORTS).map(move |port| (number, port)))
        .map(|(number, port)| {
            let dst = destinations[((number + port) % 8) as usize];
            (port, frame(dst, port, number))
        })
        .collect()
}

type Sent = BTreeMap<u32, Vec<Vec<u8>>>;

fn sorted(mut sent: Sent) -> Sent {
    sent.values_mut().for_each(|frames| frames.sort());
    sent
}

/// What the program does by itself, without any of what is tested here.
fn expected(program: &str) -> (Sent, Switch) {
    let compiled = loader(1).load(program.as_bytes());
    let mut dataplane = compiled.unwrap_or_else(|e| panic!("{e}")).dataplane;
    write(dataplane.switch_mut());
    let mut sent = Sent::new();
    for (port, frame) in traffic() {
        dataplane.handle_packet(0, port, &frame);
        while let Some(due) = dataplane.poll_timeout() {
            dataplane.handle_timeout(due);
        }
        while let Some(out) = dataplane.poll_transmit() {
            sent.entry(out.port).or_default().push(out.bytes);
        }
    }
    let mut alone = Switch::new(
        std::sync::Arc::clone(dataplane.switch().program()),
        dataplane.switch().config().clone(),
    )
    .unwrap();
    alone.reconcile(0, dataplane.switch()).unwrap();
    (sorted(sent), alone)
}

/// A packet loop of so many workers over four ports, and the other ends.
fn start(workers: usize) -> (Driver, BTreeMap<u32, MemoryLink>) {
    let mut ports: Vec<(u32, Box<dyn PortIo>)> = Vec::new();
    let mut links = BTreeMap::new();
    for number in 1..=PORTS {
        let (port, other_end) = link("port").unwrap();
        ports.push((number, Box::new(port)));
        links.insert(number, other_end);
    }
    let workers = Workers {
        count: workers,
        pinned: false,
    };
    (driver::start(ports, CPU_PORT, workers).unwrap(), links)
}

fn load(driver: &Driver, workers: usize, program: &str) {
    let program = loader(workers).load(program.as_bytes());
    let dataplane = program.unwrap_or_else(|e| panic!("{e}")).dataplane;
    let committed = driver.handle.run_blocking(|core| {
        core.save(dataplane);
        let committed = core.commit();
        write(core.control().unwrap().1);
        committed
    });
    assert_eq!(committed, Ok(true));
}

fn stop(driver: Driver) {
    driver.handle.run_blocking(|core| core.stop()).unwrap();
    driver.thread.join().unwrap();
}

/// Sends the traffic and takes what comes out until it is as many frames as expected.
fn exchange(driver: &Driver, links: &BTreeMap<u32, MemoryLink>, count: usize) -> Sent {
    let (mut sent, mut arrived) = (Sent::new(), 0);
    let mut take = |sent: &mut Sent| {
        for (port, link) in links {
            while let Some(frame) = link.try_receive() {
                sent.entry(*port).or_default().push(frame);
                arrived += 1;
            }
        }
        arrived
    };
    for (port, frame) in traffic() {
        while !links[&port].send(&frame) {
            take(&mut sent);
            std::thread::yield_now();
        }
    }
    let start = Instant::now();
    while take(&mut sent) < count {
        let statistics = || driver.handle.run_blocking(|core| core.statistics());
        assert!(start.elapsed() < TIMEOUT, "{:?}", statistics());
        std::thread::yield_now();
    }
    sent
}

fn frames(sent: &Sent) -> usize {
    sent.values().map(Vec::len).sum()
}

#[test]
fn several_workers_do_what_one_does() {
    let (expected, mut alone) = expected(PROGRAM);
    for workers in [1, 2, WORKERS, 8] {
        let (mut driver, links) = start(workers);
        load(&driver, workers, PROGRAM);
        let sent = exchange(&driver, &links, frames(&expected));
        // What goes from one port to another keeps its order, unless it went round.
        for (port, frames) in &sent {
            for from in 1..=PORTS {
                let numbers = frames.iter().filter(|frame| {
                    frame[11] == from as u8 && frame[5] == *port as u8 && *port != 3
                });
                assert!(numbers.map(|frame| &frame[18..22]).is_sorted());
            }
        }
        assert!(sorted(sent) == expected, "{workers} workers");
        let counted = driver.handle.run_blocking(|core| {
            let statistics = core.statistics();
            let ports = core.port_counters();
            let (_, switch) = core.control().unwrap();
            let hits: Vec<_> = entries()
                .iter()
                .map(|entry| switch.direct_counter_read("I.macs", Some(entry)).unwrap())
                .collect();
            let missed = switch.direct_counter_read("I.macs", None).unwrap();
            let from: Vec<_> = (0..16)
                .map(|port| switch.counter_read("I.from_port", port).unwrap())
                .collect();
            (statistics, ports, hits, missed, from)
        });
        let (statistics, ports, hits, missed, from) = counted.unwrap();
        let mut hit =
            |entry: Option<&TableEntry>| alone.direct_counter_read("I.macs", entry).unwrap();
        assert_eq!(
            hits,
            entries().iter().map(|e| hit(Some(e))).collect::<Vec<_>>()
        );
        assert_eq!(missed, hit(None));
        for (port, count) in (0..).zip(from) {
            assert_eq!(count, alone.counter_read("I.from_port", port).unwrap());
        }
        assert_eq!(statistics.rx_frames, u64::from(FRAMES * PORTS));
        assert_eq!(statistics.tx_frames, frames(&expected) as u64);
        let unknown = u64::from(FRAMES * PORTS / 8);
        assert_eq!(statistics.drops, [("ingress".to_owned(), unknown)].into());
        let numbers = ports.iter().map(|port: &PortCounters| port.port);
        assert!(numbers.eq(1..=PORTS));
        let digests = std::iter::from_fn(|| driver.packet_in.try_recv().ok()).count();
        assert_eq!(digests as u64, unknown);
        stop(driver);
    }
}

#[test]
fn a_batch_of_writes_is_seen_whole_and_nothing_is_lost() {
    let (driver, links) = start(WORKERS);
    load(&driver, WORKERS, PROGRAM);
    let set = |version: u128| {
        let flip = move |core: &mut driver::Core| {
            let (_, switch) = core.control().unwrap();
            for (table, action) in [("I.one", "set_one"), ("I.two", "set_two")] {
                let action = call(action, &[("v", version)]);
                switch.set_default_action(table, Some(&action)).unwrap();
            }
            // And an entry that moves about, so that tables grow and shrink.
            let entry = entry(1000 + version % 3, call("forward", &[("port", 1)]));
            if switch.insert_entry(&entry).is_err() {
                switch.delete_entry(&entry).unwrap();
            }
        };
        driver.handle.run_blocking(flip).unwrap();
    };
    let (mut sent, mut received, mut versions) = (0u32, 0u32, BTreeMap::<u32, u16>::new());
    let take = |received: &mut u32, versions: &mut BTreeMap<u32, u16>| {
        for link in links.values() {
            while let Some(frame) = link.try_receive() {
                *received += 1;
                assert_eq!(frame[14..16], frame[16..18], "{frame:02x?}");
                let version = u16::from_be_bytes([frame[14], frame[15]]);
                // From one port to another versions never go back.
                let last = versions.entry(u32::from(frame[11])).or_default();
                assert!(*last <= version);
                *last = version;
            }
        }
    };
    for version in 1..=300 {
        for _ in 0..8 {
            // From each port to the next.
            for (port, link) in &links {
                sent += u32::from(link.send(&frame(u64::from(port % PORTS + 1), *port, sent)));
            }
        }
        set(version);
        take(&mut received, &mut versions);
    }
    let start = Instant::now();
    while received < sent {
        assert!(start.elapsed() < TIMEOUT, "{received} of {sent}");
        take(&mut received, &mut versions);
        std::thread::yield_now();
    }
    assert_eq!(sent, 300 * 8 * PORTS);
    // What comes now has seen the last batch.
    for (port, link) in &links {
        assert!(link.send(&frame(u64::from(*port), *port, 0)));
        let frame = link.receive(TIMEOUT).unwrap();
        assert_eq!(frame[14..18], [1, 44, 1, 44]);
    }
    stop(driver);
}

#[test]
fn a_program_with_registers_runs_on_one_worker_and_the_next_on_all() {
    let numbered = PROGRAM.replace(
        "from_port.count",
        "bit<32> n; seen.read(n, 0); n = n + 1; seen.write(0, n); hdr.tag.number = n; from_port.count",
    );
    let numbered = numbered.replace("counter(16,", "register<bit<32>>(1) seen; counter(16,");
    let (driver, links) = start(WORKERS);
    for round in 0..2 {
        load(&driver, WORKERS, &numbered);
        let mut numbers = Vec::new();
        for (port, link) in &links {
            for _ in 0..50 {
                assert!(link.send(&frame(u64::from(port % PORTS + 1), *port, 0)));
            }
        }
        for link in links.values() {
            for _ in 0..50 {
                let frame = link.receive(TIMEOUT).unwrap();
                numbers.push(u32::from_be_bytes([
                    frame[18], frame[19], frame[20], frame[21],
                ]));
            }
        }
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(1..=50 * PORTS), "round {round}");
        load(&driver, WORKERS, PROGRAM);
        let (expected, _) = expected(PROGRAM);
        let sent = exchange(&driver, &links, frames(&expected));
        assert!(sorted(sent) == expected, "round {round}");
    }
    stop(driver);
}
