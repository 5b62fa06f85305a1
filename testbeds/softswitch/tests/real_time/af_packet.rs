//! AF_PACKET ports over veth pairs, in the test's own user and network namespace.
//!
//! The test re-executes itself under `unshare`; the namespace and its links disappear with the process. Without
//! `unshare`, `ip` or unprivileged namespaces it is skipped by name.

use crate::support::veth::*;
use crate::support::*;
use softswitch::driver;
use softswitch::ports::dump::Dump;
use softswitch::ports::{self, Frames, Io, MAX_FRAME, Sink, pcap};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Receives frames until there are `count`, or until the timeout.
fn receive(port: &mut Box<dyn Frames>, count: usize) -> Vec<Vec<u8>> {
    let (mut frames, start) = (Vec::new(), Instant::now());
    while frames.len() < count && start.elapsed() < TIMEOUT {
        port.receive(64, &mut |frame: &[u8]| frames.push(frame.to_vec()))
            .unwrap();
        std::thread::yield_now();
    }
    frames
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
    frames_of_all_sizes(Io::Rings);
}

#[test]
fn frames_of_all_sizes_pass_unchanged_without_a_ring() {
    if !in_namespace("frames_of_all_sizes_pass_unchanged_without_a_ring") {
        return;
    }
    frames_of_all_sizes(Io::Calls);
}

/// The waiting times of frames, as their port reports them.
struct Waits(Vec<Duration>);

impl Sink for Waits {
    fn arrived(&mut self) {}

    fn frame(&mut self, _: &[u8], waited_ns: u64) {
        self.0.push(Duration::from_nanos(waited_ns));
    }
}

#[test]
fn a_ring_knows_how_long_frames_have_waited() {
    if !in_namespace("a_ring_knows_how_long_frames_have_waited") {
        return;
    }
    veth("s1", "h1");
    let (mut switch, mut host) = (open("s1", Io::Rings), open("h1", Io::Rings));
    let (pause, begun) = (Duration::from_millis(30), Instant::now());
    assert_eq!(send(&mut host, &frame(1, 60)), 0);
    // The time is measured, not waited for.
    std::thread::sleep(pause);
    assert_eq!(send(&mut host, &frame(2, 60)), 0);
    let mut waits = Waits(Vec::new());
    while waits.0.len() < 2 && begun.elapsed() < TIMEOUT {
        switch.receive(64, &mut waits).unwrap();
    }
    let longest = begun.elapsed();
    let [first, second] = waits.0[..] else {
        panic!("{:?}", waits.0);
    };
    assert!(
        pause <= first && first <= longest,
        "{first:?} of {longest:?}"
    );
    assert!(
        second + pause <= first + Duration::from_millis(1),
        "{second:?}"
    );
}

/// Both ends of the cable, opened before its MTU was raised: frames longer than 1,514 bytes fit no slot.
fn opened_narrow(io: Io) -> (Box<dyn Frames>, Box<dyn Frames>) {
    let both = |mtu: u32| ["s1", "h1"].map(|name| ip(&format!("link set {name} mtu {mtu}")));
    both(1500);
    let ends = (open("s1", io), open("h1", io));
    both(9216);
    ends
}

