//! Bundles, without any interface.

mod bundles;
mod fuzz_corpus;
mod malformed;
#[path = "../support/packet.rs"]
mod packet;
mod plain;
mod runs;

use frames::bundle::{Checksums, Cut, Joins, Malformed, Offload, Run};

/// Longest frame of an interface with an MTU of 9,216 bytes.
const LONGEST: usize = 9230;
const BOTH: Joins = Joins {
    udp: true,
    tcp: true,
};

fn try_cut(
    offload: Offload,
    packet: &[u8],
    inserted: usize,
    checksums: Checksums,
) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut cut = Cut::new(offload, packet, inserted, checksums, LONGEST)?;
    let (mut packet, mut frames) = (packet.to_vec(), Vec::new());
    while let Some(frame) = cut.next(&mut packet) {
        frames.push(frame.to_vec());
        assert_eq!(cut.remaining(), cut.frames() - frames.len());
    }
    assert_eq!(frames.len(), cut.frames());
    Ok(frames)
}

fn cut(offload: Offload, packet: &[u8]) -> Vec<Vec<u8>> {
    let frames = try_cut(offload, packet, 0, Checksums::Finish);
    frames.unwrap_or_else(|error| panic!("{error}: {offload:?}"))
}

/// The packets that leave if the frames are joined where they may be.
fn join(frames: &[Vec<u8>], may: Joins) -> Vec<(Offload, Vec<u8>)> {
    let (mut run, mut packets) = (Run::new(), Vec::new());
    let mut leave = |run: &mut Run| {
        let (offload, packet) = run.finish();
        packets.push((offload, packet.to_vec()));
        run.clear();
    };
    for frame in frames {
        if !run.add(frame, may) {
            leave(&mut run);
            assert!(run.is_empty() && run.add(frame, may));
        }
    }
    if !run.is_empty() {
        leave(&mut run);
    }
    packets
}

/// The frames that the packets stand for.
fn cut_all(packets: &[(Offload, Vec<u8>)]) -> Vec<Vec<u8>> {
    let frames = packets
        .iter()
        .map(|(offload, packet)| cut(*offload, packet));
    frames.flatten().collect()
}
