//! Faults that wait for triggers.

use super::bench::{Bench, Error, MS, Sent, US, evenly};
use super::{assert_proved, told};

/// The tenth frame is lost, and the frames of the next 20 ms are hit.
fn after_a_loss(effect: &str, select: &str) -> String {
    format!(
        "triggers: {{lost: {{after: {{fault: loss}}, for: 20ms}}}}
faults:
  - {{id: loss, flows: first, effect: drop, select: !nth 10}}
  - {{id: next, flows: first, effect: {effect}, select: {select}, when: lost}}
"
    )
}

#[test]
fn what_follows_a_trigger_is_proved_and_what_does_not_is_told() {
    for effect in ["!drop ", "!duplicate ", "!delay 5ms", "{set: {ip.ecn: 3}}"] {
        let mut bench = Bench::new(&after_a_loss(effect, "!every 3"), evenly(100, MS));
        let faults = bench.conclude().faults;
        faults.iter().for_each(assert_proved);
        assert_eq!((faults[0].observed, faults[1].observed), (1, 6), "{effect}");
        // For the last frames it is open whether the trigger was still on: none of them had to be hit.
        assert!((18..=23).contains(&faults[1].met), "{effect}: {faults:#?}");
        // Frames before the trigger, and long after it.
        for number in [4, 60] {
            bench.errors = [(number, Error::Hits(1))].into();
            // If both faults drop, it is unknown which of the two erred.
            let faults = bench.conclude().faults;
            assert!(!faults[1].proved, "{effect}: {faults:#?}");
        }
        bench.errors = [(12, Error::Spares(1))].into();
        assert!(!bench.conclude().faults[1].proved, "{effect}");
    }
}

/// The switch looks at its clock a little later than a frame came: where a trigger ends near a frame, both readings are tried.
#[test]
fn the_end_of_a_trigger_is_known_by_what_it_did() {
    for effect in ["!drop ", "!duplicate ", "!delay 5ms"] {
        for select in ["always", "!every 3", "{probability: 0.4}"] {
            for (of_loss, of_others) in [(0, 0), (2 * MS, 0), (0, 2 * MS), (400 * US, 1300 * US)] {
                let sent = evenly(150, 500 * US);
                let mut bench = Bench::new(&after_a_loss(effect, select), sent);
                bench.lags = (10..150).map(|number| (number, of_others)).collect();
                bench.lags.insert(9, of_loss);
                let faults = bench.conclude().faults;
                faults.iter().for_each(assert_proved);
                if select == "always" {
                    let held_ns = 20 * MS + of_loss - of_others;
                    let expected = held_ns / (500 * US);
                    assert_eq!(faults[1].observed, expected, "{effect}");
                }
            }
        }
    }
    // The judge rejects a switch whose trigger ends 8 ms early.
    let mut bench = Bench::new(&after_a_loss("!drop ", "always"), evenly(150, 500 * US));
    bench.lags = (34..150).map(|number| (number, 8 * MS)).collect();
    told(&bench.conclude().faults[1], "it spared");
}

#[test]
fn a_trigger_that_never_comes_on_is_the_reason() {
    let rest = "triggers: {lost: {after: {fault: loss}}}
faults:
  - {id: loss, flows: first, effect: drop, select: !nth 1000}
  - {id: next, flows: first, effect: drop, when: lost}
expect: [fault.loss.fired == 0]
";
    let faults = Bench::new(rest, evenly(20, MS)).conclude().faults;
    told(
        &faults[1],
        "no packet of its flows arrived while trigger `lost` was on",
    );
}

/// Packets of one host set a trigger for those of another: both ports' frames are replayed in the order of their stamps.
#[test]
fn a_trigger_may_join_ports() {
    let rest =
        "triggers: {busy: {after: {flow: second, packets: 5}, for: 20ms, reset: {fault: gone}}}
faults:
  - {id: gone, flows: first, effect: drop, when: busy, select: !every 3}
";
    let mut sent = evenly(200, 700 * US);
    for (number, sent) in sent.iter_mut().enumerate() {
        sent.from = if number % 3 == 1 { "b" } else { "a" };
    }
    let mut bench = Bench::new(rest, sent);
    let fault = bench.fault();
    assert_proved(&fault);
    assert!(fault.observed > 5, "{fault:#?}");
    let hit = bench.hits();
    assert!(
        hit.windows(2).all(|pair| pair[0].frame < pair[1].frame),
        "{hit:?}"
    );
    // The third frame of `first` while the trigger is on is spared, and a frame is hit that has to be spared.
    bench.errors = [(3, Error::Hits(0))].into();
    assert!(!bench.fault().proved);
    let all = bench.sent.len();
    let spared = (0..all).filter(|number| {
        bench.errors = [(*number, Error::SparesCounted(0))].into();
        !bench.fault().proved
    });
    assert_eq!(spared.count() as u64, fault.observed);
}

