//! `weir route`: as docs/planning.md shows it, what machines read, and what has no plan.

use serde_json::Value;

use crate::leftovers::Watched;
use crate::support::*;

fn route(topology: &str, trainings: &str, more: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("network.yaml"), topology).unwrap();
    std::fs::write(folder.path().join("trainings.yaml"), trainings).unwrap();
    let args = [&["route", "network.yaml", "trainings.yaml"], more].concat();
    Watched::weir(folder.path(), &args).run()
}

fn shipped(name: &str) -> String {
    std::fs::read_to_string(repository("testbeds/topologies").join(name)).unwrap()
}

#[test]
fn the_page_shows_what_the_command_says() {
    let finished = route(
        &shipped("grid-example.yaml"),
        &shipped("grid-example-trainings.yaml"),
        &[],
    );
    finished.expect_code(PASSED);
    let page = std::fs::read_to_string(repository("docs/planning.md")).unwrap();
    let mut blocks = page.split("```");
    let shown = blocks.find(|block| block.contains("training, 8 workers, by grid"));
    let shown = shown.unwrap().trim_matches('\n');
    assert!(finished.stdout.starts_with(shown), "{}", finished.stdout);
}

/// Two pairs of leaves, each with workers and their server, below the same two spines.
const NETWORK: &str = "\
switches: [l1, l2, l3, l4, p1, p2]
hosts: [a1, a2, as, b1, b2, bs]
rate: 10Gbit/s
links:
  - [a1, l1]
  - [a2, l1]
  - [as, l2]
  - [b1, l3]
  - [b2, l3]
  - [bs, l4]
  - [l1, p1]
  - [l1, p2]
  - [l2, p1]
  - [l2, p2]
  - [l3, p1]
  - [l3, p2]
  - [l4, p1]
  - [l4, p2]
";

const TWO: &str = "\
weir-trainings: 1
trainings:
  a: {server: as, workers: [a1, a2]}
  b: {server: bs, workers: [b1, b2]}
";

/// Spines that frames or answers of a training pass, as the report has them.
fn spines(training: &Value) -> Vec<String> {
    let plan = &training["plan"];
    let mut all: Vec<String> = Vec::new();
    let mut add = |value: &Value| {
        let names = value.as_array().into_iter().flatten();
        all.extend(names.filter_map(Value::as_str).map(str::to_owned));
    };
    for part in plan["parts"].as_array().unwrap() {
        add(&part["up"]);
        for member in part["members"].as_array().unwrap() {
            add(&member["way"]);
        }
    }
    for answers in plan["answers"].as_array().unwrap() {
        answers["tree"]
            .as_array()
            .unwrap()
            .iter()
            .for_each(&mut add);
    }
    all.retain(|name| name.starts_with('p'));
    all.sort();
    all.dedup();
    all
}

#[test]
fn robust_plans_share_no_spine_and_say_nothing_that_is_not_known() {
    let finished = route(NETWORK, TWO, &["--robust", "--json"]);
    finished.expect_code(PASSED);
    let report = finished.json();
    assert_eq!(report["robust"]["worst"], 1);
    let trainings = report["trainings"].as_array().unwrap();
    for training in trainings {
        let bound = training["plan"].get("bound_bps");
        assert!(bound.is_none_or(Value::is_f64), "{training}");
    }
    let [a, b] = [0, 1].map(|place| spines(&trainings[place]));
    assert!(a.len() == 1 && b.len() == 1 && a != b, "{a:?} {b:?}");
}

#[test]
fn trainings_at_one_server_share_what_it_takes_in() {
    let two = "\
weir-trainings: 1
trainings:
  a: {server: as, workers: [a1], ingress: 1Gbit/s}
  b: {server: as, workers: [a2], ingress: 1Gbit/s}
";
    let finished = route(NETWORK, two, &["--json"]);
    let report = finished.json();
    let rates: f64 = report["trainings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|training| training["plan"]["rate_bps"].as_f64())
        .sum();
    assert!(rates <= 1e9, "{report}");
}

#[test]
fn what_has_no_plan_says_why() {
    let several = "weir-trainings: 1\ntrainings: {a: {server: [as, bs], workers: [a1]}}\n";
    let finished = route(NETWORK, several, &[]);
    finished.expect_code(ERROR);
    assert!(
        finished.stdout.contains("`--by inart`"),
        "{}",
        finished.stdout
    );
    for (workers, line, hint) in [
        ("8", "3:", "workers: {count: 8}"),
        ("{count: 8}", "3:", "unless its `slots` says more"),
        ("[l1]", "`l1` is a switch", ""),
    ] {
        let text =
            format!("weir-trainings: 1\ntrainings:\n  a: {{server: as, workers: {workers}}}\n");
        let finished = route(NETWORK, &text, &[]);
        finished.expect_code(ERROR);
        assert!(finished.stderr.contains(line), "{}", finished.stderr);
        assert!(finished.stderr.contains(hint), "{}", finished.stderr);
    }
}
