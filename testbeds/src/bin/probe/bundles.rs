//! Experiments with bundles: packets that stand for many frames.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use frames::bundle::{fold, sum};
use frames::{Frames, Io, Options};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, socket as new_socket,
};
use proof::{Digest, Identity, Way};
use testbeds::capture::{Capture, Filter, Handed, Limits, RecordedPort, Recorder, tcp_key};
use testbeds::host::Host;

use super::hosts::{Outcome, socket, two_hosts_with};

type Anything<T> = Result<T, Box<dyn std::error::Error>>;

/// Number of frames in a bundle.
const FRAMES: u16 = 40;
/// Payload of a frame in bytes; the last one has less.
const PAYLOAD: usize = 1000;

/// Frames that continue each other, from host `a` to host `b`, with right checksums.
fn bundle(tag: &[u8]) -> Vec<Vec<u8>> {
    let frame = |number: u16| {
        let payload = if number + 1 == FRAMES { 77 } else { PAYLOAD };
        let length = |more: usize| ((payload + more) as u16).to_be_bytes();
        let mut udp = [&[0, 9, 0, 9], &length(8)[..], &[0, 0]].concat();
        udp.extend((0..payload).map(|at| (at as u16 * 7 + number) as u8));
        let addresses = [10, 0, 0, 1, 10, 0, 0, 2];
        let pseudo = sum(&addresses) + 17 + (payload + 8) as u64;
        let checksum = !fold(pseudo + sum(&udp));
        udp[6..8].copy_from_slice(&checksum.to_be_bytes());
        let mut ip = [&[0x45, 0], &length(28)[..], &number.to_be_bytes()].concat();
        ip.extend([0, 0, 64, 17, 0, 0]);
        ip.extend(addresses);
        let checksum = !fold(sum(&ip));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let macs = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        [&macs, tag, &[8, 0], &ip, &udp].concat()
    };
    (0..FRAMES).map(frame).collect()
}

fn open(host: &Host, name: &str, qdisc_bypass: bool) -> Anything<Box<dyn Frames>> {
    let options = Options {
        io: Io::Bundles,
        qdisc_bypass,
        ..Options::default()
    };
    let opened = host.namespace().run(|| frames::open(name, options))?;
    Ok(opened.frames)
}

fn send(by: &mut dyn Frames, frames: &[Vec<u8>]) -> Anything<()> {
    for frame in frames {
        by.send(frame)?;
    }
    match by.flush()? {
        0 => Ok(()),
        lost => Err(format!("{lost} frames were not sent").into()),
    }
}

/// Lengths of all packets that a host receives or sends from now on, as the kernel passes them.
struct Packets(std::os::fd::OwnedFd);

impl Packets {
    fn open(host: &Host) -> Anything<Packets> {
        let open = || {
            let flags = SockFlag::SOCK_NONBLOCK;
            let protocol = SockProtocol::EthAll;
            let family = AddressFamily::Packet;
            Ok(new_socket(family, SockType::Raw, flags, protocol)?)
        };
        Ok(Packets(host.namespace().run(open)?))
    }

    fn lengths(&self) -> Vec<usize> {
        let mut lengths = Vec::new();
        let mut buffer = vec![0; 70_000];
        while let Ok(length) = recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            lengths.push(length);
        }
        lengths
    }
}

/// Frames that a recorder of two ports has handed over: port, direction, identity, bytes.
type Got = Arc<Mutex<Vec<(usize, Way, Identity, Vec<u8>)>>>;

fn record(hosts: [(&Host, &str); 2]) -> Anything<(Recorder, Got)> {
    let got = Got::default();
    let sink = Arc::clone(&got);
    let ports = hosts
        .into_iter()
        .enumerate()
        .map(|(port, (host, name))| RecordedPort {
            port,
            namespace: host.namespace().clone(),
            interface: name.into(),
            filter: Filter::Everything,
            keep: 2000,
            rate_bps: None,
        });
    let digest = Digest::of_seed(1);
    let recorder = Recorder::start(ports.collect(), Some(digest), move |handed| {
        if let (Handed::Batch(batch), Ok(mut got)) = (handed, sink.lock()) {
            got.extend(batch.sights().map(|sight| {
                assert_eq!(sight.wire_len as usize, sight.bytes.len());
                (batch.port, sight.way, sight.identity, sight.bytes.to_vec())
            }));
        }
    })?;
    Ok((recorder, got))
}

/// Frames recorded at a port in one direction: identities, and bytes.
fn at(got: &Got, port: usize, way: Way) -> Anything<(Vec<Identity>, Vec<Vec<u8>>)> {
    let got = got.lock().map_err(|_| "poisoned")?;
    let frames = got.iter().filter(|frame| (frame.0, frame.1) == (port, way));
    Ok(frames.map(|frame| (frame.2, frame.3.clone())).unzip())
}