/// Host a asks s at many ports, which are so many connections, and s answers: behind every third request of a connection the
/// next answers of it are lost.
const THIRD: &str = "triggers: {third: {after: {flow: asked, packets: 3}, reset: {fault: next}, per: {connection: both}}}
faults:
  - {id: next, flows: answers, effect: drop, when: third}
";

fn random(seed: u64) -> impl FnMut(u32) -> u32 {
    let mut state = seed | 1;
    move |below| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        ((state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % u64::from(below)) as u32
    }
}

/// `count` requests and answers of `connections` connections, in any order.
fn conversations(connections: u32, count: u32, gap_ns: u64, seed: u64) -> Vec<Sent> {
    let mut any = random(seed);
    let mut sent = evenly(count, gap_ns);
    for sent in &mut sent {
        sent.dport = 2000 + any(connections) as u16;
        sent.from = if any(2) == 0 { "a" } else { "s" };
    }
    sent
}

#[test]
fn triggers_of_keys_are_proved_and_what_errs_is_told() {
    let sent = conversations(10, 300, 500 * US, 3);
    let mut bench = Bench::new(THIRD, sent);
    let conclusion = bench.conclude();
    assert_proved(&conclusion.faults[0]);
    let observed = conclusion.faults[0].observed;
    assert!(observed > 25, "{observed}");
    let trigger = &conclusion.triggers[0];
    assert!(trigger.proved, "{trigger:?}");
    // Each time that the trigger fires, one answer is lost, unless the answer never came.
    let on = trigger.on.unwrap();
    assert_eq!(on, trigger.observed);
    assert!((observed..observed + 10).contains(&on), "{trigger:?}");
    // Errors on each answer: one that had to be lost is not, and one that had to be spared is.
    let mut told = 0;
    for number in 0..bench.sent.len() {
        bench.errors = [(number, Error::SparesCounted(0))].into();
        let is_told = !bench.conclude().faults[0].proved;
        told += u64::from(is_told);
        if bench.sent[number].from == "s" && !is_told && number % 7 == 0 {
            bench.errors = [(number, Error::HitsUncounted(0))].into();
            assert!(!bench.conclude().faults[0].proved, "{number}");
        }
    }
    assert_eq!(told, observed);
    // The judge rejects a switch whose own count differs.
    bench.errors.clear();
    for off in [-1, 1] {
        bench.miscounted_turns = [(0, off)].into();
        let trigger = &bench.conclude().triggers[0];
        assert!(!trigger.proved, "{trigger:?}");
        let reason = trigger.reason.as_deref().unwrap();
        assert!(reason.contains("captures saw"), "{reason}");
    }
}

/// Requests and answers arrive by two ports at about the same time: the switch may process those of a connection in either order.
#[test]
fn of_one_key_frames_may_be_taken_in_another_order() {
    let mut races = 0;
    for seed in 0..6 {
        for select in ["always", "!every 2"] {
            let rest = THIRD.replace("when: third", &format!("when: third, select: {select}"));
            let sent = conversations(4, 400, 70 * US, seed);
            let mut bench = Bench::new(&rest, sent);
            let mut any = random(seed + 100);
            let is_swapped = |number: usize, any: &mut dyn FnMut(u32) -> u32| {
                let pair = &bench.sent[number..number + 2];
                pair[0].from != pair[1].from && any(3) == 0
            };
            let mut number = 0;
            let mut swapped = Vec::new();
            while number + 1 < bench.sent.len() {
                if is_swapped(number, &mut any) {
                    swapped.push(number);
                    let pair = &bench.sent[number..number + 2];
                    races += u32::from(pair[0].dport == pair[1].dport);
                    number += 1;
                }
                number += 1;
            }
            bench.swapped = swapped.into_iter().collect();
            let conclusion = bench.conclude();
            assert_proved(&conclusion.faults[0]);
            assert!(conclusion.triggers[0].proved, "{:?}", conclusion.triggers);
        }
    }
    assert!(races > 100, "{races}");
}