fn frames_of_all_sizes(io: Io) {
    veth("s1", "h1");
    let (mut switch, mut host) = (open("s1", io), open("h1", io));
    // Every frame that the link accepts fits a slot of the ring.
    for len in [14, 60, 1500, 9000, 9216 + 13, 9216 + 14] {
        assert_eq!(send(&mut host, &frame(1, len)), 0);
        assert_eq!(receive(&mut switch, 1), [frame(1, len)], "{len}");
    }
    drop((switch, host));
    let (mut switch, mut host) = opened_narrow(io);
    // Around the size of a slot of the ring, in both directions.
    for len in [14, 60, 1500, 1530, 1534, 1535, 1568, 1569, 9000, 9216 + 14] {
        assert_eq!(send(&mut host, &frame(1, len)), 0);
        assert_eq!(receive(&mut switch, 1), [frame(1, len)], "{len}");
    }
    assert_eq!(
        receive_nothing(&mut host),
        0,
        "what a port sends it does not receive"
    );

    // Too long for the link, or too short for Ethernet: such frames are lost and counted, and the port continues.
    assert_eq!(send(&mut host, &frame(1, 9216 + 15 + 4)), 1);
    assert_eq!(send(&mut host, &[0; 13]), 1);
    // More than a batch at once, and no more than a buffer of Debian's default size holds: both frames that fit a slot and longer
    // ones, in order; one of them is too long.
    let size = |number: u8| if number.is_multiple_of(3) { 4000 } else { 60 };
    for number in 0..100 {
        host.send(&frame(number, size(number))).unwrap();
        if number == 50 {
            host.send(&frame(1, 9216 + 15 + 4)).unwrap();
        }
    }
    assert_eq!(host.flush().unwrap(), 1);
    let expected: Vec<_> = (0..100).map(|number| frame(number, size(number))).collect();
    assert_eq!(receive(&mut switch, 100), expected);

    // The kernel removes the outer VLAN tag of a frame; the port restores it.
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
    // The kernel passes frames once it has noticed that the link is up, which takes an unknown time.
    let deadline = Instant::now() + std::time::Duration::from_secs(10);
    let mut back = Vec::new();
    while back.is_empty() && Instant::now() < deadline {
        send(&mut host, &frame(2, 60));
        std::thread::sleep(std::time::Duration::from_millis(10));
        switch
            .receive(64, &mut |frame: &[u8]| back.push(frame.to_vec()))
            .unwrap();
    }
    assert_eq!(
        back.first(),
        Some(&frame(2, 60)),
        "it comes back with the link"
    );
    let missing = |io| {
        ports::open(
            "no-such-link",
            ports::Options {
                io,
                ..Default::default()
            },
        )
    };
    for io in [Io::Auto, io] {
        assert!(missing(io).is_err());
    }
}

fn receive_nothing(port: &mut Box<dyn Frames>) -> usize {
    port.receive(64, &mut |_: &[u8]| ()).unwrap().frames
}

