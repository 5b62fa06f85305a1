//! Cost of the loss of one packet of a message.

use std::cell::RefCell;
use std::rc::Rc;

use roce::packet::{NakCode, Opcode, Packet, Syndrome};
use roce::{Local, Psn, Status, Work};

use crate::common::{Network, Setup, TapAction, local, remote};

const PACKETS: usize = 100;
const FIRST: u32 = 0xFF_FFC0;
/// T of timeout code 8.
const T_NS: u64 = 4096 << 8;
const DELAY_NS: u64 = 1000;
/// 10 Gb/s.
const PS_PER_BYTE: u64 = 800;

/// A packet on the wire: time, sender, content.
#[derive(Debug, Clone, Copy)]
struct CapturedPacket {
    at_ns: u64,
    by: usize,
    opcode: Opcode,
    psn: Psn,
    is_sequence_nak: bool,
}

/// Lumina's three latencies.
#[derive(Debug, Clone, Copy)]
struct Latencies {
    /// From the arrival of the packet after the gap to the NAK or, in a READ, to the repeated request.
    nack_generation_ns: Option<u64>,
    /// From the arrival of the NAK to the retransmission.
    nack_response_ns: Option<u64>,
    /// From the lost packet to its retransmission.
    retransmission_ns: u64,
}

/// Sends a message of 100 packets whose packet `lost` is lost the first time.
fn lose(lost: usize, is_read: bool) -> Latencies {
    let mut network = Network::new(lost as u64, 2);
    network.delay_ns = DELAY_NS;
    network.ps_per_byte = PS_PER_BYTE;
    let setup = Setup {
        psns: [Psn::new(FIRST), Psn::new(5)],
        ..Setup::default()
    };
    let len = PACKETS * setup.mtu.bytes() - 3;
    let data: Vec<u8> = (0..len).map(|i| (i / 7) as u8).collect();
    let (from, to) = if is_read { (1, 0) } else { (0, 1) };
    let source = network.register(from, data.clone());
    let target = network.register(to, vec![0; len]);
    let [a, _] = network.connect(setup);

    let seen: Rc<RefCell<Vec<CapturedPacket>>> = Rc::default();
    let is_data = move |seen: &CapturedPacket| seen.by == from && seen.opcode.has_payload();
    let lost_psn = Psn::new(FIRST + lost as u32);
    network.tap = Box::new({
        let seen = Rc::clone(&seen);
        move |at_ns, by, packet: &Packet<'_>| {
            let header = packet.header();
            let nak = Syndrome::Nak(NakCode::PsnSequence);
            let now = CapturedPacket {
                at_ns,
                by,
                opcode: header.opcode,
                psn: header.psn,
                is_sequence_nak: header.aeth.is_some_and(|aeth| aeth.syndrome == nak),
            };
            let mut seen = seen.borrow_mut();
            let is_first = !seen.iter().any(|s| is_data(s) && s.psn == lost_psn);
            seen.push(now);
            if is_data(&now) && now.psn == lost_psn && is_first {
                TapAction::Drop
            } else {
                TapAction::Pass
            }
        }
    });
    let work = if is_read {
        Work::Read {
            local: local(target, 0, len),
            remote: remote(source, 0),
        }
    } else {
        Work::Write {
            local: local(source, 0, len),
            remote: remote(target, 0),
            immediate: None,
        }
    };
    network.send(0, a, 1, work);
    network.run();
    let completions = network.completions(0);
    assert_eq!(completions.len(), 1);
    assert_eq!(completions[0].status, Status::Success);
    assert_eq!(network.bytes(to, target), data, "{lost}");

    let seen = seen.borrow();
    let lost_at = seen
        .iter()
        .position(|s| is_data(s) && s.psn == lost_psn)
        .unwrap();
    let after = &seen[lost_at + 1..];
    let again = after
        .iter()
        .find(|s| is_data(s) && s.psn == lost_psn)
        .unwrap();
    let asks = |s: &&CapturedPacket| {
        s.is_sequence_nak
            || is_read && s.opcode == Opcode::ReadRequest && s.psn == lost_psn && s.by == 0
    };
    let nack = after.iter().find(asks).copied();
    // If the last packet is lost, no later one reveals the gap.
    let next = after
        .iter()
        .find(|s| is_data(s))
        .filter(|_| lost + 1 < PACKETS);
    let frame_ns = |payload: u64| (payload + 58) * PS_PER_BYTE / 1000;
    let arrival_ns =
        |s: &CapturedPacket| s.at_ns + frame_ns(if is_data(s) { 1024 } else { 4 }) + DELAY_NS;
    Latencies {
        nack_generation_ns: next
            .and_then(|next| Some(nack?.at_ns.saturating_sub(arrival_ns(next)))),
        nack_response_ns: next.and_then(|_| Some(again.at_ns.saturating_sub(arrival_ns(&nack?)))),
        retransmission_ns: again.at_ns - seen[lost_at].at_ns,
    }
}

