//! Tests of what is proved, what is not, and what must not disturb: with captures of a switch that errs on demand.

mod bench;
mod flows;
mod mutants;
mod recovery;
mod triggered;

use std::convert::Infallible;

use bench::{Bench, Error, MS, Sent, US, evenly};
use proof::{Hit, Loser, Loss, Proof};
use proptest::prelude::*;
use testbeds::capture::Frame;

use super::Evidence;
use crate::experiment::Planned;
use crate::experiment::conclude::{Conclusion, FaultResult};

/// Frames of the ports of switch `sw`, by the ports' numbers.
pub(crate) type Recordings = [(u32, Vec<Frame>)];

/// Judges the frames of the ports of switch `sw`; returns the proof and the hits in the order of the log.
pub(crate) fn prove(
    planned: &Planned,
    evidence: &Evidence,
    recordings: &Recordings,
) -> (Proof, Vec<Hit>) {
    let ports = recordings.iter().map(|(port, _)| ("sw".to_owned(), *port));
    let ports: Vec<(String, u32)> = ports.collect();
    let mut frames = Vec::new();
    for (port, (_, recorded)) in recordings.iter().enumerate() {
        let mut until_ns = 0;
        frames.extend(recorded.iter().map(|frame| {
            until_ns = frame.at_ns.max(until_ns);
            (until_ns, port, frame.clone())
        }));
    }
    frames.sort_by_key(|(until_ns, ..)| *until_ns);
    let frames = frames.into_iter().map(|(_, port, frame)| Ok((port, frame)));
    let mut hits = Vec::new();
    let Planned { scenario, plan } = planned;
    let proof = evidence.prove::<Infallible>(scenario, plan, &ports, frames, |hit| hits.push(hit));
    let Ok(proof) = proof;
    (proof, hits)
}

/// Judges the frames of the ports of switch `sw`, and draws the conclusion.
pub(crate) fn conclude(
    planned: &Planned,
    evidence: &Evidence,
    recordings: &Recordings,
) -> Conclusion {
    let (proof, _) = prove(planned, evidence, recordings);
    Conclusion::from_proof(planned, evidence, proof)
}

const DENSE: &str = "faults: [{id: late, flows: every, effect: !delay 20ms}]";

fn assert_proved(fault: &FaultResult) {
    assert!(fault.proved, "{fault:#?}");
    assert_eq!((fault.missed, fault.collateral), (0, 0), "{fault:#?}");
    assert_eq!(fault.fired, fault.observed, "{fault:#?}");
}

fn told(fault: &FaultResult, what: &str) {
    assert!(!fault.proved, "{fault:#?}");
    let reason = fault.reason.as_deref().unwrap_or_default();
    assert!(reason.contains(what), "{reason}");
}

/// Frames from three hosts at once, 0.3 ms apart.
fn from_everywhere(count: u32) -> Vec<Sent> {
    let mut sent = evenly(count, 300 * US);
    for (sent, from) in sent.iter_mut().zip(["a", "b", "c"].into_iter().cycle()) {
        sent.from = from;
    }
    sent
}

#[test]
fn a_delay_of_every_packet_is_proved_though_nothing_passes_it() {
    let mut bench = Bench::new(DENSE, from_everywhere(180));
    let fault = bench.fault();
    assert_proved(&fault);
    assert_eq!((fault.met, fault.observed, fault.slow), (180, 180, 0));
    // The machine stands still for 50 ms: all frames are late, and nothing else happens.
    bench.stalls = vec![(10 * MS, 60 * MS)];
    let fault = bench.fault();
    assert_proved(&fault);
    assert!(fault.latest_ns.unwrap() > 20 * MS);
    assert!((1..=180).contains(&fault.beyond.unwrap()), "{fault:#?}");
}

