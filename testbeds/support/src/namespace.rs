//! Interfaces of a test's own: the test runs itself again under `unshare`, in user, network and mount namespaces that end with
//! the process, and so do its links.

use crate::{path_of_test, skip};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

const INSIDE: &str = "WEIR_TEST_IN_NAMESPACE";

/// Whether the calling test runs inside. If not, runs it once more inside, and requires that it passes there. Where `unshare`,
/// `ip` or unprivileged namespaces are missing, it is skipped. `test` is its name, without modules.
///
/// # Panics
/// If the test fails inside.
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
    // What it measured.
    print!("{out}");
    false
}

/// Runs `ip`.
///
/// # Panics
/// If it fails.
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

/// A pair of interfaces, both up, for frames of up to 9,216 bytes.
///
/// # Panics
/// If there cannot be one.
pub fn veth(one: &str, other: &str) {
    ip(&format!(
        "link add {one} mtu 9216 type veth peer name {other} mtu 9216"
    ));
    for name in [one, other] {
        // Nothing but the test speaks on these links.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        ip(&format!("link set {name} up"));
    }
}

/// Moves an interface to a network namespace of its own, and does something there, in a thread. What was set at the interface, such
/// as its addresses, is gone then.
///
/// # Panics
/// If there is no namespace, or no such interface.
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

/// Removes an interface, if it has not gone already: with the namespace of its peer it does, at some time.
pub fn remove(interface: &str) {
    let _ = Command::new("ip")
        .args(["link", "delete", interface])
        .output();
}
