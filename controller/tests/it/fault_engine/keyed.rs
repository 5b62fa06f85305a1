//! Packets that are numbered and drawn key by key: the P4 text against the model.

use parser_gen::Arch;
use scenario::replay::Engine;

use super::{Lab, tenth};

const ARCHS: [Arch; 2] = [Arch::Psa, Arch::V1model];

fn text(faults: &str) -> String {
    format!(
        "weir: 1\nname: lab\nseed: 9\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\nflows:\n  \
         web: {{to: s, filter: tcp.dport == 80}}\n  all: {{to: s, filter: ip}}\nfaults:\n{faults}"
    )
}

/// What a packet has: the sender's address and port, the receiver's port, flags and sequence number.
#[derive(Debug, Clone, Copy)]
struct Segment {
    source: u32,
    sport: u16,
    dport: u16,
    flags: u8,
    seq: u32,
}

const SYN: u8 = 2;
const SYN_ACK: u8 = 18;
const ACK: u8 = 16;

fn frame(lab: &Lab, segment: Segment) -> Vec<u8> {
    let mut frame = lab.frame(7, 0);
    frame.truncate(34);
    frame[17] = 40;
    frame[23] = 6;
    frame[26..30].copy_from_slice(&segment.source.to_be_bytes());
    frame.extend(segment.sport.to_be_bytes());
    frame.extend(segment.dport.to_be_bytes());
    frame.extend(segment.seq.to_be_bytes());
    frame.extend([0, 0, 0, 0, 0x50, segment.flags, 0xFF, 0xFF, 0, 0, 0, 0]);
    frame
}

/// Sends segments, holds what leaves against the model, and what was counted; says how many found no cell, and how many
/// were taken for another's.
fn compare(arch: Arch, faults: &str, segments: impl Iterator<Item = Segment>) -> (u64, u64) {
    let mut lab = Lab::of(arch, &text(faults), |_, text| text.to_owned());
    lab.set_epoch(1);
    let engine = Engine::new(&lab.scenario, &lab.plan, "sw").unwrap();
    let mut state = engine.start();
    let mut hits = vec![0; lab.plan.injections.len()];
    let (mut keyless, mut conflated) = (vec![0; hits.len()], 0);
    for (number, segment) in segments.enumerate() {
        let frame = frame(&lab, segment);
        let port = lab.in_port();
        let passage = engine.pass(&mut state, &engine.classify(&frame, port), 1);
        passage.ingress.hits.iter().for_each(|hit| hits[*hit] += 1);
        let none = passage.ingress.keyless.iter();
        none.for_each(|injection| keyless[*injection] += 1);
        conflated += passage.ingress.conflated.len() as u64;
        lab.switch.handle_packet(lab.now_ns, port, &frame);
        let copies = std::iter::from_fn(|| lab.switch.poll_transmit()).count();
        assert_eq!(
            copies,
            passage.leaving(0),
            "{arch:?}: packet {number}, {segment:?}"
        );
    }
    for (index, point) in lab.plan.injections.iter().enumerate() {
        let cell = point.cell as u64;
        let counted = lab.switch.counter_read(&point.counter, cell).unwrap();
        assert_eq!(
            counted.packets, hits[index],
            "{arch:?}: {} on {}",
            point.fault, point.flow
        );
        let counter = point.keyless.as_ref().unwrap();
        let counted = lab.switch.counter_read(counter, cell).unwrap();
        assert_eq!(
            counted.packets, keyless[index],
            "{arch:?}: {} on {}",
            point.fault, point.flow
        );
    }
    (keyless.iter().sum(), conflated)
}

fn random(seed: u64) -> impl FnMut(u32) -> u32 {
    let mut state = seed | 1;
    move |below| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        ((state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % u64::from(below)) as u32
    }
}

/// Connections that begin, are begun again with another and with the same SYN, and go on, in any order.
fn mixed(connections: u32, count: usize) -> impl Iterator<Item = Segment> {
    let mut any = random(5);
    std::iter::repeat_with(move || {
        let connection = any(connections);
        Segment {
            source: 0x0a01_0000 + connection % 97,
            sport: (32_768 + 2 * connection) as u16,
            dport: if connection.is_multiple_of(3) {
                80
            } else {
                443
            },
            flags: [SYN, ACK, ACK, SYN_ACK, ACK][any(5) as usize],
            seq: 1_000 * any(3),
        }
    })
    .take(count)
}

#[test]
fn each_key_is_numbered_and_drawn_by_itself() {
    let faults = "  \
         - {id: third, flows: [web, all], effect: drop, select: {nth: 3}, per: connection}\n  \
         - {id: often, flows: all, effect: drop, select: {probability: 0.1}, per: connection}\n  \
         - {id: bursts, flows: all, effect: drop, select: {gilbert_elliott: {to_bad: 0.1, to_good: 0.3, loss_good: 0.01}}, per: [ip.src, tcp.sport]}\n  \
         - {id: seen, flows: all, effect: observe, select: {pattern: \"0010\"}, per: source}\n";
    for arch in ARCHS {
        let (keyless, conflated) = compare(arch, faults, mixed(tenth(4_000), tenth(60_000)));
        assert_eq!((keyless, conflated), (0, 0), "{arch:?}");
    }
}

#[test]
fn keys_without_a_cell_are_spared_and_counted() {
    let faults = "  \
         - {id: third, flows: [web, all], effect: drop, select: {every: 3}, per: connection, keys: 100}\n  \
         - {id: often, flows: all, effect: drop, select: {probability: 0.3}, per: connection, keys: 256}\n";
    for arch in ARCHS {
        let (keyless, _) = compare(arch, faults, mixed(3_000, tenth(40_000)));
        assert!(keyless > tenth(10_000), "{arch:?}: {keyless}");
    }
}

/// The issue's own words: the third packet of each connection, for 10,000 connections.
#[test]
fn the_third_packet_of_each_of_ten_thousand_connections() {
    for arch in ARCHS {
        let faults =
            "  - {id: third, flows: all, effect: drop, select: {nth: 3}, per: connection}\n";
        let mut lab = Lab::of(arch, &text(faults), |_, text| text.to_owned());
        lab.set_epoch(1);
        let mut any = random(11);
        let mut sent = vec![0_u32; 10_000];
        let mut left = 10_000 * 5;
        while left > 0 {
            let connection = any(10_000) as usize;
            // From one that is not through yet.
            let Some(connection) = (connection..10_000)
                .chain(0..connection)
                .find(|c| sent[*c] < 5)
            else {
                break;
            };
            sent[connection] += 1;
            left -= 1;
            let segment = Segment {
                source: 0x0a00_0001,
                sport: (30_000 + connection) as u16,
                dport: 80,
                flags: if sent[connection] == 1 { SYN } else { ACK },
                seq: connection as u32,
            };
            let frame = frame(&lab, segment);
            let port = lab.in_port();
            lab.switch.handle_packet(lab.now_ns, port, &frame);
            let copies = std::iter::from_fn(|| lab.switch.poll_transmit()).count();
            assert_eq!(
                copies == 0,
                sent[connection] == 3,
                "{arch:?}: {connection}, {}",
                sent[connection]
            );
        }
        assert_eq!(lab.fired("third"), 10_000);
    }
}
