//! BMv2 as a target, as far as that shows without BMv2: what is missing is named, what the tools say is passed on, and
//! nothing is left behind. `vectors` runs the real ones where they are installed.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::leftovers::files;
use crate::support::*;

const SCENARIO: &str = "weir: 1\nname: lab\nseed: 1\ntopology: {star: {hosts: [a, b], switch: sw}}\nflows:\n  \
                        first: {from: a, to: b, filter: udp.dport == 1001}\nfaults:\n  \
                        - {id: lost, flows: first, effect: EFFECT, select: {every: 2}}\n";

fn scenario(folder: &Path, effect: &str) -> String {
    let file = folder.join("lab.yaml");
    std::fs::write(&file, SCENARIO.replace("EFFECT", effect)).unwrap();
    file.display().to_string()
}

/// A program that stands for one of BMv2's or p4c's.
fn tool(folder: &Path, name: &str, script: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_is_missing_is_named_before_anything_starts() {
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "drop");
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    for (target, program) in [
        ("psa_switch", "p4c-bm2-psa"),
        ("simple_switch_grpc", "p4c-bm2-ss"),
    ] {
        let args = ["run", "--target", target, "--bmv2-dir", "empty", &file];
        let output = weir(folder.path(), &args)
            .env("PATH", &empty)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(ERROR));
        let said = String::from_utf8(output.stderr).unwrap();
        let expected =
            format!("weir: {program} was not found in empty nor on the PATH; it is part of p4c");
        assert!(
            said.starts_with(&expected) && said.contains("--bmv2-dir"),
            "{said}"
        );
    }
    // p4c alone is not enough.
    let bin = folder.path().join("bmv2/bin");
    tool(&bin, "p4c-bm2-psa", "exit 1");
    let args = ["run", "--target", "psa_switch", "--bmv2-dir", "bmv2", &file];
    let output = weir(folder.path(), &args)
        .env("PATH", &empty)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("weir: psa_switch was not found in bmv2"),
        "{said}"
    );
}

#[test]
fn psa_switch_cannot_duplicate_and_the_file_is_pointed_at() {
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "duplicate");
    let finished = run(folder.path(), &["run", "--target", "psa_switch", &file]);
    finished.expect_code(ERROR);
    assert!(
        finished.stderr.contains("cannot duplicate packets"),
        "{}",
        finished.stderr
    );
    assert!(
        finished.stderr.contains("lab.yaml:8:"),
        "{}",
        finished.stderr
    );
}

#[test]
fn p4c_is_called_with_our_includes_and_its_words_are_shown() {
    let _turn = beside();
    let test = "p4c_is_called_with_our_includes_and_its_words_are_shown";
    if !has_namespaces(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "drop");
    let bin = folder.path().join("bin");
    let seen = folder.path().join("seen").display().to_string();
    tool(
        &bin,
        "p4c-bm2-psa",
        &format!(
            "echo \"$@\" > {seen}; ls include >> {seen}; echo 'main.p4(3): error: no' >&2; exit 1"
        ),
    );
    tool(&bin, "psa_switch", "exit 9");
    let args = ["run", "--target", "psa_switch", "--bmv2-dir", "bin", &file];
    let finished = run(folder.path(), &args);
    finished.expect_code(ERROR);
    assert!(
        finished.stderr.contains("main.p4(3): error: no"),
        "{}",
        finished.stderr
    );
    assert!(
        finished
            .stderr
            .contains("bin/p4c-bm2-psa does not take the program"),
        "{}",
        finished.stderr
    );
    let seen = std::fs::read_to_string(seen).unwrap();
    let (call, includes) = seen.split_once('\n').unwrap();
    assert!(
        call.starts_with("--std p4-16 -I /") && call.contains("/include -DNS_PER_TICK=1000 -o /"),
        "{call}"
    );
    assert!(call.ends_with("/psa/main.p4"), "{call}");
    assert_eq!(includes, "core.p4\npsa.p4\nv1model.p4\n");
    let compiled_in = call.split(' ').nth(3).unwrap().trim_end_matches("/include");
    assert!(
        !Path::new(compiled_in).exists(),
        "{compiled_in} is left behind"
    );
}

