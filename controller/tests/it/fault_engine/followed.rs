//! Triggers that each key follows for itself: the P4 text against the model, and a few courses written out.

use parser_gen::Arch;
use scenario::replay::Engine;

use super::{Lab, tenth};

const ARCHS: [Arch; 2] = [Arch::Psa, Arch::V1model];

/// Host a asks host s at port 80, and s answers.
fn text(rest: &str) -> String {
    format!(
        "weir: 1\nname: lab\nseed: 9\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\nflows:\n  \
         requests: {{filter: tcp.dport == 80}}\n  \
         answers: {{filter: tcp.sport == 80}}\n  \
         asked: {{filter: tcp.dport == 80 && tcp.flags.psh}}\n{rest}"
    )
}

/// A segment of a connection, from its client or to it.
#[derive(Debug, Clone, Copy)]
struct Segment {
    client: u32,
    port: u16,
    is_answer: bool,
    flags: u8,
    seq: u32,
}

const SYN: u8 = 2;
const SYN_ACK: u8 = 18;
const ACK: u8 = 16;
const PUSH: u8 = 24;

fn request(port: u16) -> Segment {
    Segment {
        client: 0x0a00_0001,
        port,
        is_answer: false,
        flags: PUSH,
        seq: 7,
    }
}

fn answer(port: u16) -> Segment {
    Segment {
        is_answer: true,
        ..request(port)
    }
}

fn syn(port: u16, seq: u32) -> Segment {
    Segment {
        flags: SYN,
        seq,
        ..request(port)
    }
}

