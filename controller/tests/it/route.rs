//! `weir route`: as docs/planning.md shows it, what machines read, and what has no plan.

use serde_json::Value;

use crate::support::leftovers::Watched;
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

/// That a page shows what is printed first.
fn is_on_the_page(finished: &Finished, first: &str) {
    finished.expect_code(PASSED);
    let page = std::fs::read_to_string(repository("docs/planning.md")).unwrap();
    let mut blocks = page.split("```");
    let shown = blocks.find(|block| block.contains(first));
    let shown = shown.unwrap().trim_matches('\n');
    assert!(finished.stdout.starts_with(shown), "{}", finished.stdout);
}

#[test]
fn the_page_shows_what_the_command_says() {
    let (network, trainings) = ("grid-example.yaml", "grid-example-trainings.yaml");
    let finished = route(&shipped(network), &shipped(trainings), &[]);
    is_on_the_page(&finished, "training, 8 workers, by grid");
}

/// GOAT's example, as its paper prints it: 7 → 3 fragments to the server, 17 → 13 over links.
#[test]
fn goat_lets_three_fragments_pass_where_atp_lets_seven() {
    let network = shipped("goat-example.yaml");
    let trainings = shipped("goat-example-trainings.yaml");
    let finished = route(&network, &trainings, &["--by", "goat"]);
    is_on_the_page(&finished, "training, 4 workers, by goat");

    let report = route(&network, &trainings, &["--by", "goat", "--json"]).json();
    let plan = &report["trainings"][0]["plan"];
    let passes = plan["traffic"]["passes"].as_array().unwrap();
    let counts: Vec<_> = passes
        .iter()
        .map(|passes| {
            let count = |key: &str| passes[key].as_u64().unwrap();
            let by = passes["by"].as_str().unwrap();
            (
                by,
                passes["order"].as_str(),
                count("to_server"),
                count("from_switches"),
            )
        })
        .collect();
    assert_eq!(
        counts,
        [
            ("goat", None, 3, 13),
            ("atp", Some("one after another"), 7, 17),
            ("atp", Some("in step"), 3, 9),
            ("raw", None, 12, 24),
        ]
    );
    assert_eq!(plan["traffic"]["gap"], 0.0);
    // Four links that workers have carry three fragments each, the others 13.
    assert_eq!(plan["traffic"]["link_bytes"], 25e3);
    let parts = plan["parts"].as_array().unwrap();
    let mut on: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["on"].as_str())
        .collect();
    on.sort_unstable();
    assert_eq!(on, ["s1", "s2", "s3"]);
}

