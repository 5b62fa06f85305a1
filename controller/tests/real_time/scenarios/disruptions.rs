//! Programs that are paused, killed and stopped in mid-run, and switches that restart: what is done, seen, told and left.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::leftovers::Watched;
use crate::support::*;

/// A scenario of two hosts with these commands, a line each.
fn scenario(commands: &[&str], rest: &str) -> String {
    let commands: String = commands
        .iter()
        .map(|line| format!("    - {line}\n"))
        .collect();
    format!(
        "weir: 1\nname: t\ntopology: {{star: {{hosts: [a, b], switch: sw}}}}\nworkload:\n  commands:\n{commands}{rest}\n"
    )
}

fn run_in(folder: &Path, text: &str, arguments: &[&str]) -> Finished {
    fs::write(folder.join("t.yaml"), text).unwrap();
    let arguments = [&["run", "t.yaml", "--json"], arguments].concat();
    Watched::weir(folder, &arguments).run()
}

fn run(commands: &[&str], rest: &str) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), &scenario(commands, rest), &[])
}

/// The only disruption of a run.
fn only(run: &Value) -> &Value {
    let all = run["disruptions"].as_array().unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    &all[0]
}

fn counts(fault: &Value) -> (u64, u64, bool) {
    let count = |what: &str| fault[what].as_u64().unwrap();
    (
        count("fired"),
        count("observed"),
        fault["proved"].as_bool().unwrap(),
    )
}

fn command<'r>(run: &'r Value, name: &str) -> &'r Value {
    let all = run["commands"].as_array().unwrap();
    all.iter().find(|command| command["name"] == name).unwrap()
}

/// Between which two lines, each a time in ns, the longest time is.
fn longest_gap(text: &str) -> u64 {
    let times = text.lines().filter_map(|line| line.parse::<u64>().ok());
    let times: Vec<u64> = times.collect();
    times
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap_or(0)
}

/// It leads a session of its own, as the backends of databases do: a signal to the service's group does not reach it.
const TICKING: &str = "{name: ticking, host: b, ready: started, \
    run: \"setsid sh -c 'while :; do date +%s%N; sleep 0.01; done' & wait\"}";
const FROZEN: &str = "timeline: [{name: frozen, at: 300ms, for: 500ms}]
faults: [{id: freeze, effect: {pause: ticking}, during: frozen}]";

#[test]
fn a_paused_service_stands_still_with_all_its_processes_and_goes_on() {
    if !has_namespaces("pause") {
        return;
    }
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = scenario(
        &[TICKING, "{name: wait, host: a, run: sleep 1.3}"],
        &format!("{FROZEN}\nexpect: [fault.freeze.fired == fault.freeze.observed]"),
    );
    let finished = run_in(folder, &text, &["--captures", "all", "--out", "run"]);
    finished.expect_code(PASSED);
    let run = finished.json();
    let freeze = only(&run);
    assert_eq!(counts(freeze), (1, 1, true), "{freeze}");
    assert_eq!(
        (&freeze["on"], &freeze["host"]),
        (&"ticking".into(), &"b".into())
    );
    let time = &freeze["times"][0];
    // A shell that waits, one that ticks, and mostly the sleep or date that it has started.
    assert!(time["processes"].as_u64().unwrap() >= 2, "{time}");
    let at = |what: &str| time[what].as_u64().unwrap();
    assert!(
        at("asked_ns") <= at("done_ns") && at("undo_ns") <= at("undone_ns"),
        "{time}"
    );
    let paused = at("undo_ns") - at("done_ns");
    assert!((400_000_000..2_000_000_000).contains(&paused), "{paused}");
    let ticks = fs::read_to_string(folder.join("run/ticking.stdout")).unwrap();
    assert!(longest_gap(&ticks) >= paused, "{}", longest_gap(&ticks));
    // It went on: there are ticks behind the gap.
    let last: u64 = ticks.lines().next_back().unwrap().parse().unwrap();
    assert!(last > at("undo_ns"), "{last} {time}");
    // What the folder keeps of it.
    let events = fs::read_to_string(folder.join("run/events.jsonl")).unwrap();
    let event: Value = serde_json::from_str(events.trim()).unwrap();
    assert_eq!(event["fault"], "freeze");
    assert_eq!(
        (&event["effect"], &event["outcome"]),
        (&"pause".into(), &"hit".into())
    );
    assert_eq!(event["done_ns"], time["done_ns"]);
    let page = fs::read_to_string(folder.join("run/report.html")).unwrap();
    assert!(page.contains("Faults of programs and switches"));
    // Its only time, and the command itself.
    assert_eq!(page.matches("<td>ticking</td>").count(), 2, "{page}");
    let again = Watched::weir(folder, &["replay", "run", "--json"]).run();
    again.expect_code(PASSED);
    assert_eq!(again.json()["disruptions"][0], *freeze);
    let again = Watched::weir(folder, &["replay", "run", "--live", "second", "--json"]).run();
    again.expect_code(PASSED);
    let compared = &again.json()["disruptions"][0];
    assert_eq!(compared["as_planned"], true, "{compared}");
    assert_eq!(compared["carried"], serde_json::json!([1, 1]));
}

