//! The sandbox and what runs in it, seen from outside, with real namespaces.
//!
//! If the machine refuses them, each test is skipped by name.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PROBE: &str = env!("CARGO_BIN_EXE_testbeds-probe");

/// Runs an experiment; `None` if namespaces are refused here.
pub fn probe(arguments: &[&str]) -> Option<Output> {
    ran(Command::new(PROBE).args(arguments).output().unwrap())
}

fn ran(output: Output) -> Option<Output> {
    if output.status.code() == Some(77) {
        let refusal = String::from_utf8_lossy(&output.stderr);
        skip_this(refusal.trim());
        return None;
    }
    Some(output)
}

/// Skips the calling test.
fn skip_this(missing: &str) {
    let thread = thread::current();
    test_support::skip(thread.name().unwrap_or("a test of the sandbox"), missing);
}

/// The lines that a successful experiment printed.
pub fn lines(output: &Output) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{:?}: {}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn two_hosts_exchange_frames_and_nothing_else_is_on_the_wire() {
    let Some(output) = probe(&["exchange"]) else {
        return;
    };
    // 100 frames of 14 + 20 + 8 + 1000 bytes.
    assert_eq!(
        lines(&output),
        [
            "sent 100 104200 received 100 104200",
            "complete true matched 100 missing 0 extra 0 late 0 others 0",
            "interfaces lo,va",
        ]
    );
}

/// A capture and the switch beside it have to see the same ordinals.
#[test]
fn frames_of_several_processors_come_in_one_order_to_all() {
    let Some(output) = probe(&["order"]) else {
        return;
    };
    assert_eq!(lines(&output), ["frames true in one order true"]);
}

#[test]
fn bundles_of_several_processors_come_in_one_order_to_all() {
    let Some(output) = probe(&["order-of-bundles"]) else {
        return;
    };
    let lines = lines(&output);
    if lines == ["the kernel cannot"] {
        skip_this("net.core.rps_default_mask");
        return;
    }
    assert_eq!(lines, ["frames true in one order true"]);
}

#[test]
fn a_rate_is_kept() {
    let Some(output) = probe(&["rate"]) else {
        return;
    };
    let lines = lines(&output);
    let words: Vec<&str> = lines[0].split(' ').collect();
    let value = |name: &str| -> f64 {
        let at = words.iter().position(|word| *word == name).unwrap();
        words[at + 1].parse().unwrap()
    };
    // The link's queue lasts for 90 ms; after it the link was idle.
    if value("pause_ms") > 60.0 {
        skip_this(&format!(
            "the sender had no processor for too long: {}",
            lines[0]
        ));
        return;
    }
    assert!((0.95..=1.05).contains(&value("ratio")), "{lines:?}");
}

#[test]
fn a_process_in_a_host_talks_and_dies_with_its_handle() {
    let Some(output) = probe(&["processes"]) else {
        return;
    };
    assert_eq!(
        lines(&output),
        [
            "Line(\"ready\")",
            "Line(\"got go\")",
            "End",
            "Some(3) \"trouble\\n\"",
            "sleepers 0",
            "in its starter's namespace true"
        ]
    );
}

#[test]
fn a_real_redis_answers_a_client_in_another_host() {
    let Some(output) = probe(&["redis"]) else {
        return;
    };
    let lines = lines(&output);
    if lines == ["redis-server is not installed"] {
        skip_this("redis-server");
        return;
    }
    assert_eq!(
        lines,
        [
            "Some(0) GET 20 LPUSH 20 SET 20 errors 20",
            "captured GETs 20"
        ]
    );
}

#[test]
fn agents_train_over_raw_packets_and_captures_see_every_update() {
    let Some(output) = probe(&["train"]) else {
        return;
    };
    assert_eq!(
        lines(&output),
        [
            "agents 4 equal true",
            "complete true missing 0 extra 0 late 0"
        ]
    );
}

#[test]
fn when_a_worker_is_killed_the_others_end_and_report_it() {
    let Some(output) = probe(&["lost-worker"]) else {
        return;
    };
    let lines = lines(&output);
    assert_eq!(lines.len(), 2, "one line each: {lines:?}");
    assert!(lines[0].starts_with("Some(2) server: "), "{lines:?}");
    assert!(lines[0].ends_with("waits for worker 1"), "{lines:?}");
    assert!(lines[1].starts_with("Some(2) worker 0: "), "{lines:?}");
    assert!(
        lines[1].ends_with("was not answered within 5 timeouts"),
        "{lines:?}"
    );
}