#[test]
fn p4c_is_called_once_for_a_program_unless_the_cache_is_refused() {
    let _turn = beside();
    let test = "p4c_is_called_once_for_a_program_unless_the_cache_is_refused";
    if !has_namespaces(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "drop");
    let bin = folder.path().join("bin");
    let calls = folder.path().join("calls").display().to_string();
    let script = "[ \"$1\" = --version ] && exit 0; echo >> CALLS; \
                  while [ \"$1\" != -o ]; do shift; done; echo '{}' > \"$2\"";
    tool(&bin, "p4c-bm2-psa", &script.replace("CALLS", &calls));
    // What follows does not matter here.
    tool(&bin, "psa_switch", "exit 0");
    let args = ["run", "--target", "psa_switch", "--bmv2-dir", "bin", &file];
    let refusing = [&args[..], &["--no-p4c-cache"]].concat();
    for (args, expected) in [(&args[..], 1), (&args, 1), (&refusing, 2)] {
        let output = weir(folder.path(), args)
            .env("XDG_CACHE_HOME", folder.path().join("cache"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(ERROR));
        let calls = std::fs::read_to_string(&calls).unwrap();
        assert_eq!(calls.lines().count(), expected, "{args:?}");
    }
    let kept = files(&folder.path().join("cache/weir/p4c"));
    assert_eq!(kept.len(), 1, "{kept:?}");
}

#[test]
fn a_switch_that_ends_at_once_is_quoted() {
    let _turn = beside();
    let test = "a_switch_that_ends_at_once_is_quoted";
    if !has_namespaces(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "drop");
    let bin = folder.path().join("bin");
    // The argument after -o is where the JSON goes.
    tool(
        &bin,
        "p4c-bm2-psa",
        "while [ \"$1\" != -o ]; do shift; done; echo '{}' > \"$2\"",
    );
    tool(
        &bin,
        "psa_switch",
        "case \"$*\" in *--help*) echo '--thrift-port arg'; exit 0;; esac\necho \"Could not bind: $*\"; exit 3",
    );
    let args = ["run", "--target", "psa_switch", "--bmv2-dir", "bin", &file];
    let finished = run(folder.path(), &args);
    finished.expect_code(ERROR);
    let expected = "psa_switch of switch sw did not start: exit status: 3: Could not bind: --device-id 1 --thrift-port 9091";
    assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    // Without Thrift, it could not be spoken to.
    tool(&bin, "psa_switch", "exit 0");
    let finished = run(folder.path(), &args);
    assert!(
        finished.stderr.contains("was built without Thrift"),
        "{}",
        finished.stderr
    );
    assert_eq!(files(folder.path()), ["bin", "lab.yaml"]);
}

fn piped(command: &mut Command) -> Running {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    Running(command.stderr(Stdio::piped()).spawn().unwrap())
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

#[test]
fn a_switch_that_runs_already_is_controlled() {
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "drop");
    let args = [
        "switch",
        "--no-p4",
        "--device-id",
        "1",
        "--grpc-server-addr",
        "127.0.0.1:0",
    ];
    let mut switch = piped(&mut weir(folder.path(), &args));
    let mut said = BufReader::new(switch.0.stdout.take().unwrap());
    let listening = line(&mut said);
    let address = listening
        .split("P4Runtime at ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let address = address.unwrap_or_else(|| panic!("{listening}"));

    let at = format!("sw={address}");
    // Whoever goes away before the start has not carried anything out.
    let silent = weir(folder.path(), &["control", &file, "--switch", &at])
        .output()
        .unwrap();
    assert_eq!(silent.status.code(), Some(ERROR));
    assert_eq!(String::from_utf8_lossy(&silent.stdout), "ready\n");
    let told = String::from_utf8_lossy(&silent.stderr);
    assert!(
        told.contains("ended before a line `go`") && told.contains("disarmed"),
        "{told}"
    );

    let mut control = piped(&mut weir(
        folder.path(),
        &["control", &file, "--switch", &at],
    ));
    let mut output = BufReader::new(control.0.stdout.take().unwrap());
    assert_eq!(line(&mut output), "ready");
    let mut input = control.0.stdin.take().unwrap();
    writeln!(input, "go").unwrap();
    assert_eq!(line(&mut output), "going");
    drop(input);
    let mut report = String::new();
    output.read_to_string(&mut report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["faults"][0]["id"], "lost");
    assert_eq!(report["faults"][0]["fired"], 0);
    assert!(control.0.wait().unwrap().success());
    let mut said = String::new();
    let mut errors = control.0.stderr.take().unwrap();
    errors.read_to_string(&mut said).unwrap();
    assert_eq!(said, format!("weir: connecting to sw at {address}\n"));
}

#[test]
fn a_switch_that_does_not_answer_is_named_before_it_is_waited_for() {
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "drop");
    let finished = run(
        folder.path(),
        &["control", &file, "--switch", "sw=127.0.0.1:1"],
    );
    finished.expect_code(ERROR);
    assert_eq!(finished.stdout, "");
    let mut lines = finished.stderr.lines();
    assert_eq!(lines.next(), Some("weir: connecting to sw at 127.0.0.1:1"));
    assert!(lines.next().is_some(), "why it failed");
}

#[test]
fn every_switch_has_to_be_named() {
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "drop");
    let cases = [
        (
            vec!["--switch", "other=127.0.0.1:1"],
            "the address of switch sw is missing",
        ),
        (
            vec!["--switch", "sw=127.0.0.1:1", "--switch", "x=127.0.0.1:1"],
            "the scenario has no such switch; it has sw",
        ),
        (vec!["--switch", "sw"], "expected NAME=IP:PORT"),
    ];
    for (switches, expected) in cases {
        let args: Vec<&str> = ["control", &file].into_iter().chain(switches).collect();
        let finished = run(folder.path(), &args);
        finished.expect_code(ERROR);
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
}

#[test]
fn a_scenarios_network_is_told_to_who_builds_it() {
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let file = repository("testbeds/scenarios/training-faults.yaml")
        .display()
        .to_string();
    let network = run(folder.path(), &["plan", "--topology", &file])
        .expect_code(PASSED)
        .json();
    assert_eq!(network["switches"], serde_json::json!(["core", "edge"]));
    assert_eq!(network["hosts"].as_array().unwrap().len(), 9);
    let between = network["links"]
        .as_array()
        .unwrap()
        .iter()
        .find(|link| link["ends"][0]["node"] == "edge" && link["ends"][1]["node"] == "core");
    let between = between.expect("the switches' link");
    // The third port of edge, the eighth of core.
    assert_eq!(
        (&between["ends"][0]["port"], &between["ends"][1]["port"]),
        (&3.into(), &8.into())
    );
    assert_eq!(
        network["links"][0]["ends"][0],
        serde_json::json!({"node": "w0", "port": null})
    );
    assert_eq!(network["training"]["window"], 64);
}
