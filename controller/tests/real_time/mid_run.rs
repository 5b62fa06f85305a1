//! What dies in the middle of `weir run` is named, with how it died, and nothing else is blamed; what passed is kept.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::leftovers::files;
use crate::support::*;

/// Two clients that talk for a few seconds.
const SCENARIO: &str = "weir: 1
name: talk
topology: {star: {hosts: [a, b, s], switch: sw}}
workload:
  redis:
    server: s
    clients:
      first: {host: a, requests: 400, commands: [\"GET k:{n}\", \"SET k:{n}\"], pause: 5ms}
      second: {host: b, requests: 400, commands: [\"GET k:{n}\"], pause: 5ms}
flows:
  gets: {from: a, to: s, filter: redis.command == \"GET\"}
faults:
  - {id: lost, flows: gets, effect: !drop , select: !every 50}
";

fn can_run(test: &str) -> bool {
    has_namespaces(test) && has_program(test, "redis-server")
}

/// A process that `weir` has started, by words of its command line.
fn find(of: u32, words: &[&str]) -> Option<u32> {
    descendants(of).into_iter().find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        words.iter().all(|word| line.contains(word))
    })
}

/// Runs the scenario, ends the process that these words name, and says what `weir` says then.
fn run_and_kill(words: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), SCENARIO).unwrap();
    let child = weir(folder.path(), &["run", "s.yaml", "-v"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Both clients run: the server has been answering for a while.
    let deadline = Instant::now() + Duration::from_secs(30);
    while find(child.id(), &["client", "--name second"]).is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let victim = find(child.id(), words).expect("it runs");
    let kill = format!("kill -KILL {victim}");
    assert!(
        Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
    let finished = Finished::of(child.wait_with_output().unwrap());
    assert_eq!(files(folder.path()), ["s.yaml"], "no report");
    finished
}

/// The lines of `weir` itself, and not of what is traced.
fn told(finished: &Finished) -> String {
    let lines = finished.stderr.lines();
    let own: Vec<&str> = lines.filter(|line| line.starts_with("weir: ")).collect();
    own.join("\n")
}

#[test]
fn a_killed_client_is_named_with_its_signal() {
    if !can_run("killed client") {
        return;
    }
    let _turn = beside();
    let finished = run_and_kill(&["client", "--name first"]);
    finished.expect_code(ERROR);
    assert_eq!(
        told(&finished),
        "weir: client first on a: signal 9 (SIGKILL) ended it"
    );
}

#[test]
fn a_dead_server_is_not_blamed_on_a_client() {
    if !can_run("dead server") {
        return;
    }
    let _turn = beside();
    let finished = run_and_kill(&["redis-server"]);
    finished.expect_code(ERROR);
    let told = told(&finished);
    assert!(
        told.starts_with("weir: redis-server on s ended during the run: signal: 9 (SIGKILL)"),
        "{finished:?}"
    );
    assert!(!told.contains("client"), "{told}");
}

/// `-v` tells the run's course; captures are there afterwards, in a folder that was not.
#[test]
fn a_run_tells_its_course_and_leaves_its_captures() {
    if !can_run("course and captures") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let text = SCENARIO.replace("requests: 400", "requests: 100");
    let input = folder.path().join("s.yaml");
    std::fs::write(&input, text).unwrap();
    let output = weir(
        folder.path(),
        &["run", "-", "-vv", "--json", "--out", "deep/run"],
    )
    .stdin(std::fs::File::open(&input).unwrap())
    .output()
    .unwrap();
    let finished = Finished::of(output);
    finished.expect_code(PASSED);
    for part in [
        "network is up",
        "switch is up",
        "workload begins",
        "faults are in force",
        "client is done",
        "workload ends",
    ] {
        assert!(
            finished.stderr.contains(part),
            "{part}: {}",
            finished.stderr
        );
    }
    for noise in ["h2::", "hyper", "tonic"] {
        assert!(
            !finished.stderr.contains(noise),
            "{noise}: {}",
            finished.stderr
        );
    }
    let json = finished.json();
    assert_eq!(
        (&json["schema"], &json["tool"]),
        (&3.into(), &"weir run".into())
    );
    assert!(json["version"].is_string() && json["machine"]["processors"].is_u64());
    assert!(json["date"].as_str().unwrap().ends_with('Z'));
    assert!(
        json["metrics"]["client.first.requests"].is_u64(),
        "a count is whole"
    );
    assert!(json["metrics"]["run.wall_ns"].is_u64());
    assert!(json["degraded"].is_boolean());
    let priority = json["machine_strain"]["switch_priorities"]["sw"]
        .as_str()
        .unwrap();
    assert!(
        ["real-time", "high", "ordinary"].contains(&priority),
        "{priority}"
    );
    // Each hit frame is a GET, and there are as many as the fault has hit.
    let pcapng = std::fs::read(folder.path().join("deep/run/sw.pcapng")).unwrap();
    let hits = pcapng.windows(6).filter(|word| word == b"lost: ").count();
    assert_eq!(json["faults"][0]["observed"], hits);
    assert!(hits > 0);
    let gets = pcapng.windows(5).filter(|word| word == b"\r\nGET").count();
    assert!(gets >= hits, "{gets}");
}
