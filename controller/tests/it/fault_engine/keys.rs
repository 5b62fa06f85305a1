//! A share of the keys: each of them whole, and the ones that the model names.

use std::collections::BTreeMap;

use scenario::replay::Engine;

use super::{ARCHS, Lab};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// To host s, whoever it is from.
fn text(share: &str, per: &str) -> String {
    format!(
        "weir: 1\nname: lab\nseed: 42\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\nflows:\n  \
         all: {{to: s, filter: ip}}\nfaults:\n  \
         - {{id: seen, flows: all, effect: observe, select: {{every: 3}}}}\n  \
         - {{id: gray, flows: all, effect: drop, select: {{share: {share}}}, per: {per}}}\n  \
         - {{id: few, flows: all, effect: observe, select: {{share: 25%}}, per: [ip.ecn, ip.id, eth.src]}}\n"
    )
}

/// What tells the frames apart: protocol, source and its port.
type Sender = (u8, u32, u16);

fn frame(lab: &Lab, (protocol, source, port): Sender, round: u16) -> Vec<u8> {
    let mut frame = lab.frame(7, 0);
    frame.truncate(34);
    frame[15] = round as u8 & 3;
    frame[17] = 40;
    frame[18..20].copy_from_slice(&round.to_be_bytes());
    frame[23] = protocol;
    frame[26..30].copy_from_slice(&source.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend([0, 80, 0, 20, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
    frame
}

#[test]
fn all_packets_of_a_share_of_the_keys_are_hit() {
    let connection: fn(Sender) -> Sender = |sender| sender;
    let source: fn(Sender) -> Sender = |(_, source, _)| (0, source, 0);
    let cases = [
        ("10%", "connection", connection),
        ("0.5", "connection", connection),
        ("30%", "source", source),
        ("60%", "[tcp.sport, ip.src]", |(protocol, source, port)| {
            (0, source, if protocol == TCP { port } else { 0 })
        }),
    ];
    for arch in ARCHS {
        for (share, per, key_of) in cases {
            let mut lab = Lab::of(arch, &text(share, per), |_, text| text.to_owned());
            lab.set_epoch(1);
            let engine = Engine::new(&lab.scenario, &lab.plan, "sw").unwrap();
            let mut state = engine.start();
            let mut hits = vec![0; lab.plan.injections.len()];
            let mut fates: BTreeMap<Sender, bool> = BTreeMap::new();
            for round in 0..4 {
                for sender in (0..300_u16).map(|n| {
                    let protocol = [TCP, UDP][usize::from(n) % 2];
                    (protocol, 0x0a01_0000 + u32::from(n % 37), 32_768 + n / 2)
                }) {
                    let frame = frame(&lab, sender, round);
                    let port = lab.in_port();
                    let passage = engine.pass(&mut state, &engine.classify(&frame, port), 1);
                    for hit in passage.verdicts().flat_map(|verdict| &verdict.hits) {
                        hits[*hit] += 1;
                    }
                    lab.switch.handle_packet(lab.now_ns, port, &frame);
                    let copies = std::iter::from_fn(|| lab.switch.poll_transmit()).count();
                    assert_eq!(copies, passage.leaving(0), "{arch:?} {per}: {sender:?}");
                    let before = *fates.entry(key_of(sender)).or_insert(copies == 0);
                    assert_eq!(before, copies == 0, "{arch:?} {per}: {sender:?} in part");
                }
            }
            for (point, hits) in lab.plan.injections.iter().zip(&hits) {
                let counted = lab.switch.counter_read(&point.counter, point.cell as u64);
                assert_eq!(counted.unwrap().packets, *hits, "{arch:?} {}", point.fault);
                assert!((1..1200).contains(hits), "{arch:?} {}: {hits}", point.fault);
            }
            let hit = fates.values().filter(|hit| **hit).count();
            assert!(hit > 0 && hit < fates.len(), "{hit} of {}", fates.len());
        }
    }
}
