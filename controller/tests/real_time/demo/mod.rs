//! `weir demo`, end to end: what it shows, and that it notices when something is not as it should be.

mod tamper;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::*;
use controller::demo::{self, Demo, Settings};
use controller::experiment::carry_out::Iteration;
use controller::experiment::carry_out::workload::Position;
use controller::experiment::{ExperimentError, Observer};
use serde_json::Value;
use testbeds::bed::Wiring;
use testbeds::host::Process;

/// Where units come into the program.
const UNITS: &str = "#include \"engine.p4\"";
/// Their counters count bytes instead of packets.
const MISCOUNTS: &str = "#define PACKETS BYTES\n#include \"engine.p4\"";

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
    let removed = demo["server_bytes_removed_share"].as_f64().unwrap();
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
    let _turn = alone();
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
    let _turn = alone();
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

/// The demo in this process, with agents and switches of their own, under an observer that meddles.
fn observed(observer: &mut dyn Observer) -> Result<Demo, ExperimentError> {
    let settings = Settings {
        wiring: Wiring::Memory,
        p4src: None,
        seed: 1,
        iterations: 30,
        weir: Path::new(env!("CARGO_BIN_EXE_weir")),
    };
    demo::run(&settings, observer)
}

/// What the demo says of the weights of its three runs on the network.
fn weights(demo: &Demo) -> [&str; 3] {
    demo.runs.each_ref().map(|run| {
        let training = run.carried_out.training.as_ref().unwrap();
        training.weights_sha256.as_str()
    })
}

fn failures(demo: &Demo) -> Vec<&str> {
    let failures = demo.verdict.failures();
    failures.map(|check| check.text.as_str()).collect()
}

#[test]
fn a_changed_register_is_noticed() {
    let _turn = alone();
    let mut register = tamper::Register::default();
    let demo = observed(&mut register).unwrap();
    assert!(register.is_done(), "no sum was under way");
    let reference = demo.reference.weights_sha256.as_str();
    let [aggregated, server_only, faulted] = weights(&demo);
    assert_ne!(aggregated, reference);
    // Nothing else went wrong: the other runs are as they should be.
    assert_eq!([server_only, faulted], [reference; 2]);
    let failures = failures(&demo);
    assert!(
        failures.contains(&"the final weights of all runs are the same bits"),
        "{failures:?}"
    );
}

/// Falsifies the count of the first fault, and writes down how far each run is.
#[derive(Default)]
struct Counter {
    positions: Vec<(String, Vec<Position>)>,
}

impl Observer for Counter {
    fn begins(&mut self, scenario: &str, position: &Position) {
        let seen = vec![position.clone()];
        self.positions.push((scenario.to_owned(), seen));
    }

    fn iteration(&mut self, turn: &mut Iteration<'_>) -> Result<(), ExperimentError> {
        let (_, seen) = self.positions.last_mut().unwrap();
        seen.push(turn.position.clone());
        Ok(())
    }

    fn counted(&mut self, fired: &mut [u64]) {
        if let Some(first) = fired.first_mut() {
            *first += 1;
        }
    }
}

#[test]
fn a_falsified_fault_counter_is_noticed_and_progress_is_told() {
    let _turn = alone();
    let mut counter = Counter::default();
    let demo = observed(&mut counter).unwrap();
    let fault = &demo.runs[2].conclusion.faults[0];
    assert_eq!(fault.fired, fault.observed + 1);
    let failures = failures(&demo);
    assert!(
        matches!(failures[..], [only] if only.starts_with("burst-loss: the switch fired ")),
        "{failures:?}"
    );
    let names: Vec<_> = counter
        .positions
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["aggregated", "server_only", "faulted"]);
    for (name, seen) in &counter.positions {
        assert!(
            seen.iter()
                .all(|at| at.total == 30 && at.unit == "iterations")
        );
        assert!(seen.is_sorted_by_key(|at| at.done), "{name}");
        let ends = [seen.first(), seen.last()].map(|at| at.unwrap().done);
        assert_eq!(ends, [0, 30], "{name}");
    }
}

