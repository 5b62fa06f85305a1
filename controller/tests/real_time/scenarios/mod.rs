//! Every shipped scenario, end to end in namespaces.

mod abort;
mod bundled_replay;
mod bundles;
mod commands;
mod disruptions;
mod foreign;
mod planned;
mod probes;
mod rdma;
mod replay;
mod torch;
mod ways;
mod workload_file;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::leftovers::{Watched, files};
use crate::support::*;
use scenario::model::Scenario;
use scenario::model::decision::{self, Draws};
use serde_json::Value;

/// What the tests below run; [`foreign`] has the rest.
const TESTED: [&str; 15] = [
    "ecmp-black-hole.yaml",
    "grid-training.yaml",
    "rdma-allgather.yaml",
    "rdma-allreduce.yaml",
    "rdma-drop.yaml",
    "rdma-effects.yaml",
    "rdma-late.yaml",
    "rdma-losses.yaml",
    "redis-get-loss.yaml",
    "redis-lost-retransmission.yaml",
    "redis-slow-after-loss.yaml",
    "redis-slow-network.yaml",
    "redis-storm.yaml",
    "spine-dies.yaml",
    "training-faults.yaml",
];

fn shipped(file: &str) -> String {
    std::fs::read_to_string(repository("testbeds/scenarios").join(file)).unwrap()
}

/// What waits for what other faults do is not a function of its own flow's numbers: the proof alone knows it.
#[test]
fn one_fault_follows_another() {
    for file in [
        "redis-lost-retransmission.yaml",
        "redis-slow-after-loss.yaml",
        "redis-storm.yaml",
    ] {
        if !has_namespaces(file) || !has_program(file, "redis-server") {
            return;
        }
        let _turn = beside();
        let folder = tempfile::tempdir().unwrap();
        let finished = run_json(folder.path(), &shipped(file));
        finished.expect_code(PASSED);
        assert!(finished.stderr.is_empty(), "{}", finished.stderr);
        for fault in finished.json()["faults"].as_array().unwrap() {
            assert_eq!(fault["proved"], true, "{fault}");
        }
    }
}

#[test]
fn every_shipped_scenario_has_a_test() {
    let found = files(&repository("testbeds/scenarios"));
    let scenarios: Vec<_> = found
        .iter()
        .filter(|name| name.ends_with(".yaml"))
        .collect();
    let mut tested: Vec<_> = TESTED.iter().chain(foreign::TESTED).collect();
    tested.sort();
    assert_eq!(scenarios, tested);
}

/// Runs a scenario's text with `--json`, as `s.yaml`.
fn run_json(folder: &Path, text: &str) -> Finished {
    std::fs::write(folder.join("s.yaml"), text).unwrap();
    let finished = Watched::weir(folder, &["run", "s.yaml", "--json"]).run();
    assert_eq!(files(folder), ["s.yaml", "weir-run.html"]);
    finished
}

