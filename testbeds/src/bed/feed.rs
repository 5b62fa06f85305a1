//! Hands finished recordings of ports over in order of time, as a recorder does while frames pass.

use proof::{Digest, Loser};

use super::PortRecording;
use crate::capture::{Batch, Frame, Handed, Lost};

/// Length in time of one batch of a port's frames, in nanoseconds.
const SLICE_NS: u64 = 100_000_000;

/// Hands recordings of whole frames over to a sink; a recording's position is its port's index. `keep` bytes of each
/// frame are kept. Returns the number of lost frames for each port.
pub(super) fn feed(
    recordings: &[PortRecording],
    keep: u32,
    digest: Digest,
    sink: &mut dyn FnMut(Handed),
) -> Vec<u64> {
    let mut rest: Vec<&[Frame]> = recordings
        .iter()
        .map(|port| &port.recording.frames[..])
        .collect();
    let first_ns = |rest: &[&[Frame]]| {
        let firsts = rest.iter().filter_map(|frames| frames.first());
        firsts.map(|frame| frame.at_ns).min()
    };
    while let Some(start_ns) = first_ns(&rest) {
        let end_ns = start_ns.saturating_add(SLICE_NS);
        for (port, frames) in rest.iter_mut().enumerate() {
            let in_slice = frames.iter().take_while(|frame| frame.at_ns < end_ns);
            let (slice, later) = frames.split_at(in_slice.count());
            *frames = later;
            if !slice.is_empty() {
                sink(Handed::Batch(batch(port, slice, keep, digest)));
            }
        }
        sink(Handed::Until(end_ns));
    }
    let lost = recordings.iter().enumerate().map(|(port, recorded)| {
        let losses = [
            (recorded.recording.lost, Loser::Recorder),
            (recorded.recording.over_limit, Loser::Limit),
            (recorded.undelivered, Loser::Link),
        ];
        for (frames, by) in losses.into_iter().filter(|(frames, _)| *frames > 0) {
            sink(Handed::Lost(Lost {
                port,
                frames,
                by,
                since_ns: 0,
            }));
        }
        losses.iter().map(|(frames, _)| frames).sum()
    });
    lost.collect()
}

fn batch(port: usize, frames: &[Frame], keep: u32, digest: Digest) -> Batch {
    let kept = |frame: &Frame| frame.bytes.len().min(keep as usize);
    let mut batch = Batch::with_capacity(port, frames.len(), frames.iter().map(kept).sum());
    for frame in frames {
        let identity = digest.of(&frame.bytes, frame.wire_len);
        let (way, bytes) = (frame.direction.into(), &frame.bytes[..kept(frame)]);
        batch.push(frame.at_ns, way, frame.wire_len, identity, bytes);
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Direction, Recording};

    #[test]
    fn two_ports_are_handed_over_in_the_order_of_time() {
        let frame = |at_ns| Frame {
            at_ns,
            direction: Direction::In,
            wire_len: 4,
            bytes: [1, 2, 3, 4].into(),
        };
        let port = |port, times: &[u64], over_limit| PortRecording {
            switch: "s1".into(),
            port,
            recording: Recording {
                frames: times.iter().copied().map(frame).collect(),
                lost: 0,
                over_limit,
            },
            undelivered: 0,
        };
        let recordings = [
            port(7, &[10, 20, SLICE_NS * 5], 3),
            port(3, &[15, SLICE_NS * 2], 0),
        ];
        let mut seen = Vec::new();
        let lost = feed(&recordings, 2, Digest::of_seed(1), &mut |handed| {
            seen.push(match handed {
                Handed::Batch(batch) => {
                    assert!(batch.sights().all(|sight| sight.bytes == [1, 2]));
                    format!("{} frames of {}", batch.records.len(), batch.port)
                }
                Handed::Lost(lost) => format!("{} lost at {}", lost.frames, lost.port),
                Handed::Until(at_ns) => format!("until {at_ns}"),
            });
        });
        assert_eq!(lost, [3, 0]);
        assert_eq!(
            seen,
            [
                "2 frames of 0",
                "1 frames of 1",
                "until 100000010",
                "1 frames of 1",
                "until 300000000",
                "1 frames of 0",
                "until 600000000",
                "3 lost at 0",
            ]
        );
    }
}
