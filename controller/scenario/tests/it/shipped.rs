//! The scenarios that weir ships: they load without a warning, and their plans say what the files ask for.

use std::collections::BTreeSet;

use p4lang::runtime::Match;
use scenario::model::Direction;
use scenario::model::decision::{self, Draws};
use scenario::model::expect::{Metric, Metrics};
use scenario::model::topology::Topology;
use scenario::outcome::evaluate;
use scenario::{Plan, Scenario, TargetModel, load, plan};

const REDIS: &str = include_str!("../../../../testbeds/scenarios/redis-get-loss.yaml");
const TRAINING: &str = include_str!("../../../../testbeds/scenarios/training-faults.yaml");

fn made(name: &str, text: &str) -> (Scenario, Plan) {
    let scenario = load(name, text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.warnings.0, []);
    let plan = plan(&scenario, &TargetModel::EMBEDDED).unwrap_or_else(|error| panic!("{error}"));
    (scenario, plan)
}

/// Every file, those of programs that are not ours included.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the scenarios are a folder of files"
)]
fn every_shipped_scenario_is_planned_without_a_warning() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbeds/scenarios");
    let mut count = 0;
    let mut workloads = BTreeSet::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let (file, text) = (
            path.to_str().unwrap(),
            std::fs::read_to_string(&path).unwrap(),
        );
        let given = scenario::Given::named(file, &text, |name| {
            let file = folder.join(name);
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
            Ok((file.display().to_string(), text))
        });
        let scenario = scenario::load_with(file, &text, &given).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(scenario.warnings.0, []);
        plan(&scenario, &TargetModel::EMBEDDED).unwrap_or_else(|error| panic!("{error}"));
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert_eq!(scenario.name, stem, "a scenario is called as its file");
        workloads.extend(scenario::named_workload(file, &text));
        count += 1;
    }
    assert!(count >= 15, "{count}");
    // Each is there for a scenario, and so run by its test.
    let shipped = std::fs::read_dir(folder.join("../workloads")).unwrap();
    let names = shipped.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.ends_with(".yaml"));
    let names: BTreeSet<String> = names.map(|name| format!("../workloads/{name}")).collect();
    assert_eq!(workloads, names);
}

#[test]
fn redis_plan() {
    let (_, plan) = made("redis-get-loss.yaml", REDIS);
    insta::assert_snapshot!(plan);
    insta::assert_snapshot!(
        "redis_plan_json",
        serde_json::to_string_pretty(&plan).unwrap()
    );
}

#[test]
fn training_plan() {
    let (scenario, plan) = made("training-faults.yaml", TRAINING);
    insta::assert_snapshot!(plan);
    assert_eq!(
        scenario.topology.path("w7", "server"),
        Some(vec!["edge", "core"])
    );
    assert!(
        plan.injections
            .iter()
            .all(|point| point.switch == "edge" && point.direction == Direction::Ingress)
    );
}

#[test]
fn the_helper_builds_the_shipped_topology() {
    let (scenario, _) = made("training-faults.yaml", TRAINING);
    assert_eq!(scenario.topology, Topology::training(6, 2));
}

#[test]
fn plans_are_deterministic() {
    for (name, text) in [("r", REDIS), ("t", TRAINING)] {
        let json = |_| serde_json::to_string(&made(name, text).1).unwrap();
        let distinct: BTreeSet<String> = (0..3).map(json).collect();
        assert_eq!(distinct.len(), 1);
    }
}

/// Every (fault, flow) is met at exactly one switch of every path.
#[test]
fn each_packet_meets_each_fault_once() {
    for (name, text) in [("r", REDIS), ("t", TRAINING)] {
        let (scenario, plan) = made(name, text);
        for fault in &scenario.faults {
            for flow in fault.flows.iter().map(|i| &scenario.flows[*i]) {
                for path in &flow.paths {
                    let points = plan
                        .injections
                        .iter()
                        .filter(|p| p.fault == fault.id && p.flow == flow.name);
                    let met = points
                        .filter(|point| path.switches.contains(&point.switch))
                        .count();
                    assert_eq!(
                        met, 1,
                        "{} on {} by {:?}",
                        fault.id, flow.name, path.switches
                    );
                }
            }
        }
    }
}