#[test]
fn a_switch_forwards_between_interfaces_and_captures() {
    if !in_namespace("a_switch_forwards_between_interfaces_and_captures") {
        return;
    }
    veth("s1", "h1");
    veth("s2", "h2");
    let folder = tempfile::tempdir().unwrap();
    let captured = |name| -> Box<dyn Frames> {
        Box::new(Dump::new(open(name, Io::Auto), folder.path()).unwrap())
    };
    let ports = vec![(1, captured("s1")), (2, captured("s2"))];
    let driver::Driver { handle, thread, .. } = forwarding(ports);

    let (mut h1, mut h2) = (open("h1", Io::Auto), open("h2", Io::Auto));
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

#[test]
fn frames_that_find_no_room_are_counted_and_those_after_them_pass() {
    if !in_namespace("frames_that_find_no_room_are_counted_and_those_after_them_pass") {
        return;
    }
    veth("s1", "h1");
    let slots = 100;
    let options = ports::Options {
        slots,
        io: Io::Rings,
        ..ports::Options::default()
    };
    let (mut switch, mut host) = (
        ports::open("s1", options).unwrap().frames,
        open("h1", Io::Rings),
    );
    for round in 0..3 {
        for number in 0..250u8 {
            host.send(&frame(number, 60)).unwrap();
        }
        assert_eq!(host.flush().unwrap(), 0);
        let kept = receive_all(&mut switch);
        let lost = switch.overflow().unwrap_or(0);
        // Rings consist of whole blocks: at least the requested number of slots.
        assert!(
            kept.len() >= slots && lost > 0,
            "{round}: {} {lost}",
            kept.len()
        );
        assert_eq!(kept.len() as u64 + lost, 250, "{round}");
        let first: Vec<_> = (0..kept.len()).map(|n| frame(n as u8, 60)).collect();
        assert_eq!(kept, first, "the oldest are kept, in order");
        assert_eq!(switch.overflow().unwrap_or(0), 0, "counted once");
    }
}

#[test]
fn frames_that_find_no_room_beside_the_ring_are_counted_and_those_after_them_pass() {
    if !in_namespace(
        "frames_that_find_no_room_beside_the_ring_are_counted_and_those_after_them_pass",
    ) {
        return;
    }
    veth("s1", "h1");
    let (mut switch, mut host) = opened_narrow(Io::Rings);
    // More long frames than a socket's buffer holds, but fewer than there are slots.
    const FRAMES: u64 = 1000;
    for _ in 0..FRAMES {
        assert_eq!(send(&mut host, &frame(1, 9000)), 0);
    }
    let kept = receive_all(&mut switch);
    let lost = switch.overflow().unwrap_or(0);
    assert!(!kept.is_empty() && lost > 0, "{} {lost}", kept.len());
    assert_eq!(kept.len() as u64 + lost, FRAMES);
    assert!(kept.iter().all(|kept| *kept == frame(1, 9000)));
    assert_eq!(send(&mut host, &frame(2, 9000)), 0);
    assert_eq!(receive_all(&mut switch), [frame(2, 9000)]);
    assert_eq!(switch.overflow().unwrap_or(0), 0, "counted once");
}

#[test]
fn clients_read_the_lost_frames_of_a_port() {
    if !in_namespace("clients_read_the_lost_frames_of_a_port") {
        return;
    }
    ip("link set lo up");
    veth("s1", "h1");
    let options = ports::Options {
        slots: 100,
        io: Io::Rings,
        ..ports::Options::default()
    };
    let port = ports::open("s1", options).unwrap().frames;
    let instance = attached(vec![(1, port)], None);
    let mut host = open("h1", Io::Rings);
    // While a command runs the switch takes no frame.
    let fill = move |_: &mut driver::Core| {
        for number in 0..250u8 {
            host.send(&frame(number, 60)).unwrap();
        }
        host.flush().unwrap()
    };
    assert_eq!(instance.handle().run_blocking(fill).unwrap(), 0);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let asked = runtime.block_on(async {
        let address = instance.address().to_string();
        let mut extension = softswitch::server::connect_extension(&address, TIMEOUT).await?;
        let request = softswitch::server::weir::PortCountersRequest {};
        let answer = extension.port_counters(request).await?;
        Ok::<_, Box<dyn std::error::Error>>(answer.into_inner().ports)
    });
    let port = &asked.unwrap()[0];
    let lost = port.rx_lost_frames;
    assert!(lost > 0 && lost <= 150, "{port:?}");
    assert_eq!((port.rx_frames + lost, port.rx_errors), (250, lost));
    let drops = instance.statistics().unwrap().drops;
    assert_eq!(drops.get("receive queue full"), Some(&lost));
}

/// All frames that have arrived: on a veth pair a frame arrives while it is sent.
fn receive_all(port: &mut Box<dyn Frames>) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while port.has_arrived() == Some(true) {
        port.receive(7, &mut |frame: &[u8]| frames.push(frame.to_vec()))
            .unwrap();
    }
    frames
}

#[test]
fn a_local_process_with_checksum_offload_is_understood() {
    if !in_namespace("a_local_process_with_checksum_offload_is_understood") {
        return;
    }
    veth("s1", "h1");
    ip("address add 10.9.0.1/24 dev h1");
    ip("neighbour add 10.9.0.2 lladdr 02:00:00:00:00:02 dev h1");
    let socket = std::net::UdpSocket::bind("10.9.0.1:4000").unwrap();
    for io in [Io::Rings, Io::Calls] {
        let mut switch = open("s1", io);
        socket.send_to(&[0x5a; 101], "10.9.0.2:5000").unwrap();
        let frames = receive(&mut switch, 1);
        let packet = &frames[0][14..];
        let mut sum = 17 + (packet.len() as u32 - 20);
        for word in packet[12..].chunks(2) {
            sum += u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        assert_eq!(sum, 0xffff, "{io:?}: the UDP checksum is right");
    }
}