/// Tests that the frames of bundles are recorded as they would be on a wire, at both ends.
pub fn recorded() -> Outcome {
    let [(a, _a_net), (b, _b_net)] = two_hosts_with(false, Some(65_536))?;
    let mut by = open(&a, "va", false)?;
    let _to = socket(b.namespace(), 2)?;
    let from = socket(a.namespace(), 1)?;
    let text = [5; 500];
    for (what, sent) in [
        ("untagged", bundle(&[])),
        ("tagged", bundle(&[0x81, 0, 0x60, 5])),
        ("with an unfinished checksum", Vec::new()),
    ] {
        let packets = Packets::open(&b)?;
        let (recorder, got) = record([(&a, "va"), (&b, "vb")])?;
        match sent.is_empty() {
            true => _ = from.send_to(&text, (Ipv4Addr::new(10, 0, 0, 2), 9))?,
            false => send(&mut *by, &sent)?,
        }
        thread::sleep(Duration::from_millis(50));
        let lost = recorder.stop()?;
        let (left, entered) = (at(&got, 0, Way::Out)?, at(&got, 1, Way::In)?);
        let is_as_sent = |frames: &[Vec<u8>]| match &sent[..] {
            [] => frames.len() == 1 && is_right(&frames[0]),
            sent => frames == sent,
        };
        println!(
            "{what}: packets {} left as sent {} entered as sent {} same identities {} lost {lost:?}",
            packets.lengths().len(),
            is_as_sent(&left.1),
            is_as_sent(&entered.1),
            left.0 == entered.0
        );
    }
    // The kernel copies the first bytes of the frames, and two frames in one packet of less than an MTU are lost.
    let limits = Limits {
        frame_bytes: 64,
        ..Limits::WHOLE_FRAMES
    };
    let capture = Capture::start(b.namespace(), "vb", Filter::UdpTo(9), limits)?;
    let long = bundle(&[]);
    send(&mut *by, &long)?;
    from.send_to(&text, (Ipv4Addr::new(10, 0, 0, 2), 9))?;
    let short: Vec<Vec<u8>> = short(&long);
    send(&mut *by, &short)?;
    thread::sleep(Duration::from_millis(50));
    let recording = capture.stop()?;
    let frames = &recording.frames;
    let fitting = frames.iter().all(|frame| frame.bytes.len() == 64);
    let as_sent = frames.iter().zip(&long).filter(|(frame, sent)| {
        frame.wire_len as usize == sent.len() && *frame.bytes == sent[..64]
    });
    println!(
        "the first 64 bytes: frames {} of the right length {fitting} as sent {} lost {}",
        frames.len(),
        as_sent.count(),
        recording.lost
    );
    Ok(())
}

/// Two frames with 100 bytes of payload, without UDP checksum.
fn short(long: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let shortened = long[..2].iter().map(|frame| {
        let mut frame = frame[..142].to_vec();
        frame[16..18].copy_from_slice(&128_u16.to_be_bytes());
        frame[24..26].fill(0);
        let checksum = !fold(sum(&frame[14..34]));
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame[38..40].copy_from_slice(&108_u16.to_be_bytes());
        frame[40..42].fill(0);
        frame
    });
    shortened.collect()
}

/// Whether the TCP or UDP checksum of a frame over IPv4 without options is right.
fn is_right(frame: &[u8]) -> bool {
    let segment = &frame[34..];
    let pseudo = sum(&frame[26..34]) + u64::from(frame[23]) + segment.len() as u64;
    fold(pseudo + sum(segment)) == 0xffff
}

/// Tests that a stream between hosts with offloads on is recorded as the segments that a wire would carry.
pub fn tcp() -> Outcome {
    let [(a, _a_net), (b, _b_net)] = two_hosts_with(false, Some(65_536))?;
    let listener = b
        .namespace()
        .run(|| TcpListener::bind((Ipv4Addr::new(10, 0, 0, 2), 9)))?;
    let packets = Packets::open(&b)?;
    let (recorder, got) = record([(&a, "va"), (&b, "vb")])?;
    let data: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut stream = a
        .namespace()
        .run(|| TcpStream::connect((Ipv4Addr::new(10, 0, 0, 2), 9)))?;
    let (mut accepted, _) = listener.accept()?;
    let reader = thread::spawn(move || {
        let mut come = Vec::new();
        accepted.read_to_end(&mut come).map(|_| come)
    });
    stream.write_all(&data)?;
    drop(stream);
    let come = reader.join().map_err(|_| "the reader panicked")??;
    thread::sleep(Duration::from_millis(50));
    let lost = recorder.stop()?;
    let (left, entered) = (at(&got, 0, Way::Out)?, at(&got, 1, Way::In)?);
    let bundles = packets.lengths().into_iter().any(|length| length > 3_000);
    // The stream, by sequence number.
    let mut segments = BTreeMap::new();
    for frame in &entered.1 {
        let key = tcp_key(frame).ok_or("no TCP")?;
        segments.insert(key.sequence, key.payload);
    }
    let stream: Vec<u8> = segments
        .values()
        .flat_map(|bytes| bytes.iter().copied())
        .collect();
    println!(
        "bundles {bundles} segments fit {} checksums {} stream {} same at both {} lost {lost:?}",
        entered.1.iter().all(|frame| frame.len() <= 1514),
        left.1.iter().chain(&entered.1).all(|frame| is_right(frame)),
        stream == data && come == data,
        left == entered,
    );
    Ok(())
}

/// Tests that the kernel splits what a packet socket sends above the limit of the link.
pub fn above_the_limit() -> Outcome {
    const LIMIT: usize = 5_000;
    let [(a, _a_net), (b, _b_net)] = two_hosts_with(false, Some(LIMIT as u32))?;
    let _to = socket(b.namespace(), 2)?;
    for (what, bypass) in [("with its queue", false), ("past its queue", true)] {
        let packets = Packets::open(&b)?;
        let (recorder, got) = record([(&a, "va"), (&b, "vb")])?;
        let mut by = open(&a, "va", bypass)?;
        let many = bundle(&[]);
        send(&mut *by, &many[..4])?;
        send(&mut *by, &many)?;
        thread::sleep(Duration::from_millis(50));
        recorder.stop()?;
        let lengths = packets.lengths();
        println!(
            "{what}: bundles {} within the limit {} frames as sent {}",
            lengths.iter().any(|length| *length > 1_514),
            lengths.iter().all(|length| *length < LIMIT),
            at(&got, 1, Way::In)?.1 == [&many[..4], &many].concat()
        );
    }
    Ok(())
}
