//! Compares docs/rdma-handshakes.md with the messages of Debian's programs.

use crate::capture::{Capture, Packet};
use crate::network::{A, B, inside, two_on_a_bridge};
use machines::{PORT, between};
use std::net::Ipv4Addr;

const TCP: u8 = 6;
const DONE: &[u8] = b"done\0";

/// Consecutive data of one side.
#[derive(Debug)]
struct Turn {
    is_client: bool,
    bytes: Vec<u8>,
}

/// The data on a TCP connection to the server, turn by turn.
fn conversation(packets: &[Packet]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    // Next sequence numbers of server and client.
    let mut next = [None; 2];
    for packet in packets {
        let is_client = packet.source() != A.octets();
        let (sequence, bytes) = packet.segment();
        let next = &mut next[usize::from(is_client)];
        if bytes.is_empty() || next.is_some_and(|next| next != sequence) {
            continue;
        }
        *next = Some(sequence.wrapping_add(bytes.len() as u32));
        match turns.last_mut() {
            Some(turn) if turn.is_client == is_client => turn.bytes.extend(bytes),
            _ => turns.push(Turn {
                is_client,
                bytes: bytes.to_vec(),
            }),
        }
    }
    for turn in &turns {
        let who = if turn.is_client { "client" } else { "server" };
        println!("  {who} {} {}", turn.bytes.len(), turn.bytes.escape_ascii());
    }
    turns
}

/// All data of one side.
fn said_by(is_client: bool, turns: &[Turn]) -> Vec<u8> {
    let own = turns.iter().filter(|turn| turn.is_client == is_client);
    own.flat_map(|turn| turn.bytes.clone()).collect()
}

/// Asserts that bytes have a form, in which `x` is any lower-case hexadecimal digit, and any other character is itself.
fn assert_form(bytes: &[u8], form: &str) {
    let is_like = |(byte, form): (&u8, u8)| match form {
        b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
        _ => *byte == form,
    };
    let is_as_long = bytes.len() == form.len();
    let is_formed = is_as_long && bytes.iter().zip(form.bytes()).all(is_like);
    assert!(is_formed, "{} is no {form:?}", bytes.escape_ascii());
}

/// An IPv4 address as a GID in hexadecimal digits, with a separator between the bytes.
fn gid(address: Ipv4Addr, between: &str) -> String {
    let bytes = address.to_ipv6_mapped().octets();
    bytes.map(|byte| format!("{byte:02x}")).join(between)
}

/// Takes the next bytes of a side's data.
fn take<'a>(said: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = said
        .split_at_checked(length)
        .unwrap_or_else(|| panic!("{} ends too early", said.escape_ascii()));
    *said = rest;
    taken
}

fn assert_pingpong(turns: &[Turn]) {
    let [client, server, done] = turns else {
        panic!("{} turns", turns.len());
    };
    for (turn, address, is_client) in [(client, B, true), (server, A, false)] {
        assert_eq!(turn.is_client, is_client);
        let form = format!("0000:xxxxxx:xxxxxx:{}\0", gid(address, ""));
        assert_form(&turn.bytes, &form);
    }
    assert!(done.is_client);
    assert_eq!(done.bytes, DONE);
}

/// Exchange of a perftest program.
#[derive(Clone, Copy)]
struct Perftest {
    program: &'static str,
    /// Maximum number of outstanding reads, as in the keys.
    reads: &'static str,
    has_rkey: bool,
    /// How often the keys are sent before the run.
    keys_before: usize,
    end: End,
}

/// Exchange after the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Keys, a report, keys, and "done".
    Report,
    /// Keys and "done".
    Done,
    /// Nothing.
    Silence,
}

const TESTS: [Perftest; 6] = [
    Perftest {
        program: "ib_write_bw -n 200",
        reads: "0001",
        has_rkey: true,
        keys_before: 3,
        end: End::Report,
    },
    Perftest {
        program: "ib_send_bw -n 200",
        reads: "0001",
        has_rkey: false,
        keys_before: 4,
        end: End::Done,
    },
    Perftest {
        program: "ib_read_bw -n 200",
        reads: "0080",
        has_rkey: true,
        keys_before: 3,
        end: End::Report,
    },
    Perftest {
        program: "ib_write_lat -n 50",
        reads: "0001",
        has_rkey: true,
        keys_before: 4,
        end: End::Silence,
    },
    Perftest {
        program: "ib_send_lat -n 50",
        reads: "0001",
        has_rkey: false,
        keys_before: 4,
        end: End::Done,
    },
    Perftest {
        program: "ib_read_lat -n 50",
        reads: "0080",
        has_rkey: true,
        keys_before: 4,
        end: End::Done,
    },
];
const KEYS: usize = 108;
const REPORT: [usize; 5] = [8; 5];

