//! Faults that wait for triggers: the P4 text against the model, and a few courses written out.

use parser_gen::Arch;
use scenario::replay::Engine;

use super::{FIRST, GAP_NS, Lab, OTHER, SECOND};

const ARCHS: [Arch; 2] = [Arch::Psa, Arch::V1model];

/// Which of the packets to these ports left, one after the other. Between two of them this much time passes.
fn course(arch: Arch, rest: &str, packets: &[(u16, u64)]) -> Vec<bool> {
    let mut lab = Lab::armed(arch, 3, rest);
    let numbers: Vec<u32> = packets
        .iter()
        .map(|(port, then_ns)| {
            let number = lab.send(*port);
            lab.advance(*then_ns);
            number
        })
        .collect();
    lab.advance(1_000_000_000);
    numbers
        .iter()
        .map(|number| lab.left.contains_key(number))
        .collect()
}

#[test]
fn what_a_packet_brings_about_holds_from_the_next_one_on() {
    let rest = "triggers:\n  lost: {after: {fault: loss}, reset: {flow: other}}\nfaults:\n  \
                - {id: loss, flows: first, effect: drop, select: {nth: 2}}\n  \
                - {id: more, flows: [first, second], effect: drop, when: lost, select: {first: 2}}\n";
    let packets = [FIRST, SECOND, FIRST, FIRST, SECOND, FIRST, FIRST].map(|port| (port, 0));
    for arch in ARCHS {
        // The packet by which the trigger comes on is lost by `loss` alone. `more` counts each flow's packets from there on.
        let expected = [true, true, false, false, false, false, true];
        assert_eq!(course(arch, rest, &packets), expected, "{arch:?}");
    }
}

#[test]
fn a_sequence_is_followed_in_time_and_starts_again() {
    let rest = "triggers:\n  knock:\n    after: [{flow: first, packets: 2}, {flow: other, within: 10ms}]\n    for: 20ms\nfaults:\n  \
                - {id: shut, flows: second, effect: drop, when: knock}\n";
    let ms = 1_000_000;
    let (quick, slow) = (ms, 11 * ms);
    let packets = [
        (FIRST, quick),
        (OTHER, quick),
        (FIRST, slow),
        (OTHER, quick), // too late
        (SECOND, quick),
        (FIRST, quick),
        (FIRST, quick),
        (OTHER, quick),
        (SECOND, 15 * ms),
        (SECOND, quick),
        (SECOND, 3 * ms),
        (SECOND, 0), // 20 ms after the knock: over
        (OTHER, quick),
        (SECOND, 0),
    ];
    let lost: Vec<usize> = vec![8, 9, 10];
    for arch in ARCHS {
        let left = course(arch, rest, &packets);
        let found: Vec<usize> = (0..left.len()).filter(|i| !left[*i]).collect();
        assert_eq!(found, lost, "{arch:?}");
    }
}

/// Packets and pauses by chance, of triggers that count, are reset, run out and wait for each other's faults.
#[test]
fn triggers_are_the_models_packet_by_packet() {
    let rest = "triggers:\n  \
        some: {after: {flow: first, packets: 3}, reset: {fault: loss}}\n  \
        lost: {after: {fault: loss, hits: 2}, for: 2ms}\n  \
        chain:\n    after: [{fault: more}, {flow: second, packets: 2, within: 3ms}, {flow: other}]\n    for: 5ms\n    reset: {fault: last}\nfaults:\n  \
        - {id: loss, flows: [first, second], effect: drop, select: {every: 4}, when: some}\n  \
        - {id: more, flows: [second], effect: drop, select: {probability: 0.4}, when: lost}\n  \
        - {id: seen, flows: [first, second], effect: observe, select: {burst: {every: 5, length: 2}}}\n  \
        - {id: last, flows: [first, second], effect: duplicate, when: chain}\n";
    for arch in ARCHS {
        let mut lab = Lab::armed(arch, 5, rest);
        let engine = Engine::new(&lab.scenario, &lab.plan, "sw").unwrap();
        let mut state = engine.start();
        let mut hits = vec![0_u64; lab.plan.injections.len()];
        let mut random = 0x1234_5678_9abc_def1_u64;
        let mut any = |below: u64| {
            random ^= random >> 12;
            random ^= random << 25;
            random ^= random >> 27;
            (random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below
        };
        let mut expected = Vec::new();
        for _ in 0..40_000 {
            let port = [FIRST, FIRST, FIRST, SECOND, SECOND, OTHER][any(6) as usize];
            let frame = lab.frame(port, lab.sent);
            let mut classified = engine.classify(&frame, lab.in_port());
            classified.at_ns = lab.now_ns;
            let passage = engine.pass(&mut state, &classified, 1);
            passage.ingress.hits.iter().for_each(|hit| hits[*hit] += 1);
            expected.push(passage.leaving(0));
            lab.send(port);
            let pause = [0, 0, GAP_NS, 700_000, 1_900_000, 6_000_000][any(6) as usize];
            lab.advance(pause);
        }
        lab.advance(1_000_000_000);
        for (number, copies) in (0_u32..).zip(&expected) {
            let left = lab.left.get(&number).map_or(0, Vec::len);
            assert_eq!(left, *copies, "{arch:?}: packet {number}");
        }
        for (index, point) in lab.plan.injections.iter().enumerate() {
            let cell = point.cell as u64;
            let counted = lab.switch.counter_read(&point.counter, cell).unwrap();
            assert_eq!(counted.packets, hits[index], "{arch:?}: {}", point.fault);
            assert!(hits[index] > 20, "{}: {hits:?}", point.fault);
        }
    }
}

/// A flow that starts a trigger again is what it counts first.
#[test]
fn what_resets_counts_as_the_first_event() {
    let rest = "triggers:\n  third: {after: [{flow: first}, {flow: second, packets: 2}], reset: {flow: first}}\nfaults:\n  \
                - {id: gone, flows: [first, second], effect: drop, when: third}\n";
    let (f, s) = ((FIRST, 0), (SECOND, 0));
    for arch in ARCHS {
        // On with the fourth packet; the sixth is dropped and starts it again.
        let left = course(arch, rest, &[s, f, s, s, s, f, s, f, s, s, s]);
        let lost: Vec<usize> = (0..left.len()).filter(|i| !left[*i]).collect();
        assert_eq!(lost, [4, 5, 10], "{arch:?}");
    }
}
