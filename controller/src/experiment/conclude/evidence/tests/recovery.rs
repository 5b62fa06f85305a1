//! Time until a data packet that a fault took is retransmitted, from captures alone.

use proof::{EpochWrite, Recovery, Teller, TriggerCount};
use testbeds::capture::{Direction, Frame};

use super::super::Evidence;
use super::bench::{MS, planned};
use crate::experiment::Planned;
use crate::experiment::conclude::Conclusion;

const WRITE: u8 = 0x07;
const ACKNOWLEDGE: u8 = 0x11;
const READ_REQUEST: u8 = 0x0c;
const READ_RESPONSE: u8 = 0x0e;
const NAK: u8 = 0x60;
const ACK: u8 = 0x1f;

/// A RoCEv2 packet: sender, queue pair, kind, and sequence number; `detail` is the byte after its header.
#[derive(Clone, Copy)]
struct Roce {
    from: &'static str,
    qp: u8,
    opcode: u8,
    psn: u32,
    detail: u8,
}

impl Roce {
    fn frame(self, planned: &Planned) -> Box<[u8]> {
        let to = if self.from == "a" { "s" } else { "a" };
        let host = |name: &str| planned.scenario.topology.host(name).expect("a host");
        let (source, destination) = (host(self.from), host(to));
        let mut frame = [destination.mac.0, source.mac.0].concat();
        frame.extend([0x08, 0x00, 0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend(source.ip.octets());
        frame.extend(destination.ip.octets());
        frame.extend([0xC0, 0x00, 0x12, 0xB7, 0, 40, 0, 0]);
        frame.extend([self.opcode, 0x40, 0xFF, 0xFF, 0, 0, 0, self.qp, 0x80]);
        frame.extend(&self.psn.to_be_bytes()[1..]);
        frame.extend([self.detail; 20]);
        frame.into()
    }
}

fn write(psn: u32) -> Roce {
    Roce {
        from: "a",
        qp: 17,
        opcode: WRITE,
        psn,
        detail: 0,
    }
}

fn from_s(opcode: u8, psn: u32, detail: u8) -> Roce {
    Roce {
        from: "s",
        qp: 17,
        opcode,
        psn,
        detail,
    }
}

/// Judges captures of packets a millisecond apart, each of which takes 0.1 ms through the switch; those of `lost` (by their
/// position) are dropped.
fn conclude(faults: &str, sent: &[Roce], lost: &[usize]) -> (Conclusion, Vec<Recovery>) {
    let planned = planned(faults);
    let port_of = |host: &str| {
        let port = planned.scenario.topology.next_hop("sw", host);
        port.expect("a port").number
    };
    let (a, s) = (port_of("a"), port_of("s"));
    let mut recordings = [(a, Vec::new()), (s, Vec::new())];
    for (place, packet) in (0..).zip(sent) {
        let bytes = packet.frame(&planned);
        let frame = |at_ns, direction| Frame {
            at_ns,
            direction,
            wire_len: bytes.len() as u32,
            bytes: bytes.clone(),
        };
        let at_ns = (place as u64 + 1) * MS;
        let (from, to) = if packet.from == "a" { (0, 1) } else { (1, 0) };
        recordings[from].1.push(frame(at_ns, Direction::In));
        if !lost.contains(&place) {
            recordings[to]
                .1
                .push(frame(at_ns + MS / 10, Direction::Out));
        }
    }
    let injections = planned.plan.injections.len();
    let evidence = Evidence {
        writes: vec![EpochWrite {
            switch: "sw".to_owned(),
            epoch: 1,
            sent_ns: 0,
            confirmed_ns: 0,
        }],
        fired: vec![lost.len() as u64; injections],
        keyless: vec![0; injections],
        triggers: vec![TriggerCount::default(); planned.scenario.triggers.len()],
        ..Evidence::default()
    };
    let conclusion = super::conclude(&planned, &evidence, &recordings);
    let recoveries = conclusion.recoveries.clone();
    (conclusion, recoveries)
}

const THIRD: &str =
    "faults: [{id: lost, flows: asked, effect: !drop , select: {psn: {at: 2, round: 1}}}]";

fn latencies(of: &Recovery) -> [Option<u64>; 3] {
    [
        of.nak_generation_ns,
        of.nak_response_ns,
        of.retransmission_ns,
    ]
}

#[test]
fn a_nak_splits_the_time_until_a_packet_comes_again() {
    let sent = [
        write(100),
        write(101),
        write(102),
        from_s(ACKNOWLEDGE, 101, ACK),
        write(103),
        write(104),
        // NAKs for another gap.
        from_s(ACKNOWLEDGE, 101, NAK),
        from_s(ACKNOWLEDGE, 102, NAK),
        write(105),
        write(102),
        write(103),
    ];
    let (conclusion, recoveries) = conclude(THIRD, &sent, &[2]);
    let [recovery] = &recoveries[..] else {
        panic!("{recoveries:?}");
    };
    assert_eq!(
        (recovery.psn, recovery.relative_psn, recovery.qp),
        (102, 2, 17)
    );
    assert_eq!(recovery.told_by, Teller::Nak);
    // The NAK came at 8 ms; 103 had gone on at 5.1 ms; 102 came again at 10 ms.
    assert_eq!(
        latencies(recovery),
        [Some(29 * MS / 10), Some(2 * MS), Some(7 * MS)]
    );
    let fault = &conclusion.faults[0];
    assert!(fault.proved, "{fault:#?}");
    assert_eq!(
        (fault.recovered, fault.recovery_ns),
        (Some(1), Some(7 * MS))
    );
}

#[test]
fn a_nak_that_is_lost_itself_tells_nobody() {
    let both = "faults:
  - {id: lost, flows: asked, effect: !drop , select: {psn: {at: 2, round: 1}}}
  - {id: told, flows: answers, effect: !drop , select: {nth: 1}}
";
    let sent = [
        write(100),
        write(101),
        write(102),
        write(103),
        from_s(ACKNOWLEDGE, 102, NAK),
        write(102),
    ];
    let (_, recoveries) = conclude(both, &sent, &[2, 4]);
    let of_data = recoveries.iter().find(|of| of.fault == "lost").unwrap();
    assert_eq!(of_data.told_by, Teller::Nobody);
    assert_eq!(latencies(of_data), [None, None, Some(3 * MS)]);
}

#[test]
fn nothing_tells_of_the_last_packet() {
    let sent = [write(100), write(101), write(102), write(102)];
    let (_, recoveries) = conclude(THIRD, &sent, &[2]);
    assert_eq!(recoveries[0].told_by, Teller::Nobody);
    assert!(!recoveries[0].passed_before);
    assert_eq!(latencies(&recoveries[0]), [None, None, Some(MS)]);

    let (conclusion, recoveries) = conclude(THIRD, &sent[..3], &[2]);
    assert_eq!(latencies(&recoveries[0]), [None; 3]);
    let fault = &conclusion.faults[0];
    assert_eq!((fault.recovered, fault.recovery_ns), (Some(0), None));
}

#[test]
fn a_copy_of_what_has_arrived_need_not_come_again() {
    let second = THIRD.replace("round: 1", "round: 2");
    // The sender timed out before it had the ACK.
    let sent = [
        write(100),
        write(101),
        write(102),
        write(101),
        write(102),
        from_s(ACKNOWLEDGE, 102, ACK),
        write(103),
    ];
    let (conclusion, recoveries) = conclude(&second, &sent, &[4]);
    assert!(recoveries[0].passed_before, "{recoveries:?}");
    assert_eq!(latencies(&recoveries[0]), [None; 3]);
    assert_eq!(conclusion.faults[0].recovered, Some(0));
}

#[test]
fn a_read_that_begins_anew_tells_of_a_response() {
    let response = |psn| Roce {
        from: "s",
        ..write(psn)
    };
    let response = |psn| Roce {
        opcode: READ_RESPONSE,
        ..response(psn)
    };
    let asks = |psn| Roce {
        opcode: READ_REQUEST,
        ..write(psn)
    };
    let lost =
        "faults: [{id: lost, flows: answers, effect: !drop , select: {psn: {at: 1, round: 1}}}]";
    let sent = [
        asks(7),
        response(7),
        response(8),
        response(9),
        asks(8),
        response(8),
        response(9),
    ];
    let (_, recoveries) = conclude(lost, &sent, &[2]);
    let [recovery] = &recoveries[..] else {
        panic!("{recoveries:?}");
    };
    assert_eq!((recovery.psn, recovery.told_by), (8, Teller::Read));
    assert_eq!(
        latencies(recovery),
        [Some(9 * MS / 10), Some(MS), Some(3 * MS)]
    );
}

#[test]
fn what_only_passes_is_not_taken() {
    let seen = THIRD.replace("!drop ", "!observe ");
    let sent = [write(100), write(101), write(102), write(102)];
    let (conclusion, recoveries) = conclude(&seen, &sent, &[]);
    assert!(recoveries.is_empty());
    assert_eq!(conclusion.faults[0].recovered, None);
}
