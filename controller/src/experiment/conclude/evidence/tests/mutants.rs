//! Switches that err in ways that their counters do not show: the judge once accepted each of them.

use super::bench::{Bench, Error, MS, evenly};
use super::{DENSE, assert_proved, told};

const SPARSE: &str = "faults: [{id: late, flows: first, effect: !delay 20ms, select: !every 10}]";

/// The counter is right, but the effect is not; and the other way round.
#[test]
fn neither_a_counter_nor_a_capture_stands_for_the_other() {
    let changes = ["{set: {ip.ecn: 3}}", "{corrupt: {field: ip.ttl, xor: 1}}"];
    for effect in ["!drop ", "!duplicate ", "!delay 20ms"]
        .iter()
        .chain(&changes)
    {
        let one = format!("faults: [{{id: x, flows: first, effect: {effect}, select: !every 5}}]");
        for (error, why) in [
            (
                Error::SparesCounted(0),
                "it spared 1 frame that it had to hit",
            ),
            (
                Error::HitsUncounted(0),
                "it hit 1 frame that it had to spare",
            ),
        ] {
            let mut bench = Bench::new(&one, evenly(60, MS));
            let number = if matches!(error, Error::SparesCounted(_)) {
                9
            } else {
                11
            };
            bench.errors = [(number, error)].into();
            told(&bench.fault(), why);
        }
    }
    let mut bench = Bench::new(SPARSE, evenly(60, MS));
    bench.miscounts = [(0, 1)].into();
    told(&bench.fault(), "the switch counted 7, captures saw 6");
}

/// The sum of the counters agrees; the single counters do not.
#[test]
fn every_flow_has_its_own_counter() {
    let both = "faults: [{id: x, flows: [first, second], effect: !drop , select: !every 5}]";
    let mut sent = evenly(60, MS);
    for (number, sent) in sent.iter_mut().enumerate() {
        sent.from = if number % 2 == 0 { "a" } else { "b" };
    }
    let mut bench = Bench::new(both, sent);
    assert_proved(&bench.fault());
    bench.miscounts = [(0, 1), (1, -1)].into();
    let why = "for flow first at switch sw the switch counted 7, captures saw 6";
    told(&bench.fault(), why);
}

#[test]
fn frames_that_leave_where_or_as_they_should_not_are_seen() {
    // With a fault that drops: a frame that it had to drop, and one that it had to spare.
    let drops = "faults: [{id: x, flows: first, effect: !drop , select: !every 5}]";
    for number in [9, 11] {
        for error in [Error::LeavesElsewhere, Error::Leaks, Error::Changes] {
            let mut bench = Bench::new(drops, evenly(60, MS));
            bench.errors = [(number, error)].into();
            let fault = bench.fault();
            assert!(!fault.proved, "frame {number}, {error:?}: {fault:#?}");
        }
    }
    let mut bench = Bench::new(DENSE, evenly(60, MS));
    bench.errors = [(11, Error::Leaks)].into();
    told(
        &bench.fault(),
        "1 frame left switch sw changed or by a wrong port",
    );
}

/// One frame at a time, so that no frame overtakes a held one.
#[test]
fn a_switch_that_holds_all_is_not_proved_although_it_counts_right() {
    for gap in [MS, 30 * MS] {
        let mut bench = Bench::new(SPARSE, evenly(60, gap));
        bench.holds_all = true;
        let fault = bench.fault();
        assert!(!fault.proved, "{fault:#?}");
        assert_eq!((fault.fired, fault.observed), (6, 6));
        let why = "of 54 frames that it had to spare, 54 took as long as if it had hit them";
        told(&fault, why);
    }
    // Another flow's frames that pass meanwhile tell it apart from a machine that stands still.
    let mut sent = evenly(60, 30 * MS);
    for number in (1..60).step_by(3) {
        sent[number].from = "b";
        sent[number].at_ns = sent[number - 1].at_ns + MS;
    }
    let mut bench = Bench::new(SPARSE, sent);
    bench.holds_all = true;
    let fault = bench.fault();
    assert!(fault.collateral >= 15, "{fault:#?}");
    // And a frame that another fault holds, rightly, is held by this one as well.
    let two = "faults:
  - {id: late, flows: first, effect: !delay 20ms, select: !every 10}
  - {id: later, flows: first, effect: !delay 5ms, select: !every 7}
";
    let mut bench = Bench::new(two, evenly(60, MS));
    bench.errors = [(6, Error::HitsUncounted(0))].into();
    let faults = bench.conclude().faults;
    assert_eq!((faults[0].collateral, faults[1].collateral), (1, 0));
    assert!(!faults[0].proved && faults[1].proved, "{faults:#?}");
}

#[test]
fn a_delay_that_is_never_in_time_is_too_long() {
    for select in ["always", "!every 10"] {
        let one =
            format!("faults: [{{id: late, flows: first, effect: !delay 20ms, select: {select}}}]");
        let mut bench = Bench::new(&one, evenly(60, MS));
        assert_proved(&bench.fault());
        bench.delays_times = 2;
        let why = "every frame that it held left at least 20.0 ms later than the fault requests";
        told(&bench.fault(), why);
    }
}

#[test]
fn a_fault_in_egress_is_judged_too() {
    let one =
        "faults: [{id: x, flows: first, where: {egress: sw}, effect: !drop , select: !every 5}]";
    let mut bench = Bench::new(one, evenly(60, MS));
    let fault = bench.fault();
    assert_proved(&fault);
    assert_eq!(fault.observed, 12);
    for (number, error, why) in [
        (9, Error::Spares(0), "it spared 1 frame that it had to hit"),
        (
            9,
            Error::SparesCounted(0),
            "it spared 1 frame that it had to hit",
        ),
        (11, Error::Hits(0), "it hit 1 frame that it had to spare"),
        (
            11,
            Error::HitsUncounted(0),
            "it hit 1 frame that it had to spare",
        ),
    ] {
        bench.errors = [(number, error)].into();
        told(&bench.fault(), why);
    }
}
