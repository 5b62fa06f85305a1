//! Packets that let others of their flow pass.

use scenario::replay::{Classified, Engine};

use super::*;

const FAULTS: &str = "faults:
  - {id: back, flows: first, effect: {reorder: {distance: 3, within: 2ms}}, select: {every: 5}}
  - {id: behind, flows: second, effect: {reorder: {distance: 1, within: 400us}}, select: {probability: 0.3}}
  - {id: late, flows: [first, second], effect: {delay: 300us}, select: {every: 7}}
  - {id: twice, flows: first, effect: {duplicate: {copies: 1, spaced: 700us}}, select: {every: 4}}
  - {id: lost, flows: second, effect: drop, select: {every: 6}}
";

/// Frames of two flows and of none, in pauses of which some are longer than a packet waits: by number, when each left, and
/// what the model says.
fn run(
    arch: Arch,
    edit: impl Fn(&str) -> String,
) -> (Vec<Vec<u64>>, Vec<(u64, scenario::model::effect::Fate)>) {
    let mut lab = Lab::with_text(arch, 3, FAULTS, |_, text| edit(text));
    lab.set_epoch(1);
    let engine = Engine::new(&lab.scenario, &lab.plan, "sw").unwrap();
    let mut classified: Vec<Classified> = Vec::new();
    for number in 0..900_u32 {
        let port = [FIRST, SECOND, OTHER, SECOND][number as usize * 5 % 7 % 4];
        let frame = lab.frame(port, number);
        classified.push(Classified {
            at_ns: lab.now_ns,
            ..engine.classify(&frame, lab.in_port())
        });
        let in_port = lab.in_port();
        lab.switch.handle_packet(lab.now_ns, in_port, &frame);
        lab.advance(if number % 31 == 30 { 3_000_000 } else { GAP_NS });
    }
    lab.advance(10_000_000);
    engine.tell_passed(&mut classified);
    let mut state = engine.start();
    let fates = classified
        .iter()
        .map(|frame| (frame.at_ns, engine.pass(&mut state, frame, 1).ingress.fate));
    let left = (0..900).map(|number| lab.left.get(&number).cloned().unwrap_or_default());
    (left.collect(), fates.collect())
}

#[test]
fn packets_wait_as_the_model_says() {
    for arch in [Arch::Psa, Arch::V1model] {
        let (left, fates) = run(arch, str::to_owned);
        let (mut passed, mut expired) = (0, 0);
        for (number, ((came_ns, fate), left)) in fates.iter().zip(&left).enumerate() {
            assert_eq!(
                left.len(),
                fate.copies as usize,
                "{arch:?}: packet {number}"
            );
            for (copy, left_ns) in left.iter().enumerate() {
                let due_ns = came_ns + fate.held_ns(copy);
                let late_ns = left_ns.checked_sub(due_ns).unwrap_or_else(|| {
                    panic!(
                        "{arch:?}: packet {number} left {} ns early",
                        due_ns - left_ns
                    )
                });
                // A round until it is seen to be due; v1model sees it in egress, and lets it go in the next ingress.
                assert!(
                    late_ns <= 3 * LOOP_NS,
                    "{arch:?}: packet {number}, {late_ns} ns late"
                );
            }
            let is_whole = fate.waits_ns == 400_000 || fate.waits_ns == 2_000_000;
            passed += usize::from(fate.waits_ns > 0 && !is_whole && fate.copies > 0);
            expired += usize::from(is_whole && fate.copies > 0);
        }
        assert!(passed > 60 && expired > 3, "{passed} {expired}");
    }
}

/// The comparison above can fail.
#[test]
fn text_that_waits_otherwise_is_noticed() {
    for (old, new) in [
        ("passed = passed + 1;", "passed = passed + 2;"),
        ("until = passed + 3;", "until = passed + 2;"),
        (
            "hdr.wait.limit = meta.now + 2000000;",
            "hdr.wait.limit = meta.now;",
        ),
        ("hdr.wait.unit == 1)", "hdr.wait.unit == 2)"),
        ("if (missing[31:31] == 0)", "if (missing[31:31] == 1)"),
    ] {
        for arch in [Arch::Psa, Arch::V1model] {
            let (left, fates) = run(arch, |text| text.replace(old, new));
            let wrong = fates.iter().zip(&left).any(|((came_ns, fate), left)| {
                let mut left = left.iter().enumerate();
                left.any(|(copy, left_ns)| {
                    let due_ns = came_ns + fate.held_ns(copy);
                    !(due_ns..=due_ns + 3 * LOOP_NS).contains(left_ns)
                })
            });
            assert!(wrong, "{arch:?}: {old}");
        }
    }
}
