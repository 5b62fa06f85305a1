//! Which targets have a lease, and what is said of those that have none.

use scenario::{TargetModel, load, plan};

fn text(lease: &str) -> String {
    format!(
        "weir: 1
name: lease
topology: {{star: {{hosts: [a, b]}}}}
flows: {{f: {{from: a, to: b}}}}
faults:
  - {{id: x, flows: f, effect: drop}}
{lease}"
    )
}

#[test]
fn a_target_that_does_not_tell_its_clock_has_no_lease_and_the_plan_says_so() {
    let targets = [
        (
            TargetModel::EMBEDDED,
            "faults end 2s after the controller's last refresh; it refreshes every 500ms",
        ),
        (TargetModel::PSA_SWITCH, "faults end 2s after"),
        (TargetModel::TOFINO, "faults end 2s after"),
        (
            TargetModel::SIMPLE_SWITCH_GRPC,
            "no lease, the controller cannot read this target's clock: faults hold until they are disarmed",
        ),
    ];
    for (target, expected) in targets {
        let scenario = load("lease.yaml", &text("")).unwrap();
        let plan = plan(&scenario, &target).unwrap().to_string();
        assert!(plan.contains(expected), "{plan}");
    }
}

#[test]
fn a_lease_that_is_asked_for_is_refused_where_there_is_none() {
    let text = text("lease: 2s\n");
    let scenario = load("lease.yaml", &text).unwrap();
    let refused = plan(&scenario, &TargetModel::SIMPLE_SWITCH_GRPC).unwrap_err();
    insta::assert_snapshot!(refused.0[0].render(&scenario.source()));
}
