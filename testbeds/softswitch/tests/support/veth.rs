//! Interfaces of a test's own: the test runs itself again under `unshare`, in a user and network namespace that goes with the
//! process, and its links with it. Where `unshare`, `ip` or unprivileged namespaces are missing it is skipped by name.

use super::skip;
use softswitch::ports::{self, Io, PortIo, RingOptions};
use std::process::Command;

const INSIDE: &str = "WEIR_TEST_IN_NAMESPACE";

/// Runs the named test of this binary inside a namespace; false where that cannot be done.
pub fn in_namespace(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let possible = Command::new("unshare").args(["-rn", "ip", "link"]).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        skip(test, "needs unshare, ip and unprivileged namespaces");
        return false;
    }
    let output = Command::new("unshare")
        .arg("-rn")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{out}{err}"
    );
    false
}

/// An interface as a port.
pub fn open(interface: &str, io: Io) -> Box<dyn PortIo> {
    let options = ports::Options {
        io,
        ring: RingOptions::default(),
    };
    ports::open(interface, options).unwrap().port
}

/// Runs `ip`.
pub fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A pair of interfaces, both up.
pub fn veth(switch: &str, host: &str) {
    ip(&format!(
        "link add {switch} mtu 9216 type veth peer name {host} mtu 9216"
    ));
    for name in [switch, host] {
        // Nothing but the test speaks on these links.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        ip(&format!("link set {name} up"));
    }
}

/// Sends a frame; how many were lost.
pub fn send(port: &mut Box<dyn PortIo>, frame: &[u8]) -> usize {
    port.send(frame).unwrap();
    port.flush().unwrap()
}
