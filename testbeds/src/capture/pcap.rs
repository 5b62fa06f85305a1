//! Classic pcap files with nanosecond timestamps.

use std::io::{self, Write};

use super::Recording;

/// Says "nanoseconds", and by its byte order "little endian".
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINKTYPE_ETHERNET: u32 = 1;
const SNAPLEN: u32 = 262_144;

/// Writes a recording as a pcap file.
pub fn write_pcap(recording: &Recording, mut to: impl Write) -> io::Result<()> {
    let words = |to: &mut dyn Write, words: &[u32]| {
        words
            .iter()
            .try_for_each(|word| to.write_all(&word.to_le_bytes()))
    };
    to.write_all(&MAGIC_NANOSECONDS.to_le_bytes())?;
    to.write_all(&[2, 0, 4, 0])?;
    words(&mut to, &[0, 0, SNAPLEN, LINKTYPE_ETHERNET])?;
    for frame in &recording.frames {
        // The format has 32 bits for the seconds; they last until 2106.
        let seconds = (frame.at_ns / 1_000_000_000) as u32;
        let nanoseconds = (frame.at_ns % 1_000_000_000) as u32;
        words(
            &mut to,
            &[
                seconds,
                nanoseconds,
                frame.bytes.len() as u32,
                frame.wire_len,
            ],
        )?;
        to.write_all(&frame.bytes)?;
    }
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::super::{Direction, Frame};
    use super::*;

    #[test]
    fn a_cut_frame_keeps_its_length() {
        let frame = Frame {
            at_ns: 2_000_000_003,
            direction: Direction::In,
            wire_len: 1086,
            bytes: [1, 2, 3].into(),
        };
        let mut file = Vec::new();
        write_pcap(
            &Recording {
                frames: vec![frame],
                ..Recording::default()
            },
            &mut file,
        )
        .unwrap();
        assert_eq!(file.len(), 24 + 16 + 3);
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        assert_eq!(
            [word(0), word(20), word(24), word(28), word(32), word(36)],
            [0xa1b2_3c4d, 1, 2, 3, 3, 1086]
        );
        assert_eq!(file[40..], [1, 2, 3]);
    }
}
