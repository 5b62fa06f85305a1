//! Bundles of frames (segmentation offload) between ports over veth pairs, in the test's own user and network namespace.
#![allow(unsafe_code)]

use crate::support::veth::*;
use frames::bundle::{Offload, fold, sum};
use nix::sys::socket::{MsgFlags, recv, send as send_packet};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use softswitch::ports::{Frames, Io, Received};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(10);
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
const HEADERS: usize = ETHERNET + IPV4 + UDP;
/// Length of the longest frame of a veth pair.
const LONGEST: usize = ETHERNET + 9216;
const COUNT: usize = 40;
const PAYLOAD: usize = 1044;

/// A packet socket of the kernel without a port around it: it sees a bundle whole.
struct PlainSocket(OwnedFd);

impl PlainSocket {
    /// Opens an interface. `has_headers`: whether each packet has a virtio header before it.
    fn open(interface: &str, has_headers: bool) -> Self {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers; the result is checked, and is a descriptor without another owner.
        let socket = unsafe {
            let number = libc::socket(libc::AF_PACKET, kind, 0);
            assert!(number >= 0, "{}", std::io::Error::last_os_error());
            OwnedFd::from_raw_fd(number)
        };
        for (option, value) in [
            (libc::PACKET_IGNORE_OUTGOING, 1),
            (libc::PACKET_VNET_HDR, libc::c_int::from(has_headers)),
        ] {
            // SAFETY: the kernel reads an int, which outlives the call.
            let set = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_PACKET,
                    option,
                    (&raw const value).cast(),
                    size_of_val(&value) as libc::socklen_t,
                )
            };
            assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
        }
        let index = nix::net::if_::if_nametoindex(interface).unwrap();
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::c_ushort,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index as libc::c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: the address outlives the call and has the length that is passed.
        let bound = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        assert_eq!(bound, 0, "{}", std::io::Error::last_os_error());
        Self(socket)
    }

    fn send(&self, packet: &[u8]) {
        let sent = send_packet(self.0.as_raw_fd(), packet, MsgFlags::empty());
        assert_eq!(sent, Ok(packet.len()));
    }

    /// Lengths of the packets that have arrived: on a veth pair a packet arrives while it is sent.
    fn lengths(&self) -> Vec<usize> {
        let mut buffer = vec![0; 1 << 17];
        let next = || recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::MSG_TRUNC).ok();
        std::iter::from_fn(next).collect()
    }
}

