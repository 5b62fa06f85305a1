//! `weir switch`, the real binary, on a veth pair in a user and network namespace of the test's own: the test runs itself again
//! under `unshare`, and the namespace goes with the process.

use crate::support::*;
use softswitch::ports;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Duration;
use test_support::namespace::{in_namespace, ip, veth};

/// Sends what comes to port 1 back if the table says so; an undefined value decides that.
const PROGRAM: &str = "
#include <core.p4>
#include <v1model.p4>
header ethernet_h { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_h ethernet; }
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {
    action back() { s.egress_spec = s.ingress_port; }
    action drop() { mark_to_drop(s); }
    table types {
        key = { hdr.ethernet.type: exact; }
        actions = { back; drop; }
        default_action = drop();
        const entries = { 0x88b5: back(); }
    }
    apply {
        bit<8> never_set;
        if (never_set == 7) { hdr.ethernet.src = 0; }
        types.apply();
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) { apply {} }
control U(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
";

#[test]
fn a_packet_is_explained_and_warnings_are_seen() {
    let _turn = beside();
    let test = "a_packet_is_explained_and_warnings_are_seen";
    if !in_namespace(test) {
        return;
    }
    veth("s1", "h1");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("back.p4"), PROGRAM).unwrap();
    for interface in ["s1", "h1"] {
        ip(&format!("link set {interface} mtu 9400"));
    }
    let line = "switch back.p4 -i 1@s1 --grpc-server-addr 127.0.0.1:0 --trace=json --poison";
    let args: Vec<&str> = line.split_whitespace().collect();
    let mut switch = weir(folder.path(), &args);
    switch
        .env_remove("RUST_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut switch = Running(switch.spawn().unwrap());
    let mut lines = BufReader::new(switch.0.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(
        first.starts_with("device 0: P4Runtime at 127.0.0.1:"),
        "{first}"
    );

    let mut frame = vec![2; 12];
    frame.extend([0x88, 0xb5]);
    frame.resize(60, 0x5a);
    let mut host = ports::open("h1", ports::Options::default()).unwrap().frames;
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let sender = std::thread::spawn(move || {
        // The switch says that it serves before its program runs.
        while is_done.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            // The second is longer than any that the switch takes.
            for frame in [&frame[..], &[0; 9300]] {
                host.send(frame).unwrap();
            }
            host.flush().unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut events: Vec<serde_json::Value> = Vec::new();
    while events
        .last()
        .is_none_or(|event| event["event"] != "transmit")
    {
        let line = lines.next().expect("the switch runs").unwrap();
        events.push(serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}")));
    }
    drop(done);
    sender.join().unwrap();
    let of = |kind: &str| events.iter().find(|event| event["event"] == kind);
    assert_eq!(of("received").unwrap()["port"], 1);
    let table = of("table").unwrap();
    assert_eq!(table["table"], "I.types");
    let line_of = |text| {
        1 + PROGRAM
            .lines()
            .position(|line| line.contains(text))
            .unwrap()
    };
    assert_eq!(table["line"], line_of("types.apply"));
    let undefined = of("undefined").unwrap();
    assert_eq!(undefined["what"], "a condition");
    assert_eq!(undefined["line"], line_of("never_set == 7"));
    assert_eq!(of("transmit").unwrap()["port"], 1);

    let pid = switch.0.id().to_string();
    let ended = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(ended.unwrap().success());
    assert_eq!(switch.0.wait().unwrap().code(), Some(PASSED));
    let mut said = String::new();
    let mut stderr = switch.0.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("WARN"), "{said}");
    let reason = "frames of 9300 bytes arrive and are lost: the maximum is 9238;";
    assert!(said.contains(reason), "{said}");
}
