//! A training whose gradients are summed where a plan says.

use crate::support::*;
use crate::{run_json, shipped};

/// Bytes of one worker's updates, or of the answers to all: three rounds of 196 frames of values and 64 without, and 64 that
/// end the job.
const STREAM: f64 = (3 * (196 * 1090 + 64 * 66) + 64 * 66) as f64;

#[test]
fn three_switches_sum_a_part_each() {
    let file = "grid-training.yaml";
    if !has_namespaces(file) {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let finished = run_json(folder.path(), &shipped(file));
    finished.expect_code(PASSED);
    let run = finished.json();
    let metric = |name: &str| run["metrics"][name].as_f64().unwrap();
    assert_eq!(metric("training.weights_equal"), 1.0);
    if metric("training.retransmitted_bytes") == 0.0 {
        // One stream of each switch, and one of answers.
        assert_eq!(metric("training.server_link_bytes"), 4.0 * STREAM);
        // s1 has passed on what w4 sent to s2.
        let frames = metric("switch.s2.received") - metric("switch.s2.sent");
        assert_eq!(
            frames,
            3.0 * (3 * 196 + 4 * 64) as f64 - 2.0 * (3 * 196 + 4 * 64) as f64
        );
    }
}

/// What is lost before a switch sums it, and of what it has summed, is sent again, and is in the sum once.
#[test]
fn gradients_are_lost_on_the_ways_of_a_plan() {
    let file = "grid-training.yaml";
    if !has_namespaces(file) {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    // Captures prove what happens at switches that sum nothing: one before w4, one before the server.
    let faults = "\
flows:
  gradients: {from: w4, to: ps, filter: agg.kind == 1}
  sums: {from: w5, to: ps, filter: agg.kind == 2}
faults:
  - {id: lost-before, flows: gradients, where: s0, effect: drop, select: {probability: 3%}}
  - {id: lost-after, flows: sums, where: s4, effect: drop, select: {probability: 10%}}
";
    let mut text = shipped(file);
    for (old, new) in [
        ("\nexpect:\n", &*format!("\n{faults}\nexpect:\n")),
        (
            "  hosts:",
            "    - {name: s0, programmable: false}\n    - {name: s4, programmable: false}\n  hosts:",
        ),
        ("- [w4, s1]", "- [w4, s0]\n    - [s0, s1]"),
        (
            "- {ends: [ps, s3], rate: 9Mbit/s}",
            "- {ends: [ps, s4], rate: 9Mbit/s}\n    - {ends: [s3, s4], rate: 9Mbit/s}",
        ),
        ("{time: 60s}", "{time: 120s}"),
    ] {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    let finished = run_json(folder.path(), &text);
    finished.expect_code(PASSED);
    let run = finished.json();
    assert_eq!(run["metrics"]["training.weights_equal"], 1.0);
    for fault in run["faults"].as_array().unwrap() {
        assert_eq!(fault["proved"], true, "{fault}");
        assert!(fault["fired"].as_u64().unwrap() > 0, "{fault}");
    }
}
