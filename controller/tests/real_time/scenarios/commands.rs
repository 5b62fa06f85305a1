//! Programs of the user's, in namespaces: what they are given, what is read from them, and what is left of them.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::support::leftovers::{Watched, files};
use crate::support::*;

/// A scenario of two hosts with these commands, a line each.
fn scenario(commands: &[&str], rest: &str) -> String {
    let commands: String = commands
        .iter()
        .map(|line| format!("    - {line}\n"))
        .collect();
    format!(
        "weir: 1\nname: t\ntopology: {{star: {{hosts: [a, b]}}}}\nworkload:\n  commands:\n{commands}{rest}\n"
    )
}

fn run_in(folder: &Path, text: &str, arguments: &[&str]) -> Finished {
    std::fs::write(folder.join("t.yaml"), text).unwrap();
    let arguments = [&["run", "t.yaml"], arguments].concat();
    Watched::weir(folder, &arguments).run()
}

pub(super) fn run(commands: &[&str], rest: &str) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), &scenario(commands, rest), &["--json"])
}

fn metric(run: &Value, name: &str) -> f64 {
    run["metrics"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name}: {:#}", run["metrics"]))
}

#[test]
fn commands_get_what_the_file_says_and_their_numbers_are_read() {
    if !has_namespaces("commands") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let text = scenario(
        &[
            r#"{name: data, host: b, run: "echo prepared > {dir}/x; cp {dir}/x {here}/y", ready: {exit: 0}}"#,
            r#"{name: log, host: b, run: "echo starting; sleep 0.1; echo it is up; exec sleep 100", ready: {log: "is up$"}}"#,
            r#"{name: file, host: b, run: "cd {dir}; sleep 0.1; touch up; trap 'exit 7' INT; while :; do sleep 0.01; done", ready: {file: "{dir}/up"}, stop: INT}"#,
            r#"{name: words, host: a, run: [sh, -c, "echo \"$A $B $PWD $0\"; grep -m1 -w b /etc/hosts", "{n}"], env: {A: "{host.b.ip}", B: 7}, dir: "{dir}"}"#,
            r#"{name: many, host: a, run: "echo n={n} ms, {n}0 kB >&2; test {n} != 2", repeat: {times: 4, pause: 1ms}, metrics: {n: {regex: "n=(.*) ms", unit: ms}, size: {regex: "([0-9]+) kB", unit: kB}}}"#,
            r#"{name: json, host: a, run: "echo noise; echo '{\"a\": {\"b\": [1, {n}]}}'", repeat: {for: 100ms, pause: 20ms}, metrics: {b: {json: /a/b/1}}}"#,
            r#"{name: killed, host: a, run: "kill -9 $$"}"#,
        ],
        "expect: [command.many.failures == 1, command.killed.exit == 137, command.many.n.max == 4ms, \
         command.many.size == 40kB, command.json.b >= 2, run.wall < 60s]",
    );
    let finished = run_in(folder.path(), &text, &["--json", "--out", "out"]);
    finished.expect_code(PASSED);
    let run = finished.json();
    assert_eq!(files(folder.path()), ["out", "t.yaml", "y"]);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("y"), "prepared\n");
    let words = read("out/words.stdout");
    assert!(words.starts_with("10.0.0.2 7 /"), "{words}");
    assert!(words.ends_with("/words 1\n10.0.0.2 b\n"), "{words}");
    assert_eq!(read("out/many.stderr").lines().count(), 4);
    assert_eq!(read("out/log.stdout"), "starting\nit is up\n");
    for (name, value) in [
        ("command.data.exit", 0.0),
        ("command.many.runs", 4.0),
        ("command.many.exit", 1.0),
        ("command.many.duration.count", 4.0),
        ("command.many.n.mean_ns", 2_500_000.0),
        ("command.many.size_bytes", 40_000.0),
        ("command.words.failures", 0.0),
    ] {
        assert_eq!(metric(&run, name), value, "{name}");
    }
    let runs = metric(&run, "command.json.runs");
    assert!((2.0..=6.0).contains(&runs), "{runs}");
    assert_eq!(metric(&run, "command.json.b"), runs);
    assert!(metric(&run, "command.many.duration.max_ns") > 100_000.0);
    let page = read("out/report.html");
    assert!(page.contains("n=3 ms, 30 kB") && page.contains("it is up"));
    let many = &run["commands"][4];
    assert_eq!(
        (&many["name"], &many["failures"]),
        (&"many".into(), &1.into())
    );
    assert!(
        many["stderr"]["tail"]
            .as_str()
            .unwrap()
            .ends_with("n=4 ms, 40 kB\n")
    );
}

