//! The end of machines and of the commands in them.

use crate::network::{A, inside, one_on_a_bridge};
use machines::{Machine, MachineError, MachineOptions};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(30);

/// Whether a process has ended, even if its parent has not waited for it yet.
fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // PID (NAME) STATE …
    stat.rsplit_once(") ")
        .is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// Whether an interface exists. Not by /sys, which may show another namespace's.
fn is_there(interface: &str) -> bool {
    nix::net::if_::if_nametoindex(interface).is_ok()
}

#[test]
fn commands_run_side_by_side_and_none_outlasts_its_time() {
    let test = "lifetime::commands_run_side_by_side_and_none_outlasts_its_time";
    let Some(image) = inside(test) else { return };
    let this = std::env::current_exe().expect("the test's own binary");
    // A program of this computer, with its libraries besides the C library.
    let image = image
        .with_programs(&[("usr/bin/tests", &this)])
        .expect("an image");
    let machine = one_on_a_bridge(&image);
    let output = machine
        .run("echo out; echo err >&2; exit 7")
        .expect("an end");
    assert_eq!(
        (output.status, &*output.stdout, &*output.stderr),
        (7, "out\n", "err\n")
    );
    assert!(
        machine
            .succeed("tests --list")
            .expect("a program")
            .contains(test)
    );

    let waits = machine.spawn("until [ -e /tmp/go ]; do usleep 1000; done; echo went");
    let waits = waits.expect("a command");
    machine
        .succeed("touch /tmp/go")
        .expect("a command beside it");
    assert_eq!(waits.succeed(SOON).expect("an end"), "went\n");

    let late = machine.run_within(
        "echo $$ >/tmp/pid; sleep 1000 | cat",
        Duration::from_millis(500),
    );
    assert!(matches!(late, Err(MachineError::Late { .. })), "{late:?}");
    let gone = "until [ -s /tmp/pid ] && ! [ -e /proc/$(cat /tmp/pid) ]; do usleep 1000; done; ps";
    let processes = machine.succeed(gone).expect("that it is gone");
    assert!(!processes.contains("sleep 1000"), "{processes}");
    let killed = machine.spawn("sleep 1000").expect("a command");
    assert_eq!(killed.kill().expect("an end").status, 137);

    let pid = machine.pid();
    assert!(!has_ended(pid) && is_there("tap-a"));
    let asked = machine.spawn("sleep 1000").expect("a command");
    // Like a crash.
    let end = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(end.is_ok_and(|status| status.success()));
    let gone = asked.wait(SOON);
    assert!(matches!(gone, Err(MachineError::Gone { .. })), "{gone:?}");
    drop(machine);
    assert!(has_ended(pid) && !is_there("tap-a"));
}

const STAYS: &str = "WEIR_TEST_MACHINE_STAYS";

#[test]
fn a_machine_ends_with_a_test_that_is_killed() {
    let test = "lifetime::a_machine_ends_with_a_test_that_is_killed";
    let Some(image) = inside(test) else { return };
    if std::env::var_os(STAYS).is_some() {
        let options = MachineOptions::new("a", "tap-a", A);
        let machine = Machine::boot(&image, &options).expect("a machine");
        println!("pid {}", machine.pid());
        // Runs until it is killed.
        loop {
            std::thread::park();
        }
    }
    let this = std::env::current_exe().expect("the test's own binary");
    let mut child = Command::new(this)
        .args(["--exact", test, "--nocapture"])
        .env(STAYS, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test again");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let pid = output.lines().find_map(|line| {
        let line = line.ok()?;
        // The harness's output precedes it on the line.
        let (_, pid) = line.split_once("pid ")?;
        pid.parse().ok()
    });
    let pid: u32 = pid.expect("a machine");
    assert!(!has_ended(pid) && is_there("tap-a"));
    child.kill().expect("that it can be killed");
    child.wait().expect("its end");
    let end = Instant::now() + SOON;
    while !has_ended(pid) || is_there("tap-a") {
        assert!(Instant::now() < end, "{pid} lives");
        std::thread::yield_now();
    }
}
