//! `weir demo`, end to end: what it shows, and that it notices when something is not as it should be.

mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::*;

fn run_named<'a>(demo: &'a Value, name: &str) -> &'a Value {
    demo["runs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|run| run["name"] == name)
        .unwrap()
}

fn assert_complete(demo: &Value) {
    assert_eq!(demo["ok"], true, "{demo:#}");
    assert_eq!(demo["workers"], 8);
    let names: Vec<_> = demo["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["aggregated", "server_only", "faulted", "reference"]);
    let reference = run_named(demo, "reference")["weights_sha256"]
        .as_str()
        .unwrap();
    assert_eq!(reference.len(), 64);
    for run in demo["runs"].as_array().unwrap() {
        assert_eq!(run["weights_sha256"], reference);
        assert!(run["accuracy"].as_f64().unwrap() >= 0.9);
        assert!(run["iterations"].as_u64().unwrap() >= 30);
        assert!(run["chunks"].as_u64().unwrap() >= 196);
        assert!(run["wall_s"].as_f64().unwrap() > 0.0);
        assert!(run["retransmitted_bytes"].is_u64() && run["server_link_bytes"].is_u64());
    }
    let removed = demo["server_bytes_removed"].as_f64().unwrap();
    assert!((0.865..=0.8751).contains(&removed), "{removed}");
    let kinds: Vec<_> = demo["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["drop", "duplicate", "delay"]);
    for fault in demo["faults"].as_array().unwrap() {
        assert_eq!(fault["fired"], fault["observed"], "{fault}");
        assert!(fault["fired"].as_u64().unwrap() >= 20, "{fault}");
    }
}

#[test]
fn over_veth_all_four_runs_agree() {
    if !has_namespaces("demo over veth") {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let finished = run(folder.path(), &["demo", "--json"]);
    finished.expect_code(PASSED);
    assert_complete(&finished.json());
    let page = std::fs::read_to_string(folder.path().join("weir-demo.html")).unwrap();
    assert!(
        page.contains("<svg")
            && page.contains("passed")
            && !page.contains("src=")
            && !page.contains("href=")
    );
}

#[test]
fn over_memory_all_four_runs_agree_and_say_so() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let finished = run(
        folder.path(),
        &["demo", "--json", "--links", "memory", "--seed", "2"],
    );
    finished.expect_code(PASSED);
    let demo = finished.json();
    assert_complete(&demo);
    assert_eq!(demo["links"], "memory");
}

#[test]
fn a_changed_register_is_noticed() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let finished = run(
        folder.path(),
        &["demo", "--json", "--links", "memory", "--tamper-register"],
    );
    finished.expect_code(FAILED);
    let demo = finished.json();
    assert_eq!(demo["ok"], false);
    let reference = &run_named(&demo, "reference")["weights_sha256"];
    assert_ne!(&run_named(&demo, "aggregated")["weights_sha256"], reference);
    // Nothing else went wrong: the other runs are as they should be.
    assert_eq!(
        &run_named(&demo, "server_only")["weights_sha256"],
        reference
    );
    assert_eq!(&run_named(&demo, "faulted")["weights_sha256"], reference);
}

#[test]
fn a_falsified_fault_counter_is_noticed() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let finished = run(
        folder.path(),
        &["demo", "--json", "--links", "memory", "--tamper-counter"],
    );
    finished.expect_code(FAILED);
    let demo = finished.json();
    assert_eq!(demo["ok"], false);
    let fault = &demo["faults"][0];
    assert_eq!(
        fault["fired"].as_u64().unwrap(),
        fault["observed"].as_u64().unwrap() + 1
    );
}

#[test]
fn a_worker_that_dies_is_an_error_that_names_what_is_missing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let finished = run(
        folder.path(),
        &["demo", "--json", "--links", "memory", "--kill-worker"],
    );
    finished.expect_code(ERROR);
    assert!(finished.stderr.contains("w3"), "{}", finished.stderr);
    assert!(finished.stderr.contains("chunk"), "{}", finished.stderr);
    assert!(finished.stdout.is_empty());
    assert!(!folder.path().join("weir-demo.html").exists());
}

#[test]
fn a_switch_that_does_not_answer_is_an_error() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let finished = run(
        folder.path(),
        &["demo", "--json", "--links", "memory", "--stall-switch"],
    );
    finished.expect_code(ERROR);
    assert!(
        finished.stderr.contains("core") && finished.stderr.contains("10s"),
        "{}",
        finished.stderr
    );
}

#[test]
fn killed_in_mid_run_it_leaves_no_process_behind() {
    if !has_namespaces("demo killed in mid-run") {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut command = weir(folder.path(), &["demo", "--json"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Two switches, nine agents, the inner weir and its init.
    let deadline = Instant::now() + Duration::from_secs(30);
    while descendants(child.id()).len() < 13 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let running = descendants(child.id());
    assert!(running.len() >= 13, "{running:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while running.iter().any(|pid| is_alive(*pid)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let left: Vec<_> = running.iter().filter(|pid| is_alive(**pid)).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie holds nothing but its number.
    !status.is_empty() && !status.contains(") Z ")
}