/// Not even what left its process group: [`Watched`] looks for all that inherited its mark.
#[test]
fn nothing_survives_a_run_however_it_ends() {
    if !has_namespaces("what survives") {
        return;
    }
    let _turn = beside();
    let escape = "setsid sleep 997 & trap : TERM INT; sleep 998; sleep 999";
    let service = format!(
        "{{name: s, host: b, run: \"{escape}\", ready: started, stop: {{signal: INT, within: 50ms}}}}"
    );
    let finished = run(
        &[
            &service,
            "{name: d, host: a, run: \"sleep 0.3; setsid sleep 996 &\"}",
        ],
        "",
    );
    finished.expect_code(PASSED);
    // The limit, while a driver runs.
    let driver = format!("{{name: d, host: a, run: \"{escape}\"}}");
    let finished = run(&[&service, &driver], "limits: {time: 500ms}");
    finished.expect_code(ERROR);
    assert_eq!(
        finished.stderr,
        "weir: t.yaml:8:16: limits.time (500ms) is reached: 0 of 1 drivers, waiting for d (0 runs)\n"
    );
    // Killed, with no chance to clean up.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("t.yaml"),
        scenario(&[&service, &driver], ""),
    )
    .unwrap();
    let killed = Watched::weir(folder.path(), &["run", "t.yaml"]).run_while(|weir| {
        let id = weir.id();
        let is_up = || {
            let lines = descendants(id).into_iter().map(|pid| {
                std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()
            });
            lines.filter(|line| line.contains("998")).count() >= 4
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
fn what_goes_wrong_with_a_service_is_told() {
    if !has_namespaces("services that fail") {
        return;
    }
    let _turn = beside();
    let driver = "{name: d, host: a, run: sleep 5}";
    let cases = [
        "run: \"echo no luck >&2; exit 3\", ready: {tcp: 80}",
        "run: \"sleep 100 &\", ready: {tcp: 80}",
        "run: \"echo hello; sleep 100\", ready: {tcp: 80, within: 300ms}",
        "run: \"sleep 100\", ready: {log: \"up$\", within: 300ms}",
        "run: \"sleep 100\", ready: {file: /nowhere, within: 300ms}",
        "run: \"sleep 100\", ready: {exit: 0, within: 300ms}",
        "run: \"exit 1\", ready: {exit: 0}",
        "run: \"sleep 0.3; echo bye; kill $$\", ready: started",
        "run: [./not-there], ready: started, dir: /",
    ];
    let told: String = cases
        .iter()
        .map(|case| {
            let service = format!("{{name: s, host: b, {case}}}");
            let finished = run(&[&service, driver], "");
            finished.expect_code(ERROR);
            format!("{case}\n{}\n", finished.stderr)
        })
        .collect();
    insta::assert_snapshot!(told);
}

/// A program that serves one connection: the readiness probe is that connection, and no client gets one.
#[test]
fn a_service_that_its_readiness_probe_ends_is_told_so() {
    if !has_namespaces("one-shot services") || !has_program("one-shot services", "python3") {
        return;
    }
    let _turn = beside();
    let listen =
        "import socket; s = socket.socket(); s.bind(('', 80)); s.listen(); c, _ = s.accept()";
    let connect = "import socket; socket.create_connection(('{host.b.ip}', 80), 1)";
    let client = format!(
        "{{name: d, host: a, run: [sh, -c, \"sleep 0.1; exec python3 -c \\\"{connect}\\\"\"]}}"
    );
    let patient = "{name: d, host: a, run: sleep 5}";
    let hint = "`ready: {tcp: 80}` makes weir connect to check whether the service is ready";
    let service = |then: &str, ready: &str| {
        format!("{{name: s, host: b, run: [python3, -c, \"{listen}{then}\"], ready: {ready}}}")
    };
    // It closes its socket and goes on: what its client finds is refused.
    let closes = "; s.close(); import time; time.sleep(3)";
    let finished = run(&[&service(closes, "{tcp: 80}"), &client], "");
    finished.expect_code(FAILED);
    let told = format!("{}{}", finished.stdout, finished.stderr);
    let probed = "`ready: {tcp: 80}` has connected to service `s`";
    assert!(told.contains(probed), "{told}");
    // It ends in good order, or with an error; its client fails, or waits. Which of the two ends is found first is open.
    for (then, driver) in [
        ("", client.as_str()),
        ("", patient),
        ("; c.recv(1)[0]", patient),
    ] {
        let finished = run(&[&service(then, "{tcp: 80}"), driver], "");
        assert_ne!(finished.code, Some(PASSED), "{then} {driver}");
        let told = format!("{}{}", finished.stdout, finished.stderr);
        assert!(told.contains(hint), "{then} {driver}\n{told}");
    }
    let finished = run(
        &[
            &service("", "{log: up}").replace("c, _ =", "print('up', flush=True); c, _ ="),
            &client,
        ],
        "",
    );
    finished.expect_code(PASSED);
    let late = service("; import time; time.sleep(1.5)", "{tcp: 80}");
    let finished = run(&[&late, patient], "");
    finished.expect_code(ERROR);
    assert!(!finished.stderr.contains(hint), "{}", finished.stderr);
}

/// A group that holds text counts nothing, and the run says what to do.
#[test]
fn a_metric_whose_group_is_text_is_told_so() {
    if !has_namespaces("text groups") {
        return;
    }
    let _turn = beside();
    let driver = "{name: d, host: a, run: \"echo GET ok; echo PUT ok\", metrics: {verbs: {regex: \"([A-Z]+) ok\"}}}";
    let finished = run(&[driver], "expect: [command.d.verbs.count == 2]");
    finished.expect_code(FAILED);
    assert!(
        finished
            .stdout
            .contains("let the command print their number"),
        "{}",
        finished.stdout
    );
}

#[test]
fn a_driver_that_fails_fails_the_run() {
    if !has_namespaces("drivers that fail") {
        return;
    }
    let _turn = beside();
    let failing = "{name: d, host: a, run: \"echo {n}; echo oh no >&2; exit 4\", repeat: 2}";
    let folder = tempfile::tempdir().unwrap();
    let finished = run_in(folder.path(), &scenario(&[failing], ""), &[]);
    finished.expect_code(FAILED);
    let message = "command `d` failed in 2 of 2 runs, first with exit code 4: oh no";
    assert!(finished.stdout.contains(message), "{}", finished.stdout);
    // Who expects it is content; who expects something else is not.
    run(&[failing], "expect: [command.d.exit == 4]").expect_code(PASSED);
    run(&[failing], "expect: [command.d.exit == 5]").expect_code(FAILED);
}

/// The end of a service that is expected ends nothing.
#[test]
fn a_service_may_end_where_its_exit_is_expected() {
    if !has_namespaces("a service that ends") {
        return;
    }
    let _turn = beside();
    let commands = [
        "{name: s, host: b, run: \"sleep 0.1; exit 9\", ready: started}",
        "{name: d, host: a, run: sleep 0.4}",
    ];
    run(&commands, "expect: [command.s.exit == 9]").expect_code(PASSED);
    run(&commands, "").expect_code(ERROR);
}

#[test]
fn programs_that_are_not_installed_are_named_before_anything_starts() {
    if !has_namespaces("missing programs") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let text = scenario(
        &[
            "{name: web, host: b, run: [nginx], ready: {tcp: 80}, env: {PATH: /nowhere}}",
            "{name: get, host: a, run: \"curlew -s b | wc -l\"}",
            "{name: own, host: a, run: [\"{here}/prog\"]}",
            "{name: made, host: a, run: [\"{dir}/made-by-somebody\"]}",
        ],
        "",
    );
    let finished = run_in(folder.path(), &text, &[]);
    finished.expect_code(ERROR);
    let here = std::fs::canonicalize(folder.path()).unwrap();
    assert_eq!(
        finished.stderr,
        format!(
            "weir: command `web`: nginx is not on the PATH: install the package nginx (Debian, Ubuntu)\n      \
             command `get`: curlew is not on the PATH\n      \
             command `own`: there is no program {}/prog\n",
            here.display()
        )
    );
    assert_eq!(files(folder.path()), ["t.yaml"]);
}

/// Servers that refuse to be root, or to be anybody but root, find what they want; and the caller's files are the caller's.
#[test]
fn programs_run_as_the_caller_unless_they_are_to_be_root() {
    if !has_namespaces("who programs are") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let text = scenario(
        &[
            r#"{name: user, host: a, run: "id -u; touch {here}/mine; grep CapEff /proc/self/status"}"#,
            r#"{name: root, host: a, root: true, run: "id -u; ip link set eth0 mtu 1400"}"#,
        ],
        "",
    );
    let finished = run_in(folder.path(), &text, &["--json"]);
    finished.expect_code(PASSED);
    let run = finished.json();
    let said = |index: usize| {
        run["commands"][index]["stdout"]["tail"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    use std::os::unix::fs::MetadataExt;
    let owner = |path: &Path| std::fs::metadata(path).unwrap().uid();
    let own = owner(folder.path());
    let seen = if own == 0 { 65_534 } else { own };
    assert_eq!(said(0), format!("{seen}\nCapEff:\t0000000000000000\n"));
    assert_eq!(said(1), "0\n");
    assert_eq!(owner(&folder.path().join("mine")), own);
}

/// What a probe sees of a fault: a service that answers, behind a link on which nothing comes through for a while.
#[test]
fn a_probe_sees_when_and_how_long_nobody_answers() {
    if !has_namespaces("probes") || !has_program("probes", "python3") {
        return;
    }
    let _turn = alone();
    let echo = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 7)); \
                print('up', flush=True)\nwhile True: d, a = s.recvfrom(99); s.sendto(d, a)";
    std::assert_eq!(echo.matches('"').count(), 0);
    let service = format!(
        "{{name: echo, host: b, run: [python3, -c, \"{}\"], ready: {{log: up}}}}",
        echo.replace('\n', "\\n")
    );
    let finished = run(
        &[&service, "{name: wait, host: a, run: sleep 1.2}"],
        "probes:
  echo: {from: a, udp: \"b:7\", send: hello, every: 10ms, timeout: 200ms}
  port: {from: a, tcp: \"b:9\", every: 50ms}
flows: {asks: {from: a, to: b, filter: udp.dport == 7}}
timeline: [{name: cut, at: 400ms, for: 400ms}]
faults: [{id: gone, flows: asks, effect: drop, during: cut}]
expect: [probe.echo.failures >= 20, probe.echo.p50 < 100ms, probe.port.failures == probe.port.count]",
    );
    finished.expect_code(PASSED);
    let run = finished.json();
    let echo = &run["probes"][0];
    assert_eq!(echo["name"], "echo");
    for sample in echo["samples"].as_array().unwrap() {
        let at = sample[0].as_f64().unwrap();
        match at {
            450.0..=700.0 => assert!(sample[1].is_null(), "{sample}"),
            ..=300.0 => assert!(sample[1].as_f64().unwrap() < 200.0, "{sample}"),
            _ => {}
        }
    }
    assert_eq!(echo["first_failure"], "no answer within 200ms");
    let refused = run["probes"][1]["first_failure"].as_str().unwrap();
    assert!(refused.contains("refused"), "{refused}");
}