#[test]
fn a_frame_that_no_entry_forwards_is_neither_hit_nor_missed() {
    for effect in ["!drop ", "!delay 20ms", "!duplicate ", "{set: {ip.ecn: 3}}"] {
        let one = format!("faults: [{{id: x, flows: first, effect: {effect}, select: !every 5}}]");
        let mut bench = Bench::new(&one, evenly(100, MS));
        bench.nowhere = (1..=100).collect();
        told(
            &bench.fault(),
            "20 frames that it would have hit had no route out",
        );
        let conclusion = bench.conclude();
        let fault = &conclusion.faults[0];
        assert_eq!(
            (fault.met, fault.fired, fault.observed),
            (100, 0, 0),
            "{effect}"
        );
        assert_eq!((fault.unforwarded, fault.missed), (20, 0), "{effect}");
        let flow = &conclusion.flows["first"];
        assert_eq!(
            (flow.sent, flow.received, flow.lost),
            (100, 0, 100),
            "{effect}"
        );
        // The other frames of the flow still prove the fault.
        bench.nowhere = (1..=50).collect();
        let conclusion = bench.conclude();
        let fault = &conclusion.faults[0];
        assert!(fault.proved, "{fault:#?}");
        assert_eq!(
            (fault.fired, fault.observed, fault.unforwarded),
            (10, 10, 10)
        );
        assert!(
            fault.reason.as_ref().unwrap().contains("10 frames"),
            "{fault:#?}"
        );
        let lost = 50 + if effect == "!drop " { 10 } else { 0 };
        let flow = &conclusion.flows["first"];
        assert_eq!((flow.sent, flow.lost), (100, lost), "{effect}");
        // A switch that does not count them errs.
        bench.miscounts = [(0, -1)].into();
        told(&bench.fault(), "the switch counted 9, captures saw 10");
    }
}

#[test]
fn frames_that_a_stalled_machine_kept_waiting_are_slow_and_not_hit() {
    let sparse = "faults: [{id: late, flows: first, effect: !delay 40ms, select: !every 10}]";
    let mut bench = Bench::new(sparse, evenly(200, MS));
    bench.stalls = vec![(50 * MS, 100 * MS)];
    let fault = bench.fault();
    assert_proved(&fault);
    assert_eq!(fault.observed, 20);
    // The frames of the first ten of the fifty milliseconds, without the one that was held anyway.
    assert_eq!(fault.slow, 10);
}

#[test]
fn a_frame_that_was_held_and_should_not_be_is_told_from_one_that_was_slow() {
    let sparse = "faults: [{id: late, flows: first, effect: !delay 40ms, select: !every 10}]";
    let mut bench = Bench::new(sparse, evenly(200, MS));
    bench.errors = [(14, Error::Hits(0))].into();
    let fault = bench.fault();
    told(&fault, "it hit 1 frame that it had to spare");
    assert_eq!((fault.missed, fault.collateral, fault.slow), (0, 1, 0));
    bench.errors = [(19, Error::Spares(0))].into();
    told(&bench.fault(), "it spared 1 frame that it had to hit");
}

#[test]
fn two_faults_of_one_kind_on_one_flow_are_told_apart() {
    for effect in [
        "!drop ",
        "!duplicate ",
        "{duplicate: {copies: 3, spaced: 5ms}}",
        "!delay 5ms",
        "{delay: {uniform: [4ms, 9ms]}}",
        "{delay: {uniform: [4ms, 9ms], order: kept}}",
    ] {
        let both = format!(
            "faults:
  - {{id: fives, flows: first, effect: {effect}, select: !every 5}}
  - {{id: some, flows: first, effect: {effect}, select: {{probability: 0.2}}}}
"
        );
        let mut bench = Bench::new(&both, evenly(100, MS));
        let faults = bench.conclude().faults;
        faults.iter().for_each(assert_proved);
        assert_eq!(faults[0].observed, 20, "{effect}");
        assert!((5..40).contains(&faults[1].observed), "{faults:#?}");
        // The tenth packet belongs to the first fault.
        bench.errors = [(9, Error::Spares(0))].into();
        let faults = bench.conclude().faults;
        assert!(!faults[0].proved && faults[0].missed == 1, "{faults:#?}");
        assert!(faults[1].proved, "{effect}: {faults:#?}");
    }
}

