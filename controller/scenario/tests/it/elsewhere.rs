//! What of a scenario has no effect on switches that run already.

use scenario::{file::elsewhere, load};

const TEXT: &str = "\
weir: 1
name: shared
topology: {star: {hosts: [a, b]}}
workload: {idle: {for: 10s}}
probes:
  port: {from: a, tcp: \"b:80\"}
flows:
  f: {from: a, to: b}
faults:
  - {id: some, flows: f, effect: drop, select: {every: 4}}
limits: {time: 20s, disk: 1GB, hits: 5}
captures: all
abort_if: [fault.some.fired > 10]
expect: [fault.some.fired > 0]
";

fn told(text: &str) -> String {
    let scenario = load("s.yaml", text).unwrap();
    match elsewhere::check(&scenario) {
        Ok(told) | Err(told) => told
            .0
            .iter()
            .map(|found| found.render(&scenario.source()))
            .collect(),
    }
}

#[test]
fn sections_without_an_effect_are_told() {
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!(told(TEXT));
    });
    let scenario = load("s.yaml", TEXT).unwrap();
    let ignored = ["workload", "probes", "limits.disk", "captures", "expect"];
    assert_eq!(elsewhere::ignored(&scenario), ignored);
}

#[test]
fn a_file_of_which_everything_has_an_effect_is_told_nothing() {
    let sections = TEXT.split_inclusive('\n');
    let others = |line: &&str| {
        !["workload", "probes", "  port", "captures", "expect"]
            .iter()
            .any(|section| line.starts_with(section))
    };
    let text: String = sections.filter(others).collect();
    let text = text.replace(", disk: 1GB", "");
    assert_eq!(told(&text), "");
    // A switch sums for these workers, whoever starts them.
    let training =
        "workload: {training: {server: b, workers: [a], iterations: 1, aggregate_on: sw}}\n";
    let text = text.replace("faults:\n", "").replace(
        "  - {id: some, flows: f, effect: drop, select: {every: 4}}\n",
        training,
    );
    let text = text.replace("abort_if: [fault.some.fired > 10]\n", "");
    assert_eq!(told(&text), "");
    let text = text.replace(", aggregate_on: sw", "");
    assert!(told(&text).contains("`workload` has no effect"));
}

#[test]
fn conditions_on_probes_would_never_hold() {
    let guarded = TEXT.replace("fault.some.fired > 10", "probe.port.failures > 3");
    let awaited = format!("{TEXT}timeline:\n  - {{name: late, on: probe.port.count > 3}}\n");
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!([told(&guarded), told(&awaited)].join("\n"));
    });
}
