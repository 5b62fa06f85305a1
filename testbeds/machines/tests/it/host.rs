//! The requirements of our own RoCE on its namespace: the kernel's TCP works beside it, a packet socket receives the frames, and the
//! kernel does not answer on UDP port 4791.

use crate::capture::{Capture, Packet};
use crate::network::{A, HOST, host, inside, one_on_a_bridge};
use machines::{Job, Machine, PORT};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);
const ICMP: u8 = 1;
const UDP: u8 = 17;
const ROCE: u16 = 4791;
/// Any queue pair number that is not in use in the machine.
const OUR_QP: u32 = 0x12_3456;
/// Base transport header: RC, SEND ONLY.
const SEND_ONLY: u8 = 0x04;

fn is_roce(packet: &Packet) -> bool {
    packet.protocol() == UDP && packet.ports()[1] == ROCE
}

/// ICMP: destination unreachable, port unreachable.
fn is_refusal(packet: &Packet) -> bool {
    packet.protocol() == ICMP && packet.transport()[..2] == [3, 3]
}

/// Starts a client, whose server is this test (docs/rdma-handshakes.md), up to its first packet; returns that packet's PSN.
fn pingpong<'a>(machine: &'a Machine, listener: &TcpListener) -> (Job<'a>, u32) {
    let client = machine.spawn(&format!("ibv_rc_pingpong -g 1 -m 4096 -s 64 {HOST}"));
    let client = client.expect("a client");
    let (mut stream, from) = listener.accept().expect("a connection");
    assert_eq!(from.ip(), A);
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    let mut theirs = [0; 52];
    stream.read_exact(&mut theirs).expect("an address");
    let theirs = String::from_utf8_lossy(&theirs);
    let psn = theirs.split(':').nth(2).expect("a PSN");
    let psn = u32::from_str_radix(psn, 16).expect("a number");
    let gid = HOST.to_ipv6_mapped().octets();
    let gid = gid.map(|byte| format!("{byte:02x}")).concat();
    let ours = format!("0000:{OUR_QP:06x}:000000:{gid}\0");
    stream.write_all(ours.as_bytes()).expect("an answer");
    let mut done = [0; 5];
    stream.read_exact(&mut done).expect("an end");
    assert_eq!(&done, b"done\0");
    (client, psn)
}

#[test]
fn a_namespace_exchanges_tcp_with_a_machine_and_receives_its_roce() {
    let test = "host::a_namespace_exchanges_tcp_with_a_machine_and_receives_its_roce";
    let Some(image) = inside(test) else { return };
    let machine = one_on_a_bridge(&image);
    host("host", "between");

    let greeting = machine.spawn("echo from the machine | nc -l -p 7000");
    let greeting = greeting.expect("a server");
    machine
        .await_listening(7000)
        .expect("a server that listens");
    let mut stream = TcpStream::connect((A, 7000)).expect("a connection");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("a text");
    assert_eq!(text, "from the machine\n");
    drop(stream);
    greeting.succeed(LIMIT).expect("a server that ends");

    let capture = Capture::start("host");
    let listener = TcpListener::bind((HOST, PORT)).expect("a port");
    // No socket has RoCE's port, so the kernel refuses, which shows that the capture sees refusals.
    let (client, psn) = pingpong(&machine, &listener);
    let packet = capture.next(LIMIT, is_roce).expect("a packet of RoCE");
    assert_eq!(packet.source(), A.octets());
    // The program requests 1; the kernel uses the route's.
    assert_eq!(packet.time_to_live(), 64);
    let bth = &packet.transport()[8..];
    assert_eq!(bth[0], SEND_ONLY);
    assert_eq!(u32::from_be_bytes([0, bth[5], bth[6], bth[7]]), OUR_QP);
    assert_eq!(u32::from_be_bytes([0, bth[9], bth[10], bth[11]]), psn);
    // The header, 64 bytes of 0x7b, and the ICRC.
    assert_eq!(bth.len(), 12 + 64 + 4);
    assert!(bth[12..76].iter().all(|byte| *byte == 0x7b));
    capture.next(LIMIT, is_refusal).expect("a refusal");
    client.kill().expect("an end");

    // With a socket on the port, the kernel is silent: the retransmission shows that it had time to answer.
    let socket = UdpSocket::bind((HOST, ROCE)).expect("the port of RoCE");
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
    capture.drain();
    let (client, _) = pingpong(&machine, &listener);
    for _ in 0..2 {
        let mut datagram = [0; 4200];
        let length = socket.recv(&mut datagram).expect("a datagram");
        assert_eq!(datagram[5..8], OUR_QP.to_be_bytes()[1..], "{length}");
    }
    capture.next(LIMIT, is_roce).expect("a packet of RoCE");
    assert!(
        capture
            .next(Duration::from_millis(200), is_refusal)
            .is_none()
    );
    client.kill().expect("an end");
}