#[test]
fn what_each_effect_did_wrongly_is_counted() {
    for effect in [
        "!drop ",
        "!duplicate ",
        "{duplicate: {copies: 3, spaced: 5ms}}",
        "!delay 5ms",
        "{delay: {normal: {mean: 20ms, sd: 3ms}}}",
        "{delay: {uniform: [4ms, 9ms], order: kept}}",
        "{set: {ip.ecn: 3}}",
        "{corrupt: {field: ip.id, bits: 2}}",
        "{truncate: 46B}",
        "{reorder: {distance: 2, within: 50ms}}",
    ] {
        let one = format!("faults: [{{id: x, flows: first, effect: {effect}, select: !every 5}}]");
        let wrong = [(9, Error::Spares(0), (1, 0)), (11, Error::Hits(0), (0, 1))];
        for (number, error, expected) in wrong {
            let mut bench = Bench::new(&one, evenly(100, MS));
            bench.errors = [(number, error)].into();
            let fault = bench.fault();
            assert!(!fault.proved);
            assert_eq!(
                (fault.missed, fault.collateral),
                expected,
                "{effect} {error:?}"
            );
        }
    }
    // If no fault drops, a missing frame is the switch's loss.
    let mut bench = Bench::new(DENSE, evenly(100, MS));
    bench.errors = [(11, Error::Loses)].into();
    told(
        &bench.fault(),
        "1 frame did not leave switch sw as required, and no fault explains that",
    );
}

/// Captures begin one after the other: of a frame that passes meanwhile, one capture sees the departure, and none the arrival.
/// A frame with the same bytes comes later, and has to leave once.
#[test]
fn what_passed_before_all_captures_had_begun_is_no_later_frames() {
    let mut sent = evenly(20, MS);
    sent.insert(
        0,
        Sent {
            at_ns: 500 * US,
            ..sent[7]
        },
    );
    let mut bench = Bench::new(DENSE, sent);
    bench.writes.clear();
    bench.write(1, MS, MS);
    bench.unseen = [0].into();
    let fault = bench.fault();
    assert_proved(&fault);
    assert_eq!(fault.observed, 20);
    // Once faults are in force, all captures run: a frame that leaves and has not come is the switch's.
    bench.sent[0].at_ns = MS + 200 * US;
    bench.miscounts = [(0, -1)].into();
    assert!(!bench.fault().proved);
}

/// Frames that ingress drops reach no egress, and are not counted there.
#[test]
fn drops_in_ingress_and_in_egress_are_told_apart() {
    let both = "faults:
  - {id: early, flows: first, effect: !drop , select: !every 5}
  - {id: late, flows: first, effect: !drop , select: !every 3, where: {egress: sw}}
";
    let mut bench = Bench::new(both, evenly(100, MS));
    let faults = bench.conclude().faults;
    faults.iter().for_each(assert_proved);
    let counts = faults.iter().map(|fault| (fault.met, fault.observed));
    assert_eq!(counts.collect::<Vec<_>>(), [(100, 20), (80, 26)]);
    // Egress has to drop the third, and neither fault drops the fourth.
    for (number, error, expected) in [(2, Error::Spares(1), (1, 0)), (3, Error::Hits(1), (0, 1))] {
        bench.errors = [(number, error)].into();
        let faults = bench.conclude().faults;
        assert!(faults[0].proved, "{faults:#?}");
        let [_, late] = &faults[..] else { panic!() };
        assert_eq!((late.missed, late.collateral), expected, "{late:#?}");
    }
}

#[test]
fn faults_that_meet_on_one_packet_are_all_judged() {
    let composed = "faults:
  - {id: twice, flows: first, effect: !duplicate , select: !every 2}
  - {id: late, flows: first, effect: !delay 10ms, select: !every 3}
  - {id: later, flows: first, effect: !delay 5ms, select: !every 4}
  - {id: lost, flows: first, effect: !drop , select: !every 5}
";
    let mut bench = Bench::new(composed, evenly(120, MS));
    let faults = bench.conclude().faults;
    faults.iter().for_each(assert_proved);
    assert_eq!(
        faults
            .iter()
            .map(|fault| fault.observed)
            .collect::<Vec<_>>(),
        [60, 40, 30, 24]
    );
    // Both faults hit the twelfth, which is doubled and delayed; then only one of them does.
    bench.errors = [(11, Error::Spares(1))].into();
    let faults = bench.conclude().faults;
    let missed: Vec<u64> = faults.iter().map(|fault| fault.missed).collect();
    assert_eq!(missed, [0, 1, 0, 0], "{faults:#?}");
}

