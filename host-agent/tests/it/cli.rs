//! `weir-agent` as a program: its output lines and its exit status.

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

/// Asserts that an agent could not run, and that it reports this in one line.
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

/// Options that scripts pass to perftest's programs are accepted, or refused with the option to use instead.
#[test]
fn options_of_perftest_are_taken_or_refused_by_name() {
    let run = |line: &str| {
        let words = ["rdma-perf"].into_iter().chain(line.split_whitespace());
        let output = agent(&words.chain(["-d", "no-such-if"]).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}");
        String::from_utf8(output.stderr).unwrap()
    };
    for line in [
        "write -F --report_gbits",
        "write -a -F -q 1 -b --report_gbits -c RC -i 1",
        "read 10.0.0.1 --CPU-freq -D 10 -b -s 4096",
        "send --all -n 5 --bidirectional",
        "send -D 5 --qp 1",
        "write-lat -a -F",
        "read-lat -F -n 100 -q 1",
    ] {
        let said = run(line);
        assert!(
            said.contains("no-such-if") && !said.contains("Usage"),
            "{line}: {said}"
        );
    }
    for (line, expected) in [
        (
            "write -q 4",
            "several pairs of programs, each with a --port of its own",
        ),
        ("send-lat -q 2", "`collectives-perf --qps`"),
        ("write -c UC", "reliable connections only"),
        ("read -x 3", "name the interface with `-d`"),
        ("write -R", "not by rdma_cm"),
        ("write -i 2", "`-d NAME`"),
        ("write -D 5 -n 100", "cannot be used with"),
        ("write -D 5 -a", "cannot be used with"),
        ("send -b -D 5", "give a number of messages, `-n`"),
        ("write-lat -D 5", "use `-n`, not `-D`"),
    ] {
        let said = run(line);
        assert!(said.contains(expected), "{line}: {said}");
    }
}
