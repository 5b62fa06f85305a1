//! Scenarios of several tenants, planned for the same switches.

use scenario::{Plan, Scenario, TargetModel, check_together, load, plan, plan_together};

/// A tenant's file: `a` reaches `b` by way of `core` and `edge`.
fn tenant(name: &str, flow: &str, rest: &str) -> Scenario {
    tenant_in(NETWORK, name, flow, rest)
}

/// The same in a network, which has a `routing` perhaps.
fn tenant_in(network: &str, name: &str, flow: &str, rest: &str) -> Scenario {
    let text = format!("weir: 1\nname: {name}\n{network}flows:\n  own: {flow}\n{rest}");
    load(&format!("{name}.yaml"), &text).unwrap_or_else(|error| panic!("{error}"))
}

const NETWORK: &str = "topology:
  switches: [core, edge]
  hosts: [a, b]
  links: [[a, core], [b, edge], [edge, core]]
";

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
        told.contains("faults act in ingress of switch `core`, which has capacity for 1"),
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
        told.contains("capacity for 1") || told.contains("take more than"),
        "{told}"
    );
}

#[test]
fn a_switch_that_another_restarts_is_passed_by() {
    let restart = "faults: [{id: again, effect: {restart: core}}]\n";
    let restarting = tenant("restarting", BOTH, restart);
    let acting = tenant("acting", BOTH, LOSE);
    let alone = plan(&acting, &TargetModel::EMBEDDED).unwrap();
    assert_eq!(points(&[alone]), ["core"]);
    let plans = plan_together(&[&restarting, &acting], &TargetModel::EMBEDDED).unwrap();
    assert_eq!(points(&plans[1..]), ["edge"]);
}

/// In one network what is of both flows takes one way, so no place on it is free of what another protects.
#[test]
fn what_another_protects_is_not_hit_anywhere() {
    let guarding = tenant("guard", BOTH, "protect: [own]\n");
    let acting = tenant("acting", BOTH, LOSE);
    let told = refusal(&[&guarding, &acting], &TargetModel::EMBEDDED);
    assert!(
        told.contains("fault `lose` of acting.yaml may hit flow `own`, which guard.yaml protects"),
        "{told}"
    );
}

#[test]
fn another_network_is_refused_and_both_places_are_named() {
    let one = tenant("one", BOTH, LOSE);
    for (network, place, said) in [
        (
            NETWORK.replace("[a, b]", "[b, a]"),
            "two.yaml:3:1",
            "host `b (10.0.0.1)` instead of `a (10.0.0.1)`",
        ),
        (
            NETWORK
                .replace("hosts: [a, b]", "hosts: [a, b, c]")
                .replace("[b, edge]", "[b, edge], [c, edge]"),
            "two.yaml:3:1",
            "host `c (10.0.0.3)` is additional",
        ),
        (
            NETWORK.replace("[b, edge]", "{ends: [b, edge], rate: 5Mbit/s}"),
            "two.yaml:3:1",
            "link `b–edge` differs",
        ),
        (
            format!("{NETWORK}routing: ecmp\n"),
            "two.yaml:7:1",
            "`routing` differs",
        ),
    ] {
        let two = tenant_in(&network, "two", BOTH, "");
        let found = plan_together(&[&one, &two], &TargetModel::EMBEDDED).unwrap_err();
        let [told] = found.0.as_slice() else {
            panic!("{found}");
        };
        assert!(told.message.contains(said), "{told}");
        assert!(told.to_string().starts_with(place), "{told}");
        let [other] = told.related.as_slice() else {
            panic!("{told}");
        };
        assert_eq!(
            (other.file.as_str(), other.line, other.column),
            ("one.yaml", 3, 1)
        );
        assert!(told.hint.is_some());
    }
    // Where it is written does not matter.
    let moved = format!("# the same\n{NETWORK}");
    let two = tenant_in(&moved, "two", "{from: b, to: a}", LOSE);
    plan_together(&[&one, &two], &TargetModel::EMBEDDED).unwrap();
}