/// A UDP frame over IPv4 between the ports `flow` and `flow`, with the right checksums.
fn datagram(flow: u16, identification: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; HEADERS + payload.len()];
    frame[..ETHERNET].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    let (ip, udp) = (
        (IPV4 + UDP + payload.len()) as u16,
        (UDP + payload.len()) as u16,
    );
    frame[14..34].copy_from_slice(&[
        0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame[16..18].copy_from_slice(&ip.to_be_bytes());
    frame[18..20].copy_from_slice(&identification.to_be_bytes());
    let checksum = !fold(sum(&frame[14..34]));
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame[34..36].copy_from_slice(&flow.to_be_bytes());
    frame[36..38].copy_from_slice(&flow.to_be_bytes());
    frame[38..40].copy_from_slice(&udp.to_be_bytes());
    frame[HEADERS..].copy_from_slice(payload);
    let pseudo = sum(&frame[26..34]) + 17 + u64::from(udp);
    let checksum = match !fold(pseudo + sum(&frame[34..])) {
        0 => 0xffff,
        checksum => checksum,
    };
    frame[40..42].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// Consecutive frames of one flow.
fn flow(flow: u16, count: usize) -> Vec<Vec<u8>> {
    let frame = |number: usize| {
        let payload: Vec<u8> = (0..PAYLOAD).map(|at| (at * 7 + number) as u8).collect();
        datagram(flow, number as u16, &payload)
    };
    (0..count).map(frame).collect()
}

/// A bundle of two frames with its virtio header, for a socket that takes them.
fn bundle(segment: usize) -> (Offload, Vec<u8>) {
    let mut packet = datagram(7, 0, &vec![5; 2 * segment]);
    let udp = (UDP + 2 * segment) as u64;
    let pseudo = fold(sum(&packet[26..34]) + 17 + udp);
    packet[40..42].copy_from_slice(&pseudo.to_be_bytes());
    let offload = Offload {
        flags: Offload::NEEDS_CSUM,
        kind: Offload::UDP_L4,
        header_length: HEADERS as u16,
        segment: segment as u16,
        checksum_start: (ETHERNET + IPV4) as u16,
        checksum_offset: 6,
    };
    (offload, packet)
}

fn send_all(port: &mut Box<dyn Frames>, frames: &[Vec<u8>]) {
    for frame in frames {
        port.send(frame).unwrap();
    }
    assert_eq!(port.flush().unwrap(), 0);
}

/// Receives until `count` frames have come or been counted as errors, or until the timeout.
fn receive(port: &mut Box<dyn Frames>, count: usize) -> (Vec<Vec<u8>>, usize) {
    let (mut frames, mut errors, start) = (Vec::new(), 0, Instant::now());
    while frames.len() + errors < count && start.elapsed() < TIMEOUT {
        let received = port.receive(64, &mut |frame: &[u8]| frames.push(frame.to_vec()));
        errors += received.unwrap().errors;
    }
    (frames, errors)
}

#[test]
fn a_bundle_arrives_as_its_frames() {
    if !in_namespace("a_bundle_arrives_as_its_frames") {
        return;
    }
    veth("s1", "h1");
    let mut port = open("s1", Io::Bundles);
    let mut peers = [open("h1", Io::Rings), open("h1", Io::Calls)];
    let plain = PlainSocket::open("h1", false);
    let frames = flow(1, COUNT);
    for _ in 0..3 {
        send_all(&mut port, &frames);
        assert_eq!(plain.lengths(), [HEADERS + COUNT * PAYLOAD], "one packet");
        for peer in &mut peers {
            let (arrived, errors) = receive(peer, COUNT);
            assert!(arrived == frames, "{} frames", arrived.len());
            assert_eq!(errors, 0);
            let more = peer.receive(64, &mut |_: &[u8]| ()).unwrap();
            assert_eq!(more, Received::default());
        }
    }
    for peer in &mut peers {
        assert_eq!(peer.overflow(), Some(0));
    }
}

/// A link that carries no bundles loses those that are sent: a port sends one only after one has come, or by order of its user.
#[test]
fn a_port_sends_bundles_after_one_has_come() {
    if !in_namespace("a_port_sends_bundles_after_one_has_come") {
        return;
    }
    veth("s1", "h1");
    let (there, back) = (flow(1, COUNT), flow(2, COUNT));
    let single = vec![HEADERS + PAYLOAD; COUNT];
    let whole = vec![HEADERS + COUNT * PAYLOAD];
    for (io, after) in [
        (Io::Auto, &whole),
        (Io::Rings, &single),
        (Io::Calls, &single),
    ] {
        let (mut port, mut peer) = (open("s1", io), open("h1", Io::Bundles));
        let plain = PlainSocket::open("h1", false);
        send_all(&mut port, &there);
        assert_eq!(plain.lengths(), single, "{io}, before");
        // Single frames change nothing.
        send_all(&mut peer, &back[..1]);
        assert_eq!(receive(&mut port, 1).0, back[..1]);
        send_all(&mut port, &there);
        assert_eq!(plain.lengths(), single, "{io}, after a single frame");
        send_all(&mut peer, &back);
        assert!(receive(&mut port, COUNT).0 == back, "{io}");
        send_all(&mut port, &there);
        assert_eq!(&plain.lengths(), after, "{io}, after a bundle");
        let (arrived, errors) = receive(&mut peer, 3 * COUNT);
        assert!(arrived == [&there[..], &there, &there].concat(), "{io}");
        assert_eq!(errors, 0);
    }
}

#[test]
fn a_budget_divides_a_bundle() {
    if !in_namespace("a_budget_divides_a_bundle") {
        return;
    }
    veth("s1", "h1");
    let frames = flow(1, COUNT);
    for io in [Io::Rings, Io::Calls] {
        let (mut port, mut peer) = (open("s1", Io::Bundles), open("h1", io));
        send_all(&mut port, &frames);
        let mut arrived = Vec::new();
        for taken in [7, 7, 7, 7, 7, 5] {
            if !arrived.is_empty() {
                assert_eq!(peer.has_arrived(), Some(true), "{io}");
            }
            let received = peer
                .receive(7, &mut |frame: &[u8]| arrived.push(frame.to_vec()))
                .unwrap();
            let expected = Received {
                frames: taken,
                errors: 0,
            };
            assert_eq!(received, expected, "{io}");
        }
        assert!(arrived == frames, "{io}");
        assert_ne!(peer.has_arrived(), Some(true), "{io}");
        let more = peer.receive(7, &mut |_: &[u8]| ()).unwrap();
        assert_eq!(more, Received::default(), "{io}");
    }
}

/// Frames whose lengths, flows and checksums change at random, so that bundles of all lengths form and break.
struct Traffic {
    rng: ChaCha8Rng,
    flow: u16,
    identifications: [u16; 3],
    payload: usize,
}

impl Traffic {
    fn new(seed: u64) -> Self {
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            flow: 0,
            identifications: [0, 0xfff0, 77],
            payload: 100,
        }
    }

    fn below(&mut self, options: usize) -> usize {
        (self.rng.next_u64() % options as u64) as usize
    }

    fn next(&mut self) -> Vec<u8> {
        if self.below(20) == 0 {
            self.flow = self.below(3) as u16;
        }
        if self.below(20) == 0 {
            self.payload = [0, 1, 18, 100, 256, 1044, 1472, 4096, 9000][self.below(9)];
        }
        let flow = usize::from(self.flow);
        if self.below(30) == 0 {
            self.identifications[flow] = self.rng.next_u32() as u16;
        }
        let payload = match self.below(15) {
            0 => self.below(self.payload + 1),
            _ => self.payload,
        };
        let mut bytes = vec![0; payload];
        self.rng.fill_bytes(&mut bytes);
        let mut frame = datagram(self.flow, self.identifications[flow], &bytes);
        self.identifications[flow] = self.identifications[flow].wrapping_add(1);
        match self.below(40) {
            // Damaged, of another protocol, or cut off.
            0 => {
                let at = self.below(frame.len());
                frame[at] ^= 1 << self.below(8);
            }
            1 => frame[12..14].copy_from_slice(&[0x88, 0xb5]),
            2 => frame.truncate(ETHERNET + self.below(frame.len() - ETHERNET + 1)),
            3..=20 => frame[40..42].fill(0),
            _ => {}
        }
        frame
    }

    /// Up to `count` frames, with fewer bytes than the buffer of a socket without privileges holds.
    fn batch(&mut self, count: usize) -> Vec<Vec<u8>> {
        let (mut frames, mut bytes) = (Vec::new(), 0);
        while frames.len() < count && bytes < 100_000 {
            let frame = self.next();
            bytes += frame.len();
            frames.push(frame);
        }
        frames
    }

    /// Sends a frame in one of the ways that a port offers.
    fn send(&mut self, port: &mut Box<dyn Frames>, frame: &[u8]) {
        if self.below(2) == 0 {
            port.send(frame).unwrap();
            return;
        }
        let len = frame.len() + self.below(50);
        if self.below(10) == 0 {
            // A place that is not used, or that is written to in vain.
            let room = port.room(len).unwrap().unwrap();
            room.fill(0xaa);
        }
        let room = port.room(len).unwrap().unwrap();
        room[..frame.len()].copy_from_slice(frame);
        port.written(frame.len()).unwrap();
    }
}

/// Whether a frame arrived as it was sent. In a bundle, a UDP frame without a checksum gets one.
fn is_same(sent: &[u8], arrived: &[u8]) -> bool {
    if sent == arrived {
        return true;
    }
    let has_none = sent.len() >= HEADERS && sent[40..42] == [0, 0];
    has_none && {
        let identification = u16::from_be_bytes([sent[18], sent[19]]);
        let flow = u16::from_be_bytes([sent[34], sent[35]]);
        arrived == datagram(flow, identification, &sent[HEADERS..])
    }
}

#[test]
fn frames_arrive_in_order_whatever_their_bundles() {
    if !in_namespace("frames_arrive_in_order_whatever_their_bundles") {
        return;
    }
    veth("s1", "h1");
    for seed in test_support::seeds(0..20) {
        for (io, peer) in [
            (Io::Bundles, Io::Rings),
            (Io::Bundles, Io::Calls),
            (Io::Rings, Io::Rings),
        ] {
            let mut traffic = Traffic::new(seed);
            let (mut port, mut peer) = (open("s1", io), open("h1", peer));
            let plain = PlainSocket::open("h1", false);
            let mut longest = 0;
            for _ in 0..60 {
                let count = 1 + traffic.below(150);
                let frames = traffic.batch(count);
                let count = frames.len();
                for frame in &frames {
                    traffic.send(&mut port, frame);
                }
                assert_eq!(port.flush().unwrap(), 0, "{seed} {io}");
                let (arrived, errors) = receive(&mut peer, count);
                assert_eq!((arrived.len(), errors), (count, 0), "{seed} {io}");
                for (number, (sent, arrived)) in frames.iter().zip(&arrived).enumerate() {
                    let message = || format!("{seed} {io} {number}: {sent:02x?} {arrived:02x?}");
                    assert!(is_same(sent, arrived), "{}", message());
                }
                longest = plain.lengths().into_iter().fold(longest, usize::max);
            }
            let has_bundles = longest > LONGEST;
            assert_eq!(has_bundles, io == Io::Bundles, "{io}: {longest} bytes");
        }
    }
}

#[test]
fn a_malformed_bundle_is_counted_and_those_after_it_pass() {
    if !in_namespace("a_malformed_bundle_is_counted_and_those_after_it_pass") {
        return;
    }
    veth("s1", "h1");
    let plain = PlainSocket::open("s1", true);
    // The kernel lets all of these pass.
    let with_options = {
        let (mut offload, mut packet) = bundle(500);
        packet.splice(34..34, [1, 1, 1, 0]);
        packet[14] = 0x46;
        let length = (packet.len() - ETHERNET) as u16;
        packet[16..18].copy_from_slice(&length.to_be_bytes());
        packet[24..26].fill(0);
        let checksum = !fold(sum(&packet[14..38]));
        packet[24..26].copy_from_slice(&checksum.to_be_bytes());
        offload.checksum_start += 4;
        offload.header_length += 4;
        (offload, packet)
    };
    let longer_than_the_link = bundle(12_000);
    let with_a_wrong_length = {
        let (offload, mut packet) = bundle(500);
        packet[38..40].copy_from_slice(&77u16.to_be_bytes());
        (offload, packet)
    };
    let malformed = [with_options, longer_than_the_link, with_a_wrong_length];
    let good = bundle(500);
    let expected = [0, 1].map(|number| datagram(7, number, &[5; 500]));
    for io in [Io::Rings, Io::Calls] {
        let mut peer = open("h1", io);
        for (number, (offload, packet)) in malformed.iter().enumerate() {
            for (offload, packet) in [(offload, packet), (&good.0, &good.1)] {
                plain.send(&[&offload.to_bytes()[..], packet].concat());
            }
            let (arrived, errors) = receive(&mut peer, 3);
            assert!(arrived == expected, "{io}, {number}: {}", arrived.len());
            assert_eq!(errors, 1, "{io}, {number}");
        }
        assert_eq!(peer.overflow(), Some(0), "{io}");
    }
}
