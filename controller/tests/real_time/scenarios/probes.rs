//! Probes that run a program of the user's: what they are given, what is told of them, and what is left of them.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::leftovers::Watched;
use crate::support::*;

/// Two hosts, a program that serves a file of its folder, and probes and more, a line each.
fn scenario(driver: &str, probes: &[&str], rest: &str) -> String {
    let probes: String = probes.iter().map(|line| format!("  {line}\n")).collect();
    format!(
        "weir: 1\nname: asks\ntopology: {{star: {{hosts: [a, b]}}}}\nworkload:\n  commands:\n    \
         - {{name: web, host: b, run: \"cd {{dir}}; echo hi > x; exec python3 -m http.server 80\", ready: {{tcp: 80}}}}\n    \
         - {{name: wait, host: a, run: \"{driver}\"}}\nprobes:\n{probes}{rest}\n"
    )
}

fn run(driver: &str, probes: &[&str], rest: &str) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.yaml"), scenario(driver, probes, rest)).unwrap();
    Watched::weir(folder.path(), &["run", "t.yaml", "--json"]).run()
}

fn probe<'r>(run: &'r Value, name: &str) -> &'r Value {
    let mut probes = run["probes"].as_array().unwrap().iter();
    probes.find(|probe| probe["name"] == name).unwrap()
}