const STEP: &str = "timeline: [{name: storm, at: 50ms, for: 50ms}]
faults: [{id: x, flows: first, effect: EFFECT, select: !every 3, during: storm}]
";

/// Ten frames come while each write is under way: whichever of them the epoch begins with, the run is proved.
#[test]
fn frames_at_a_boundary_are_judged_by_the_split_that_fits() {
    for effect in [
        "!drop ",
        "!duplicate ",
        "{duplicate: {copies: 3, spaced: 5ms}}",
        "!delay 5ms",
        "{delay: {uniform: [4ms, 9ms]}}",
        "{delay: {uniform: [4ms, 9ms], order: kept}}",
    ] {
        for (begin, end) in [(40, 90), (45, 95), (50, 99), (41, 98)] {
            let mut bench = Bench::new(&STEP.replace("EFFECT", effect), evenly(150, MS));
            // Frame n comes at (n + 2) ms.
            let first = bench.write(2, 42 * MS - 500 * US, 52 * MS - 500 * US);
            let last = bench.write(3, 92 * MS - 500 * US, 102 * MS - 500 * US);
            bench.begins = [(first, begin), (last, end)].into();
            let fault = bench.fault();
            assert_proved(&fault);
            assert_eq!(
                fault.observed,
                (end - begin) as u64 / 3,
                "{effect} {begin} {end}"
            );
            assert!(fault.boundary > 0 && fault.boundary <= 20, "{fault:#?}");
        }
    }
}

/// While an epoch is written only frames come that no fault looks at: it makes no difference which epoch they met.
#[test]
fn a_boundary_without_frames_of_the_fault_leaves_nothing_open() {
    let mut sent = evenly(150, MS);
    for number in (36..55).chain(85..105) {
        sent[number].dport = 1002;
    }
    let mut bench = Bench::new(&STEP.replace("EFFECT", "!drop "), sent);
    let first = bench.write(2, 42 * MS - 500 * US, 52 * MS - 500 * US);
    let last = bench.write(3, 92 * MS - 500 * US, 102 * MS - 500 * US);
    bench.begins = [(first, 45), (last, 95)].into();
    let conclusion = bench.conclude();
    let fault = &conclusion.faults[0];
    assert_proved(fault);
    assert_eq!((fault.met, fault.observed, fault.boundary), (30, 10, 0));
    assert_eq!(conclusion.flows["every"].lost, 10);
}

/// Every packet is delayed: the frames fit any beginning of the epoch, and the counter decides.
#[test]
fn a_delay_of_every_packet_may_begin_and_end_anywhere_at_a_boundary() {
    let always = STEP
        .replace("EFFECT", "!delay 20ms")
        .replace("!every 3", "always");
    for (begin, end) in [(40, 90), (45, 95), (50, 99)] {
        let mut bench = Bench::new(&always, evenly(150, MS));
        let first = bench.write(2, 42 * MS - 500 * US, 52 * MS - 500 * US);
        let last = bench.write(3, 92 * MS - 500 * US, 102 * MS - 500 * US);
        bench.begins = [(first, begin), (last, end)].into();
        let fault = bench.fault();
        assert_proved(&fault);
        assert_eq!(fault.observed, (end - begin) as u64);
    }
}

/// More frames come while an epoch is written than there are distinguishable readings: the result reports that.
#[test]
fn a_boundary_of_thousands_of_frames_is_followed_or_refused() {
    let cases = [
        (300, "0.01", true),
        (3000, "0.01", true),
        (2500, "0.00001", false),
    ];
    for (frames, probability, is_followed) in cases {
        let select = format!("{{probability: {probability}}}");
        let step = STEP
            .replace("EFFECT", "!drop ")
            .replace("!every 3", &select);
        let gap = 100 * MS / (frames as u64 + 100);
        let mut bench = Bench::new(&step, evenly(frames + 100, gap));
        let (sent, confirmed) = (MS + 10 * gap, MS + u64::from(frames) * gap);
        let first = bench.write(2, sent, confirmed);
        bench.begins = [(first, 150)].into();
        let fault = bench.fault();
        if is_followed {
            assert_proved(&fault);
        } else {
            let why = "not judged: more frames arrived while an epoch was written";
            told(&fault, why);
        }
    }
}

