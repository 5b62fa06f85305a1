//! Faults that wait for triggers.

use super::bench::{Bench, Error, MS, US, evenly};
use super::{assert_proved, told};

/// The tenth frame is lost, and those of the next 20 ms are hit.
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
        // Of the last ones it is open whether the trigger was still on: none of them had to be hit.
        assert!((18..=23).contains(&faults[1].met), "{effect}: {faults:#?}");
        // Before the trigger, and long after it.
        for number in [4, 60] {
            bench.errors = [(number, Error::Hits(1))].into();
            // If both drop, it is not known which of the two erred.
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
    // A switch whose trigger ends 8 ms early is not believed.
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
    told(&faults[1], "no packet of its flows came while trigger `lost` was on");
}

/// What one host's packets bring about, another's meet: both ports' frames are replayed in the order of their stamps.
#[test]
fn a_trigger_may_join_ports() {
    let rest = "triggers: {busy: {after: {flow: second, packets: 5}, for: 20ms, reset: {fault: gone}}}
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
    let hit = bench.conclude().hits;
    assert!(hit.windows(2).all(|pair| pair[0].frame < pair[1].frame), "{hit:?}");
    // The third of `first` that comes while it is on is spared, and one is hit that has to be spared.
    bench.errors = [(3, Error::Hits(0))].into();
    assert!(!bench.fault().proved);
    let all = bench.sent.len();
    let spared = (0..all).filter(|number| {
        bench.errors = [(*number, Error::SparesCounted(0))].into();
        !bench.fault().proved
    });
    assert_eq!(spared.count() as u64, fault.observed);
}
