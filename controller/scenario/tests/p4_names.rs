//! The plan's entries against the P4 text that they are written into: same tables, actions, parameters, numbers.

use std::collections::{BTreeMap, BTreeSet};

use scenario::model::Direction;
use scenario::plan::DUPLICATE_GROUP;
use scenario::{Plan, TargetModel, load, plan};

const FAULT: &str = include_str!("../../../p4src/common/fault.p4");
const FORWARD: &str = include_str!("../../../p4src/common/forward.p4");
const TYPES: &str = include_str!("../../../p4src/common/types.p4");
const MAIN: &str = include_str!("../../../p4src/psa/main.p4");
const DECIDE: &str = include_str!("../../../p4src/common/decide.p4");

/// One fault for each way to select.
const EVERY_SELECTION: &str = "
weir: 1
name: all
topology: {star: {hosts: [a, b]}}
flows: {f: {from: a, to: b}}
faults:
  - {id: always, flows: f, effect: {delay: 1ms}}
  - {id: nth, flows: f, effect: duplicate, select: {nth: 3}}
  - {id: every, flows: f, effect: drop, select: {every: 5}}
  - {id: probability, flows: f, effect: drop, select: {probability: 0.1}}
  - {id: chain, flows: f, effect: drop, select: {gilbert_elliott: {to_bad: 0.1, to_good: 0.2}}}
";

fn planned() -> Plan {
    let scenario = load("all.yaml", EVERY_SELECTION).unwrap_or_else(|error| panic!("{error}"));
    plan(&scenario, &TargetModel::EMBEDDED).unwrap_or_else(|error| panic!("{error}"))
}

/// Actions of a P4 text and the names of their parameters.
fn actions(p4: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let declared = p4.split("action ").skip(1);
    let parsed = declared.filter_map(|text| {
        let (name, rest) = text.split_once('(')?;
        let (parameters, _) = rest.split_once(')')?;
        let names = parameters
            .split(',')
            .filter_map(|parameter| parameter.split_whitespace().last());
        Some((name, names.collect()))
    });
    parsed.collect()
}

#[test]
fn actions_have_exactly_the_parameters_that_entries_give() {
    let declared: BTreeMap<_, _> = [FAULT, FORWARD].into_iter().flat_map(actions).collect();
    let plan = planned();
    let mut seen = BTreeSet::new();
    for entry in plan.switches.iter().flat_map(|switch| &switch.entries) {
        let name = entry.action.name.rsplit('.').next().unwrap();
        let given: BTreeSet<&str> = entry
            .action
            .params
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(declared.get(name), Some(&given), "{}", entry.action.name);
        let control = entry.table.split('.').next().unwrap();
        assert!(MAIN.contains(&format!("control {control}(")), "{control}");
        seen.insert(name.to_owned());
    }
    let expected = [
        "always",
        "every",
        "gilbert_elliott",
        "multicast",
        "nth",
        "probability",
        "unicast",
    ];
    assert_eq!(seen, expected.map(str::to_owned).into());
    let (table, call) = Plan::set_epoch(Direction::Egress, 3);
    assert_eq!(
        (table.as_str(), call.name.as_str()),
        (
            "SwitchEgress.timeline.epoch",
            "SwitchEgress.timeline.set_epoch"
        )
    );
    assert_eq!(declared.get("set_epoch"), Some(&BTreeSet::from(["epoch"])));
}

#[test]
fn keys_and_numbers_agree() {
    let plan = planned();
    for field in plan
        .switches
        .iter()
        .flat_map(|switch| &switch.entries)
        .flat_map(|entry| &entry.key)
    {
        let declared = [FAULT, FORWARD]
            .iter()
            .any(|p4| p4.contains(&format!("{}:", field.field)));
        assert!(declared, "{} is no key", field.field);
    }
    assert!(TYPES.contains(&format!("DUPLICATE_GROUP = {DUPLICATE_GROUP};")));
    for (name, effect) in [("DROP", 1), ("DELAY", 2), ("DUPLICATE", 3)] {
        assert!(FAULT.contains(&format!("EFFECT_{name} = {effect};")));
    }
    let decide = DECIDE.to_uppercase();
    for round in ["9E3779B9", "7F4A7C15", "F39CC060"] {
        assert!(decide.contains(round), "{round}");
    }
}
