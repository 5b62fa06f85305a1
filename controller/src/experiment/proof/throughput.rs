//! What flows carried over time: frames and bytes in bins of equal length, from the captures at both of their ends.

use serde::Serialize;

use super::Evidence;

/// So many bins at most.
const MAX_BINS: u64 = 240;
/// The shortest bin: a millisecond has too few frames to be a rate.
const SHORTEST_NS: u64 = 10_000_000;

/// Bins of a run, from the start of its workload to the last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bins {
    start_ns: u64,
    /// How long each is.
    pub width_ns: u64,
    count: usize,
}

/// What went over a link in a bin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Carried {
    /// Frames.
    pub packets: u64,
    /// Of those, without the frame check sequence.
    pub bytes: u64,
}

/// What a flow carried over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Throughput {
    /// How long a bin is; the first begins with the workload.
    pub bin_ns: u64,
    /// What the sender put on its link.
    pub sent: Vec<Carried>,
    /// What came out towards the receiver, more often than sent or not.
    pub received: Vec<Carried>,
}

impl Bins {
    /// Those of a run. Frames that came before its workload began are in none.
    pub fn of(evidence: &Evidence) -> Bins {
        let recordings = evidence.recordings.iter();
        let last = recordings
            .filter_map(|port| port.recording.frames.iter().map(|frame| frame.at_ns).max());
        let start_ns = evidence.start_ns().unwrap_or(0);
        let length = last.max().unwrap_or(0).saturating_sub(start_ns) + 1;
        // 10, 20, 50, 100 …
        let decades = std::iter::successors(Some(SHORTEST_NS), |width| width.checked_mul(10));
        let mut widths = decades.flat_map(|width| [1, 2, 5].map(|of| width.saturating_mul(of)));
        let width_ns = widths.find(|width| length.div_ceil(*width) <= MAX_BINS);
        let width_ns = width_ns.unwrap_or(u64::MAX);
        Bins {
            start_ns,
            width_ns,
            count: length.div_ceil(width_ns) as usize,
        }
    }

    /// Nothing yet.
    pub fn empty(&self) -> Throughput {
        Throughput {
            bin_ns: self.width_ns,
            sent: vec![Carried::default(); self.count],
            received: vec![Carried::default(); self.count],
        }
    }

    /// Counts a frame.
    pub fn add(&self, to: &mut [Carried], at_ns: u64, bytes: u32) {
        let since = at_ns.checked_sub(self.start_ns);
        let bin = since.and_then(|since| to.get_mut((since / self.width_ns) as usize));
        if let Some(bin) = bin {
            bin.packets += 1;
            bin.bytes += u64::from(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use testbeds::bed::PortRecording;
    use testbeds::capture::{Direction, Frame, Recording};

    use super::*;
    use crate::experiment::EpochWrite;

    fn evidence(start_ns: u64, last_ns: u64) -> Evidence {
        let write = |switch: &str, epoch, confirmed_ns| EpochWrite {
            switch: switch.to_owned(),
            epoch,
            sent_ns: 0,
            confirmed_ns,
        };
        let frame = Frame {
            at_ns: last_ns,
            direction: Direction::In,
            wire_len: 60,
            bytes: Box::new([]),
        };
        Evidence {
            writes: vec![
                write("a", 1, start_ns - 5),
                write("b", 1, start_ns),
                write("a", 2, start_ns + 9),
            ],
            recordings: vec![PortRecording {
                switch: "a".to_owned(),
                port: 1,
                recording: Recording {
                    frames: vec![frame],
                    ..Recording::default()
                },
                undelivered: 0,
            }],
            ..Evidence::default()
        }
    }

    #[test]
    fn bins_begin_with_the_workload_and_are_no_more_than_fit() {
        const S: u64 = 1_000_000_000;
        for (length_ns, width_ms, count) in [
            (1, 10, 1),
            (S, 10, 101),
            (3 * S, 20, 151),
            (60 * S, 500, 121),
        ] {
            let bins = Bins::of(&evidence(7 * S, 7 * S + length_ns));
            assert_eq!(
                (bins.width_ns, bins.count),
                (width_ms * 1_000_000, count),
                "{length_ns}"
            );
        }
        let bins = Bins::of(&evidence(7 * S, 8 * S));
        let mut carried = bins.empty();
        for at_ns in [
            7 * S - 1,
            7 * S,
            7 * S + 9_999_999,
            7 * S + 10_000_000,
            8 * S,
            9 * S,
        ] {
            bins.add(&mut carried.sent, at_ns, 100);
        }
        let packets: Vec<u64> = carried.sent.iter().map(|bin| bin.packets).collect();
        assert_eq!((packets[0], packets[1], packets[100]), (2, 1, 1));
        assert_eq!(packets.iter().sum::<u64>(), 4);
        assert_eq!(carried.sent[0].bytes, 200);
        // A run without captures has no frames.
        assert_eq!(Bins::of(&Evidence::default()).empty().sent.len(), 1);
    }
}
