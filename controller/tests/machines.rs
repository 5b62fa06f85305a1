//! `weir between` two virtual machines with Debian's RoCE, in a namespace of the test's own: the fault of a scenario hits the packet
//! that it names, nothing else, and RDMA recovers.
//!
//! A program of its own: machines boot here, and frames pass real interfaces, in real time.
#![cfg(feature = "testbed")]

mod support;

use machines::{Machine, MachineOptions, between};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use support::*;
use test_support::namespace::{in_namespace, ip};

/// The opcode is RC's SEND ONLY: a message of one packet.
const SCENARIO: &str = "
weir: 1
name: third-send
topology: {wire: [a, b]}
flows:
  sends: {from: b, filter: roce.opcode == 4}
faults:
  - {id: third, flows: sends, effect: drop, select: {nth: 3}}
expect:
  - fault.third.fired == 1
  - flow.sends.lost == 1
";

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

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), SCENARIO).unwrap();
    let line = "-v between tap-a tap-b --scenario s.yaml --json";
    let mut wire = weir(folder.path(), &line.split(' ').collect::<Vec<_>>())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(wire.stderr.take().unwrap());
    while !said.contains("workload begins") {
        let read = lines.read_line(&mut said).unwrap();
        assert!(read > 0, "{said}");
    }
    let reader = std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));

    let run = |program: &str| between(&a, &b, program).unwrap_or_else(|error| panic!("{error}"));
    let pingpong = run("ibv_rc_pingpong -g 1 -m 4096 -s 64");
    assert!(pingpong.contains("1000 iters in"), "{pingpong}");
    for program in ["ib_write_bw", "ib_send_bw", "ib_read_bw"] {
        let report = run(&format!("{program} -s 65536 -n 200"));
        let figures = report.lines().find(|line| line.starts_with(" 65536 "));
        println!("{program} {}", figures.unwrap());
    }

    kill(Pid::from_raw(wire.id() as i32), Signal::SIGINT).unwrap();
    let finished = Finished::of(wire.wait_with_output().unwrap());
    reader.join().unwrap().unwrap();
    finished.expect_code(PASSED);
    let report = finished.json();
    let fault = &report["faults"][0];
    assert_eq!(fault["proved"], true, "{fault}");
    // The thousand messages, and what was sent again.
    assert!(fault["met"].as_u64() > Some(1000), "{fault}");
}
