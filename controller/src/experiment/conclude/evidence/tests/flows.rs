//! Counts of a flow's frames: sent, received, lost, and their latency.

use proof::FlowCount;

use super::bench::{Bench, Error, MS, US, evenly};
use super::{assert_proved, conclude};
use crate::experiment::conclude::Conclusion;

/// Effects, and which packets each hits: every so many.
type Faults = &'static [(&'static str, u32)];
/// Frames that are received, lost, and received once more.
type Counts = (u64, u64, u64);
/// The frames of each flow are counted, even if they are all equal.
#[test]
fn flows_of_frames_that_nothing_tells_apart_are_counted() {
    const SOON: u64 = 20 * US;
    // The effects and which packets they hit; received, lost, extra of 100; the longest that one took.
    let cases: &[(Faults, bool, Counts, u64)] = &[
        (&[("{set: {ip.ttl: 1}}", 2)], false, (100, 0, 0), SOON),
        (
            &[("{corrupt: {field: ip.id, bits: 2, checksums: mended}}", 3)],
            false,
            (100, 0, 0),
            SOON,
        ),
        (&[("{truncate: 46B}", 2)], false, (100, 0, 0), SOON),
        (&[("{set: {ipv6.hlim: 1}}", 2)], true, (100, 0, 0), SOON),
        (
            &[("{set: {ipv6.hlim: 1}}", 2), ("!drop ", 5)],
            true,
            (80, 20, 0),
            SOON,
        ),
        (&[("!drop ", 2)], false, (50, 50, 0), SOON),
        (
            &[("{set: {ip.ttl: 1}}", 2), ("!drop ", 5)],
            false,
            (80, 20, 0),
            SOON,
        ),
        (
            &[("!duplicate ", 3), ("!drop ", 2)],
            false,
            (50, 50, 17),
            SOON,
        ),
        (
            &[("{set: {ip.ttl: 1}}", 2), ("!duplicate ", 4)],
            false,
            (100, 0, 25),
            SOON,
        ),
        (
            &[("!delay 10500us", 3)],
            false,
            (100, 0, 0),
            10_500 * US + SOON,
        ),
        (
            &[
                ("{set: {ip.ttl: 1}}", 2),
                ("!delay 10500us", 3),
                ("!drop ", 7),
            ],
            false,
            (86, 14, 0),
            10_500 * US + SOON,
        ),
    ];
    for (faults, is_ipv6, counts, longest_ns) in cases {
        let flow = if *is_ipv6 { "six" } else { "first" };
        let faults = faults.iter().enumerate().map(|(number, (effect, every))| {
            format!(
                "  - {{id: x{number}, flows: {flow}, effect: {effect}, select: !every {every}}}\n"
            )
        });
        let text = format!("faults:\n{}", faults.collect::<String>());
        for is_alike in [true, false] {
            let mut sent = evenly(100, MS);
            if is_alike {
                sent.iter_mut().for_each(|sent| sent.marker = 7);
            }
            let mut bench = Bench::new(&text, sent);
            bench.is_ipv6 = *is_ipv6;
            let conclusion = bench.conclude();
            conclusion.faults.iter().for_each(assert_proved);
            let counted = &conclusion.flows[flow];
            let FlowCount {
                received,
                lost,
                extra,
                ..
            } = counted;
            assert_eq!((*received, *lost, *extra), *counts, "{text}");
            let longest = (counted.sent, counted.longest_ns);
            assert_eq!(longest, (100, *longest_ns), "{text}");
            // A frame that the switch loses counts as lost, unless the copy of another frame may be that frame.
            if !is_alike || counts.2 == 0 {
                bench.errors = [(0, Error::Loses)].into();
                let lost = bench.conclude().flows[flow].lost;
                assert_eq!(lost, counts.1 + 1, "{text}");
            }
        }
    }
}

/// Flows are counted until the end of the run, even if only the ports of their hosts are recorded.
#[test]
fn flows_are_counted_by_the_ports_of_their_hosts_alone() {
    let fault = "faults:\n  - {id: x, flows: first, effect: drop, select: {every: 2}}\n";
    let mut bench = Bench::new(fault, evenly(100, MS));
    let end_ns = 2_000 * MS;
    bench.write(0, end_ns, end_ns);
    let all = bench.conclude();
    let (evidence, recordings) = bench.evidence();
    let topology = &bench.planned.scenario.topology;
    let unseen = topology.next_hop("sw", "c").map(|port| port.number);
    let mut seen = recordings.into_vec();
    seen.retain(|(port, _)| Some(*port) != unseen);
    let some = conclude(&bench.planned, &evidence, &seen);
    assert_eq!(all.flows["first"], some.flows["first"]);
    // A flow that may have come from `c` is not counted.
    assert!(all.flows.contains_key("every") && !some.flows.contains_key("every"));
    let carried = |conclusion: &Conclusion| {
        let mut all = conclusion.throughput.iter();
        let (_, first) = all
            .find(|(name, _)| name == "first")
            .expect("it is followed");
        let frames: u64 = first.received.iter().map(|bin| bin.packets).sum();
        (frames, first.bin_ns * first.received.len() as u64)
    };
    let (frames, length_ns) = carried(&all);
    assert_eq!(frames, 50);
    assert!(length_ns < 200 * MS, "{length_ns}");
    let (frames, length_ns) = carried(&some);
    assert_eq!(frames, 50);
    assert!(
        (end_ns..end_ns + 100 * MS).contains(&length_ns),
        "{length_ns}"
    );
}
