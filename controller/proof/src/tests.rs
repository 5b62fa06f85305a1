//! Judges a correct switch while it runs, with equal frames.

use scenario::plan::{TargetModel, plan};
use scenario::replay::{Engine, Recorded};

use super::*;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// Time that a frame spends in the switch.
const TRANSIT_NS: u64 = 20_000;
/// Frames with this UDP port belong to the flow `first`, others to `other`.
const FIRST: u16 = 1001;
const OTHER: u16 = 1002;

/// A UDP datagram from host a to host s.
#[derive(Clone, Copy)]
struct Sent {
    at_ns: u64,
    port: u16,
    /// Payload of the frame: frames of a flow with the same marker are equal.
    marker: u32,
}

fn planned(rest: &str) -> (Scenario, Plan) {
    let text = format!(
        "weir: 1\nname: lab\nseed: 42\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\nflows:\n  \
         first: {{from: a, to: s, filter: udp.dport == {FIRST}}}\n  \
         other: {{from: a, to: s, filter: udp.dport == {OTHER}}}\n{rest}"
    );
    let scenario = scenario::load("lab.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    let plan = plan(&scenario, &TargetModel::EMBEDDED).unwrap();
    (scenario, plan)
}

fn frame(scenario: &Scenario, sent: &Sent) -> Vec<u8> {
    let host = |name: &str| scenario.topology.host(name).unwrap();
    let (from, to) = (host("a"), host("s"));
    let mut frame = [to.mac.0, from.mac.0].concat();
    frame.extend([0x08, 0, 0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(from.ip.octets());
    frame.extend(to.ip.octets());
    frame.extend([0x30, 0x39]);
    frame.extend(sent.port.to_be_bytes());
    frame.extend([0, 12, 0, 0]);
    frame.extend(sent.marker.to_be_bytes());
    // Padding: the judge keeps more of a frame that a fault changes than of others.
    frame.resize(4 * trace::TOLD_BYTES, 0);
    frame
}

/// Lets a correct switch carry the frames, and judges it step by step. Returns the verdict and the number of hits.
fn judged((scenario, plan): &(Scenario, Plan), sent: &[Sent]) -> (Proof, u64) {
    let engine = Engine::new(scenario, plan, "sw").unwrap();
    let mut state = engine.start();
    let port = |host: &str| scenario.topology.next_hop("sw", host).unwrap().number;
    let ports = ["a", "s"].map(|host| ("sw".to_owned(), port(host)));
    let mut fired = vec![0; plan.injections.len()];
    let mut passed: Vec<(u64, usize, Way, Vec<u8>)> = Vec::new();
    for sent in sent {
        let bytes = frame(scenario, sent);
        let mut classified = engine.classify(&bytes, port("a"));
        classified.at_ns = sent.at_ns;
        let passage = engine.pass(&mut state, &classified, 1);
        passage.ingress.hits.iter().for_each(|hit| fired[*hit] += 1);
        let changed = engine.leaves_as(&passage.ingress, Recorded::whole(&bytes));
        let leaves = changed.map_or_else(|| bytes.clone(), |changed| changed.bytes);
        passed.push((sent.at_ns, 0, Way::In, bytes));
        let fate = passage.ingress.fate;
        for copy in 0..fate.copies {
            let left_ns = sent.at_ns + TRANSIT_NS + fate.held_ns(copy as usize);
            passed.push((left_ns, 1, Way::Out, leaves.clone()));
        }
    }
    passed.sort_by_key(|(at_ns, ..)| *at_ns);
    let digest = Digest::of_seed(plan.seed);
    let conditions = Conditions {
        digest,
        shares_stamps: false,
    };
    let mut judge = Judge::new(scenario, plan, &ports, conditions);
    judge.write(&EpochWrite {
        switch: "sw".to_owned(),
        epoch: 1,
        sent_ns: S,
        confirmed_ns: S + 1_000,
    });
    let last_ns = passed.last().unwrap().0 + 5 * S;
    let mut passed = passed.iter().peekable();
    for now_ns in (S..last_ns).step_by(STEP_NS as usize) {
        while let Some((at_ns, port, way, bytes)) = passed.next_if(|of| of.0 < now_ns) {
            let wire_len = bytes.len() as u32;
            let sight = Sight {
                at_ns: *at_ns,
                way: *way,
                wire_len,
                identity: digest.of(bytes, wire_len),
                bytes,
            };
            judge.see(*port, &sight);
        }
        judge.advance(now_ns, |_| ());
    }
    judge.end(|_| ());
    let proof = judge.conclude(&fired, &[], |_| ());
    (proof, fired[0])
}

#[test]
fn equal_frames_are_told_apart_by_their_times() {
    for (effect, is_lost) in [
        ("drop", true),
        ("!duplicate ", false),
        ("{set: {ip.ttl: 9}}", false),
        ("!delay 30ms", false),
    ] {
        for every in [2, 3, 5] {
            for gap in [40, 90, 200, 450, 700, 1_200] {
                let planned = planned(&format!(
                    "faults: [{{id: x, flows: first, effect: {effect}, select: {{every: {every}}}}}]\n"
                ));
                let sent = (0..40).map(|number| Sent {
                    at_ns: 2 * S + 3 * MS + number * gap * MS,
                    port: FIRST,
                    marker: 7,
                });
                let (proof, fired) = judged(&planned, &sent.collect::<Vec<_>>());
                let (seen, flow) = (proof.observations[0], &proof.flows["first"]);
                let at = format!("{effect} every {every}, {gap} ms: {seen:?} {flow:?}");
                assert_eq!(seen.observed, fired, "{at}");
                assert_eq!((seen.missed, seen.collateral), (0, 0), "{at}");
                assert_eq!(proof.strays["sw"], Strays::default(), "{at}");
                let lost = if is_lost { fired } else { 0 };
                assert_eq!((flow.sent, flow.lost), (40, lost), "{at}");
                let held_ns = if effect.contains("delay") { 30 * MS } else { 0 };
                assert!(flow.longest_ns <= TRANSIT_NS + held_ns, "{at}");
            }
        }
    }
}

/// The first of two equal frames arrives just before a step of the judge and leaves after it; the second is changed.
#[test]
fn a_flow_counts_a_frame_whose_equal_is_changed_later() {
    let planned = planned(
        "faults: [{id: x, flows: first, effect: {set: {ip.ttl: 9}}, select: {every: 2}}]\n",
    );
    for step in 0..20 {
        let equal = [0, 500 * MS].map(|after_ns| Sent {
            at_ns: 3 * S + step * STEP_NS - TRANSIT_NS / 2 + after_ns,
            port: FIRST,
            marker: 7,
        });
        let others = (0..600_u32).map(|number| Sent {
            at_ns: 2 * S + 1 + u64::from(number) * 10 * MS,
            port: OTHER,
            marker: 1_000 + number,
        });
        let mut sent: Vec<Sent> = equal.into_iter().chain(others).collect();
        sent.sort_by_key(|sent| sent.at_ns);
        let (proof, _) = judged(&planned, &sent);
        let flow = &proof.flows["first"];
        assert_eq!(
            (flow.sent, flow.received, flow.longest_ns),
            (2, 2, TRANSIT_NS)
        );
    }
}

/// The judge keeps the bytes of a frame in the buffer of an earlier one.
#[test]
fn different_frames_are_changed_and_spared_in_turn() {
    let planned = planned(
        "faults: [{id: x, flows: first, effect: {set: {ip.ttl: 9}}, select: {every: 2}}]\n",
    );
    let sent = (0..200_u32).map(|number| Sent {
        at_ns: 2 * S + 1 + u64::from(number) * 20 * MS,
        port: FIRST,
        marker: number,
    });
    let (proof, fired) = judged(&planned, &sent.collect::<Vec<_>>());
    let seen = proof.observations[0];
    assert_eq!(
        (fired, seen.observed, seen.missed, seen.collateral),
        (100, 100, 0, 0)
    );
}

#[test]
fn a_flow_whose_frames_change_after_a_trigger_is_counted() {
    let planned = planned(
        "triggers: {t: {after: {flow: other, packets: 3}}}\n\
         faults: [{id: x, flows: first, effect: {set: {ip.ttl: 9}}, when: t}]\n",
    );
    let others = (0..3_u32).map(|number| (u64::from(number) * 10 * MS, OTHER, number));
    let first = (0..100_u32).map(|number| (100 * MS + u64::from(number) * 20 * MS, FIRST, number));
    let sent = others.chain(first).map(|(after_ns, port, marker)| Sent {
        at_ns: 2 * S + 1 + after_ns,
        port,
        marker,
    });
    let (proof, fired) = judged(&planned, &sent.collect::<Vec<_>>());
    let flow = &proof.flows["first"];
    assert_eq!((fired, flow.received, flow.lost), (100, 100, 0));
}
