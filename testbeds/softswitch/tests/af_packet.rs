//! AF_PACKET ports over veth pairs, in a user and network namespace of the test's own.
//!
//! The test runs itself again under `unshare`; the namespace and its links go with the process. Where `unshare`, `ip` or
//! unprivileged namespaces are missing it is skipped by name.

mod support;

use softswitch::driver;
use softswitch::ports::dump::Dump;
use softswitch::ports::{AfPacket, MAX_FRAME, PortIo, pcap};
use std::process::Command;
use std::time::{Duration, Instant};
use support::*;

const INSIDE: &str = "WEIR_TEST_IN_NAMESPACE";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the named test of this binary inside a namespace; false where that cannot be done.
fn in_namespace(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let possible = Command::new("unshare").args(["-rn", "ip", "link"]).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {test}: needs `unshare`, `ip` and unprivileged namespaces");
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

fn ip(arguments: &str) {
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

fn veth(switch: &str, host: &str) {
    ip(&format!(
        "link add {switch} mtu 9216 type veth peer name {host} mtu 9216"
    ));
    for name in [switch, host] {
        // Nothing but the test speaks on these links.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        ip(&format!("link set {name} up"));
    }
}

/// Frames that arrive until there are `count`, or the time is over.
fn receive(port: &mut AfPacket, count: usize) -> Vec<Vec<u8>> {
    let (mut frames, start) = (Vec::new(), Instant::now());
    while frames.len() < count && start.elapsed() < TIMEOUT {
        port.receive(64, &mut |frame| frames.push(frame.to_vec()))
            .unwrap();
        std::thread::yield_now();
    }
    frames
}

fn send(port: &mut AfPacket, frame: &[u8]) -> usize {
    port.send(frame).unwrap();
    port.flush().unwrap()
}

fn frame(dst: u8, len: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..len).map(|i| i as u8).collect();
    frame[..14].copy_from_slice(&[0, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame
}

#[test]
fn frames_of_all_sizes_pass_unchanged() {
    if !in_namespace("frames_of_all_sizes_pass_unchanged") {
        return;
    }
    veth("s1", "h1");
    let (mut switch, mut host) = (AfPacket::open("s1").unwrap(), AfPacket::open("h1").unwrap());
    for len in [14, 60, 1500, 9000, 9216 + 14] {
        assert_eq!(send(&mut host, &frame(1, len)), 0);
        assert_eq!(receive(&mut switch, 1), [frame(1, len)], "{len}");
    }
    assert_eq!(
        receive_nothing(&mut host),
        0,
        "what a port sends it does not receive"
    );

    // Too long for the link, and for Ethernet too short: lost, counted, and the port goes on.
    assert_eq!(send(&mut host, &frame(1, 9216 + 15 + 4)), 1);
    assert_eq!(send(&mut host, &[0; 13]), 1);
    // More than a batch at once.
    for number in 0..100 {
        host.send(&frame(number, 60)).unwrap();
    }
    assert_eq!(host.flush().unwrap(), 0);
    let expected: Vec<_> = (0..100).map(|number| frame(number, 60)).collect();
    assert_eq!(receive(&mut switch, 100), expected);

    // The kernel takes the outer VLAN tag out of a frame; the port puts it back.
    for tags in [
        &[0x81, 0x00, 0xa0, 42][..],
        &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2],
    ] {
        let mut tagged = frame(7, 60);
        tagged.splice(12..12, tags.iter().copied());
        assert_eq!(send(&mut host, &tagged), 0);
        assert_eq!(receive(&mut switch, 1), [tagged]);
    }

    ip("link set s1 down");
    assert_eq!(
        send(&mut switch, &frame(1, 60)),
        1,
        "a link that is down loses frames"
    );
    assert_eq!(receive_nothing(&mut switch), 0);
    ip("link set s1 up");
    // The kernel lets frames through once it has noticed that the link is up, which it does in its own time.
    let deadline = Instant::now() + std::time::Duration::from_secs(10);
    let mut back = Vec::new();
    while back.is_empty() && Instant::now() < deadline {
        send(&mut host, &frame(2, 60));
        std::thread::sleep(std::time::Duration::from_millis(10));
        switch
            .receive(64, &mut |frame| back.push(frame.to_vec()))
            .unwrap();
    }
    assert_eq!(
        back.first(),
        Some(&frame(2, 60)),
        "it comes back with the link"
    );
    assert!(AfPacket::open("no-such-link").is_err());
}

fn receive_nothing(port: &mut AfPacket) -> usize {
    port.receive(64, &mut |_| ()).unwrap().frames
}

#[test]
fn a_switch_forwards_between_interfaces_and_captures() {
    if !in_namespace("a_switch_forwards_between_interfaces_and_captures") {
        return;
    }
    veth("s1", "h1");
    veth("s2", "h2");
    let folder = tempfile::tempdir().unwrap();
    let open = |name| -> Box<dyn PortIo> {
        Box::new(Dump::new(Box::new(AfPacket::open(name).unwrap()), folder.path()).unwrap())
    };
    let driver::Driver { handle, thread, .. } =
        driver::start(vec![(1, open("s1")), (2, open("s2"))], CPU_PORT).unwrap();
    let mut program = program().dataplane;
    let key = vec![p4lang::runtime::FieldMatch {
        field: "dst".into(),
        value: p4lang::runtime::Match::Exact(2),
    }];
    let action = p4lang::runtime::ActionCall {
        name: "Ingress.send".into(),
        params: vec![("port".into(), 2)],
    };
    let entry = p4lang::runtime::TableEntry {
        table: "Ingress.forward".into(),
        key,
        priority: 0,
        action,
    };
    program.insert_entry(&entry).unwrap();
    handle
        .run_blocking(|core| {
            core.save(program);
            core.commit();
        })
        .unwrap();

    let (mut h1, mut h2) = (AfPacket::open("h1").unwrap(), AfPacket::open("h2").unwrap());
    const FRAMES: usize = 20_000;
    let start = Instant::now();
    let mut arrived = 0;
    for burst in 0..FRAMES / 200 {
        for _ in 0..200 {
            h1.send(&frame(2, 1086)).unwrap();
        }
        assert_eq!(h1.flush().unwrap(), 0);
        arrived += receive(&mut h2, (burst + 1) * 200 - arrived).len();
    }
    assert_eq!(arrived, FRAMES);
    eprintln!(
        "{FRAMES} frames of 1,086 bytes in bursts of 200, captured: {:?}",
        start.elapsed()
    );
    for garbage in [&[0xffu8; 14][..], &[0; 60], &frame(9, MAX_FRAME - 22)] {
        send(&mut h1, garbage);
    }
    send(&mut h1, &frame(2, 60));
    assert_eq!(
        receive(&mut h2, 1),
        [frame(2, 60)],
        "garbage does not stop it"
    );

    let counters = handle.run_blocking(|core| core.port_counters()).unwrap();
    assert_eq!(counters[0].rx_frames, FRAMES as u64 + 4);
    assert_eq!(
        (counters[1].tx_frames, counters[1].tx_errors),
        (FRAMES as u64 + 1, 0)
    );
    assert_eq!(counters[1].tx_bytes, FRAMES as u64 * 1086 + 60);
    handle.run_blocking(|core| core.stop()).unwrap();
    thread.join().unwrap();
    let file = std::fs::File::open(folder.path().join("s2_out.pcap")).unwrap();
    let mut reader = pcap::Reader::new(std::io::BufReader::new(file)).unwrap();
    let mut captured = 0;
    while let Some(record) = reader.next_record().unwrap() {
        captured += 1;
        assert!(record.frame == frame(2, 1086) || captured > FRAMES);
    }
    assert_eq!(captured, FRAMES + 1);
}
