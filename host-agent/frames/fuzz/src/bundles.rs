//! Any packet with any virtio header: its frames are pieces of the packet, and joining and cutting them again changes nothing.
//! Shared by the fuzz target and by the test that replays the corpus.

use frames::bundle::{Checksums, Cut, Joins, Offload, Run, sum};

const BOTH: Joins = Joins {
    udp: true,
    tcp: true,
};

/// Panics if the frames of this input are not those of its packet. The input is a byte of choices, one of the longest frame's
/// length, a virtio header, and a packet.
pub fn run(input: &[u8]) {
    let Some((choices, rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    let Some((header, packet)) = rest.split_first_chunk::<{ Offload::LEN }>() else {
        return;
    };
    let mut offload = Offload::from_bytes(*header);
    let mut packet = packet.to_vec();
    if choices[0] & 1 != 0 {
        make_consistent(&mut offload, &mut packet, choices[0]);
    }
    let inserted = usize::from(choices[0] & 8) / 2;
    let longest = usize::from(choices[1]) * 64;
    let checksums = match choices[0] & 16 {
        0 => Checksums::Finish,
        _ => Checksums::Omit,
    };
    let mut cut = match Cut::new(offload, &packet, inserted, checksums, longest) {
        Ok(cut) => cut,
        Err(error) => {
            assert!(!error.name().is_empty() && !error.to_string().is_empty());
            return;
        }
    };
    let original = packet.clone();
    let mut frames = Vec::new();
    while let Some(frame) = cut.next(&mut packet) {
        frames.push(frame.to_vec());
    }
    assert_eq!(frames.len(), cut.frames());
    if offload.kind == Offload::PLAIN {
        is_one_checksum_away(&original, &frames);
    } else {
        are_pieces(&original, usize::from(offload.segment), longest, &frames);
    }
    join(&frames);
}

/// Sets what a bundle must have: tags, protocols, lengths, the sum of the pseudo header. Random bytes seldom have it.
fn make_consistent(offload: &mut Offload, packet: &mut [u8], choices: u8) {
    let (ipv6, tcp) = (choices & 2 != 0, choices & 4 != 0);
    let tags = usize::from(choices >> 6) % 3;
    let network = 14 + tags * 4;
    let transport = network + if ipv6 { 40 } else { 20 };
    if packet.len() < transport + 20 || packet.len() > 65_535 {
        return;
    }
    let length = packet.len() - transport;
    let mut write = |at: usize, number: usize| {
        packet[at..at + 2].copy_from_slice(&(number as u16).to_be_bytes());
    };
    for tag in 0..tags {
        write(12 + tag * 4, 0x8100);
    }
    let protocol = if tcp { 6 } else { 17 };
    let addresses = if ipv6 {
        write(network - 2, 0x86dd);
        write(network, 0x6000);
        write(network + 4, length);
        write(network + 6, protocol << 8 | 64);
        network + 8..network + 40
    } else {
        write(network - 2, 0x0800);
        write(network, 0x4500);
        write(network + 2, length + 20);
        write(network + 6, 0x4000);
        write(network + 8, 64 << 8 | protocol);
        network + 12..network + 20
    };
    let (kind, offset) = match (tcp, ipv6) {
        (false, _) => (Offload::UDP_L4, 6),
        (true, false) => (Offload::TCPV4, 16),
        (true, true) => (Offload::TCPV6, 16),
    };
    if !tcp {
        write(transport + 4, length);
    }
    let pseudo = sum(&packet[addresses]) + protocol as u64 + length as u64;
    let pseudo = frames::bundle::fold(pseudo).to_be_bytes();
    packet[transport + offset..transport + offset + 2].copy_from_slice(&pseudo);
    *offload = Offload {
        flags: Offload::NEEDS_CSUM,
        kind: kind | offload.kind & if tcp { Offload::ECN } else { 0 },
        checksum_start: (transport - usize::from(choices & 8) / 2) as u16,
        checksum_offset: offset as u16,
        ..*offload
    };
}

/// A single frame differs from its packet in two bytes at most.
fn is_one_checksum_away(packet: &[u8], frames: &[Vec<u8>]) {
    let [frame] = frames else {
        panic!("{} frames", frames.len());
    };
    assert_eq!(frame.len(), packet.len());
    let differing: Vec<usize> = (0..packet.len())
        .filter(|at| frame[*at] != packet[*at])
        .collect();
    match differing[..] {
        [] | [_] => {}
        [one, other] => assert_eq!(one + 1, other),
        _ => panic!("{} bytes differ", differing.len()),
    }
}

/// The frames of a bundle have the packet's payload, one piece each, and headers of one length.
fn are_pieces(packet: &[u8], segment: usize, longest: usize, frames: &[Vec<u8>]) {
    let first = frames.first().expect("a frame");
    let headers = first.len() - segment;
    let pieces = packet[headers..].chunks(segment);
    assert_eq!(pieces.len(), frames.len());
    for (frame, piece) in frames.iter().zip(pieces) {
        assert_eq!(&frame[headers..], piece);
        // Addresses, tags, protocol.
        assert_eq!(frame[..14], packet[..14]);
        assert!(frame.len() <= longest + 8);
    }
}

/// Joins the frames and cuts the packets again: the same frames, but for UDP checksums of 0. Payloads that are written in place
/// make the same packets.
fn join(frames: &[Vec<u8>]) {
    let mut added = Run::new();
    let mut first = 0;
    for (at, frame) in frames.iter().enumerate() {
        if !added.add(frame, BOTH) {
            leaves(&mut added, &frames[first..at]);
            added.clear();
            first = at;
            assert!(added.add(frame, BOTH));
        }
    }
    leaves(&mut added, &frames[first..]);
    let (mut written, mut unfit) = (Run::new(), Vec::new());
    let mut first = 0;
    for (at, frame) in frames.iter().enumerate() {
        let may_grow = written.is_empty() || written.may_grow(frame.len(), BOTH);
        if may_grow {
            written.room(frame.len()).copy_from_slice(frame);
        }
        if !may_grow || !written.written(frame.len(), BOTH, &mut unfit) {
            assert!(!may_grow || unfit == *frame);
            leaves(&mut written, &frames[first..at]);
            written.clear();
            first = at;
            written.room(frame.len()).copy_from_slice(frame);
            assert!(written.written(frame.len(), BOTH, &mut unfit));
        }
    }
    leaves(&mut written, &frames[first..]);
}

/// A run stands for these frames.
fn leaves(run: &mut Run, frames: &[Vec<u8>]) {
    assert_eq!(run.count(), frames.len());
    let (offload, packet) = run.finish();
    let mut packet = packet.to_vec();
    let cut = Cut::new(offload, &packet, 0, Checksums::Finish, usize::MAX);
    let mut cut = cut.expect("a run is a bundle");
    for frame in frames {
        let again = cut.next(&mut packet).expect("as many frames");
        if again != frame {
            // Only the UDP checksum that was left out.
            let mut bare = again.to_vec();
            let differing = (0..frame.len()).find(|at| frame[*at] != again[*at]);
            let field = differing.expect("one length") & !1;
            assert_eq!(frame[field..field + 2], [0, 0]);
            bare[field..field + 2].fill(0);
            assert_eq!(&bare, frame);
        }
    }
    assert!(cut.next(&mut packet).is_none());
}