/// A frame that fits no split is an error, also between the sending and the confirmation.
#[test]
fn an_error_at_a_boundary_is_none_of_the_splits() {
    let mut bench = Bench::new(&STEP.replace("EFFECT", "!drop "), evenly(150, MS));
    let first = bench.write(2, 42 * MS - 500 * US, 52 * MS - 500 * US);
    bench.begins = [(first, 40)].into();
    assert_proved(&bench.fault());
    // Frames that had to be spared.
    for number in [41, 43, 61, 62] {
        for error in [Error::Hits(0), Error::Loses] {
            bench.errors = [(number, error)].into();
            assert!(!bench.fault().proved, "frame {number}: {error:?}");
        }
    }
}

/// A switch that stands still while it is written to processes earlier frames later.
#[test]
fn a_stall_over_a_boundary_does_not_disturb() {
    let mut bench = Bench::new(&STEP.replace("EFFECT", "!drop "), evenly(150, MS));
    bench.stalls = vec![(20 * MS, 60 * MS)];
    let first = bench.write(2, 42 * MS, 61 * MS);
    // The write overtakes all but three of the forty that wait.
    bench.begins = [(first, 22)].into();
    assert_proved(&bench.fault());
}

#[test]
fn frames_that_nothing_tells_apart_are_judged_together() {
    for effect in [
        "!drop ",
        "!duplicate ",
        "{duplicate: {copies: 3, spaced: 5ms}}",
        "!delay 5ms",
        "{delay: {normal: {mean: 20ms, sd: 3ms}}}",
        "{set: {ip.ecn: 3}}",
        "{corrupt: {field: ip.id, bits: 2}}",
    ] {
        let one = format!("faults: [{{id: x, flows: first, effect: {effect}, select: !every 5}}]");
        let mut sent = evenly(100, MS / 10);
        sent.iter_mut().for_each(|sent| sent.marker %= 3);
        let mut bench = Bench::new(&one, sent);
        let fault = bench.fault();
        assert_proved(&fault);
        assert_eq!(fault.observed, 20);
        bench.errors = [(9, Error::Spares(0))].into();
        let fault = bench.fault();
        assert!(!fault.proved && fault.missed == 1, "{effect}: {fault:#?}");
    }
}

/// 46 bytes a millisecond, at rates below and queues beyond which some end.
#[test]
fn rates_are_proved_but_for_what_the_clocks_leave_open() {
    for effect in [
        "{rate: {limit: 200kbit/s, queue: 61ms}}",
        "{police: {rate: 200kbit/s, burst: 2kB}}",
    ] {
        let one = format!("faults: [{{id: x, flows: first, effect: {effect}}}]");
        let mut bench = Bench::new(&one, evenly(400, MS));
        let fault = bench.fault();
        assert_proved(&fault);
        assert_eq!(fault.observed, 400, "{effect}");
        // The lateness of frames that passed is reported for both; a policer holds nothing, so no plan bounds it.
        let holds = effect.contains("queue");
        assert!(fault.latest_ns.is_some(), "{effect}");
        assert_eq!(fault.beyond.is_some(), holds, "{effect}");
        assert_eq!(fault.lateness_bound_ns.is_some(), holds, "{effect}");
        // A frame that had to wait, or had space, is lost; and a frame that was beyond the queue has left.
        bench.errors = [(9, Error::Loses)].into();
        told(
            &bench.fault(),
            "1 frame did not leave switch sw as required",
        );
    }
    let slow = "faults: [{id: x, flows: first, effect: {rate: {limit: 200kbit/s, queue: 61ms}}}]";
    let mut bench = Bench::new(slow, evenly(60, MS));
    bench.errors = [(30, Error::Spares(0))].into();
    told(&bench.fault(), "it spared 1 frame that it had to hit");
}