/// A frame that had left when the next one came was processed before it: the judge reports a switch that processes it later.
#[test]
fn what_had_left_was_taken_first() {
    let mut bench = Bench::new(THIRD, conversations(1, 60, 100 * US, 1));
    assert_proved(&bench.conclude().faults[0]);
    let pairs = 0..bench.sent.len() - 1;
    let crossing = pairs.filter(|n| bench.sent[*n].from != bench.sent[n + 1].from);
    let told = crossing.collect::<Vec<_>>().into_iter().filter(|number| {
        bench.swapped = [*number].into();
        bench.left_in_time = false;
        let allowed = bench.conclude().faults[0].proved;
        bench.left_in_time = true;
        let is_told = !bench.conclude().faults[0].proved;
        assert!(allowed, "frame {number}");
        is_told
    });
    let told = told.count();
    assert!(told >= 3, "{told}");
}

#[test]
fn the_ends_of_many_keys_are_known_by_what_they_did() {
    let rest = "triggers: {third: {after: [{flow: asked}, {flow: asked, within: 30ms}], for: 20ms, per: [udp.dport]}}
faults:
  - {id: next, flows: asked, effect: drop, when: third, select: {every: 2}, per: [udp.dport]}
  - {id: seen, flows: asked, effect: {set: {ip.ecn: 3}}, when: third}
";
    for seed in 0..2 {
        let mut sent = conversations(60, 2_000, 100 * US, seed);
        sent.iter_mut().for_each(|sent| sent.from = "a");
        let mut bench = Bench::new(rest, sent);
        let mut any = random(seed + 50);
        // The switch is late now and then, and never takes a frame before one that came before it.
        let mut lag_ns = 0_u64;
        for number in 0..bench.sent.len() {
            lag_ns = match any(40) {
                0 => 2 * MS,
                _ => lag_ns.saturating_sub(100 * US),
            };
            bench.lags.insert(number, lag_ns);
        }
        let conclusion = bench.conclude();
        conclusion.faults.iter().for_each(assert_proved);
        assert!(conclusion.triggers[0].proved, "{:?}", conclusion.triggers);
        assert!(
            conclusion.faults[0].observed > 100,
            "{:?}",
            conclusion.faults
        );
    }
}

/// A trigger that no fault waits for, and one whose keys find no cell.
#[test]
fn what_only_counts_is_proved_and_lost_keys_fail_the_run() {
    let rest = "triggers: {third: {after: {flow: asked, packets: 3}, per: [udp.dport], keys: 1}}
faults:
  - {id: some, flows: answers, effect: drop, select: !every 10}
expect: [trigger.third.on >= 1]
";
    let few = conversations(200, 3_000, 50 * US, 1);
    let trigger = &Bench::new(rest, few).conclude().triggers[0];
    assert!(trigger.proved, "{trigger:?}");
    let many = conversations(4_000, 20_000, 50 * US, 1);
    let trigger = &Bench::new(rest, many.clone()).conclude().triggers[0];
    let reason = trigger.reason.as_deref().unwrap();
    assert!(!trigger.proved && reason.contains("no cell"), "{trigger:?}");
    assert!(trigger.keyless > Some(1_000), "{trigger:?}");
    let rest = rest.replace("on >= 1", "on >= 1, trigger.third.keyless > 0");
    let trigger = &Bench::new(&rest, many).conclude().triggers[0];
    assert!(trigger.proved, "{trigger:?}");
}

/// The issue's own words, for 10,000 connections: after the third request the next answer.
#[test]
fn ten_thousand_keys_are_proved() {
    let rest = "triggers: {third: {after: {flow: asked, packets: 3}, per: {connection: both}}}
faults:
  - {id: next, flows: answers, effect: drop, when: third, select: {first: 1}, per: connection}
";
    let mut any = random(5);
    let mut turns = vec![0_u32; 10_000];
    let mut sent = evenly(80_000, 20 * US);
    for sent in &mut sent {
        let connection = any(10_000);
        sent.dport = 2000 + connection as u16;
        let turn = &mut turns[connection as usize];
        sent.from = if turn.is_multiple_of(2) { "a" } else { "s" };
        *turn += 1;
    }
    let conclusion = Bench::new(rest, sent).conclude();
    assert_proved(&conclusion.faults[0]);
    let through = turns.iter().filter(|turns| **turns >= 6).count() as u64;
    assert_eq!(conclusion.faults[0].observed, through);
    assert!(through > 5_000, "{through}");
    assert!(conclusion.triggers[0].proved, "{:?}", conclusion.triggers);
}