/// The frame, and the port that it comes by.
fn frame(lab: &Lab, segment: Segment) -> (Vec<u8>, u32) {
    let host = |name: &str| lab.scenario.topology.host(name).unwrap().clone();
    let (client, server) = ((segment.client, segment.port), (host("s").ip.to_bits(), 80));
    let (from, to, by, for_) = match segment.is_answer {
        true => (server, client, "s", "a"),
        false => (client, server, "a", "s"),
    };
    let mut frame = host(for_).mac.0.to_vec();
    frame.extend(host(by).mac.0);
    frame.extend([0x08, 0x00, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(from.0.to_be_bytes());
    frame.extend(to.0.to_be_bytes());
    frame.extend(from.1.to_be_bytes());
    frame.extend(to.1.to_be_bytes());
    frame.extend(segment.seq.to_be_bytes());
    frame.extend([0, 0, 0, 0, 0x50, segment.flags, 0xFF, 0xFF, 0, 0, 0, 0]);
    let port = lab.scenario.topology.next_hop("sw", by).unwrap().number;
    (frame, port)
}

/// How many copies of a segment leave, when it comes now.
fn send(lab: &mut Lab, segment: Segment) -> usize {
    let (frame, port) = frame(lab, segment);
    lab.switch.handle_packet(lab.now_ns, port, &frame);
    std::iter::from_fn(|| lab.switch.poll_transmit()).count()
}

/// Which of some segments are lost, one after the other; between two of them this much time passes.
fn lost(arch: Arch, rest: &str, segments: &[(Segment, u64)]) -> Vec<usize> {
    let mut lab = Lab::of(arch, &text(rest), |_, text| text.to_owned());
    lab.set_epoch(1);
    let mut lost = Vec::new();
    for (number, (segment, then_ns)) in segments.iter().enumerate() {
        if send(&mut lab, *segment) == 0 {
            lost.push(number);
        }
        lab.now_ns += then_ns;
    }
    lost
}

#[test]
fn each_connection_follows_a_trigger_of_its_own() {
    let rest = "triggers:\n  \
                third: {after: {flow: asked, packets: 3}, reset: {fault: next}, per: {connection: both}}\nfaults:\n  \
                - {id: next, flows: answers, effect: drop, when: third}\n";
    let segments = [
        request(1),
        request(2),
        request(1),
        answer(1),
        request(2),
        request(1), // the third
        answer(2),
        answer(1), // lost, and its connection begins again
        answer(1),
        request(2), // the third
        request(1),
        request(1),
        answer(2), // lost
        request(1),
        answer(1), // lost
    ];
    let segments = segments.map(|segment| (segment, 0));
    for arch in ARCHS {
        assert_eq!(lost(arch, rest, &segments), [7, 12, 14], "{arch:?}");
    }
}

#[test]
fn a_connection_that_begins_anew_begins_its_trigger_anew() {
    let rest = "triggers:\n  second: {after: {flow: asked, packets: 2}, per: {connection: both}}\nfaults:\n  \
                - {id: gone, flows: answers, effect: drop, when: second}\n";
    let segments = [
        syn(1, 100),
        request(1),
        request(1),
        answer(1),   // lost
        syn(1, 100), // the first that the trigger sees: before, there was nothing to begin
        answer(1),
        request(1),
        syn(1, 100), // sent again: nothing changes
        request(1),
        answer(1),   // lost
        syn(1, 200), // another connection on the same ports
        answer(1),
        request(1),
        answer(1),
        request(1),
        answer(1), // lost
        syn(2, 100),
        answer(1), // lost: it was another's
    ];
    for arch in ARCHS {
        let segments = segments.map(|segment| (segment, 0));
        assert_eq!(lost(arch, rest, &segments), [3, 9, 15, 17], "{arch:?}");
    }
    let counted = rest.replace("flow: asked", "flow: requests");
    for arch in ARCHS {
        // Here SYNs are counted, so the first is remembered.
        let segments = [syn(1, 100), syn(1, 100), answer(1), syn(1, 200), answer(1)];
        let segments = segments.map(|segment| (segment, 0));
        assert_eq!(lost(arch, &counted, &segments), [2], "{arch:?}");
    }
}

#[test]
fn time_ends_each_keys_own() {
    let ms = 1_000_000;
    let rest = "triggers:\n  \
                knock: {after: [{flow: asked}, {flow: asked, packets: 2, within: 10ms}], for: 20ms, per: {connection: both}}\nfaults:\n  \
                - {id: shut, flows: answers, effect: drop, when: knock}\n";
    let segments = [
        (request(1), ms),
        (request(1), 9 * ms),
        (request(2), ms),
        (request(1), 0), // 11 ms after the first: too late
        (answer(1), 0),
        (request(2), 0),
        (request(2), 8 * ms),
        (answer(2), 0), // lost
        (request(1), 0),
        (request(1), 11 * ms), // the third of the second round, which began 9 ms before
        (answer(1), 0),        // lost
        (answer(2), ms),       // lost, after 19 ms
        (answer(2), ms),       // lost, at 20 ms
        (answer(2), 0),
        (answer(1), 8 * ms), // lost
        (answer(1), 0),      // 21 ms
    ];
    for arch in ARCHS {
        assert_eq!(lost(arch, rest, &segments), [7, 10, 11, 12, 14], "{arch:?}");
    }
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

/// Sends so many segments of so many connections and holds what leaves, and all counters, against the model: nothing of it has
/// happened so few times. How often triggers came on, and how many events found no cell.
fn compare(arch: Arch, rest: &str, (connections, count): (u32, usize), least: u64) -> (u64, u64) {
    let mut lab = Lab::of(arch, &text(rest), |_, text| text.to_owned());
    lab.set_epoch(1);
    let engine = Engine::new(&lab.scenario, &lab.plan, "sw").unwrap();
    let mut state = engine.start();
    let mut hits = vec![0; lab.plan.injections.len()];
    let triggers = lab.scenario.triggers.len();
    let (mut on, mut keyless) = (vec![0; triggers], vec![0; triggers]);
    let mut any = random(7);
    for number in 0..count {
        let connection = any(connections);
        let segment = Segment {
            client: 0x0a01_0000 + connection % 97,
            port: (32_768 + 2 * (connection / 97)) as u16,
            is_answer: any(2) == 1,
            flags: [SYN, ACK, PUSH, PUSH, PUSH, SYN_ACK][any(6) as usize],
            seq: 1_000 * any(3),
        };
        let (frame, port) = frame(&lab, segment);
        let mut classified = engine.classify(&frame, port);
        classified.at_ns = lab.now_ns;
        let passage = engine.pass(&mut state, &classified, 1);
        passage.ingress.hits.iter().for_each(|hit| hits[*hit] += 1);
        let triggered = &passage.triggered;
        triggered.came_on.iter().for_each(|index| on[*index] += 1);
        triggered
            .keyless
            .iter()
            .for_each(|index| keyless[*index] += 1);
        assert!(triggered.conflated.is_empty(), "{arch:?}: {segment:?}");
        let copies = send(&mut lab, segment);
        assert_eq!(
            copies,
            passage.leaving(0),
            "{arch:?}: packet {number}, {segment:?}"
        );
        lab.now_ns += [0, 1_000, 40_000, 700_000][any(4) as usize];
    }
    for (index, point) in lab.plan.injections.iter().enumerate() {
        let counted = lab
            .switch
            .counter_read(&point.counter, point.cell as u64)
            .unwrap();
        assert_eq!(
            counted.packets, hits[index],
            "{arch:?}: {} on {}",
            point.fault, point.flow
        );
        assert!(
            hits[index] > least,
            "{arch:?}: {} on {}: {hits:?}",
            point.fault,
            point.flow
        );
    }
    for named in &lab.plan.switch("sw").unwrap().triggers {
        for (counter, expected) in [(&named.counter, &on), (&named.keyless, &keyless)] {
            let Some(counter) = counter else { continue };
            let counted = lab.switch.counter_read(counter, 0).unwrap().packets;
            assert_eq!(counted, expected[named.index], "{arch:?}: {counter}");
        }
        assert!(on[named.index] > least, "{arch:?}: {}: {on:?}", named.name);
    }
    (on.iter().sum(), keyless.iter().sum())
}

const FAULTS: &str = "faults:\n  \
     - {id: next, flows: answers, effect: drop, when: third, select: {first: 2}, per: connection}\n  \
     - {id: some, flows: [answers, requests], effect: drop, when: chain, select: {probability: 0.4}, per: source}\n  \
     - {id: seen, flows: [requests], effect: observe, select: {every: 3}, per: {connection: both}}\n  \
     - {id: last, flows: [answers], effect: drop, when: all}\n  \
     - {id: own, flows: [requests], effect: drop, when: sender, select: {every: 7}}\nexpect: [trigger.all.on > 0]\n";

fn triggers(keys: &str) -> String {
    format!(
        "triggers:\n  \
         third: {{after: {{flow: asked, packets: 3}}, reset: {{fault: next}}, per: {{connection: both}}{keys}}}\n  \
         chain:\n    after: [{{fault: seen}}, {{flow: answers, packets: 2, within: 300ms}}, {{flow: asked}}]\n    for: 500ms\n    \
         reset: {{fault: some}}\n    per: {{connection: both}}\n{keys_line}  \
         sender: {{after: {{flow: requests, packets: 4}}, for: 200ms, per: source{keys}}}\n  \
         all: {{after: {{fault: next, hits: 5}}, for: 2ms}}\n{FAULTS}",
        keys_line = match keys {
            "" => String::new(),
            keys => format!("    {}\n", keys.trim_start_matches(", ")),
        }
    )
}

/// Packets, pauses and beginnings by chance, of triggers that count, are reset, run out and wait for each other's faults.
#[test]
fn keyed_triggers_are_the_models_packet_by_packet() {
    for arch in ARCHS {
        let (on, keyless) = compare(arch, &triggers(""), (tenth(2_000), tenth(60_000)), 20);
        assert!(on > tenth(1_000), "{arch:?}: {on}");
        assert_eq!(keyless, 0, "{arch:?}");
    }
}

#[test]
fn events_without_a_cell_count_for_nothing_and_are_counted() {
    for arch in ARCHS {
        let (_, keyless) = compare(arch, &triggers(", keys: 200"), (4_000, 60_000), 0);
        assert!(keyless > 5_000, "{arch:?}: {keyless}");
    }
}

/// After the third request of a connection its next answer is lost, for 10,000 connections.
#[test]
fn the_next_answer_behind_the_third_request_of_each_of_ten_thousand_connections() {
    let rest = "triggers:\n  third: {after: {flow: asked, packets: 3}, per: {connection: both}}\nfaults:\n  \
                - {id: next, flows: answers, effect: drop, when: third, select: {first: 1}, per: connection, keys: 20000}\n";
    for arch in ARCHS {
        let mut lab = Lab::of(arch, &text(rest), |_, text| text.to_owned());
        lab.set_epoch(1);
        let mut any = random(11);
        let mut sent = vec![0_u32; 10_000];
        for _ in 0..10_000 * 10 {
            let first = any(10_000) as usize;
            let open = (first..10_000).chain(0..first).find(|c| sent[*c] < 10);
            let Some(connection) = open else { break };
            let port = (30_000 + connection) as u16;
            // Request and answer in turns.
            let segment = match sent[connection] % 2 {
                0 => request(port),
                _ => answer(port),
            };
            sent[connection] += 1;
            let copies = send(&mut lab, segment);
            assert_eq!(copies == 0, sent[connection] == 6, "{arch:?}: {segment:?}");
        }
        assert_eq!(lab.fired("next"), 10_000);
        let named = &lab.plan.switch("sw").unwrap().triggers[0];
        let on = lab
            .switch
            .counter_read(named.counter.as_ref().unwrap(), 0)
            .unwrap();
        assert_eq!(on.packets, 10_000);
    }
}