#[test]
fn a_copy_that_leaves_when_its_frame_is_decided_is_told() {
    let mut bench = Bench::new(DENSE, evenly(2_000, MS));
    bench.errors = [(501, Error::RepeatsLate)].into();
    let fault = bench.fault();
    told(&fault, "1 frame left switch sw");
}

#[test]
fn any_loss_makes_the_run_unproved() {
    let mut bench = Bench::new(DENSE, evenly(20, MS));
    bench.unrecorded = [(4, 2)].into();
    told(
        &bench.fault(),
        "the capture at port 4 of switch sw lost at least 2 frames: the recorder was too slow",
    );
    let mut bench = Bench::new(DENSE, evenly(20, MS));
    for (port, by, why) in [
        (
            Some(1),
            Loser::ReceiveRing,
            "1 frame was lost in the receive ring of port 1 of switch sw: the switch was too slow",
        ),
        (
            Some(1),
            Loser::Transmit,
            "1 frame could not be sent by port 1 of switch sw: the link was too slow",
        ),
        (
            None,
            Loser::Queue,
            "1 frame was lost in a full queue of switch sw",
        ),
    ] {
        bench.losses = vec![Loss {
            since_ns: None,
            switch: "sw".to_owned(),
            port,
            frames: 1,
            by,
        }];
        told(&bench.fault(), why);
    }
}

#[test]
fn where_frames_are_missing_from_some_time_on_a_fault_is_unproved_from_then_on() {
    let every = "faults: [{id: x, flows: first, effect: !drop , select: !every 10}]";
    let mut bench = Bench::new(every, evenly(4_000, MS));
    bench.losses = vec![Loss {
        since_ns: Some(3_000 * MS),
        switch: "sw".to_owned(),
        port: Some(1),
        frames: 7,
        by: Loser::Recorder,
    }];
    // Later frames may be missing, and count as neither hit nor spared.
    bench.errors = [(3_500, Error::Spares(0)), (2_500, Error::Loses)].into();
    let fault = bench.fault();
    assert!(!fault.proved, "{fault:#?}");
    assert_eq!(fault.unproved_from_ns, Some(3_000 * MS));
    // Frames that came a horizon before it.
    assert!((150..=200).contains(&fault.observed), "{fault:#?}");
    assert_eq!((fault.missed, fault.collateral), (0, 0));
    told(
        &fault,
        "unproved from 3.0 s on: the capture at port 1 of switch sw lost at least 7 frames: the recorder was too slow; until then it hit \
         what it had to",
    );
    bench.errors = [(509, Error::Spares(0))].into();
    let fault = bench.fault();
    assert_eq!((fault.missed, fault.collateral), (1, 0), "{fault:#?}");
    told(&fault, "until then it missed 1");
}

#[test]
fn a_fault_that_hits_nothing_fails_with_the_reason() {
    let cases = [
        (
            "{id: x, flows: first, effect: !drop , select: !nth 30}",
            "",
            "it selects packet 30 of a flow, but saw only 20 in all",
        ),
        (
            "{id: x, flows: second, effect: !drop }",
            "",
            "no packet of its flows arrived while it was armed",
        ),
        (
            "{id: x, flows: first, effect: !drop , select: {probability: 0.0001}}",
            "",
            "it selected none of the 20 packets that it saw; on average it would have selected 0.00",
        ),
        (
            "{id: x, flows: first, effect: !drop , during: late}",
            "timeline: [{name: late, at: 10s}]\n",
            "the run ended before its step started, 10s after the start",
        ),
    ];
    for (fault, timeline, why) in cases {
        let rest = format!("{timeline}faults: [{fault}]\n");
        told(&Bench::new(&rest, evenly(20, MS)).fault(), why);
        // Unless the file expects this.
        let meant = format!("{rest}expect: [fault.x.fired == 0]\n");
        assert_proved(&Bench::new(&meant, evenly(20, MS)).fault());
    }
}

/// Reasons for a switch that may be right or wrong, on a machine that stalled.
const INDISTINCT: [&str; 2] = [
    "every frame that it held left at least",
    "took as long as if it had hit them",
];

