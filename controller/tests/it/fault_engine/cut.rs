//! Packets that are cut short, alone and together with every other thing that befalls a packet.

use scenario::replay::{Engine, Recorded};

use super::*;

const FAULTS: &str = "faults:
  - {id: short, flows: all, effect: {truncate: 60B}, select: {every: 2}}
  - {id: shorter, flows: all, effect: {truncate: 30B}, select: {every: 5}}
  - {id: marked, flows: all, effect: {set: {ip.ecn: 3, ip.ttl: 9}}, select: {every: 3}}
  - {id: late, flows: all, effect: {delay: 1ms}, select: {every: 7}}
  - {id: twice, flows: all, effect: {duplicate: {copies: 2, spaced: 100us}}, select: {every: 4}}
  - {id: lost, flows: all, effect: drop, select: {every: 11}}
";

/// Frames of every length about the cuts, and one that is longer than any.
fn lengths() -> impl Iterator<Item = usize> {
    (20..70).chain([1514])
}

#[test]
fn packets_are_cut_as_the_model_says() {
    let text = format!(
        "weir: 1\nname: lab\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\n\
         flows: {{all: 'eth.src == 02:57:45:00:00:01'}}\n{FAULTS}"
    );
    for arch in [Arch::Psa, Arch::V1model] {
        let mut lab = Lab::of(arch, &text, |_, text| text.to_owned());
        lab.set_epoch(1);
        let engine = Engine::new(&lab.scenario, &lab.plan, "sw").unwrap();
        let mut state = engine.start();
        let (mut cut, mut copies) = (0, 0);
        for round in 0..8 {
            for length in lengths() {
                let mut frame = lab.frame(FIRST, round);
                frame.resize(length, 0xA5);
                let classified = engine.classify(&frame, lab.in_port());
                let passage = engine.pass(&mut state, &classified, 1);
                let verdict = &passage.ingress;
                let changed = engine.leaves_as(verdict, Recorded::whole(&frame));
                let expected = changed.map_or(frame.clone(), |changed| {
                    assert_eq!(changed.wire_len as usize, changed.bytes.len());
                    changed.bytes
                });
                cut += usize::from(expected.len() < length);
                copies += usize::from(verdict.fate.copies > 1);
                lab.switch.handle_packet(lab.now_ns, lab.in_port(), &frame);
                let until = lab.now_ns + 5_000_000;
                let mut left = Vec::new();
                while let Some(transmit) = lab.switch.poll_transmit() {
                    left.push(transmit.bytes);
                }
                while let Some(due) = lab.switch.poll_timeout().filter(|due| *due <= until) {
                    lab.switch.handle_timeout(due);
                    while let Some(transmit) = lab.switch.poll_transmit() {
                        left.push(transmit.bytes);
                    }
                }
                lab.now_ns = until;
                let expected = vec![expected; verdict.fate.copies as usize];
                assert_eq!(left, expected, "{arch:?}: {length} bytes, round {round}");
            }
        }
        assert!(cut > 40 && copies > 40, "{cut} {copies}");
    }
}

/// The comparison above can fail.
#[test]
fn text_that_cuts_otherwise_is_noticed() {
    let text = "weir: 1\nname: lab\ntopology: {star: {hosts: [a, s], switch: sw}}\n\
         flows: {all: 'eth.src == 02:57:45:00:00:01'}\n\
         faults: [{id: short, flows: all, effect: {truncate: 40B}}]\n";
    let mutants = [
        (Arch::Psa, "meta.cut = 40;", "meta.cut = 0;"),
        (
            Arch::Psa,
            "normal_meta.cut = meta.cut;",
            "normal_meta.cut = 0;",
        ),
        (Arch::Psa, "ostd.clone = true;", ""),
        (Arch::V1model, "truncate((bit<32>) meta.cut);", ""),
        (
            Arch::V1model,
            "truncate((bit<32>) meta.cut);",
            "truncate((bit<32>) meta.cut + 1);",
        ),
        (Arch::V1model, "@field_list(0)", ""),
    ];
    for (arch, old, new) in mutants {
        let mut lab = Lab::of(arch, text, |_, text| text.replace(old, new));
        lab.set_epoch(1);
        let frame = lab.frame(FIRST, 0);
        lab.switch.handle_packet(lab.now_ns, lab.in_port(), &frame);
        while let Some(due) = lab.switch.poll_timeout().filter(|due| *due < 5_000_000) {
            lab.switch.handle_timeout(due);
        }
        let left = lab.switch.poll_transmit();
        assert_ne!(
            left.map(|left| left.bytes),
            Some(frame[..40].to_vec()),
            "{old}"
        );
    }
}
