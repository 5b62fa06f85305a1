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

/// Sends 100 datagrams to a multicast address, which no entry of the switch forwards.
const MULTICASTS: &str = "{name: send, host: a, run: [python3, -c, \"import socket, time; s = socket.socket(socket.AF_INET, \
     socket.SOCK_DGRAM); s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('{host.a.ip}'))\\nfor n in \
     range(100): s.sendto(b'%03d' % n, ('239.1.2.3', 9000)); time.sleep(0.002)\"]}";

#[test]
fn hits_on_packets_without_a_way_out_are_named_by_what_they_end_and_prove_nothing() {
    if !has_namespaces("multicasts") || !has_program("multicasts", "python3") {
        return;
    }
    let _turn = beside();
    let rest = "flows: {m: {from: a, filter: udp.dport == 9000}}
faults: [{id: late, flows: m, effect: {delay: 20ms}}]
";
    let finished = run(
        &[MULTICASTS],
        &format!("{rest}expect: [fault.late.fired == 100]"),
    );
    finished.expect_code(FAILED);
    let judged = finished.json();
    let metric = |name: &str| judged["metrics"][name].as_f64().unwrap();
    let fault = |what: &str| metric(&format!("fault.late.{what}"));
    assert_eq!((fault("fired"), fault("unforwarded")), (0.0, 100.0));
    assert_eq!(
        (metric("flow.m.sent"), metric("flow.m.lost")),
        (100.0, 100.0)
    );
    let switch = judged["metrics"].as_object().unwrap();
    let mut sent = switch
        .iter()
        .filter(|(name, _)| name.starts_with("switch.") && name.ends_with(".sent"));
    assert_eq!(sent.next().unwrap().1.as_f64(), Some(0.0));
    let limited = ["abort_if: [fault.late.fired > 5]", "limits: {hits: 5}"];
    for limit in limited {
        let finished = run(&[MULTICASTS], &format!("{rest}{limit}"));
        finished.expect_code(ABORTED);
        let run = finished.json();
        let fault = &run["faults"][0];
        let reason = run["aborted"]["reason"].as_str().unwrap();
        let unforwarded = fault["unforwarded"].as_u64().unwrap();
        assert_eq!(fault["fired"], 0, "{fault}");
        let told = format!(
            "; {unforwarded} of the packets hit in this run had no route out of the switch"
        );
        assert!(unforwarded > 5 && reason.ends_with(&told), "{reason}");
    }
}
