//! Ports that mark (ECN) frames in a long queue, before links that tc shapes, in the test's own user and network
//! namespace. The checks do not depend on the speed of the links.

use crate::support::veth::*;
use softswitch::driver;
use softswitch::ports::delayed::{Delayed, Latency};
use softswitch::ports::dump::Dump;
use softswitch::ports::{self, Frames, Io};
use std::process::Command;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(10);
const MARK_AT: usize = 20;

fn tc(arguments: &str) {
    let output = Command::new("tc")
        .args(arguments.split_whitespace())
        .output()
        .expect("tc starts");
    assert!(output.status.success(), "tc {arguments}: {output:?}");
}

/// Limits a link, so that a frame takes a millisecond.
fn shape(name: &str) {
    tc(&format!(
        "qdisc add dev {name} root tbf rate 1600kbit burst 2kb limit 1mb"
    ));
}

/// 200 bytes of UDP over IPv4 to address 2, with these ECN bits.
fn frame(number: u16, ecn: u8) -> Vec<u8> {
    let mut frame = vec![0; 200];
    frame[..14].copy_from_slice(&[0, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    frame[14..34].copy_from_slice(&[
        0x45, ecn, 0, 186, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame[18..20].copy_from_slice(&number.to_be_bytes());
    let sum = !ones_sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

fn ones_sum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum + (sum >> 16)) as u16
}

/// Frames in order of arrival: number and ECN bits.
fn receive(port: &mut Box<dyn Frames>, count: usize) -> Vec<(u16, u8)> {
    let (mut frames, start) = (Vec::new(), Instant::now());
    let mut take = |frame: &[u8]| {
        assert_eq!(ones_sum(&frame[14..34]), 0xffff, "{frame:02x?}");
        let number = u16::from_be_bytes([frame[18], frame[19]]);
        assert_eq!(frame[15] >> 2, 0);
        frames.push((number, frame[15] & 3));
    };
    let mut received = 0;
    while received < count && start.elapsed() < TIMEOUT {
        received += port.receive(64, &mut take).unwrap().frames;
        std::thread::yield_now();
    }
    frames
}

fn marking(name: &str) -> Box<dyn Frames> {
    let options = ports::Options {
        mark_at: Some(MARK_AT),
        io: Io::Rings,
        ..ports::Options::default()
    };
    ports::open(name, options).unwrap().frames
}

#[test]
fn frames_that_find_a_long_queue_are_marked() {
    if !in_namespace("frames_that_find_a_long_queue_are_marked") {
        return;
    }
    veth("s1", "h1");
    shape("s1");
    let (mut switch, mut host) = (marking("s1"), open("h1", Io::Rings));
    // More frames than a ring has slots: the rest is sent past it.
    const FRAMES: u16 = 300;
    for number in 0..FRAMES {
        switch.send(&frame(number, 1 + (number & 1) as u8)).unwrap();
    }
    assert_eq!(switch.flush().unwrap(), 0, "marks come before losses");
    let marked = switch.marked();
    let arrived = receive(&mut host, usize::from(FRAMES));
    let numbers: Vec<u16> = arrived.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..FRAMES).collect::<Vec<_>>());
    let seen = arrived.iter().filter(|(_, ecn)| *ecn == 3);
    assert_eq!(seen.count() as u64, marked);
    // These frames find at most `MARK_AT` before them, however slow the machine; later the queue is long.
    assert!(arrived[..MARK_AT].iter().all(|(_, ecn)| *ecn != 3));
    assert!(marked > 0);
    assert_eq!(switch.marked(), 0, "counted once");
}

#[test]
fn frames_that_find_none_are_not() {
    if !in_namespace("frames_that_find_none_are_not") {
        return;
    }
    veth("s1", "h1");
    let (mut switch, mut host) = (marking("s1"), open("h1", Io::Rings));
    // A link as fast as its switch: frames that are handed over at once form no queue.
    for number in 0..1000 {
        switch.send(&frame(number, 2)).unwrap();
    }
    assert_eq!(switch.flush().unwrap(), 0);
    assert!(receive(&mut host, 1000).iter().all(|(_, ecn)| *ecn == 2));
    // A slow link, on which each frame waits until the previous one has left.
    shape("s1");
    for number in 0..60 {
        assert_eq!(send(&mut switch, &frame(number, 2)), 0);
        assert_eq!(receive(&mut host, 1), [(number, 2)]);
    }
    assert_eq!(switch.marked(), 0);
}

#[test]
fn frames_without_ecn_support_pass_unchanged() {
    if !in_namespace("frames_without_ecn_support_pass_unchanged") {
        return;
    }
    veth("s1", "h1");
    shape("s1");
    let (mut switch, mut host) = (marking("s1"), open("h1", Io::Rings));
    for number in 0..100 {
        // The other frames before have been marked.
        switch.send(&frame(number, 3 * (number & 1) as u8)).unwrap();
    }
    assert_eq!(switch.flush().unwrap(), 0);
    for (number, ecn) in receive(&mut host, 100) {
        assert_eq!(ecn, 3 * (number & 1) as u8);
    }
    assert_eq!(switch.marked(), 0);
}

/// Marks are counted through the wrappers that may be in front of a port.
#[test]
fn a_switch_counts_the_marks_of_its_ports() {
    if !in_namespace("a_switch_counts_the_marks_of_its_ports") {
        return;
    }
    veth("s1", "h1");
    veth("s2", "h2");
    shape("s2");
    let folder = tempfile::tempdir().unwrap();
    let captured = Dump::new(marking("s2"), folder.path()).unwrap();
    let latency = Latency {
        in_ns: 1,
        out_ns: 1,
    };
    let behind: Box<dyn Frames> = Box::new(Delayed::new(Box::new(captured), latency));
    let driver::Driver { handle, thread, .. } = forwarding(vec![(1, marking("s1")), (2, behind)]);
    let (mut h1, mut h2) = (open("h1", Io::Rings), open("h2", Io::Rings));
    for number in 0..120 {
        h1.send(&frame(number, 2)).unwrap();
    }
    assert_eq!(h1.flush().unwrap(), 0);
    let arrived = receive(&mut h2, 120);
    assert_eq!(arrived.len(), 120);
    let marked = arrived.iter().filter(|(_, ecn)| *ecn == 3).count() as u64;
    let counters = handle.run_blocking(|core| core.port_counters()).unwrap();
    let counted: Vec<u64> = counters.iter().map(|port| port.tx_marked).collect();
    assert_eq!(counted, [0, marked]);
    assert!(marked > 0);
    handle.run_blocking(|core| core.stop()).unwrap();
    thread.join().unwrap();
}

/// The number of waiting frames is estimated from the kernel's memory. Here it is compared with the frames that have not arrived.
#[test]
fn the_number_of_waiting_frames_is_that_of_frames_not_arrived() {
    if !in_namespace("the_number_of_waiting_frames_is_that_of_frames_not_arrived") {
        return;
    }
    veth("s1", "h1");
    const FRAMES: usize = 60;
    for len in [60, 200, 300, 690, 1076, 1514, 2000, 4000, 4096, 9000] {
        let (mut switch, mut host) = (marking("s1"), open("h1", Io::Rings));
        let mut long = frame(0, 0);
        long.resize(len, 0);
        let send_all = |switch: &mut Box<dyn Frames>| {
            for _ in 0..FRAMES {
                switch.send(&long).unwrap();
            }
            assert_eq!(switch.flush().unwrap(), 0);
        };
        let count = |host: &mut Box<dyn Frames>| {
            let received = host.receive(1000, &mut |_: &[u8]| ()).unwrap();
            received.frames
        };
        send_all(&mut switch);
        assert_eq!(count(&mut host), FRAMES, "{len} bytes");
        assert!(!switch.has_waiting(1), "{len} bytes");
        // At this rate a frame takes a tenth of a second or more, once other frames have used up the burst.
        tc("qdisc add dev s1 root tbf rate 4kbit burst 10kb limit 2mb");
        let mut other = open("s1", Io::Rings);
        for _ in 0..12 {
            assert_eq!(send(&mut other, &[0; 1000]), 0);
        }
        let used = count(&mut host);
        send_all(&mut switch);
        assert!(used >= 5, "{len} bytes: {used} other frames passed");
        let waiting = FRAMES - count(&mut host).min(FRAMES);
        let estimate = (0..=2 * FRAMES).rfind(|frames| switch.has_waiting(*frames));
        let estimate = estimate.unwrap_or(0);
        eprintln!("{len} bytes: {waiting} frames wait, {estimate} are estimated");
        // Kernels differ in the memory of short packets.
        assert!(
            (waiting * 2 / 3..=waiting * 3 / 2).contains(&estimate),
            "{len} bytes: {waiting} frames wait, not {estimate}"
        );
        tc("qdisc delete dev s1 root");
    }
}