fn lose_each(is_read: bool) {
    for lost in 0..PACKETS {
        let latencies = lose(lost, is_read);
        let Latencies {
            nack_generation_ns,
            nack_response_ns,
            retransmission_ns,
        } = latencies;
        if lost % 33 == 0 || lost == 98 {
            println!("READ {is_read}, lost {lost}: {latencies:?}");
        }
        if lost + 1 == PACKETS {
            assert_eq!(nack_generation_ns, None);
            assert!(
                (T_NS..=4 * T_NS).contains(&retransmission_ns),
                "{retransmission_ns}"
            );
        } else {
            // A packet in transmission ends first; apart from that, nothing waits.
            let frame_ns = 1082 * PS_PER_BYTE / 1000 + 1;
            assert!(
                nack_generation_ns.unwrap() <= frame_ns,
                "{lost}: {latencies:?}"
            );
            assert!(
                nack_response_ns.unwrap() <= 2 * frame_ns,
                "{lost}: {latencies:?}"
            );
            let round_trip_ns = 2 * DELAY_NS + 4 * frame_ns;
            assert!(
                retransmission_ns <= round_trip_ns + 2 * frame_ns,
                "{lost}: {latencies:?}"
            );
        }
    }
}

#[test]
fn each_packet_of_a_write_is_recovered() {
    lose_each(false);
}

#[test]
fn each_response_to_a_read_is_recovered() {
    lose_each(true);
}

/// All replies to a WRITE and a READ are lost: the WRITE's second ACK must not indicate that READ responses are missing.
#[test]
fn a_write_before_a_read_is_acknowledged_alone() {
    let mut network = Network::new(1, 2);
    let source = network.register(1, vec![7; 5000]);
    let target = network.register(0, vec![0; 5000]);
    let [a, _] = network.connect(Setup::default());
    let begin_ns = network.now_ns;
    network.tap = Box::new(move |now_ns, by, _: &Packet<'_>| {
        let is_early = now_ns < begin_ns + T_NS;
        if by == 1 && is_early {
            TapAction::Drop
        } else {
            TapAction::Pass
        }
    });
    let (local, remote) = (local(target, 0, 5000), remote(source, 0));
    let nothing = Local { len: 0, ..local };
    network.send(
        0,
        a,
        0,
        Work::Write {
            local: nothing,
            remote,
            immediate: None,
        },
    );
    network.send(0, a, 1, Work::Read { local, remote });
    network.run();
    assert_eq!(network.completions(0).len(), 2);
    assert_eq!(network.bytes(0, target), [7; 5000]);
    let counters = network.nodes[0].endpoint.counters();
    assert_eq!(
        (counters.completer_retry_err, counters.implied_nak_seq_err),
        (1, 0)
    );
}

/// The next ACK compensates for a lost one.
#[test]
fn acks_are_cumulative() {
    let mut network = Network::new(1, 2);
    let source = network.register(0, vec![7; 4096]);
    let target = network.register(1, vec![0; 4096]);
    let [a, _] = network.connect(Setup::default());
    let mut acks = 0;
    network.tap = Box::new(move |_, by, _: &Packet<'_>| {
        acks += u64::from(by == 1);
        if by == 1 && acks == 1 {
            TapAction::Drop
        } else {
            TapAction::Pass
        }
    });
    let work = Work::Write {
        local: local(source, 0, 4096),
        remote: remote(target, 0),
        immediate: None,
    };
    network.send(0, a, 0, work);
    let until_ns = network.now_ns + 5000;
    while network.step(until_ns) {}
    assert!(network.completions(0).is_empty());
    network.send(0, a, 1, work);
    while network.step(until_ns + 5000) {}
    assert_eq!(network.completions(0).len(), 2);
    assert_eq!(network.nodes[0].endpoint.counters().completer_retry_err, 0);
}

/// A hundred packets cause few ACKs: one per 16, and ACKs that are polled late are merged.
#[test]
fn acks_are_coalesced() {
    let mut network = Network::new(1, 2);
    network.ps_per_byte = PS_PER_BYTE;
    let source = network.register(0, vec![7; 102_400]);
    let target = network.register(1, vec![0; 102_400]);
    let [a, _] = network.connect(Setup::default());
    let work = Work::Write {
        local: local(source, 0, 102_400),
        remote: remote(target, 0),
        immediate: None,
    };
    network.send(0, a, 0, work);
    network.run();
    assert_eq!(network.nodes[0].endpoint.counters().sent_pkts, 100);
    assert_eq!(network.nodes[1].endpoint.counters().sent_pkts, 7);
}