impl Perftest {
    /// Lengths of the client's messages; each is answered by one of the same length.
    fn lengths(self) -> Vec<usize> {
        let mut lengths = vec![16, 4, 4, 2];
        lengths.extend(vec![KEYS; self.keys_before]);
        if self.end == End::Report {
            lengths.push(KEYS);
            lengths.extend(REPORT);
        }
        if self.end != End::Silence {
            lengths.push(KEYS);
        }
        lengths
    }

    fn assert(self, turns: &[Turn]) {
        let lengths = self.lengths();
        // The server's "done" may follow its last answer in the same turn.
        let answered = lengths.iter().flat_map(|length| [*length; 2]);
        let answered: Vec<usize> = answered.take(2 * lengths.len() - 1).collect();
        let took: Vec<usize> = turns.iter().map(|turn| turn.bytes.len()).collect();
        assert_eq!(took[..answered.len()], answered);
        for (at, turn) in turns[..answered.len()].iter().enumerate() {
            assert_eq!(turn.is_client, at % 2 == 0);
        }
        for (is_client, address) in [(true, B), (false, A)] {
            self.assert_side(is_client, address, &said_by(is_client, turns));
        }
    }

    fn assert_side(self, is_client: bool, address: Ipv4Addr, mut said: &[u8]) {
        let said = &mut said;
        assert_eq!(take(said, 16), b"6.06\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(take(said, 4), 4096_u32.to_be_bytes());
        assert_eq!(take(said, 4), 64_u32.to_be_bytes());
        // The verbs' number of 4,096.
        assert_eq!(take(said, 2), b"5\0");
        let rkey = if self.has_rkey {
            "xxxxxxxx"
        } else {
            "00000000"
        };
        let form = format!(
            "0000:{}:xxxxxx:xxxxxx:{rkey}:xxxxxxxxxxxxxxxx:{}:00000000:\0",
            self.reads,
            gid(address, ":"),
        );
        let keys = take(said, KEYS);
        assert_form(keys, &form);
        for _ in 1..self.keys_before {
            assert_eq!(take(said, KEYS), keys);
        }
        if self.end == End::Report {
            assert_eq!(take(said, KEYS), keys);
            let report = REPORT.map(|length| take(said, length));
            // The server has measured nothing, so its report is uninitialized memory.
            if is_client {
                assert_report(report);
            }
        }
        if self.end != End::Silence {
            assert_eq!(take(said, KEYS), keys);
            assert_eq!(take(said, DONE.len()), DONE);
        }
        assert!(said.is_empty(), "{}", said.escape_ascii());
    }
}

fn assert_report(report: [&[u8]; 5]) {
    let report = report.map(|field| field.try_into().expect("eight bytes"));
    let [size, iterations, peak, average, rate] = report;
    assert_eq!(u64::from_be_bytes(size), 65536);
    assert_eq!(u64::from_be_bytes(iterations), 200);
    let [peak, average, rate] = [peak, average, rate].map(f64::from_be_bytes);
    // All are 0 if the program could not calibrate its clock.
    if [peak, average, rate] == [0.0; 3] {
        return;
    }
    assert!(peak >= average && average > 0.0, "{peak} {average}");
    // MiB/s, and millions of messages a second.
    let expected = average * f64::from(1 << 20) / 65536.0 / 1e6;
    assert!((rate / expected - 1.0).abs() < 1e-6, "{rate} {expected}");
}

#[test]
fn programs_follow_the_documented_handshakes() {
    let test = "handshakes::programs_follow_the_documented_handshakes";
    let Some(image) = inside(test) else { return };
    let [server, client] = two_on_a_bridge(&image);
    let capture = Capture::start("tap-a");
    let conversation_of = |program| {
        println!("{program}");
        let is_handshake =
            |packet: &Packet| packet.protocol() == TCP && packet.ports().contains(&PORT);
        let run = || between(&server, &client, program);
        let (output, packets) = capture.during(is_handshake, run);
        output.unwrap_or_else(|error| panic!("{error}"));
        conversation(&packets)
    };
    assert_pingpong(&conversation_of("ibv_rc_pingpong -g 1"));
    for perftest in TESTS {
        perftest.assert(&conversation_of(perftest.program));
    }
}