fn effects() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "!drop ",
        "!duplicate ",
        "{duplicate: {copies: 3, spaced: 5ms}}",
        "!delay 3ms",
        "observe",
        "{set: {ip.ecn: 3, ip.ttl: 7}}",
        "{corrupt: {field: ip.ttl, xor: 1}}",
    ])
}

fn selections() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "always",
        "!every 3",
        "!nth 7",
        "{probability: 0.3}",
        "{gilbert_elliott: {to_bad: 0.1, to_good: 0.3}}",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever frames come, alike or not, whenever the machine stalls, and wherever the writes fall: a switch that does
    /// what the model says is proved, and one that errs on one frame is not.
    #[test]
    fn what_is_right_is_proved_and_what_is_wrong_is_not(
        faults in prop::collection::vec((effects(), selections()), 1..4),
        gaps in prop::collection::vec(10 * US..2 * MS, 60..120),
        // One in `alike` frames equals another.
        alike in 1_u32..200,
        stall in (0..60 * MS, 0..50 * MS),
        write in (0_usize..40, 0_usize..8, 0_usize..8),
        wrong in (0_usize..60, any::<bool>()),
    ) {
        let listed: String = faults
            .iter()
            .enumerate()
            .map(|(number, (effect, select))| {
                format!("  - {{id: f{number}, flows: first, effect: {effect}, select: {select}, during: storm}}\n")
            })
            .collect();
        // Contradictions are refused before a run: then there is nothing to prove.
        let expect: String = (0..faults.len()).map(|n| format!("  - fault.f{n}.fired == 0\n")).collect();
        let rest = format!("timeline: [{{name: storm, at: 1ms}}]\nfaults:\n{listed}expect:\n{expect}");
        prop_assume!(scenario::load("x.yaml", &format!("weir: 1\nname: x\ntopology: {{star: {{hosts: [a, b, c, s]}}}}\nflows: {{first: {{from: a, to: s}}}}\n{rest}")).is_ok());
        let mut sent = Vec::new();
        let mut at_ns = MS;
        for (gap, marker) in gaps.iter().zip(1..) {
            at_ns += gap;
            sent.push(Sent { at_ns, from: "a", dport: 1001, marker: if marker % alike == 0 { 0 } else { marker } });
        }
        let mut bench = Bench::new(&rest, sent);
        bench.stalls = vec![(stall.0, stall.0 + stall.1)];
        let (first, early, wide) = write;
        let begin = first + early.min(wide);
        let (from, to) = (bench.sent[first].at_ns, bench.sent[first + wide.max(early)].at_ns);
        let storm = bench.write(2, from.saturating_sub(1), to + 1);
        bench.begins = [(0, 0), (storm, begin)].into();
        for fault in bench.conclude().faults {
            // A machine that stalled all the while leaves nothing that tells a right switch from a wrong one.
            let reason = fault.reason.as_deref().unwrap_or_default();
            let is_open = stall.1 > 5 * MS && INDISTINCT.iter().any(|why| reason.contains(why));
            prop_assert!(fault.proved || is_open, "{:#?}", fault);
            prop_assert_eq!((fault.missed, fault.collateral), (0, 0), "{:#?}", fault);
        }
        // An error on a frame that is like no other, and neither at the boundary nor hidden by a stall, is found.
        bench.stalls.clear();
        let (number, spare) = wrong;
        let number = number.max(first + 9);
        let clean = bench.conclude().faults;
        let error = if spare { Error::Spares(0) } else { Error::Hits(0) };
        bench.errors = [(number, error)].into();
        let erred = bench.conclude().faults;
        let is_unlike = alike > 1 && !(number as u32 + 1).is_multiple_of(alike);
        let fired = |faults: &[FaultResult]| faults.iter().map(|f| f.fired).collect::<Vec<_>>();
        // An error of a fault that only counts is invisible: a count that is off by a frame fits a boundary that is.
        let is_seen = faults[0].0 != "observe";
        if is_unlike && is_seen && fired(&clean) != fired(&erred) {
            prop_assert!(erred.iter().any(|fault| !fault.proved), "{:#?}", erred);
        }
    }
}
