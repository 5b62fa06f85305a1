//! How many values the frames of a job have: what follows from the links, and which targets sum so many.

use parser_gen::FrameValues;
use scenario::{Scenario, TargetModel, load, plan};

/// A star of two ranks whose links have this MTU.
fn star(mtu: u32, values: &str) -> Scenario {
    let text = format!(
        "weir: 1\nname: frames\ntopology: {{star: {{hosts: [a, b], mtu: {mtu}}}}}\n\
         jobs: {{sums: {{ranks: [a, b]{values}}}}}\nworkload: {{idle: {{for: 1s}}}}\n"
    );
    load("frames.yaml", &text).unwrap_or_else(|error| panic!("{error}"))
}

/// What the program of its switch sums on a target; the message if it is refused.
fn planned(scenario: &Scenario, target: &TargetModel) -> Result<FrameValues, String> {
    let plan = plan(scenario, target).map_err(|error| error.to_string())?;
    Ok(plan.switches[0].aggregates.unwrap())
}

#[test]
fn frames_have_as_many_values_as_links_have_room_for() {
    for (mtu, values) in [
        (576, 64),
        (1075, 64),
        (1076, 256),
        (1500, 256),
        (8243, 256),
        (8244, 2048),
        (9000, 2048),
        (65_535, 2048),
    ] {
        let scenario = star(mtu, "");
        let told = scenario.jobs[0].environment("b");
        assert!(
            told.contains(&("WEIR_VALUES", values.to_string())),
            "{mtu}: {told:?}"
        );
        let sums = planned(&scenario, &TargetModel::EMBEDDED).unwrap();
        assert_eq!(sums.count(), values, "{mtu}");
    }
    for values in FrameValues::ALL {
        let scenario = star(9000, &format!(", values: {}", values.count()));
        assert_eq!(planned(&scenario, &TargetModel::EMBEDDED), Ok(values));
    }
}

/// Where nothing is declared, a chip's programs sum what it has room for, and nobody was told otherwise.
#[test]
fn targets_that_sum_fewer_refuse_what_is_counted_on() {
    let (silent, said) = (star(9000, ""), star(9000, ", values: 2048"));
    assert_eq!(planned(&silent, &TargetModel::TOFINO), Ok(FrameValues::V32));
    assert_eq!(
        planned(&silent, &TargetModel::TOFINO2),
        Ok(FrameValues::V64)
    );
    for (target, most) in [
        (TargetModel::TOFINO, 32),
        (TargetModel::TOFINO2, 64),
        (TargetModel::SIMPLE_SWITCH_GRPC, 256),
        (TargetModel::PSA_SWITCH, 256),
    ] {
        let refused = planned(&said, &target).unwrap_err();
        let told =
            format!("frames of 2048 values for job `sums`, and this target sums at most {most}");
        assert!(refused.contains(&told), "{refused}");
    }
    // Ranks are told a number here, and it would be another one.
    assert!(planned(&silent, &TargetModel::PSA_SWITCH).is_err());
    let small = star(1500, ", values: 32");
    assert_eq!(planned(&small, &TargetModel::TOFINO2), Ok(FrameValues::V32));
}
