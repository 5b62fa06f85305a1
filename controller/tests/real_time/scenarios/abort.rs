//! Runs that a condition of their scenario ends: at once, with a status of their own, and proved up to there.

use serde_json::Value;

use super::commands::run;
use super::*;

/// What answers, and who waits for ever.
const PROGRAMS: [&str; 2] = [
    "{name: echo, host: b, ready: {log: up}, run: [python3, -c, \"import socket; s = socket.socket(socket.AF_INET, \
     socket.SOCK_DGRAM); s.bind(('0.0.0.0', 7)); print('up', flush=True)\\nwhile True: d, a = s.recvfrom(99); \
     s.sendto(d, a)\"]}",
    "{name: wait, host: a, run: sleep 40}",
];
const PROBE: &str =
    "probes: {echo: {from: a, udp: \"b:7\", send: hello, every: 10ms, timeout: 200ms}}
flows: {asks: {from: a, to: b, filter: udp.dport == 7}}
";

fn aborted(finished: &Finished) -> (Value, String) {
    finished.expect_code(ABORTED);
    let run = finished.json();
    assert_eq!(run["ok"], false);
    let wall = run["wall_s"].as_f64().unwrap();
    assert!(wall < 20.0, "{wall} s");
    assert!(run["aborted"]["disarmed_ns"].as_u64().unwrap() < 1_000_000_000);
    assert_eq!(run["expectations"].as_array().unwrap().len(), 0);
    let fault = &run["faults"][0];
    assert_eq!(fault["proved"], true, "{fault}");
    let reason = run["aborted"]["reason"].as_str().unwrap().to_owned();
    (run, reason)
}

#[test]
fn a_service_that_answers_no_more_ends_the_run() {
    if !has_namespaces("abort") || !has_program("abort", "python3") {
        return;
    }
    let _turn = beside();
    let finished = run(
        &PROGRAMS,
        &format!(
            "{PROBE}timeline: [{{name: cut, at: 400ms}}]
faults: [{{id: gone, flows: asks, effect: drop, during: cut}}]
abort_if: [run.wall > 30s, probe.echo.failures > 10]
expect: [fault.gone.fired == 1]"
        ),
    );
    let (run, reason) = aborted(&finished);
    assert!(
        reason.starts_with("probe.echo.failures > 10  ("),
        "{reason}"
    );
    assert!(run["aborted"]["at_ns"].as_u64().unwrap() > 400_000_000);
}

#[test]
fn no_more_packets_are_hit_than_the_file_allows_and_those_of_one_look() {
    if !has_namespaces("hits") || !has_program("hits", "python3") {
        return;
    }
    let _turn = beside();
    let finished = run(
        &PROGRAMS,
        &format!("{PROBE}faults: [{{id: gone, flows: asks, effect: drop}}]\nlimits: {{hits: 20}}"),
    );
    let (run, reason) = aborted(&finished);
    assert!(reason.contains("`limits.hits` is 20"), "{reason}");
    let fired = run["faults"][0]["fired"].as_u64().unwrap();
    assert!((21..200).contains(&fired), "{fired}");
}
