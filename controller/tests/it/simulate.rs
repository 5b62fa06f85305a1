//! `weir simulate`: the same scenarios as `weir run`, without a network.

use serde_json::Value;

use crate::support::leftovers::Watched;
use crate::support::*;

/// Bytes of one worker's updates, or of the answers to all: three rounds of 196 frames of values and 64 without, and 64 that
/// end the job. `tests/real_time/scenarios/planned.rs` sees them in a testbed.
const STREAM: u64 = 3 * (196 * 1090 + 64 * 66) + 64 * 66;

fn shipped(name: &str) -> String {
    let path = repository("testbeds/scenarios").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn simulate(text: &str, more: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scenario.yaml"), text).unwrap();
    let args = [&["simulate", "scenario.yaml"], more].concat();
    Watched::weir(folder.path(), &args).run()
}

fn simulated(text: &str, more: &[&str]) -> Value {
    let finished = simulate(text, &[more, &["--json"]].concat());
    finished.expect_code(PASSED);
    finished.json()
}

fn bytes(report: &Value, from: &str, to: &str) -> u64 {
    let mut links = report["links"].as_array().unwrap().iter();
    let link = links.find(|link| link["from"] == from && link["to"] == to);
    link.unwrap()["bytes"].as_u64().unwrap()
}

#[test]
fn a_plans_training_takes_what_its_fullest_link_takes() {
    let report = simulated(&shipped("grid-training.yaml"), &[]);
    assert_eq!(report["is_whole"], true);
    // One stream of each switch, and one of answers, as a testbed has them.
    assert_eq!(bytes(&report, "s3", "ps"), 3 * STREAM);
    assert_eq!(bytes(&report, "ps", "s3"), STREAM);
    // w4's updates pass s1 beside its sum: each of the three has a link of its own to s2 or s3.
    assert_eq!(bytes(&report, "w4", "s1"), STREAM);
    assert_eq!(bytes(&report, "s1", "s2"), STREAM);
    let took_s = report["completed_s"].as_f64().unwrap();
    // The server's link is the fullest: three streams at 9 Mbit/s, less its bucket of 256 KiB, which leaves at once. What closes the
    // job comes after that.
    let least_s = (3 * (STREAM - 64 * 66) - (256 << 10)) as f64 * 8.0 / 9e6;
    assert!(
        (least_s..1.05 * least_s).contains(&took_s),
        "{took_s} s, {least_s} s"
    );
    let again = simulated(&shipped("grid-training.yaml"), &[]);
    assert_eq!(again, report, "the same file, the same outcome");
}

#[test]
fn losses_by_chance_are_simulated_and_cost_time() {
    let lossy = shipped("training-faults.yaml");
    let refused = simulate(&lossy, &[]);
    refused.expect_code(ERROR);
    assert!(
        refused.stderr.contains("the fault `burst-loss`"),
        "{}",
        refused.stderr
    );
    let faults = lossy.find("faults:\n").unwrap();
    let by_chance = format!(
        "{}faults:\n  - {{id: loss, flows: updates, where: edge, effect: drop, select: {{probability: 2%}}}}\n",
        &lossy[..faults]
    );
    let report = simulated(&by_chance, &[]);
    let dropped = report["dropped"].as_u64().unwrap();
    // Of 2 workers, 30 rounds, 260 updates each.
    assert!((200..450).contains(&dropped), "{dropped}");
    let plain = simulated(&lossy[..lossy.find("flows:\n").unwrap()], &[]);
    assert_eq!(plain["dropped"], 0);
    let took = |report: &Value| report["completed_s"].as_f64().unwrap();
    assert!(took(&report) > took(&plain));
    let slower = simulated(
        &lossy[..lossy.find("flows:\n").unwrap()],
        &["--compute", "20ms"],
    );
    let more = took(&slower) - took(&plain);
    assert!(
        (0.55..0.65).contains(&more),
        "30 gradients of 20 ms: {more} s"
    );
}

#[test]
fn a_job_of_ranks_sums_as_often_as_it_is_told() {
    let ranks = "weir: 1\nname: ranks\ntopology: {star: {hosts: [a, b, c], rate: 100Mbit/s}}\n\
                 jobs: {sums: {ranks: [a, b, c]}}\n";
    let report = simulated(ranks, &["--all-reduce", "1000000", "--operations", "2"]);
    // 3,907 frames of 1,090 bytes and 256 short ones, twice; a bucket leaves at once.
    let all = 2 * (3907 * 1090 + 256 * 66);
    let least_s = (all - (256 << 10)) as f64 * 8.0 / 100e6;
    let took_s = report["completed_s"].as_f64().unwrap();
    assert!(
        (least_s..1.1 * least_s).contains(&took_s),
        "{took_s} s, {least_s} s"
    );
}

#[test]
fn what_is_not_simulated_is_refused_by_name() {
    let star = "weir: 1\nname: x\ntopology: {star: {hosts: [a, b, c]}}\n";
    let training = "workload: {training: {server: c, workers: [a, b], iterations: 1}}\n";
    for (text, args, said) in [
        (
            shipped("redis-get-loss.yaml"),
            &[][..],
            "a workload of `redis` cannot be simulated\n  --> scenario.yaml:",
        ),
        (
            format!("{star}workload: {{commands: [{{name: x, host: a, run: exit 0}}]}}\n"),
            &[],
            "a workload of `commands` cannot be simulated\n --> scenario.yaml:4:1\n",
        ),
        (star.to_owned(), &[], "the simulation needs a `training`"),
        (
            star.to_owned(),
            &["--all-reduce", "8"],
            "--all-reduce needs one",
        ),
        (
            format!("{star}{training}"),
            &["--all-reduce", "8"],
            "--all-reduce needs a job, in a scenario without a `training`",
        ),
        (
            format!(
                "{star}{training}flows: {{u: {{from: a}}}}\nfaults: [{{id: late, flows: u, effect: {{delay: 1ms}}}}]\n"
            ),
            &[],
            "the fault `late`, which is not a `drop`, cannot be simulated\n --> scenario.yaml:6:15\n",
        ),
        (
            format!("{star}{training}probes: {{p: {{from: a, tcp: \"b:80\"}}}}\n"),
            &[],
            "the probe `p` cannot be simulated\n --> scenario.yaml:5:10\n",
        ),
        (
            format!("{star}jobs: {{j: {{ranks: [a, b], deadline: 1s}}}}\n"),
            &["--all-reduce", "8"],
            "the deadline of job `j` cannot be simulated\n --> scenario.yaml:4:37\n",
        ),
    ] {
        let finished = simulate(&text, args);
        finished.expect_code(ERROR);
        let told = &finished.stderr;
        assert!(told.contains(said), "{said}: {told}");
        assert!(!told.contains("-->") || told.contains("= hint: "), "{told}");
    }
}