/// It passed; and the faults hit exactly the packets that the model names among as many as came by.
fn assert_passed(finished: &Finished, text: &str) -> Value {
    finished.expect_code(PASSED);
    assert!(finished.stderr.is_empty(), "{}", finished.stderr);
    let run = finished.json();
    assert_eq!(run["ok"], true);
    let declared = scenario::load("s.yaml", text).unwrap();
    let expectations = run["expectations"].as_array().unwrap();
    let texts: Vec<_> = expectations
        .iter()
        .map(|expectation| expectation["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        texts,
        declared
            .expectations
            .iter()
            .map(|expectation| expectation.text.as_str())
            .collect::<Vec<_>>()
    );
    for expectation in expectations {
        assert_eq!(expectation["passed"], true, "{expectation}");
    }
    let faults = run["faults"].as_array().unwrap();
    assert_eq!(faults.len(), declared.faults.len());
    let fired: Vec<u64> = faults
        .iter()
        .map(|fault| fault["fired"].as_u64().unwrap())
        .collect();
    for (fault, declared) in faults.iter().zip(&declared.faults) {
        assert_eq!(fault["id"], declared.id.as_str());
        assert_eq!(fault["fired"], fault["observed"], "{fault}");
    }
    assert!(model_agrees(&declared, &run, &fired), "{run:#}");
    for (_, flow) in declared.protected() {
        let metric = |what: &str| {
            run["metrics"][format!("flow.{}.{what}", flow.name)]
                .as_f64()
                .unwrap()
        };
        assert_eq!(
            (metric("lost"), metric("extra")),
            (0.0, 0.0),
            "protected {}",
            flow.name
        );
        assert!(metric("sent") > 0.0, "{}", flow.name);
    }
    run
}

/// How often each fault has fired after 0, 1, 2 … packets of a flow.
fn model(declared: &Scenario, flow: usize, packets: u64) -> Vec<Vec<u64>> {
    let draws = Draws::of_seed(declared.seed);
    let mut units: Vec<_> = declared
        .faults
        .iter()
        .map(|fault| {
            let key = decision::key(fault.key, declared.flows[flow].key);
            let acts = fault.flows.contains(&flow);
            acts.then(|| fault.selection.decisions(&draws, key))
        })
        .collect();
    let mut fired = vec![0; units.len()];
    let mut after = vec![fired.clone()];
    for _ in 0..packets {
        // Each counts what the others drop.
        for (unit, decisions) in units.iter_mut().enumerate() {
            if decisions.as_mut().and_then(Iterator::next) == Some(true) {
                fired[unit] += 1;
            }
        }
        after.push(fired.clone());
    }
    after
}

/// Whether the faults fired as often as the model says for as many packets of each flow as came by.
fn model_agrees(declared: &Scenario, run: &Value, fired: &[u64]) -> bool {
    let hit = |flow: usize| {
        declared
            .faults
            .iter()
            .any(|fault| fault.flows.contains(&flow))
    };
    let flows: Vec<usize> = (0..declared.flows.len())
        .filter(|flow| hit(*flow))
        .collect();
    let sent: Option<Vec<u64>> = flows
        .iter()
        .map(|flow| {
            Some(
                run["metrics"][format!("flow.{}.sent", declared.flows[*flow].name)].as_f64()?
                    as u64,
            )
        })
        .collect();
    let sum = |rows: &[&Vec<u64>]| -> Vec<u64> {
        (0..fired.len())
            .map(|unit| rows.iter().map(|row| row[unit]).sum())
            .collect()
    };
    if let Some(sent) = sent {
        let rows: Vec<_> = flows
            .iter()
            .zip(&sent)
            .map(|(flow, sent)| model(declared, *flow, *sent))
            .collect();
        let last: Vec<_> = rows.iter().map(|rows| rows.last().unwrap()).collect();
        return sum(&last) == fired;
    }
    // Behind a switch that sums, flows have no counts of their own, but all faults met the same packets: of two workers that
    // sent about the same number.
    let met = run["faults"][0]["met"].as_u64().unwrap();
    let [first, second] = flows[..] else {
        panic!("{flows:?}")
    };
    let (first, second) = (model(declared, first, met), model(declared, second, met));
    let splits = met * 45 / 100..=met * 55 / 100;
    splits
        .into_iter()
        .any(|split| sum(&[&first[split as usize], &second[(met - split) as usize]]) == fired)
}

fn can_run_redis(test: &str) -> bool {
    has_namespaces(test) && has_program(test, "redis-server")
}

#[test]
fn redis_get_loss_hits_client_a_and_not_client_b() {
    if !can_run_redis("redis-get-loss.yaml") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let text = shipped("redis-get-loss.yaml");
    let run = assert_passed(&run_json(folder.path(), &text), &text);
    let metric = |name: &str| {
        run["metrics"][name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}"))
    };
    // All requests were answered: what was lost was sent again.
    assert_eq!(
        (metric("client.a.requests"), metric("client.b.requests")),
        (300.0, 600.0)
    );
    assert_eq!(metric("flow.a-gets.lost"), metric("fault.drop-gets.fired"));
    // All hundred requests arrived. On a busy machine the kernel may retransmit one that was not lost; both copies arrive then.
    let received = metric("flow.a-gets.received");
    assert_eq!(
        received,
        metric("flow.a-gets.sent") - metric("flow.a-gets.lost")
    );
    assert!((100.0..110.0).contains(&received), "{received}");
    assert_eq!(metric("flow.a-cart-sets.lost"), 0.0);
    assert_eq!(metric("switch.sw.unparsed"), 0.0);
    let page = std::fs::read_to_string(folder.path().join("weir-run.html")).unwrap();
    assert!(page.contains("drop-gets") && page.contains("passed"));
    // It shows the same without a network: nothing is loaded.
    assert!(!page.contains("src=") && !page.contains("href=") && !page.contains("url("));
}

#[test]
fn training_faults_leave_the_weights_as_they_should_be() {
    if !has_namespaces("training-faults.yaml") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let text = shipped("training-faults.yaml");
    let run = assert_passed(&run_json(folder.path(), &text), &text);
    assert_eq!(run["metrics"]["training.weights_equal"], 1.0);
    assert_eq!(
        run["faults"]
            .as_array()
            .unwrap()
            .iter()
            .map(|fault| &fault["kind"])
            .collect::<Vec<_>>(),
        ["drop", "duplicate", "delay"]
    );
}

#[test]
fn redis_over_a_slow_network_is_proved_though_every_packet_is_held() {
    if !can_run_redis("redis-slow-network.yaml") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let text = shipped("redis-slow-network.yaml");
    let run = assert_passed(&run_json(folder.path(), &text), &text);
    let fault = &run["faults"][0];
    assert_eq!(fault["proved"], true, "{fault}");
    // Four clients with 50 requests each, a handshake and an end.
    assert!(fault["observed"].as_u64().unwrap() >= 4 * 53, "{fault}");
    assert_eq!(fault["met"], fault["observed"]);
}

/// Sends a signal to processes of ours.
fn signal(name: &str, pids: &[u32]) {
    let pids = pids.iter().map(ToString::to_string);
    let sent = Command::new("kill").arg(name).args(pids).status();
    assert!(sent.unwrap().success());
}

/// Runs a scenario whose switches are stopped for 50 ms, again and again while agents or clients are at work.
fn run_stalling(folder: &Path, text: &str) -> Finished {
    std::fs::write(folder.join("s.yaml"), text).unwrap();
    let mut stalls = 0;
    let finished = Watched::weir(folder, &["run", "s.yaml", "--json"]).run_while(|weir| {
        while weir.try_wait().unwrap().is_none() {
            let words = |pid: &u32| -> Vec<String> {
                let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
                let line = line.unwrap_or_default();
                line.split('\0').map(str::to_owned).collect()
            };
            let all = descendants(weir.id());
            let running = |what: &str| -> Vec<u32> {
                let runs = |pid: &&u32| words(pid).get(1).is_some_and(|word| word == what);
                all.iter().filter(runs).copied().collect()
            };
            if !running("agent").is_empty() || !running("client").is_empty() {
                let switches = running("switch");
                signal("-STOP", &switches);
                std::thread::sleep(Duration::from_millis(50));
                signal("-CONT", &switches);
                stalls += 1;
            }
            std::thread::sleep(Duration::from_millis(150));
        }
    });
    assert!(stalls > 2, "{stalls}");
    finished
}

#[test]
fn a_machine_that_stalls_disturbs_no_proof() {
    if !can_run_redis("stalled machine") {
        return;
    }
    let _turn = beside();
    for file in ["training-faults.yaml", "redis-slow-network.yaml"] {
        let folder = tempfile::tempdir().unwrap();
        let text = shipped(file);
        let run = assert_passed(&run_stalling(folder.path(), &text), &text);
        for fault in run["faults"].as_array().unwrap() {
            assert_eq!(fault["proved"], true, "{file}: {fault}");
            assert_eq!(
                (&fault["missed"], &fault["collateral"]),
                (&0.into(), &0.into())
            );
        }
    }
}

#[test]
fn two_drops_on_one_flow_are_both_proved() {
    if !can_run_redis("two drops") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let one = "  - id: delay-carts\n";
    let two = format!(
        "  - {{id: drop-more, flows: a-gets, effect: drop, select: {{probability: 0.1}}}}\n{one}"
    );
    let text = shipped("redis-get-loss.yaml");
    assert_eq!(text.matches(one).count(), 1);
    let text = text.replace(one, &two);
    let run = assert_passed(&run_json(folder.path(), &text), &text);
    for fault in run["faults"].as_array().unwrap() {
        assert_eq!(fault["proved"], true, "{fault}");
        assert!(fault["observed"].as_u64().unwrap() > 0, "{fault}");
    }
}

#[test]
fn a_run_in_which_a_fault_hit_nothing_fails_with_the_reason() {
    if !can_run_redis("vacuous run") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let text = shipped("redis-get-loss.yaml").replace("6379", "7000");
    let (text, _) = text.split_once("expect:").unwrap();
    let finished = run_json(folder.path(), text);
    finished.expect_code(FAILED);
    let why = "no packet of the workload belongs to flow `a-gets`";
    let warned = format!("fault `drop-gets` will hit nothing: {why}");
    assert_eq!(
        finished.stderr.matches(&warned).count(),
        1,
        "{}",
        finished.stderr
    );
    let fault = &finished.json()["faults"][0];
    assert_eq!(
        (&fault["met"], &fault["proved"]),
        (&0.into(), &false.into())
    );
    let reason = fault["reason"].as_str().unwrap();
    assert!(
        reason.contains(&format!("it hit nothing: {why}")),
        "{reason}"
    );
    // Meant, it is no failure.
    let meant =
        format!("{text}expect: [fault.drop-gets.fired == 0, fault.delay-carts.fired == 0]\n");
    let finished = run_json(folder.path(), &meant);
    assert!(finished.expect_code(PASSED).stderr.is_empty());
}

/// The shipped file, shorter, with a random fault.
fn random_loss(seed: u64) -> String {
    let text = shipped("redis-get-loss.yaml");
    let (head, _) = text.split_once("expect:").unwrap();
    let replaced = [
        ("requests: 300", "requests: 120"),
        ("requests: 600", "requests: 60"),
        ("{every: 5}", "{probability: 0.2}"),
        ("seed: 42", &format!("seed: {seed}")),
    ];
    replaced
        .into_iter()
        .fold(head.to_owned(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replacen(old, new, 1)
        })
}

#[test]
fn the_seed_decides_which_packets_are_hit() {
    if !can_run_redis("two runs of one seed") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let runs = [42, 42, 7].map(|seed| {
        let text = random_loss(seed);
        let run = assert_passed(&run_json(folder.path(), &text), &text);
        let fault = &run["faults"][0];
        assert!(fault["fired"].as_u64().unwrap() > 0);
        (
            fault["met"].as_u64().unwrap(),
            fault["fired"].as_u64().unwrap(),
        )
    });
    // 40 GETs, and one more for each that is lost: where the losses fall decides how many.
    for (met, fired) in runs {
        assert_eq!(met, 40 + fired);
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}

#[test]
fn an_unmet_expectation_is_shown_with_its_place() {
    if !can_run_redis("unmet expectation") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let right = "fault.delay-carts.fired >= 100";
    let text = shipped("redis-get-loss.yaml").replace(right, "fault.delay-carts.fired == 99");
    std::fs::write(folder.path().join("s.yaml"), &text).unwrap();
    let finished = Watched::weir(folder.path(), &["run", "s.yaml"]).run();
    finished.expect_code(FAILED);
    let line = 1 + text
        .lines()
        .position(|line| line.contains("== 99"))
        .unwrap();
    let message =
        "error[unmet]: expectation not met: fault.delay-carts.fired is 100, expected == 99\n";
    assert!(finished.stderr.contains(message), "{}", finished.stderr);
    assert!(
        finished.stderr.contains(&format!("--> s.yaml:{line}:5\n")),
        "{}",
        finished.stderr
    );
    assert_eq!(
        finished.stderr.matches("error[").count(),
        1,
        "{}",
        finished.stderr
    );
    assert!(
        finished
            .stdout
            .contains("FAILED fault.delay-carts.fired == 99"),
        "{}",
        finished.stdout
    );
    let page = std::fs::read_to_string(folder.path().join("weir-run.html")).unwrap();
    assert!(page.contains("fault.delay-carts.fired == 99"));
}

#[test]
fn a_missing_redis_server_is_named_with_its_package() {
    if !has_namespaces("missing redis-server") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), shipped("redis-get-loss.yaml")).unwrap();
    let finished = Watched::weir(folder.path(), &["run", "s.yaml"])
        .env("PATH", folder.path())
        .run();
    finished.expect_code(ERROR);
    assert_eq!(
        finished.stderr,
        "weir: redis-server is not on the PATH: install the package redis-server (Debian, Ubuntu) or redis \
         (Fedora, Arch, Alpine)\n"
    );
    assert!(finished.stdout.is_empty());
    assert_eq!(files(folder.path()), ["s.yaml"]);
}