/// Of three that are waited for, the server has each fragment yet, and the fourth's are gone. By rank w1 is first: w4 sends
/// three fragments to the three switches over 1, 2 and 2 links, of which 2 lead away from switches.
#[test]
fn goat_does_not_wait_for_the_last() {
    let trainings = "\
weir-trainings: 1
trainings:
  training:
    {server: ps, workers: \"w*\", gradient: 3kB, fragments: 3, arrivals: [w3, \"*\"], wait_for: 3}
";
    let finished = route(
        &shipped("goat-example.yaml"),
        trainings,
        &["--by", "goat", "--json"],
    );
    finished.expect_code(PASSED);
    let traffic = &finished.json()["trainings"][0]["plan"]["traffic"];
    assert_eq!(
        traffic["arrivals"],
        serde_json::json!(["w3", "w1", "w2", "w4"])
    );
    let goat = &traffic["passes"][0];
    assert_eq!(
        (&goat["to_server"], &goat["from_switches"]),
        (&3.into(), &11.into())
    );
}

/// ψ of 2, 3 and 4 workers is 4, 9/4 and 16/9 rounds: without the last, who is there after 900 ms, they are done soonest.
#[test]
fn goat_says_how_many_had_best_be_waited_for() {
    let trainings = "\
weir-trainings: 1
trainings:
  training:
    server: ps
    workers: \"w*\"
    gradient: 3kB
    fragments: 3
    learning: {loss: 1, epsilon: 1, variance: 1}
    past_rounds: [[1ms, 1ms, 1ms, 900ms]]
";
    let network = shipped("goat-example.yaml");
    let report = route(&network, trainings, &["--by", "goat", "--json"]).json();
    let fastest = &report["trainings"][0]["plan"]["traffic"]["fastest"];
    assert_eq!(
        (&fastest["workers"], &fastest["rounds"]),
        (&3.into(), &2.25.into())
    );
    // A gradient of 3 kB takes some tens of microseconds.
    let round_ns = fastest["round_ns"].as_f64().unwrap();
    assert!((1e6..1.2e6).contains(&round_ns), "{report}");
    let finished = route(&network, trainings, &["--by", "goat"]);
    let told = "  the model learns fastest if a round waits for the first 3: ";
    assert!(finished.stdout.contains(told), "{}", finished.stdout);
}

/// GRID's example, of which 3 Gbit/s is the best.
#[test]
fn r_gria_draws_the_same_plan_each_time_and_exceeds_nothing() {
    let (network, trainings) = ("grid-example.yaml", "grid-example-trainings.yaml");
    let plan = || {
        route(
            &shipped(network),
            &shipped(trainings),
            &["--by", "r-gria", "--json"],
        )
    };
    let finished = plan();
    finished.expect_code(PASSED);
    assert_eq!(finished.stdout, plan().stdout);
    let report = finished.json();
    assert_eq!(report["by"], "r-gria");
    let rate = report["trainings"][0]["plan"]["rate_bps"].as_f64().unwrap();
    assert!(rate > 0.0 && rate <= 3e9, "{report}");
    for link in report["links"].as_array().unwrap() {
        assert!(
            link["load_bps"].as_u64() <= link["rate_bps"].as_u64(),
            "{link}"
        );
    }
}

#[test]
fn inart_proves_the_plans_of_small_networks() {
    let (network, trainings) = ("grid-example.yaml", "grid-example-trainings.yaml");
    let plan = |more: &[&str]| {
        let args = [&["--by", "inart", "--json"], more].concat();
        let finished = route(&shipped(network), &shipped(trainings), &args);
        finished.expect_code(PASSED);
        finished.json()["trainings"][0]["plan"].clone()
    };
    let (found, best) = (plan(&[]), plan(&["--exact"]));
    let rate = |plan: &Value| plan["rate_bps"].as_f64().unwrap();
    assert!(rate(&best) >= rate(&found) && rate(&best) <= 3e9, "{best}");
    assert!(best["gap"].as_f64().unwrap() < 1e-6, "{best}");

    let finished = route(&shipped(network), &shipped(trainings), &["--exact"]);
    finished.expect_code(ERROR);
    let told =
        "--exact: `--by grid` solves no integer program: use `--by inart`, or leave `--exact` out";
    assert!(finished.stderr.contains(told), "{}", finished.stderr);
}

/// Forty racks and four servers.
#[test]
fn inart_refuses_to_prove_the_plan_of_a_large_network() {
    let leaves: Vec<String> = (0..40).map(|leaf| format!("l{leaf}")).collect();
    let mut network = format!(
        "switches: [p0, p1, p2, p3, {}]\nhosts: [{}, s0, s1, s2, s3]\nrate: 10Gbit/s\nlinks:\n",
        leaves.join(", "),
        leaves.join(", ").replace('l', "h"),
    );
    for (number, leaf) in leaves.iter().enumerate() {
        network += &format!("  - [h{number}, {leaf}]\n");
        network.extend((0..4).map(|spine| format!("  - [{leaf}, p{spine}]\n")));
    }
    network.extend((0..4).map(|server| format!("  - [s{server}, l{server}]\n")));
    let trainings = "\
weir-trainings: 1
trainings:
  a: {server: [s0, s1, s2, s3], workers: \"h*\"}
";
    let finished = route(&network, trainings, &["--by", "inart", "--exact"]);
    finished.expect_code(ERROR);
    for told in [
        "error[capacity]: the exact program of job `a` has more than 6000 integer variables, the maximum",
        "--> trainings.yaml:3:",
        "= hint: plan with `--by inart` without `--exact`, which supports larger trainings",
    ] {
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
    }
}

/// All four workers have room at `b`, which is in another rack than the server.
#[test]
fn pairs_between_racks_are_limited() {
    const RACKS: &str = "\
switches: [l1, l2, p]
hosts: [ps, {name: a, slots: 2}, {name: b, slots: 4}]
rate: 10Gbit/s
links: [[ps, l1], [a, l1], [b, l2], [l1, p], [l2, p]]
";
    let with = |workers: &str| {
        let trainings =
            format!("weir-trainings: 1\ntrainings:\n  t: {{server: ps, workers: {{{workers}}}}}\n");
        route(RACKS, &trainings, &["--json"])
    };
    for (workers, hosts) in [
        ("count: 4", serde_json::json!([["b", 4]])),
        (
            "count: 4, between: [{racks: [l1, l2], pairs: 2}]",
            serde_json::json!([["a", 2], ["b", 2]]),
        ),
        // Within a rack a ring has no pair between two.
        (
            "count: 4, talk: ring, between: [{racks: [l2, l1], pairs: 1}]",
            serde_json::json!([["b", 4]]),
        ),
        // Between the two racks a ring has two.
        (
            "count: 6, talk: ring, between: [{racks: [l1, l2], pairs: 2}]",
            serde_json::json!([["a", 2], ["b", 4]]),
        ),
    ] {
        let finished = with(workers);
        finished.expect_code(PASSED);
        let placed = &finished.json()["trainings"][0]["placed"];
        assert_eq!(placed["hosts"], hosts, "{workers}");
    }
    for (workers, told) in [
        (
            "count: 4, between: [{racks: [l1, l2], pairs: 1}]",
            "4 workers cannot be placed: the pairs that may communicate (1 between `l1` and `l2`)",
        ),
        (
            "count: 6, talk: ring, between: [{racks: [l1, l2], pairs: 1}]",
            "the pairs that may communicate (1 between `l1` and `l2`)",
        ),
        (
            "count: 4, talk: ring",
            "error[no-effect]: `talk` has no effect without `between`",
        ),
        (
            "count: 4, talk: star, between: []",
            "`talk` cannot be `star`",
        ),
        (
            "count: 4, between: [{racks: [l1, l9], pairs: 1}]",
            "no worker and no server of this training can be in a rack `l9`",
        ),
        (
            "count: 4, between: [{racks: [l1, l1], pairs: 1}]",
            "`racks` names `l1` twice; a limit is between two racks",
        ),
        (
            "count: 4, between: [{racks: l1, pairs: 1}]",
            "`racks` has 1 names; a limit is between two racks",
        ),
        (
            "count: 129, between: [{racks: [l1, l2], pairs: 1}]",
            "129 workers on 2 hosts; `between` is for 128 workers and 128 hosts at most",
        ),
    ] {
        let finished = with(workers);
        finished.expect_code(ERROR);
        assert!(
            finished.stderr.contains(told),
            "{told}: {}",
            finished.stderr
        );
    }
}

/// What one holds, the next does not find: of two trainings at other servers, both of which s1, s2 and s3 would sum.
#[test]
fn memory_is_held_for_one_training_alone() {
    let network = shipped("goat-example.yaml")
        .replace("w4, ps]", "w4, ps, v1, v2, qs]")
        .replace(
            "  - [w1, s1]\n",
            "  - [w1, s1]\n  - [v1, s1]\n  - [v2, s1]\n  - [qs, s3]\n",
        )
        .replace("- [s1, s3]", "- {ends: [s1, s3], rate: 9Gbit/s}");
    let trainings = "\
weir-trainings: 1
trainings:
  a: {server: ps, workers: [w1, w2], gradient: 1kB, fragments: 1}
  b: {server: qs, workers: [v1, v2], gradient: 1kB, fragments: 1}
";
    let report = route(&network, trainings, &["--by", "goat", "--json"]).json();
    let on = [0, 1].map(|place| report["trainings"][place]["plan"]["parts"][0]["on"].clone());
    assert_eq!(on[0], "s1", "{report}");
    assert_ne!(on[1], "s1", "{report}");
}

#[test]
fn keys_of_another_planner_are_refused_by_name() {
    let training = |more: &str| {
        format!("weir-trainings: 1\ntrainings:\n  a: {{server: ps, workers: \"w*\"{more}}}\n")
    };
    for (more, by, said) in [
        (
            ", gradient: 3kB",
            "grid",
            "error[no-effect]: `gradient` has no effect with `--by grid`\n --> trainings.yaml:3:44",
        ),
        (
            ", wait_for: 3",
            "atp",
            "`wait_for` has no effect with `--by atp`",
        ),
        (
            ", gradient: 3kB",
            "goat",
            "error[missing-key]: `--by goat` needs the key `fragments` of a training\n --> trainings.yaml:3:6",
        ),
        (
            ", gradient: 3kB, fragment: 3",
            "goat",
            "a training has no key `fragment`\n --> trainings.yaml:3:49",
        ),
        (
            ", gradient: 3kB, fragments: 3, arrivals: [w2, w1]",
            "goat",
            "`arrivals` leaves out `w3`",
        ),
        (
            ", gradient: 3kB, fragments: 3, arrivals: [w2, w2]",
            "goat",
            "error[duplicate]: `w2` occurs twice in `arrivals`\n --> trainings.yaml:3:78",
        ),
        (
            ", gradient: 3kB, fragments: 3, wait_for: 5",
            "goat",
            "`wait_for` is 5, but only 4 hosts send",
        ),
        (
            ", gradient: 2B, fragments: 3",
            "goat",
            "at least one byte for each fragment",
        ),
        (
            ", gradient: 3, fragments: 3",
            "goat",
            "`gradient`: `3` has no unit",
        ),
        (
            ", learning: {loss: 1, epsilon: 1, variance: 1}",
            "inart",
            "`learning` has no effect with `--by inart`",
        ),
        (
            ", gradient: 3kB, fragments: 3, learning: {loss: 1, epsilon: 1, variance: 1}",
            "goat",
            "`learning` and `past_rounds` have an effect only together",
        ),
        (
            ", gradient: 3kB, fragments: 3, learning: {loss: 0, epsilon: 1, variance: 1}, past_rounds: []",
            "goat",
            "`loss` must be more than 0; found 0",
        ),
        (
            ", gradient: 3kB, fragments: 3, learning: {loss: 1, epsilon: 1, variance: 4}, past_rounds: []",
            "goat",
            "`variance` is 4, but must be below 4 workers times `epsilon`, 4",
        ),
        (
            ", gradient: 3kB, fragments: 3, learning: {loss: 1, epsilon: 1, variance: 1}, past_rounds: []",
            "goat",
            "`past_rounds` has 0 rounds; write 1 to 1000",
        ),
        (
            ", gradient: 3kB, fragments: 3, learning: {loss: 1, epsilon: 1, variance: 1}, past_rounds: [[1ms]]",
            "goat",
            "this round has 1 times, but 4 hosts send",
        ),
    ] {
        let finished = route(
            &shipped("goat-example.yaml"),
            &training(more),
            &["--by", by],
        );
        finished.expect_code(ERROR);
        assert!(
            finished.stderr.contains(said),
            "{said}: {}",
            finished.stderr
        );
        assert!(
            finished.stderr.contains("= hint") || !said.contains("has no effect"),
            "{}",
            finished.stderr
        );
    }
    let fine = training(", gradient: 3kB, fragments: 3");
    let finished = route(
        &shipped("goat-example.yaml"),
        &fine,
        &["--by", "goat", "--robust"],
    );
    finished.expect_code(ERROR);
    assert!(finished.stderr.contains("--robust"), "{}", finished.stderr);
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
        finished.stdout.contains("a: no plan"),
        "{}",
        finished.stdout
    );
    let told = "\
error[contradiction]: job `a` has 2 servers; this planner supports one
 --> trainings.yaml:2:25
  |
2 | trainings: {a: {server: [as, bs], workers: [a1]}}
  |                         ^^^^^^^^
  = hint: plan with `--by inart`, which supports several servers
";
    assert!(finished.stderr.contains(told), "{}", finished.stderr);
    let refused = &route(NETWORK, several, &["--json"]).json()["trainings"][0]["refused"];
    assert_eq!(
        (&refused["line"], &refused["column"]),
        (&2.into(), &25.into())
    );
    for (workers, line, hint) in [
        ("8", "3:", "workers: {count: 8}"),
        ("{count: 8}", "3:", "unless its `slots` is larger"),
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

#[test]
fn what_those_before_have_taken_is_told_with_their_places() {
    let trainings = "\
weir-trainings: 1
trainings:
  first: {server: as, workers: [a1]}
  second: {server: as, workers: [a2]}
  third: {server: bs, workers: [b1, a1]}
";
    let finished = route(NETWORK, trainings, &[]);
    finished.expect_code(ERROR);
    for told in [
        "error[capacity]: job `second`: server `as` has no ingress rate left\n --> trainings.yaml:4:20\n",
        "error[unreachable]: job `third`: no path from `a1` to `bs` has spare capacity\n --> trainings.yaml:5:37\n",
        "= trainings.yaml:3:3: `first` is planned earlier",
        "= hint: move this training before the others",
    ] {
        assert!(
            finished.stderr.contains(told),
            "{told}: {}",
            finished.stderr
        );
    }
    let twice = "weir-trainings: 1\ntrainings: {a: {server: as, workers: [a1, a2, a1]}}\n";
    let finished = route(NETWORK, twice, &[]);
    assert!(
        finished.stderr.contains("trainings.yaml:2:47"),
        "{}",
        finished.stderr
    );
}