/// A class that has a protected flow gets no entry, also if a fault acts on another flow of it.
#[test]
fn entries_exclude_protected_packets() {
    let (_, plan) = made("redis-get-loss.yaml", REDIS);
    let switch = plan.switch("sw").unwrap();
    let selects = switch
        .entries
        .iter()
        .filter(|entry| entry.table.ends_with(".select"));
    let acted_on: Vec<usize> = selects
        .map(|entry| match &entry.key[0].value {
            Match::Exact(class) => class.to().unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(!acted_on.is_empty());
    let is_protected = |class: &usize| {
        switch.classes[*class]
            .iter()
            .any(|flow| switch.flows[*flow].protected)
    };
    assert!((0..switch.classes.len()).any(|class| is_protected(&class)));
    assert!(
        !acted_on.iter().any(is_protected),
        "{acted_on:?} {:?}",
        switch.classes
    );
}

fn metric(name: &str) -> Metric {
    name.parse().unwrap()
}

fn good_metrics() -> Metrics {
    [
        ("fault.drop-gets.fired", 25.0),
        ("fault.drop-gets.observed", 25.0),
        ("fault.delay-carts.fired", 100.0),
        ("fault.delay-carts.observed", 100.0),
        ("flow.b-requests.lost", 0.0),
        ("flow.b-answers.lost", 0.0),
        ("client.a.errors", 0.0),
        ("client.b.errors", 0.0),
        ("client.a.set.p90", 20.4e6),
        ("client.a.get.max", 210e6),
        ("client.b.get.p90", 0.9e6),
        ("client.b.p90", 1.1e6),
    ]
    .into_iter()
    .map(|(name, value)| (metric(name), value))
    .collect()
}

#[test]
fn expectations_hold_on_a_good_run() {
    let (scenario, _) = made("redis-get-loss.yaml", REDIS);
    let outcomes = evaluate(&scenario, &good_metrics());
    assert_eq!(outcomes.len(), 10);
    for outcome in outcomes {
        assert!(outcome.passed, "{outcome:?}");
    }
}

#[test]
fn unmet_and_missing_are_told_apart_and_placed() {
    let (scenario, _) = made("redis-get-loss.yaml", REDIS);
    let mut metrics = good_metrics();
    metrics.insert(metric("fault.drop-gets.observed"), 24.0);
    metrics.insert(metric("client.a.set.p90"), 1.5e6);
    metrics.remove(&metric("flow.b-answers.lost"));
    let failed: Vec<_> = evaluate(&scenario, &metrics)
        .into_iter()
        .filter_map(|outcome| outcome.diagnostic)
        .collect();
    let told = failed
        .iter()
        .map(|d| d.render(&scenario.source()))
        .collect::<Vec<_>>()
        .join("\n");
    insta::assert_snapshot!(told);
}

/// A group that finds text is counted by no statistic; its hint is not that of what is measured in any case.
#[test]
fn a_series_without_numbers_says_what_the_command_has_to_print() {
    let text = "weir: 1
name: t
topology: {star: {hosts: [a, b]}}
workload:
  commands:
    - {name: d, host: a, run: x, metrics: {verbs: {regex: '([A-Z]+) ok'}}}
expect:
  - command.d.verbs.count == 2
  - command.d.verbs.max < 3
  - command.d.verbs + 1 == 2
  - command.d.duration.count == 2
  - command.d.exit == 1
";
    let scenario = load("t.yaml", text).unwrap();
    let counts = ["command.d.duration.count", "command.d.exit"];
    let mut metrics: Metrics = counts.map(|name| (metric(name), 0.0)).into();
    let verbs = scenario.expectations[0].metrics().next().unwrap().0.clone();
    metrics.insert(verbs, 0.0);
    let told = evaluate(&scenario, &metrics).into_iter();
    let told = told.map(|outcome| outcome.diagnostic.unwrap().hint.unwrap_or_default());
    let told: Vec<bool> = told.map(|hint| hint.contains("`grep -c`")).collect();
    assert_eq!(told, [true, true, true, false, false]);
    // If the command failed, it had no chance to print them.
    metrics.insert(metric("command.d.failures"), 1.0);
    let first = evaluate(&scenario, &metrics).remove(0).diagnostic.unwrap();
    assert!(first.hint.unwrap().starts_with("command `d` failed"));
}

#[test]
fn a_declared_flow_is_the_sum_of_what_it_was_expanded_to() {
    let text = TRAINING.replace("training.accuracy >= 90%", "flow.updates.lost == 3");
    let (scenario, _) = made("t", &text);
    let metrics: Metrics = [("flow.updates.w6.lost", 1.0), ("flow.updates.w7.lost", 2.0)]
        .map(|(n, v)| (metric(n), v))
        .into();
    assert!(evaluate(&scenario, &metrics).last().unwrap().passed);
}

proptest::proptest! {
    /// A file damaged in one place is accepted or told what is wrong; nothing panics.
    #[test]
    fn damaged_files(at in 0_usize..3000, length in 0_usize..40, splice in "[-a-z0-9:{}\\[\\]!&*'\"#.% \n]{0,8}") {
        for text in [REDIS, TRAINING] {
            let start = at.min(text.len());
            let end = (start + length).min(text.len());
            proptest::prop_assume!(text.is_char_boundary(start) && text.is_char_boundary(end));
            let damaged = format!("{}{splice}{}", &text[..start], &text[end..]);
            if let Ok(scenario) = load("damaged.yaml", &damaged) {
                let _ = plan(&scenario, &TargetModel::EMBEDDED);
            }
        }
    }
}

/// By the model that the switch is held against: 30 rounds of 260 frames from each of two workers.
#[test]
fn the_training_faults_fire_at_least_twenty_times() {
    let (scenario, _) = made("training-faults.yaml", TRAINING);
    let draws = Draws::of_seed(scenario.seed);
    for fault in &scenario.faults {
        let fired: usize = fault
            .flows
            .iter()
            .map(|flow| {
                fault
                    .selection
                    .decisions(&draws, decision::key(fault.key, scenario.flows[*flow].key))
                    .take(30 * 260)
                    .filter(|f| *f)
                    .count()
            })
            .sum();
        assert!(
            (60..600).contains(&fired),
            "{} would fire {fired} times",
            fault.id
        );
        println!("{} fires {fired} times", fault.id);
    }
}

/// parser-gen accepts every switch's flows, and gives them the classes that the plan's entries test.
#[test]
fn the_classifier_uses_the_planned_classes() {
    for (name, text) in [("r", REDIS), ("t", TRAINING)] {
        for switch in made(name, text).1.switches {
            let library = parser_gen::Library::builtin();
            let options = parser_gen::Options::default();
            let generated = parser_gen::generate(&library, &switch.classifier(), &options)
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(generated.classes().sets(), switch.classes);
        }
    }
}
