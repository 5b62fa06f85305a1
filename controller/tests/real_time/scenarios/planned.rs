//! A training whose gradients are summed where a plan says.

use super::{run_json, shipped};
use crate::support::*;

/// Bytes of one worker's updates, or of the answers to all: three rounds of 196 frames of values and 64 without, and 64 that
/// end the job.
const STREAM: f64 = (3 * (196 * 1090 + 64 * 66) + 64 * 66) as f64;

#[test]
fn three_switches_sum_a_part_each() {
    let file = "grid-training.yaml";
    if !has_namespaces(file) {
        return;
    }
    let _turn = beside();
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
    let _turn = beside();
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

/// What a run says of each time that gradients were planned again: who was gone, who sums, whether training went on by it.
fn repairs(run: &serde_json::Value) -> Vec<(String, String, bool)> {
    let names = |value: &serde_json::Value| {
        let names = value.as_array().into_iter().flatten();
        let names: Vec<&str> = names.map(|name| name.as_str().unwrap()).collect();
        names.join(" ")
    };
    let repairs = run["repairs"].as_array().unwrap().iter();
    repairs
        .map(|repair| {
            let went_on = repair["resumed_ns"].is_u64();
            (names(&repair["gone"]), names(&repair["sums"]), went_on)
        })
        .collect()
}

#[test]
fn a_spine_dies_and_training_goes_on_by_another_plan() {
    let file = "spine-dies.yaml";
    if !has_namespaces(file) {
        return;
    }
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let finished = run_json(folder.path(), &shipped(file));
    finished.expect_code(PASSED);
    let run = finished.json();
    assert_eq!(repairs(&run), [("left".into(), "right".into(), true)]);
    let (repair, death) = (&run["repairs"][0], &run["disruptions"][0]["times"][0]);
    let at = |value: &serde_json::Value| value.as_u64().unwrap();
    let waited_ms = (at(&repair["resumed_ns"]) - at(&death["asked_ns"])) / 1_000_000;
    println!("from the death of a spine to the first sum by another plan: {waited_ms} ms");
    assert!(waited_ms <= 1_000, "{repair} {death}");
}

/// A spine comes back and is used again; then a rack is cut off, for which there is no plan, until its switch is back.
#[test]
fn switches_that_come_back_are_planned_with_again() {
    let file = "spine-dies.yaml";
    if !has_namespaces(file) {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let mut text = shipped(file);
    let end = text.find("timeline:").unwrap();
    text.truncate(end);
    text = text.replace("iterations: 24", "iterations: 70");
    text.push_str(
        "\
timeline:
  - {name: spine, at: 600ms, for: 2s}
  - {name: rack, at: 5s, for: 500ms}
faults:
  - {id: spine, effect: {restart: left}, during: spine}
  - {id: rack, effect: {restart: rack2}, during: rack}
expect:
  - fault.spine.observed == 1
  - fault.rack.observed == 1
  - training.weights_equal == 1
limits: {time: 120s}
",
    );
    let finished = run_json(folder.path(), &text);
    finished.expect_code(PASSED);
    let run = finished.json();
    let repairs = repairs(&run);
    let gone: Vec<&str> = repairs.iter().map(|(gone, ..)| gone.as_str()).collect();
    assert_eq!(gone, ["left", "", "rack2", ""]);
    let went_on: Vec<bool> = repairs.iter().map(|(.., went_on)| *went_on).collect();
    assert_eq!(went_on, [true, true, false, true], "{}", run["repairs"]);
    let why = run["repairs"][2]["failed"].as_str().unwrap();
    assert!(why.contains("b1"), "{why}");
}
