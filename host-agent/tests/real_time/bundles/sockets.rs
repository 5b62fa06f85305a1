//! Packets that sockets of this kernel send by an interface with all offloads.

use super::packet::sum_by_words;
use super::socket::PacketSocket;
use super::*;
use nix::sys::socket::{setsockopt, sockopt};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use test_support::namespace::{beyond, ip, remove};

const PORT: u16 = 7000;

fn address(ipv6: bool, last: u8) -> IpAddr {
    let text = if ipv6 { "fd00::" } else { "10.9.0." };
    format!("{text}{last}").parse().unwrap()
}

/// Gives an interface of the calling thread's namespace its addresses and its MTU.
fn configure(interface: &str, last: u8, mtu: usize) {
    let _ = std::fs::write(
        format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"),
        "0",
    );
    ip(&format!("link set {interface} mtu {mtu} up"));
    ip(&format!("address add 10.9.0.{last}/24 dev {interface}"));
    // The least MTU of IPv6.
    if mtu >= 1280 {
        ip(&format!(
            "address add fd00::{last}/64 dev {interface} nodad"
        ));
    }
}

/// Runs `receive` on an address of the far end, then `send` on the near end; returns what arrived at the far end beside
/// `receive`'s result.
fn tapped<T: Send + 'static>(
    ipv6: bool,
    mtu: usize,
    receive: impl FnOnce(SocketAddr, mpsc::Sender<()>) -> T + Send + 'static,
    send: impl FnOnce(SocketAddr),
) -> (T, Vec<Received>) {
    veth("near", "far");
    let (ready, is_ready) = mpsc::channel();
    let to = SocketAddr::new(address(ipv6, 2), PORT);
    let far = beyond("far", move || {
        configure("far", 2, mtu);
        let tap = PacketSocket::open("far", true);
        let result = receive(to, ready);
        let packets = std::iter::from_fn(|| tap.receive(Duration::from_millis(50)));
        (result, packets.collect())
    });
    is_ready.recv().unwrap();
    configure("near", 1, mtu);
    send(to);
    let result = far.join().unwrap();
    remove("near");
    result
}

/// Whether an IP packet's TCP or UDP checksum is right.
fn has_right_checksum(frame: &[u8], ipv6: bool) -> bool {
    let packet = &frame[14..];
    let (addresses, protocol, segment) = match ipv6 {
        false => (&packet[12..20], packet[9], &packet[20..]),
        true => (&packet[8..40], packet[6], &packet[40..]),
    };
    let length = (segment.len() as u16).to_be_bytes();
    sum_by_words(&[addresses, &[0, protocol], &length, segment].concat()) == 0xffff
}

#[test]
fn segments_of_a_tcp_socket_are_its_stream() {
    if !in_namespace("segments_of_a_tcp_socket_are_its_stream") {
        return;
    }
    let data: Vec<u8> = (0..120_000u32)
        .map(|at| (at.wrapping_mul(at) / 7) as u8)
        .collect();
    for (ipv6, mtu) in [(false, 1500), (true, 1500), (false, 576), (true, 9000)] {
        let (sent, listener) = (
            data.clone(),
            move |to: SocketAddr, ready: mpsc::Sender<()>| {
                let listener = loop {
                    if let Ok(listener) = TcpListener::bind(to) {
                        break listener;
                    }
                };
                ready.send(()).unwrap();
                let mut received = Vec::new();
                listener
                    .accept()
                    .unwrap()
                    .0
                    .read_to_end(&mut received)
                    .unwrap();
                received
            },
        );
        let (received, packets) = tapped(ipv6, mtu, listener, move |to| {
            let mut stream = TcpStream::connect(to).unwrap();
            stream.write_all(&sent).unwrap();
        });
        assert_eq!(received, data);
        let (transport, mut stream, mut first, mut largest) =
            (if ipv6 { 54 } else { 34 }, BTreeMap::new(), None, 0);
        for packet in &packets {
            let ethertype = [packet.packet[12], packet.packet[13]];
            let protocol = packet.packet[if ipv6 { 20 } else { 23 }];
            if ethertype != (if ipv6 { [0x86, 0xdd] } else { [8, 0] }) || protocol != 6 {
                continue;
            }
            let frames = frames(packet);
            largest = largest.max(frames.len());
            for frame in frames {
                assert!(frame.len() <= mtu + 14, "{}", frame.len());
                assert!(has_right_checksum(&frame, ipv6), "{:?}", packet.offload);
                let sequence = frame[transport + 4..transport + 8].try_into().unwrap();
                let sequence = u32::from_be_bytes(sequence);
                // SYN comes first, and takes a number.
                let position =
                    sequence.wrapping_sub(*first.get_or_insert(sequence.wrapping_add(1)));
                let payload = transport + usize::from(frame[transport + 12] >> 4) * 4;
                if frame.len() > payload {
                    stream.insert(position, frame[payload..].to_vec());
                }
            }
        }
        println!(
            "{mtu}: {} packets, the largest of {largest} frames",
            packets.len()
        );
        assert!(largest > 1, "the kernel sent no bundle");
        assert_eq!(stream.into_values().collect::<Vec<_>>().concat(), data);
    }
}

#[test]
fn datagrams_of_a_udp_socket_are_its_segments() {
    if !in_namespace("datagrams_of_a_udp_socket_are_its_segments") {
        return;
    }
    let data: Vec<u8> = (0..60_500u32)
        .map(|at| (at.wrapping_mul(at) / 7) as u8)
        .collect();
    for ipv6 in [false, true] {
        let (sent, ready) = (data.clone(), move |to, ready: mpsc::Sender<()>| {
            let socket = UdpSocket::bind(to).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            ready.send(()).unwrap();
            (0..61).for_each(|_| assert!(socket.recv(&mut [0; 2000]).unwrap() > 0));
        });
        let ((), packets) = tapped(ipv6, 1500, ready, move |to| {
            let socket = UdpSocket::bind((address(ipv6, 1), 0)).unwrap();
            setsockopt(&socket, sockopt::UdpGsoSegment, &1000).unwrap();
            socket.send_to(&sent, to).unwrap();
        });
        let bundle = packets
            .iter()
            .find(|packet| packet.offload.kind == Offload::UDP_L4)
            .expect("a bundle");
        let frames = frames(bundle);
        assert_eq!(frames.len(), 61);
        assert!(frames.iter().all(|frame| has_right_checksum(frame, ipv6)));
        let payload = if ipv6 { 62 } else { 42 };
        let payloads: Vec<_> = frames.iter().map(|frame| &frame[payload..]).collect();
        assert_eq!(payloads.concat(), data);
        assert!(payloads[..60].iter().all(|payload| payload.len() == 1000));
    }
}
