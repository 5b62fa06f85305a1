//! The limits of a run, and what peers take.

use crate::packet::{Bundle, Transport};
use crate::*;

fn lengths(packets: &[(Offload, Vec<u8>)]) -> Vec<usize> {
    packets
        .iter()
        .map(|(offload, packet)| cut(*offload, packet).len())
        .collect()
}

#[test]
fn a_run_has_at_most_64_frames() {
    let bundle = Bundle {
        segment: 10,
        payload: 1300,
        ..Bundle::default()
    };
    let frames = bundle.frames();
    let packets = join(&frames, BOTH);
    assert_eq!(lengths(&packets), [64, 64, 2]);
    assert_eq!(cut_all(&packets), frames);
}

#[test]
fn a_run_has_at_most_65535_bytes_of_ip() {
    // 20 + 8 + 15 × 4,367 + 2 is one more.
    for (last, expected) in [(1, vec![16]), (2, vec![16]), (3, vec![15, 1])] {
        let mut bundle = Bundle {
            segment: 4367,
            payload: 15 * 4367,
            ..Bundle::default()
        };
        let mut frames = bundle.frames();
        bundle.payload = last;
        bundle.identification += 15;
        frames.extend(bundle.frames());
        assert_eq!(lengths(&join(&frames, BOTH)), expected, "{last}");
    }
}

#[test]
fn peers_take_what_they_have_shown() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let frames = Bundle {
            transport,
            ..Bundle::default()
        }
        .frames();
        for (udp, tcp) in [(false, false), (false, true), (true, false), (true, true)] {
            let is_joined = if transport == Transport::Udp {
                udp
            } else {
                tcp
            };
            let packets = join(&frames, Joins { udp, tcp });
            assert_eq!(packets.len(), if is_joined { 1 } else { 3 });
            assert_eq!(cut_all(&packets), frames);
        }
    }
}

/// Segment `k` of a TCP stream, alone.
fn segment(k: u16, flags: u8) -> Vec<u8> {
    let bundle = Bundle {
        transport: Transport::Tcp,
        flags,
        segment: 100,
        payload: 100,
        sequence: u32::from(k) * 100,
        identification: k,
        ..Bundle::default()
    };
    bundle.frames().remove(0)
}

#[test]
fn fin_and_psh_end_a_run() {
    for last in [0x11, 0x18, 0x19] {
        for (flags, expected) in [
            (vec![0x10, 0x10, last, 0x10, 0x10], vec![3, 2]),
            (vec![0x10, last, last, 0x10], vec![2, 1, 1]),
            (vec![last, 0x10, last, last], vec![1, 2, 1]),
            (vec![last, last, 0x10], vec![1, 1, 1]),
        ] {
            let frames = (0..).zip(&flags).map(|(k, flags)| segment(k, *flags));
            let frames: Vec<_> = frames.collect();
            let packets = join(&frames, BOTH);
            assert_eq!(lengths(&packets), expected);
            assert_eq!(cut_all(&packets), frames);
        }
    }
}

fn empty_datagram() -> Bundle {
    Bundle {
        payload: 0,
        ..Bundle::default()
    }
}

#[test]
fn frames_that_never_join() {
    let tcp = |flags, payload| Bundle {
        transport: Transport::Tcp,
        flags,
        segment: 100,
        payload,
        ..Bundle::default()
    };
    // SYN, RST, URG.
    for flags in [0x12, 0x14, 0x30] {
        assert_eq!(join(&tcp(flags, 300).frames(), BOTH).len(), 3, "{flags}");
    }
    // Two acknowledgements without payload; two empty datagrams.
    for bundle in [tcp(0x10, 0), empty_datagram()] {
        let mut frames = bundle.frames();
        let next = Bundle {
            identification: bundle.identification + 1,
            ..bundle
        };
        frames.extend(next.frames());
        assert_eq!(join(&frames, BOTH).len(), 2);
    }
    // Two equal frames: the second is a duplicate.
    for transport in [Transport::Udp, Transport::Tcp] {
        let bundle = Bundle {
            transport,
            segment: 100,
            payload: 100,
            ..Bundle::default()
        };
        let twice = [bundle.frames(), bundle.frames()].concat();
        assert_eq!(join(&twice, BOTH).len(), 2);
    }
    // Any bytes are a frame.
    for frame in [vec![], vec![1; 13], vec![0x81; 70_000]] {
        assert_eq!(
            join(&[frame.clone(), frame.clone()], BOTH),
            vec![(Offload::NONE, frame); 2]
        );
    }
}

#[test]
fn a_finished_run_takes_no_more() {
    let frames = Bundle::default().frames();
    let mut run = Run::new();
    assert!(run.is_empty() && run.finish() == (Offload::NONE, &[]));
    assert!(run.add(&frames[0], BOTH) && run.add(&frames[1], BOTH));
    let (offload, packet) = run.finish();
    let packet = packet.to_vec();
    assert!(!run.add(&frames[2], BOTH));
    assert_eq!((run.count(), run.finish()), (2, (offload, &packet[..])));
    run.clear();
    assert!(run.is_empty() && run.add(&frames[2], BOTH));
    assert_eq!(run.finish(), (Offload::NONE, &frames[2][..]));
}

/// Frames whose payloads are written in place make the same packets.
#[test]
fn room_is_that_of_add() {
    let bundle = Bundle {
        segment: 100,
        payload: 6890,
        ..Bundle::default()
    };
    let mut frames = bundle.frames();
    frames.iter_mut().for_each(|frame| frame[40..42].fill(0));
    let (mut run, mut packets, mut unfit) = (Run::new(), Vec::new(), Vec::new());
    for frame in &frames {
        let is_written = run.may_grow(frame.len(), BOTH) && {
            // The room may be longer than the frame.
            run.room(frame.len() + 9)[..frame.len()].copy_from_slice(frame);
            run.written(frame.len(), BOTH, &mut unfit)
        };
        if !is_written && !run.is_empty() {
            let (offload, packet) = run.finish();
            packets.push((offload, packet.to_vec()));
            run.clear();
        }
        if !is_written {
            run.room(frame.len()).copy_from_slice(frame);
            assert!(run.written(frame.len(), BOTH, &mut unfit));
        }
    }
    let (offload, packet) = run.finish();
    packets.push((offload, packet.to_vec()));
    assert_eq!(packets, join(&frames, BOTH));
    // A checksum of what is not written yet is not verified.
    let frames = bundle.frames();
    let mut run = Run::new();
    assert!(run.add(&frames[0], BOTH));
    run.room(frames[1].len()).copy_from_slice(&frames[1]);
    assert!(!run.written(frames[1].len(), BOTH, &mut unfit));
    assert_eq!(unfit, frames[1]);
    assert!(run.add(&frames[1], BOTH));
}
