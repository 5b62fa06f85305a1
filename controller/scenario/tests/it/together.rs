//! Scenarios of several tenants, planned for the same switches.

use scenario::{Plan, Scenario, TargetModel, check_together, load, plan, plan_together};

/// A tenant's file: `a` reaches `b` by way of `core` and `edge`.
fn tenant(name: &str, flow: &str, rest: &str) -> Scenario {
    let text = format!(
        "weir: 1
name: {name}
topology:
  switches: [core, edge]
  hosts: [a, b]
  links: [[a, core], [b, edge], [edge, core]]
flows:
  own: {flow}
{rest}"
    );
    load(&format!("{name}.yaml"), &text).unwrap_or_else(|error| panic!("{error}"))
}

const LOSE: &str = "faults:\n  - {id: lose, flows: own, effect: drop, select: {every: 3}}\n";
const BOTH: &str = "{from: a, to: b, filter: tcp}";

/// Where each scenario's first fault acts.
fn points(plans: &[Plan]) -> Vec<&str> {
    plans
        .iter()
        .map(|plan| plan.injections[0].switch.as_str())
        .collect()
}

fn refusal(scenarios: &[&Scenario], target: &TargetModel) -> String {
    plan_together(scenarios, target).unwrap_err().to_string()
}

#[test]
fn rules_for_the_same_packets_stand_on_two_switches() {
    let tenants = ["one", "two"].map(|name| tenant(name, BOTH, LOSE));
    let all = [&tenants[0], &tenants[1]];
    let alone = all.map(|one| plan(one, &TargetModel::EMBEDDED).unwrap());
    assert_eq!(points(&alone), ["core", "core"]);
    let pairs = [(all[0], &alone[0]), (all[1], &alone[1])];
    assert!(!check_together(&pairs, &TargetModel::EMBEDDED).0.is_empty());

    let plans = plan_together(&all, &TargetModel::EMBEDDED).unwrap();
    let mut at = points(&plans);
    at.sort_unstable();
    assert_eq!(at, ["core", "edge"]);
    assert_eq!(plan_together(&all, &TargetModel::EMBEDDED).unwrap(), plans);
}

#[test]
fn a_third_rule_has_no_switch_left_and_both_rules_are_named() {
    let tenants = ["one", "two", "three"].map(|name| tenant(name, BOTH, LOSE));
    let all: Vec<&Scenario> = tenants.iter().collect();
    let told = refusal(&all, &TargetModel::EMBEDDED);
    assert!(
        told.contains("fault `lose` and fault `lose` of one.yaml may hit the same packet"),
        "{told}"
    );
}

#[test]
fn rules_at_other_times_share_a_switch() {
    let step = |at: &str| {
        format!(
            "timeline:\n  - {{name: s, at: {at}, for: 1s}}\nfaults:\n  - {{id: lose, flows: own, effect: drop, where: core, during: s}}\n"
        )
    };
    let tenants = [
        tenant("one", BOTH, &step("0s")),
        tenant("two", BOTH, &step("2s")),
    ];
    let plans = plan_together(&[&tenants[0], &tenants[1]], &TargetModel::EMBEDDED).unwrap();
    assert_eq!(points(&plans), ["core", "core"]);
}

#[test]
fn units_add_up() {
    let flow = |port: u16| format!("{{from: a, to: b, filter: tcp.dport == {port}}}");
    let tenants = [
        tenant("one", &flow(1), LOSE),
        tenant("two", &flow(2), LOSE),
        tenant("three", &flow(3), LOSE),
    ];
    // Each switch has room for one fault.
    let target = TargetModel::TOFINO;
    let plans = plan_together(&[&tenants[0], &tenants[1]], &target).unwrap();
    let mut at = points(&plans);
    at.sort_unstable();
    assert_eq!(at, ["core", "edge"]);
    let fullest = plans[0].fullest.as_ref().unwrap();
    assert_eq!((fullest.taken, fullest.of, fullest.is_least), (1, 1, true));

    let told = refusal(&[&tenants[0], &tenants[1], &tenants[2]], &target);
    assert!(
        told.contains("faults in ingress of switch `core`, which has room for 1"),
        "{told}"
    );
    assert!(told.contains("together with one.yaml"), "{told}");
}

#[test]
fn what_only_all_of_them_exceed_is_told_with_their_files() {
    let pinned = "faults:\n  - {id: lose, flows: own, effect: drop, select: {every: 3}, where: core}\n  - {id: late, flows: own, effect: drop, select: {every: 2}, where: edge}\n";
    let flow = |port: u16| format!("{{from: a, to: b, filter: tcp.dport == {port}}}");
    let tenants = [
        tenant("one", &flow(1), pinned),
        tenant("two", &flow(2), LOSE),
    ];
    let told = refusal(&[&tenants[0], &tenants[1]], &TargetModel::TOFINO);
    assert!(told.contains("one.yaml"), "{told}");
    assert!(
        told.contains("room for 1") || told.contains("take more than"),
        "{told}"
    );
}

#[test]
fn a_protected_flow_of_another_is_passed_by_elsewhere() {
    // `a2` of the one has the address of `b` of the other.
    let text = "weir: 1
name: guard
topology:
  switches: [core, edge]
  hosts: [a, a2, b]
  links: [[a, core], [a2, core], [b, edge], [edge, core]]
flows:
  ping: {from: a, to: a2, filter: tcp}
protect: [ping]
";
    let guarding = load("guard.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    let acting = tenant("acting", BOTH, LOSE);
    assert_eq!(
        points(&[plan(&acting, &TargetModel::EMBEDDED).unwrap()]),
        ["core"]
    );
    let plans = plan_together(&[&guarding, &acting], &TargetModel::EMBEDDED).unwrap();
    assert_eq!(points(&plans[1..]), ["edge"]);
}
