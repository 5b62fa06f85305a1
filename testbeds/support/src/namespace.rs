//! Network interfaces for one test only. The test runs itself again under `unshare`, in user, network and mount
//! namespaces that end with the process, together with its interfaces.

use crate::{path_of_test, skip};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const INSIDE: &str = "WEIR_TEST_IN_NAMESPACE";
/// Maximum time until both ends of a veth pair pass frames.
const UP_WITHIN: Duration = Duration::from_secs(20);

/// Returns whether the calling test, `test` without modules, runs inside its namespaces. If not, runs the test again
/// inside, and requires that it passes; skips it if `unshare`, `ip` or unprivileged namespaces are missing.
///
/// # Panics
/// The test fails inside.
pub fn in_namespace(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let possible = Command::new("unshare")
        .args(["-rnm", "ip", "link"])
        .output();
    if !possible.is_ok_and(|output| output.status.success()) {
        skip(test, "needs unshare, ip and unprivileged namespaces");
        return false;
    }
    let this = std::env::current_exe().expect("the test's own binary");
    let path = path_of_test(test);
    let output = Command::new("unshare")
        .arg("-rnm")
        .arg(this)
        .args(["--exact", &path, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare starts");
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{out}{err}"
    );
    // For tests that print measurements.
    print!("{out}");
    false
}

/// Runs the program `ip` with these arguments, separated by spaces.
///
/// # Panics
/// The command fails.
pub fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .expect("ip starts");
    assert!(
        output.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Creates a veth pair with these names, both ends up and passing frames, with an MTU of 9,216 bytes.
///
/// # Panics
/// The pair cannot be made.
pub fn veth(one: &str, other: &str) {
    ip(&format!(
        "link add {one} mtu 9216 type veth peer name {other} mtu 9216"
    ));
    for name in [one, other] {
        // Without IPv6, so that the kernel sends nothing by itself.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        ip(&format!("link set {name} up"));
    }
    for name in [one, other] {
        wait_until_up(name);
    }
}

/// Waits until the kernel passes an interface's frames, which it does some time after both ends are up; until then it loses them.
fn wait_until_up(interface: &str) {
    let start = Instant::now();
    loop {
        let output = Command::new("ip")
            .args(["-o", "link", "show", interface])
            .output()
            .expect("ip starts");
        if String::from_utf8_lossy(&output.stdout).contains(" state UP ") {
            return;
        }
        assert!(start.elapsed() < UP_WITHIN, "{interface} is not up");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Starts a thread in a new network namespace, moves an interface there, and runs `work` in the thread. The move removes the
/// interface's settings, such as addresses.
///
/// # Panics
/// The namespace cannot be made, or the interface does not exist.
pub fn beyond<T: Send + 'static>(
    interface: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let (ready, is_ready) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let thread = thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
        ready.send(gettid()).expect("who waits for it");
        may_go.recv().expect("the interface");
        work()
    });
    let there = is_ready.recv().expect("a namespace");
    ip(&format!("link set {interface} netns {there}"));
    go.send(()).expect("the thread");
    thread
}

/// Removes an interface if it still exists (the kernel removes a veth end some time after its peer's namespace).
pub fn remove(interface: &str) {
    let _ = Command::new("ip")
        .args(["link", "delete", interface])
        .output();
}
