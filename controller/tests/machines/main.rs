//! `weir between` a virtual machine with Debian's RoCE and another, or RDMA in user space, in a namespace of the test's own: the
//! fault of a scenario hits the packet that it names, nothing else, and RDMA recovers.
//!
//! In `ranks.rs`: ranks of a collective, some in machines.
//!
//! A program of its own: machines boot here, and frames pass real interfaces, in real time.
#![cfg(feature = "testbed")]

mod ranks;
#[path = "../support/mod.rs"]
mod support;

use machines::{Machine, MachineOptions, between};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;
use support::*;
use test_support::namespace::{in_namespace, ip};
use testbeds::net::Netlink;

/// What a program takes that has done its work.
const LIMIT: Duration = Duration::from_secs(60);

/// Drops the third message of one end. The opcode is RC's SEND ONLY: a message of one packet.
fn third_send_from(end: &str) -> String {
    format!(
        "
weir: 1
name: third-send
topology: {{wire: [a, b]}}
flows:
  sends: {{from: {end}, filter: roce.opcode == 4}}
faults:
  - {{id: third, flows: sends, effect: drop, select: {{nth: 3}}}}
expect:
  - fault.third.fired == 1
  - flow.sends.lost == 1
"
    )
}

#[test]
fn rdma_recovers_from_the_loss_of_the_third_message() {
    let test = "rdma_recovers_from_the_loss_of_the_third_message";
    if !in_namespace(test) {
        return;
    }
    let Some(image) = machines::for_test(test) else {
        return;
    };
    // The switch is spoken to over it.
    ip("link set lo up");
    let options = [1, 2].map(|number: u8| {
        let name = ["a", "b"][usize::from(number) - 1];
        MachineOptions::new(name, &format!("tap-{name}"), [10, 77, 0, number].into())
    });
    let [a, b] = Machine::boot_all(&image, &options).unwrap();

    let wire = Wire::start(["tap-a", "tap-b"], &third_send_from("b"));
    let run = |program: &str| between(&a, &b, program).unwrap_or_else(|error| panic!("{error}"));
    let pingpong = run("ibv_rc_pingpong -g 1 -m 4096 -s 64");
    assert!(pingpong.contains("1000 iters in"), "{pingpong}");
    for program in ["ib_write_bw", "ib_send_bw", "ib_read_bw"] {
        let report = run(&format!("{program} -s 65536 -n 200"));
        let figures = report.lines().find(|line| line.starts_with(" 65536 "));
        println!("{program} {}", figures.unwrap());
    }

    // The thousand messages, and what was sent again.
    assert!(wire.end() > 1000);
}

#[test]
fn what_user_space_sends_again_reaches_rxe() {
    let test = "what_user_space_sends_again_reaches_rxe";
    if !in_namespace(test) {
        return;
    }
    let Some(image) = machines::for_test(test) else {
        return;
    };
    ip("link set lo up");
    let options = MachineOptions::new("b", "tap-b", [10, 77, 0, 2].into());
    let machine = Machine::boot(&image, &options).unwrap();
    ip("link add near mtu 4200 type veth peer name far mtu 4200");
    ip("address add 10.77.0.1/24 dev near");
    for end in ["near", "far"] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{end}/disable_ipv6"), "1");
        ip(&format!("link set {end} up"));
    }
    // Frames come as from a cable: no checksum is left for hardware.
    let links = Netlink::open().unwrap();
    links.set_sending("near", None).unwrap();
    let wire = Wire::start(["far", "tap-b"], &third_send_from("a"));
    let serving = machine
        .spawn("ibv_rc_pingpong -g 1 -m 4096 -s 64 -n 500")
        .unwrap();
    machine.await_listening(machines::PORT).unwrap();
    let line = "agent rdma-perf pingpong 10.77.0.2 -d near -m 4096 -s 64 -n 500 --json";
    let folder = tempfile::tempdir().unwrap();
    let played = run(folder.path(), &line.split(' ').collect::<Vec<_>>());
    played.expect_code(PASSED);
    serving.succeed(LIMIT).unwrap();
    let outcome = played.json();
    assert_eq!(outcome["wrong"], 0, "{outcome}");
    assert!(
        outcome["counters"]["completer_retry_err"].as_u64() >= Some(1),
        "{outcome}"
    );
    assert!(wire.end() > 500);
}

/// A switch between two interfaces that exist, with a scenario's fault in it.
struct Wire {
    switch: Child,
    /// Of what else it says, until it ends.
    reader: JoinHandle<std::io::Result<u64>>,
    _folder: tempfile::TempDir,
}

impl Wire {
    fn start(ends: [&str; 2], scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.yaml"), scenario).unwrap();
        let [one, other] = ends;
        let line = [
            "-v",
            "between",
            one,
            other,
            "--scenario",
            "s.yaml",
            "--json",
        ];
        let mut switch = weir(folder.path(), &line)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(switch.stderr.take().unwrap());
        while !said.contains("workload begins") {
            let read = lines.read_line(&mut said).unwrap();
            assert!(read > 0, "{said}");
        }
        let reader = std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self {
            switch,
            reader,
            _folder: folder,
        }
    }

    /// Ends it. It must have proved its fault; how many packets that fault has met.
    fn end(self) -> u64 {
        kill(Pid::from_raw(self.switch.id() as i32), Signal::SIGINT).unwrap();
        let finished = Finished::of(self.switch.wait_with_output().unwrap());
        self.reader.join().unwrap().unwrap();
        finished.expect_code(PASSED);
        let report = finished.json();
        let fault = &report["faults"][0];
        assert_eq!(fault["proved"], true, "{fault}");
        fault["met"].as_u64().unwrap()
    }
}