#[test]
fn a_killed_service_is_no_failure_of_the_run_and_comes_back_if_it_is_to() {
    if !has_namespaces("kill") || !has_program("kill", "python3") {
        return;
    }
    let _turn = beside();
    let service = "{name: web, host: b, ready: {tcp: 80}, run: [python3, -m, http.server, \"80\"], dir: \"{dir}\"}";
    let probes = "probes: {port: {from: a, tcp: \"b:80\", every: 20ms, timeout: 200ms}}
timeline: [{name: down, at: 300ms, for: 400ms}]";
    let wait = "{name: wait, host: a, run: sleep 3}";
    let finished = run(
        &[service, wait],
        &format!(
            "{probes}\nfaults: [{{id: crash, effect: {{kill: {{command: web, restart: true}}}}, during: down}}]
expect: [fault.crash.observed == 1, probe.port.failures >= 5, command.web.failures == 0]"
        ),
    );
    finished.expect_code(PASSED);
    let result = finished.json();
    let crash = only(&result);
    assert_eq!(counts(crash), (1, 1, true), "{crash}");
    assert!(crash["times"][0]["undone_ns"].is_u64(), "{crash}");
    let web = command(&result, "web");
    assert_eq!(
        (&web["ended_by_faults"], &web["runs"], &web["exit"]),
        (&1.into(), &2.into(), &Value::Null),
        "{web}"
    );
    // After its restart it answers.
    let samples = result["probes"][0]["samples"].as_array().unwrap();
    assert!(samples.last().unwrap()[1].is_number(), "{samples:?}");
    // For good.
    let finished = run(
        &[service, "{name: wait, host: a, run: sleep 1}"],
        &format!(
            "{probes}\nfaults: [{{id: crash, effect: {{kill: web}}, during: down}}]\nexpect: [fault.crash.fired == 1]"
        ),
    );
    finished.expect_code(PASSED);
    let result = finished.json();
    assert!(only(&result)["times"][0]["undo_ns"].is_null());
    assert_eq!(command(&result, "web")["runs"], 1);
    // A real end is still one, also while another service is disrupted.
    let mortal = "{name: mortal, host: b, run: \"sleep 0.5; exit 3\", ready: started}";
    let finished = run(
        &[service, mortal, wait],
        &format!("{probes}\nfaults: [{{id: crash, effect: {{kill: web}}, during: down}}]"),
    );
    finished.expect_code(ERROR);
    assert!(
        finished
            .stderr
            .contains("service `mortal` on b ended during the run: exit code 3"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_service_that_does_not_come_back_is_what_the_fault_has_shown() {
    if !has_namespaces("restart") {
        return;
    }
    let _turn = beside();
    let finished = run(
        &[
            "{name: once, host: b, ready: {log: up}, \
             run: \"test -e {dir}/x && echo it is locked >&2 && exit 3; touch {dir}/x; echo up; sleep 100\"}",
            "{name: wait, host: a, run: sleep 1.2}",
        ],
        "timeline: [{name: down, at: 200ms, for: 200ms}]
faults: [{id: crash, effect: {kill: {command: once, restart: true}}, during: down}]",
    );
    finished.expect_code(FAILED);
    let result = finished.json();
    let crash = only(&result);
    assert_eq!(counts(crash), (1, 0, false), "{crash}");
    assert_eq!(
        crash["reason"],
        "it ended before it was ready again: exit code 3: it is locked"
    );
    assert_eq!(command(&result, "once")["exit"], 3);
}

#[test]
fn a_service_is_stopped_by_its_own_signal_and_killed_if_it_does_not_hear() {
    if !has_namespaces("stop") {
        return;
    }
    let _turn = beside();
    let polite = "trap 'echo bye; exit 0' INT; while :; do sleep 0.02; done";
    let deaf = "trap '' TERM; while :; do sleep 0.02; done";
    let text = scenario(
        &[
            &format!("{{name: polite, host: b, ready: started, stop: INT, run: \"{polite}\"}}"),
            &format!(
                "{{name: deaf, host: b, ready: started, stop: {{signal: TERM, within: 200ms}}, run: \"{deaf}\"}}"
            ),
            "{name: wait, host: a, run: sleep 1.2}",
        ],
        "timeline: [{name: down, at: 200ms, for: 600ms}]
faults:
  - {id: ask, effect: {stop: polite}, during: down}
  - {id: force, effect: {stop: {command: deaf, restart: true}}, during: down}
expect: [fault.ask.fired == fault.ask.observed]",
    );
    // As a script starts what it puts in the background: it ignores SIGINT, and what it starts would.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.yaml"), text).unwrap();
    let mut script = Command::new("/bin/sh");
    script.args(["-c", "trap '' INT; exec \"$@\"", "sh"]);
    script.arg(env!("CARGO_BIN_EXE_weir"));
    script.args(["run", "t.yaml", "--json"]);
    script.current_dir(folder.path()).stdin(Stdio::null());
    let finished = Watched::command(script).run();
    finished.expect_code(PASSED);
    let result = finished.json();
    let said = |name: &str| command(&result, name)["stdout"]["tail"].clone();
    assert_eq!(said("polite"), "bye\n");
    let [ask, force] = [0, 1].map(|index| &result["disruptions"][index]);
    assert_eq!(counts(ask), (1, 1, true), "{ask}");
    assert!(ask["reason"].is_null(), "{ask}");
    assert_eq!(counts(force), (1, 1, true), "{force}");
    assert_eq!(
        force["reason"],
        "it did not end after its stop signal, and was killed"
    );
    let time = &force["times"][0];
    let took = time["done_ns"].as_u64().unwrap() - time["asked_ns"].as_u64().unwrap();
    assert!(took >= 200_000_000, "{took}");
}

/// A driver that a fault ends has not failed: its run is begun anew, or never.
#[test]
fn drivers_are_disrupted_as_services_are() {
    if !has_namespaces("drivers") {
        return;
    }
    let _turn = beside();
    let finished = run(
        &[
            "{name: again, host: a, run: \"echo run {n}; sleep 0.6\", repeat: 2}",
            "{name: gone, host: a, run: sleep 60}",
            "{name: loops, host: b, run: \"date +%s%N\", repeat: {for: 1500ms, pause: 10ms}}",
        ],
        "timeline: [{name: down, at: 200ms, for: 500ms}]
faults:
  - {id: crash, effect: {kill: {command: again, restart: true}}, during: down}
  - {id: end, effect: {kill: gone}, during: down}
  - {id: hold, effect: {pause: loops}, during: down}
expect: [command.again.failures == 0, command.again.runs == 2]",
    );
    finished.expect_code(PASSED);
    let result = finished.json();
    for fault in result["disruptions"].as_array().unwrap() {
        assert_eq!(counts(fault), (1, 1, true), "{fault}");
    }
    let again = command(&result, "again");
    assert_eq!(again["ended_by_faults"], 1, "{again}");
    assert_eq!(again["stdout"]["tail"], "run 1\nrun 1\nrun 2\n");
    let gone = command(&result, "gone");
    assert_eq!(
        (&gone["ended_by_faults"], &gone["runs"], &gone["exit"]),
        (&1.into(), &0.into(), &Value::Null)
    );
    // Whether it ran when it was paused or was between two runs: none began meanwhile.
    let loops = command(&result, "loops");
    let said = loops["stdout"]["tail"].as_str().unwrap();
    assert!(longest_gap(said) >= 400_000_000, "{said}");
    assert_eq!(loops["failures"], 0);
}

#[test]
fn a_switch_restarts_with_all_that_it_was_told() {
    if !has_namespaces("restart") || !has_program("restart", "ping") {
        return;
    }
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let ping = "{name: ping, host: a, run: [ping, -n, -c, \"100\", -i, \"0.02\", -W, \"1\", b], metrics: {received: {regex: '([0-9]+) received'}}}";
    // The other switch has a fault, and its lease goes on meanwhile.
    let text = scenario(
        &[ping],
        "flows: {asks: {from: a, to: b, filter: icmp.type == 8}}
lease: 400ms
timeline: [{name: reboot, at: 500ms, for: 400ms}, {name: after, on: fault.reboot.fired >= 1}]
faults:
  - {id: reboot, effect: {restart: {switch: y, after: 200ms}}, during: reboot}
  - {id: lost, flows: asks, effect: drop, select: {every: 10}, where: x}
expect:
  - fault.reboot.fired == fault.reboot.observed
  - fault.reboot.collateral == 0
  - command.ping.exit >= 0
  - command.ping.received >= 40",
    )
    .replace(
        "{star: {hosts: [a, b], switch: sw}}",
        "{hosts: [a, b], switches: [x, y], links: [[a, x], [x, y], [y, b]]}",
    );
    let finished = run_in(folder.path(), &text, &["--captures", "all", "--out", "run"]);
    finished.expect_code(PASSED);
    let run = finished.json();
    let reboot = only(&run);
    assert_eq!(counts(reboot), (1, 1, true), "{reboot}");
    let time = &reboot["times"][0];
    let at = |what: &str| time[what].as_u64().unwrap();
    assert!(at("undo_ns") - at("done_ns") >= 200_000_000, "{time}");
    let lost = &run["faults"][0];
    assert_eq!(
        (&lost["fired"], &lost["proved"]),
        (&10.into(), &true.into()),
        "{lost}"
    );
    // Ten are dropped, and about ten meet no switch.
    let received = run["metrics"]["command.ping.received"].as_f64().unwrap();
    assert!((40.0..=88.0).contains(&received), "{received}");
    assert_eq!(run["steps"][1]["step"], "after");
    Watched::weir(folder.path(), &["replay", "run"])
        .run()
        .expect_code(PASSED);
}

/// Where nothing of ours runs.
#[test]
fn who_has_started_nothing_refuses_to_end_it() {
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let text = scenario(
        &["{name: wait, host: a, run: sleep 1}"],
        "faults: [{id: freeze, effect: {pause: wait}}, {id: reboot, effect: {restart: sw}}]",
    );
    fs::write(folder.path().join("t.yaml"), text).unwrap();
    for arguments in [
        &["control", "t.yaml", "--switch", "sw=127.0.0.1:1"][..],
        &["plan", "t.yaml", "--target", "tofino2"],
    ] {
        let refused = crate::support::run(folder.path(), arguments);
        refused.expect_code(ERROR);
        for said in [
            "this target cannot pause a program: weir does not start programs on its hosts",
            "this target cannot restart a switch: weir does not start its switches",
        ] {
            assert!(refused.stderr.contains(said), "{}", refused.stderr);
        }
    }
}

/// However a run ends, nobody is left standing still: [`Watched`] looks for all that inherited its mark.
#[test]
fn nobody_stays_paused_however_a_run_ends() {
    if !has_namespaces("pause") {
        return;
    }
    let _turn = beside();
    let forever = "timeline: [{name: frozen, at: 100ms}]
faults: [{id: freeze, effect: {pause: ticking}, during: frozen}]";
    let wait = "{name: wait, host: a, run: sleep 30}";
    // Its drivers end: it goes on, and is stopped as it would have been.
    let finished = run(&[TICKING, "{name: wait, host: a, run: sleep 0.6}"], forever);
    finished.expect_code(PASSED);
    let result = finished.json();
    let freeze = only(&result);
    assert_eq!(counts(freeze), (1, 1, true), "{freeze}");
    assert!(freeze["times"][0]["undone_ns"].is_u64(), "{freeze}");
    assert!(
        !finished.stdout.contains("did not end after"),
        "{}",
        finished.stdout
    );
    // A condition ends it.
    let aborting = format!("{forever}\nabort_if: [fault.freeze.fired >= 1]");
    let finished = run(&[TICKING, wait], &aborting);
    finished.expect_code(ABORTED);
    assert_eq!(counts(only(&finished.json())), (1, 1, true));
    // Its time is over, while a driver stands still.
    let driver = forever.replace("ticking", "wait");
    let finished = run(&[wait], &format!("{driver}\nlimits: {{time: 500ms}}"));
    finished.expect_code(ERROR);
    // Somebody ends it: by a signal that it hears, and by one that it does not.
    for signal in ["INT", "KILL"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("t.yaml"),
            scenario(&[TICKING, wait], forever),
        )
        .unwrap();
        Watched::weir(folder.path(), &["run", "t.yaml"]).run_while(|weir| {
            let id = weir.id();
            let stands_still = || {
                let states = descendants(id)
                    .into_iter()
                    .map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default());
                states.filter(|stat| stat.contains(") T ")).count() >= 2
            };
            while !stands_still() {
                assert!(weir.try_wait().unwrap().is_none(), "it ended");
                std::thread::sleep(Duration::from_millis(10));
            }
            let kill = format!("kill -{signal} {id}");
            let sent = std::process::Command::new("sh")
                .args(["-c", &kill])
                .status();
            assert!(sent.unwrap().success());
        });
    }
}