#[test]
fn agents_train_over_a_cable_in_memory_without_any_namespace() {
    let output = Command::new(PROBE)
        .arg("train-on-a-cable")
        .output()
        .unwrap();
    assert_eq!(lines(&output), ["agents 2 equal true", "both ways true"]);
}

#[test]
fn the_status_of_the_program_inside_is_the_status_outside() {
    for status in ["0", "1", "42"] {
        let Some(output) = probe(&["status", status]) else {
            return;
        };
        assert_eq!(output.status.code(), status.parse().ok());
    }
}

#[test]
fn an_ordinary_user_needs_no_root() {
    let me = Command::new("id").arg("-u").output().unwrap();
    if String::from_utf8_lossy(&me.stdout).trim() != "0" {
        // Every other test here is one of an ordinary user.
        skip_this("root, to become another user: the tests beside it run as an ordinary one");
        return;
    }
    // The build folder may be closed to others.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("probe");
    fs::copy(PROBE, &copy).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .arg("exchange")
        .current_dir("/")
        .output();
    let output = match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skip_this("setpriv");
            return;
        }
        output => output.unwrap(),
    };
    let Some(output) = ran(output) else { return };
    assert_eq!(lines(&output)[2], "interfaces lo,va");
}

/// Starts an experiment that stays, and waits until it is up; `None` if namespaces are refused here.
fn staying(experiment: &str) -> Option<(std::process::Child, Vec<PathBuf>)> {
    // A script's background processes ignore SIGINT, and their children inherit this.
    let mut child = Command::new("env")
        .args(["--default-signal=INT", PROBE, experiment])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    if line != "staying\n" {
        ran(child.wait_with_output().unwrap());
        return None;
    }
    let family = descendants(child.id());
    Some((child, family))
}

/// The /proc folders of everything that a process started, whichever of its threads did.
fn descendants(id: u32) -> Vec<PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter();
    let children = tasks
        .flatten()
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let children: String = children.collect();
    let mut all = Vec::new();
    for child in children
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
    {
        all.push(PathBuf::from(format!("/proc/{child}")));
        all.extend(descendants(child));
    }
    all
}

fn await_end(family: &[PathBuf]) {
    let deadline = Instant::now() + Duration::from_secs(5);
    // A zombie without a waiting parent is dead: it has no command line.
    let alive = |folder: &Path| fs::read(folder.join("cmdline")).is_ok_and(|line| !line.is_empty());
    while family.iter().any(|folder| alive(folder)) {
        assert!(Instant::now() < deadline, "still alive: {family:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Every network namespace that a process of this machine is in.
fn namespaces_of(family: &[PathBuf]) -> Vec<PathBuf> {
    family
        .iter()
        .filter_map(|folder| fs::read_link(folder.join("ns/net")).ok())
        .collect()
}

#[test]
fn kill_9_of_the_outer_process_leaves_nothing() {
    let Some((mut child, family)) = staying("stay") else {
        return;
    };
    // PID 1 of the sandbox, the program, the process that it started.
    assert_eq!(family.len(), 3, "{family:?}");
    let namespaces = namespaces_of(&family);
    assert!(!namespaces.is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    await_end(&family);
    let everybody: Vec<PathBuf> = fs::read_dir("/proc")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let left = namespaces_of(&everybody);
    assert!(
        namespaces.iter().all(|namespace| !left.contains(namespace)),
        "{namespaces:?}"
    );
}

/// As tests do, whose threads start processes and end before them.
#[test]
fn kill_9_ends_processes_that_threads_started_outside_any_sandbox() {
    let (mut child, family) = staying("stay-without-sandbox").expect("it needs no sandbox");
    assert_eq!(family.len(), 1, "{family:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    await_end(&family);
}

#[test]
fn a_signal_to_the_outer_process_ends_the_program_inside() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let Some((mut child, family)) = staying("stay") else {
            return;
        };
        Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(status));
        await_end(&family);
    }
}

#[test]
fn root_does_without_a_user_namespace_where_only_that_is_refused() {
    let Some(output) = probe(&["root-without-user-namespace"]) else {
        return;
    };
    assert_eq!(
        lines(&output).last().map(String::as_str),
        Some("interfaces lo,va")
    );
}

#[test]
fn a_refusal_is_one_line_that_names_the_reason() {
    // Inside this sandbox no further one is allowed.
    let output = Command::new(PROBE).args(["refused"]).output().unwrap();
    let Some(output) = ran(output) else { return };
    let lines = lines(&output);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0], "Some(77)");
    assert!(lines[1].contains("user.max_user_namespaces"), "{lines:?}");
}
