//! Frames over interfaces, in the test's own user and network namespace: by rings, by pnet, and between both.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use host_agent::frames::{Endpoint, Frames, Io, Mac, Opened, build, group, open, open_interface};
use test_support::namespace::{in_namespace, veth};

use crate::support::next;

const TIMEOUT: Duration = Duration::from_secs(10);

fn endpoint(last: u8) -> Endpoint {
    Endpoint {
        mac: Mac([2, 0, 0, 0, 0, last]),
        ip: Ipv4Addr::new(10, 0, 0, last),
    }
}

fn opened(interface: &str, io: Io) -> Opened {
    let opened = open_interface(interface, io).unwrap();
    assert_eq!(opened.notice, None);
    opened
}

/// Received aggregation frames for an endpoint, until there are `count`.
fn payloads(frames: &mut dyn Frames, me: Endpoint, count: usize) -> Vec<Vec<u8>> {
    let (mut all, begun) = (Vec::new(), Instant::now());
    while all.len() < count && begun.elapsed() < TIMEOUT {
        let mut take = |frame: &[u8]| all.extend(open(frame, me).map(<[u8]>::to_vec));
        frames.receive(64, &mut take).unwrap();
    }
    all
}

#[test]
fn frames_pass_by_each_way_in_their_order() {
    if !in_namespace("frames_pass_by_each_way_in_their_order") {
        return;
    }
    veth("left", "right");
    for (one, other) in [
        (Io::Rings, Io::Rings),
        (Io::Rings, Io::Calls),
        (Io::Calls, Io::Rings),
        (Io::Rings, Io::Pnet),
        (Io::Pnet, Io::Rings),
    ] {
        let (left, right) = (opened("left", one), opened("right", other));
        assert_eq!((left.io, right.io), (one, other));
        let (mut left, mut right) = (left.frames, right.frames);
        /// More frames than a batch has, and no more than a buffer of Debian's default size holds.
        const COUNT: usize = 100;
        // Some do not fit a slot of the ring.
        let payload =
            |number: usize| vec![number as u8; if number % 50 == 7 { 8000 } else { 1044 }];
        let mut frame = Vec::new();
        for number in 0..COUNT {
            let to = [endpoint(2), group(5)][number % 2];
            build(&mut frame, endpoint(1), to, &payload(number));
            left.send(&frame).unwrap();
        }
        left.flush().unwrap();
        let expected: Vec<_> = (0..COUNT).map(payload).collect();
        assert_eq!(
            payloads(&mut *right, endpoint(2), COUNT),
            expected,
            "{one} to {other}"
        );
        // In the other direction, with single frames.
        build(&mut frame, endpoint(2), endpoint(1), b"answer");
        right.send(&frame).unwrap();
        right.flush().unwrap();
        let came = next(&mut left, TIMEOUT).unwrap();
        assert_eq!(came.as_ref(), Some(&frame));
        assert_eq!(next(&mut left, Duration::from_millis(1)).unwrap(), None);
    }
}

/// Other traffic of the interface is not even passed to the program: it costs the rank nothing.
#[test]
fn only_whole_datagrams_to_the_port_are_received() {
    if !in_namespace("only_whole_datagrams_to_the_port_are_received") {
        return;
    }
    veth("left", "right");
    for io in [Io::Rings, Io::Calls, Io::Pnet] {
        let (mut left, mut right) = (opened("left", Io::Rings), opened("right", io));
        hears_its_own(&mut *left.frames, &mut *right.frames, io);
    }
}

fn hears_its_own(left: &mut dyn Frames, right: &mut dyn Frames, io: Io) {
    let mut ours = Vec::new();
    build(&mut ours, endpoint(1), endpoint(2), b"ours");
    let with = |at: usize, bytes: &[u8]| {
        let mut other = ours.clone();
        other[at..at + bytes.len()].copy_from_slice(bytes);
        other
    };
    // With a VLAN tag, which the kernel removes from the frame that it shows; and with an IP option without effect.
    let tagged = [&ours[..12], &[0x81, 0, 0, 5], &ours[12..]].concat();
    let mut optional = [&ours[..34], &[1, 1, 1, 0], &ours[34..]].concat();
    optional[14] = 0x46;
    let others = [
        tagged,
        optional,
        with(12, &[0x86, 0xdd]), // IPv6
        with(23, &[6]),          // TCP
        with(36, &[0, 53]),      // another port
        with(20, &[0x20, 0]),    // a fragment, the first
        with(20, &[0, 9]),       // the last
        ours[..30].to_vec(),     // it ends before its port
    ];
    for other in &others {
        left.send(other).unwrap();
    }
    left.send(&ours).unwrap();
    assert_eq!(left.flush().unwrap(), 0, "{io}");
    let (mut came, begun) = (Vec::new(), Instant::now());
    while !came.contains(&ours) && begun.elapsed() < TIMEOUT {
        right
            .receive(64, &mut |frame: &[u8]| came.push(frame.to_vec()))
            .unwrap();
    }
    assert_eq!(came, [ours], "{io}");
}

/// Otherwise the kernel would answer "port unreachable" for a live rank, and other ranks would declare it dead.
#[test]
fn the_port_is_held_until_the_last_rank_of_a_host_goes() {
    if !in_namespace("the_port_is_held_until_the_last_rank_of_a_host_goes") {
        return;
    }
    veth("left", "right");
    for io in [Io::Rings, Io::Calls, Io::Pnet] {
        let first = opened("left", io);
        let second = opened("right", io);
        let is_free = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, wire::UDP_PORT)).is_ok();
        assert!(!is_free());
        drop(first);
        assert!(!is_free(), "{io}");
        drop(second);
        assert!(is_free(), "{io}");
    }
}

#[test]
fn an_interface_that_is_missing_is_named_by_its_reason() {
    if !in_namespace("an_interface_that_is_missing_is_named_by_its_reason") {
        return;
    }
    for io in [Io::Auto, Io::Bundles, Io::Rings, Io::Calls, Io::Pnet] {
        assert!(open_interface("nowhere", io).is_err(), "{io}");
    }
    for io in [Io::Auto, Io::Bundles, Io::Rings, Io::Calls, Io::Pnet] {
        assert_eq!(io.to_string().parse::<Io>(), Ok(io));
    }
    assert!(
        "mmap"
            .parse::<Io>()
            .unwrap_err()
            .contains("auto, bundles, rings, calls, pnet")
    );
}