/// Kills a worker after a few rounds.
struct Killer;

impl Observer for Killer {
    fn iteration(&mut self, turn: &mut Iteration<'_>) -> Result<(), ExperimentError> {
        if turn.position.done >= 5
            && let Some(worker) = turn.process("w3")
        {
            worker.kill();
        }
        Ok(())
    }
}

#[test]
fn a_worker_that_dies_is_an_error_that_names_what_is_missing() {
    let _turn = alone();
    let error = observed(&mut Killer).map(drop).unwrap_err().to_string();
    // The cause first, then what others miss of it.
    let first = error.lines().next().unwrap_or_default();
    assert_eq!(first, "w3: signal 9 (SIGKILL) ended it", "{error}");
    assert!(error.contains("chunk"), "{error}");
}

/// Stops the switches before they are spoken to.
struct Stall;

impl Observer for Stall {
    fn switch_started(&mut self, _switch: &str, process: &mut Process) {
        process.suspend();
    }
}

#[test]
fn a_switch_that_does_not_answer_is_an_error() {
    let _turn = beside();
    let error = observed(&mut Stall).map(drop).unwrap_err().to_string();
    assert!(error.contains("core") && error.contains("10s"), "{error}");
}

/// A data plane that miscounts: the command fails, and says so at the top of its report and its page.
#[test]
fn a_switch_that_miscounts_fails_the_command() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(repository("p4src/psa/main.p4")).unwrap();
    assert!(text.contains(UNITS), "{text}");
    std::fs::create_dir_all(folder.path().join("p4/psa")).unwrap();
    let changed = text.replace(UNITS, MISCOUNTS);
    std::fs::write(folder.path().join("p4/psa/main.p4"), changed).unwrap();
    let finished = run(
        folder.path(),
        &[
            "demo",
            "--links",
            "memory",
            "--iterations",
            "15",
            "--p4src",
            "p4",
        ],
    );
    finished.expect_code(FAILED);
    let mut lines = finished.stdout.lines().filter(|line| !line.is_empty());
    let headline = lines.next().unwrap();
    assert!(headline.starts_with("weir demo: FAILED, "), "{headline}");
    let failed: Vec<&str> = lines.take_while(|line| !line.starts_with("run ")).collect();
    let is_told = |line: &&str| line.starts_with("FAILED burst-loss: the switch fired 0, ");
    assert!(failed.iter().any(is_told), "{failed:?}");
    assert!(
        finished
            .stdout
            .lines()
            .all(|line| line.chars().count() <= 80),
        "{}",
        finished.stdout
    );
    let page = std::fs::read_to_string(folder.path().join("weir-demo.html")).unwrap();
    assert!(page.contains(">FAILED, "), "{page}");
}

#[test]
fn too_few_iterations_are_refused_with_the_least_number() {
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let finished = run(folder.path(), &["demo", "--iterations", "2"]);
    finished.expect_code(ERROR);
    assert!(
        finished.stderr.contains("2 is not in 15..=10000"),
        "{}",
        finished.stderr
    );
}

#[test]
fn killed_in_mid_run_it_leaves_no_process_behind() {
    if !has_namespaces("demo killed in mid-run") {
        return;
    }
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    // Two switches, nine agents, the inner weir and its init.
    killed_it_leaves_nothing(weir(folder.path(), &["demo", "--json"]), 13);
}

/// A program of tests, which starts processes from threads, as here.
#[test]
fn a_killed_test_leaves_no_process_behind() {
    let _turn = alone();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let this = test_support::path_of_test("a_killed_test_leaves_no_process_behind");
    let (module, _) = this.rsplit_once("::").unwrap();
    let test = format!("{module}::a_falsified_fault_counter_is_noticed_and_progress_is_told");
    command.args(["--exact", &test]);
    // Two switches and nine agents.
    killed_it_leaves_nothing(command, 11);
}

/// Kills a command once it has started so many processes.
fn killed_it_leaves_nothing(mut command: Command, processes: usize) {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while descendants(child.id()).len() < processes && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let running = descendants(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(running.len() >= processes, "{running:?}");
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
