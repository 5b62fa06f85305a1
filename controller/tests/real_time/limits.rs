//! `limits` and the latency of links act in every workload: runs of the real binary, in namespaces.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::support::*;

/// Two hosts and a switch between them.
const BASE: &str = "weir: 1\nname: limited\nseed: 1\ntopology:\n  star: {hosts: [a, s]}\n";
const REDIS: &str = "workload: !redis {server: s, clients: {a: {requests: 40, commands: [\"SET k:{n}\"], pause: 100ms}}}\n";
const TRAINING: &str = "workload: !training {server: s, workers: [a], iterations: 5000}\n";
const IDLE: &str = "workload: !idle {for: 20s}\n";

/// The lines after `BASE` and the workload, so that a limit stands in line 7.
fn limited(workload: &str, limit: &str) -> String {
    format!("{BASE}{workload}limits: {{{limit}}}\n")
}

/// Runs a scenario that passes its limit; what it said of that.
fn over(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), text).unwrap();
    let finished = run(folder.path(), &["run", "s.yaml"]);
    finished.expect_code(ERROR);
    finished.stderr
}

fn has_redis(test: &str) -> bool {
    has_namespaces(test) && has_program(test, "redis-server")
}

#[test]
fn redis_ends_when_its_time_is_up() {
    if !has_redis("redis_ends_when_its_time_is_up") {
        return;
    }
    let _turn = beside();
    let said = over(&limited(REDIS, "time: 1s"));
    let expected = "s.yaml:7:16: limits.time (1s) is reached: 0 of 1 clients, waiting for a";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn training_ends_when_its_time_is_up() {
    if !has_namespaces("training_ends_when_its_time_is_up") {
        return;
    }
    let _turn = beside();
    let said = over(&limited(TRAINING, "time: 1s"));
    let expected = "s.yaml:7:16: limits.time (1s) is reached: ";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains(" of 5000 iterations"), "{said}");
}

#[test]
fn idling_ends_when_its_time_is_up() {
    if !has_namespaces("idling_ends_when_its_time_is_up") {
        return;
    }
    let _turn = beside();
    let said = over(&limited(IDLE, "time: 1s"));
    let expected = "s.yaml:7:16: limits.time (1s) is reached: 1 of 20 s";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn control_ends_when_its_time_is_up() {
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let started = |command: &mut Command| {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Running(piped.stderr(Stdio::piped()).spawn().unwrap())
    };
    let line = "switch --no-p4 --device-id 1 --grpc-server-addr 127.0.0.1:0";
    let args: Vec<&str> = line.split_whitespace().collect();
    let mut switch = started(&mut weir(folder.path(), &args));
    let mut first = String::new();
    let mut lines = BufReader::new(switch.0.stdout.take().unwrap());
    lines.read_line(&mut first).unwrap();
    let address = first.split("P4Runtime at ").nth(1).unwrap();
    let address = address.split(',').next().unwrap();

    let text = limited("workload: !idle {for: 1s}\n", "time: 1s");
    std::fs::write(folder.path().join("s.yaml"), text).unwrap();
    let at = format!("sw={address}");
    let mut control = started(&mut weir(
        folder.path(),
        &["control", "s.yaml", "--switch", &at],
    ));
    // Kept open: only the limit ends it.
    let mut stdin = control.0.stdin.take().unwrap();
    stdin.write_all(b"go\n").unwrap();
    assert_eq!(control.0.wait().unwrap().code(), Some(ERROR));
    let said = std::io::read_to_string(control.0.stderr.take().unwrap()).unwrap();
    let expected = "s.yaml:7:16: limits.time (1s) is reached: ";
    assert!(said.contains(expected), "{said}");
}

/// Runs a scenario whose client asks twenty times, one after the other; the fastest answer, in milliseconds.
fn fastest_ms(topology: &str) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let workload =
        "workload: !redis {server: s, clients: {a: {requests: 20, commands: [\"GET k\"]}}}";
    let text = format!("weir: 1\nname: slow\ntopology:\n{topology}{workload}\n");
    std::fs::write(folder.path().join("s.yaml"), text).unwrap();
    let finished = run(folder.path(), &["run", "s.yaml", "--json"]);
    finished.expect_code(PASSED);
    finished.json()["metrics"]["client.a.min_ns"]
        .as_f64()
        .unwrap()
        / 1e6
}

/// What the machine may add to a request, as the plan's bound has it.
const BOUND_MS: f64 = 5.2;

#[test]
fn a_link_takes_its_latency_each_way() {
    if !has_redis("a_link_takes_its_latency_each_way") {
        return;
    }
    let _turn = alone();
    let host =
        "  switches: [sw]\n  hosts: [a, s]\n  links: [{ends: [a, sw], latency: 10ms}, [s, sw]]\n";
    let took = fastest_ms(host);
    assert!((20.0..20.0 + BOUND_MS).contains(&took), "{took} ms");
    // One of the two switches holds each frame, not both.
    let between = "  switches: [n, f]\n  hosts: [a, s]\n  \
                   links: [[a, n], [s, f], {ends: [n, f], latency: 10ms}]\n";
    let took = fastest_ms(between);
    assert!((20.0..20.0 + BOUND_MS).contains(&took), "{took} ms");
    let took = fastest_ms("  star: {hosts: [a, s]}\n");
    assert!(took < BOUND_MS, "{took} ms");
}
