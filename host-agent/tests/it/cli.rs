//! `weir-agent` as a program: its lines and its exit status.

use std::process::{Command, Output};

const COMMON: [&str; 6] = [
    "--workers",
    "2",
    "--mac",
    "02:00:00:00:00:01",
    "--ip",
    "10.0.0.1",
];

fn agent(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir-agent"))
        .args(arguments)
        .output()
        .unwrap()
}

/// Asserts that an agent could not run, and says so in one line.
fn assert_refused(arguments: &[&str], words: &[&str]) {
    let worker = [
        "worker",
        "--rank",
        "0",
        "--server-mac",
        "02:00:00:00:00:09",
        "--server-ip",
        "10.0.0.9",
    ];
    let output = agent(&[&worker[..], &COMMON, arguments].concat());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(words.iter().all(|word| error.contains(word)), "{error}");
    assert!(output.stdout.is_empty());
}

#[test]
fn an_interface_or_a_descriptor_that_is_not_there_is_one_line_and_status_2() {
    assert_refused(&["--iface", "no-such-if"], &["worker 0:", "no-such-if"]);
    assert_refused(&["--link-fd", "900"], &["worker 0:", "descriptor 900"]);
}

#[test]
fn wrong_arguments_are_status_2() {
    for arguments in [
        &["worker"][..],
        &["reference", "--workers", "x"],
        &["nonsense"],
    ] {
        assert_eq!(agent(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn the_reference_run_prints_its_report() {
    let output = agent(&["reference", "--workers", "2", "--rounds", "1"]);
    assert!(output.status.success());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (report["event"].as_str(), report["role"].as_str()),
        (Some("report"), Some("reference"))
    );
    assert_eq!(report["weights_sha256"].as_str().map(str::len), Some(64));
    assert!(report["accuracy"].as_f64().is_some());
}
