//! One direction of a link with latency: each frame leaves when the latency has passed since it entered.
//!
//! Pure: time is an argument. Buffers are reused, so in steady state no memory is allocated.

use std::collections::VecDeque;

/// Maximum number of frames in flight: 8 ms of 150-byte frames at 10 Gbit/s. Further frames are lost and counted.
pub const FRAMES: usize = 65_536;
/// Maximum number of bytes in flight: 50 ms at 10 Gbit/s. Further frames are lost and counted.
pub const BYTES: usize = 64 << 20;
/// Maximum number of buffers kept for reuse.
const SPARE: usize = 1024;

/// One direction of a link: it holds each frame for the link's latency.
#[derive(Debug)]
pub struct DelayLine {
    latency_ns: u64,
    /// The frames in flight, each with its departure time in nanoseconds, in order of departure.
    frames: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    lost: u64,
}

impl DelayLine {
    /// Creates an empty line with this latency.
    #[must_use]
    pub fn new(latency_ns: u64) -> Self {
        Self {
            latency_ns,
            frames: VecDeque::new(),
            bytes: 0,
            spare: Vec::new(),
            lost: 0,
        }
    }

    /// Puts a frame on the line; the frame is lost if the line is full. Frames leave in order even if the clock goes back.
    pub fn push(&mut self, now_ns: u64, frame: &[u8]) {
        if self.frames.len() >= FRAMES || self.bytes + frame.len() > BYTES {
            self.lost += 1;
            return;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(frame);
        self.bytes += buffer.len();
        let last = self.frames.back().map_or(0, |(due, _)| *due);
        let due = now_ns.saturating_add(self.latency_ns).max(last);
        self.frames.push_back((due, buffer));
    }

    /// Takes the next frame that has left by `now_ns`, with its departure time. Return its buffer with [`Self::recycle`].
    pub fn pop(&mut self, now_ns: u64) -> Option<(u64, Vec<u8>)> {
        let (due, frame) = self.frames.pop_front_if(|(due, _)| *due <= now_ns)?;
        self.bytes -= frame.len();
        Some((due, frame))
    }

    /// Takes back a frame's buffer for reuse.
    pub fn recycle(&mut self, frame: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(frame);
        }
    }

    /// Departure time of the next frame, in nanoseconds; `None`: no frame is in flight.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        self.frames.front().map(|(due, _)| *due)
    }

    /// Number of frames that were lost because the line was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drives a line as the packet loop does; returns the frames that left, with their times.
    fn drain(line: &mut DelayLine) -> Vec<(u64, Vec<u8>)> {
        let mut left = Vec::new();
        while let Some(now) = line.poll_timeout() {
            assert!(now == 0 || line.pop(now - 1).is_none(), "none leaves early");
            while let Some((_, frame)) = line.pop(now) {
                left.push((now, frame.clone()));
                line.recycle(frame);
            }
        }
        left
    }

    #[test]
    fn frames_leave_in_order_each_after_the_latency() {
        let mut line = DelayLine::new(10_000_000);
        for (now, byte) in [(5, 1), (5, 2), (900, 3)] {
            line.push(now, &[byte; 60]);
        }
        let left = drain(&mut line);
        let expected = [(10_000_005, 1), (10_000_005, 2), (10_000_900, 3)];
        let expected: Vec<_> = expected.map(|(at, byte)| (at, vec![byte; 60])).into();
        assert_eq!(left, expected);
        // A reused buffer holds only the new frame.
        line.push(0, &[9; 3]);
        assert_eq!(drain(&mut line), [(10_000_000, vec![9; 3])]);
    }

    #[test]
    fn an_echo_over_two_lines_takes_both_to_the_nanosecond() {
        let (mut there, mut back) = (DelayLine::new(10_000_000), DelayLine::new(10_000_000));
        there.push(7, b"ping");
        let arrived = there.poll_timeout().unwrap();
        let (_, ping) = there.pop(arrived).unwrap();
        back.push(arrived, &ping);
        assert_eq!(drain(&mut back), [(20_000_007, b"ping".to_vec())]);
    }

    #[test]
    fn a_full_line_drops_and_counts_frames() {
        let mut line = DelayLine::new(1);
        for _ in 0..FRAMES + 3 {
            line.push(0, &[0; 14]);
        }
        assert_eq!((line.lost(), drain(&mut line).len()), (3, FRAMES));
        let jumbo = vec![0; 1 << 20];
        for _ in 0..BYTES / jumbo.len() + 1 {
            line.push(0, &jumbo);
        }
        assert_eq!(line.lost(), 4);
        assert_eq!(drain(&mut line).len(), BYTES / jumbo.len());
        line.push(0, &jumbo);
        assert_eq!(line.lost(), 4, "there is room again");
    }
}