fn metric(run: &Value, name: &str) -> f64 {
    run["metrics"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name}: {:#}", run["metrics"]))
}

#[test]
fn programs_ask_and_how_long_they_take_is_the_latency() {
    if !has_namespaces("probes") || !has_program("probes", "python3") {
        return;
    }
    let _turn = alone();
    let finished = run(
        "sleep 2",
        &[
            // The service's folder, a folder of its own, the number of the question, the user.
            r#"good: {from: a, run: "grep -q hi {dir.web}/x && echo {n} >> {dir}/y && test $(tail -1 {dir}/y) = {n} && test $(id -u) != 0", every: 200ms, timeout: 3s}"#,
            r#"words: {from: a, run: [python3, -c, "import urllib.request as u; u.urlopen('http://{host.b.ip}/x').read()"], every: 500ms, timeout: 5s}"#,
            r#"wrong: {from: b, run: "echo no luck >&2; exit 3", every: 200ms}"#,
            r#"slow: {from: a, run: "echo begun; sleep 50 & sleep 60", every: 300ms, timeout: 300ms}"#,
        ],
        "expect: [probe.good.failures == 0, probe.words.failures == 0, probe.good.p50 > 1ms, probe.wrong.failures == probe.wrong.count]",
    );
    finished.expect_code(PASSED);
    let run = finished.json();
    assert!(metric(&run, "probe.good.count") >= 8.0);
    assert!(metric(&run, "probe.words.count") >= 2.0);
    let good = &probe(&run, "good")["question"];
    assert!(
        good.as_str()
            .unwrap()
            .starts_with("run grep -q hi {dir.web}/x"),
        "{good}"
    );
    assert_eq!(
        probe(&run, "wrong")["first_failure"],
        "exit code 3: no luck"
    );
    let slow = probe(&run, "slow");
    assert_eq!(
        slow["first_failure"],
        "it did not finish within 300ms: begun"
    );
    // It asks whether or not the last has been answered.
    assert!(slow["samples"].as_array().unwrap().len() >= 5, "{slow}");
    assert!(
        !run["metrics"]
            .as_object()
            .unwrap()
            .contains_key("probe.slow.p50_ns")
    );
}

#[test]
fn what_a_program_finds_begins_a_step_and_ends_a_run() {
    if !["python3", "curl"]
        .iter()
        .all(|program| has_program("probes", program))
        || !has_namespaces("probes")
    {
        return;
    }
    let _turn = beside();
    let flows = "flows: {asks: {from: a, to: b, filter: tcp.dport == 80}}\n\
                 faults: [{id: cut, flows: asks, effect: drop, during: gone}]\n";
    let get =
        "get: {from: a, run: [curl, -sf, \"http://{host.b.ip}/x?{n}\"], every: 200ms, timeout: 1s}";
    // A machine that is busy makes a question fail now and then; all of them fail when nobody answers.
    let finished = run(
        "sleep 40",
        &[get],
        &format!(
            "{flows}timeline: [{{name: gone, on: probe.get.count - probe.get.failures > 3}}]\n\
             abort_if: [run.wall > 30s, probe.get.failures > 15]"
        ),
    );
    finished.expect_code(ABORTED);
    let run = finished.json();
    let reason = run["aborted"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("probe.get.failures > 15  ("), "{reason}");
    assert_eq!(run["faults"][0]["proved"], true, "{}", run["faults"]);
    let samples = probe(&run, "get")["samples"].as_array().unwrap();
    let good = samples.iter().filter(|sample| sample[1].is_number());
    assert!(good.count() > 3, "{samples:?}");
}

/// A run is not over before its last answers have come or failed: what is sent again meanwhile still meets the faults.
#[test]
fn faults_hold_until_the_last_question_is_over() {
    if !has_namespaces("probes") || !has_program("probes", "python3") {
        return;
    }
    let _turn = beside();
    // Linux sends a SYN again after one second and after three.
    let finished = run(
        "sleep 1.5",
        &["port: {from: a, tcp: \"b:80\", every: 200ms, timeout: 4s}"],
        "lease: 1s\nflows: {asks: {from: a, to: b, filter: tcp.dport == 80}}\n\
         faults: [{id: cut, flows: asks, effect: drop, during: gone}]\n\
         timeline: [{name: gone, at: 500ms}]\nexpect: [probe.port.failures > 2]",
    );
    finished.expect_code(PASSED);
    let run = finished.json();
    assert_eq!(run["faults"][0]["proved"], true, "{}", run["faults"]);
    // The last SYN was dropped long after the workload had ended.
    let last = run["over_time"]["hits"]["cut"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    let (at_s, wall_s) = (
        last["at_s"].as_f64().unwrap(),
        run["wall_s"].as_f64().unwrap(),
    );
    assert!(at_s >= wall_s - 0.01, "{at_s} of {wall_s}");
    let fired = run["faults"][0]["fired"].as_u64().unwrap();
    assert!(
        fired >= 12,
        "{fired}: each of five SYNs is sent three times"
    );
}

/// Nothing of a probe's program outlives the run, and nobody waits for it: [`Watched`] looks for all that inherited its mark.
#[test]
fn programs_that_ask_end_with_the_run_however_that_ends() {
    if !has_namespaces("probes") || !has_program("probes", "python3") {
        return;
    }
    let _turn = beside();
    let stubborn = r#"long: {from: a, run: "trap : TERM INT; setsid sleep 997 & sleep 998; sleep 999", every: 10s, timeout: 60s}"#;
    let began = Instant::now();
    let finished = run("sleep 40", &[stubborn], "limits: {time: 500ms}");
    finished.expect_code(ERROR);
    assert!(
        finished.stderr.contains("limits.time (500ms) is reached"),
        "{}",
        finished.stderr
    );
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    // Killed, with no chance to clean up.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("t.yaml"),
        scenario("sleep 40", &[stubborn], ""),
    )
    .unwrap();
    let killed = Watched::weir(folder.path(), &["run", "t.yaml"]).run_while(|weir| {
        let id = weir.id();
        let is_up = || {
            let lines = descendants(id).into_iter().map(|pid| {
                std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()
            });
            lines.filter(|line| line.contains("998")).count() >= 2
        };
        while !is_up() {
            assert!(weir.try_wait().unwrap().is_none(), "it ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        weir.kill().unwrap();
    });
    assert_eq!(killed.code, None);
}

#[test]
fn programs_of_probes_that_are_not_installed_are_named_before_anything_starts() {
    if !has_namespaces("probes") {
        return;
    }
    let _turn = beside();
    let finished = run("sleep 40", &["get: {from: a, run: \"curlew -s b\"}"], "");
    finished.expect_code(ERROR);
    assert!(
        finished.stderr.contains("probe `get`: ") && finished.stderr.contains("curlew"),
        "{}",
        finished.stderr
    );
}
