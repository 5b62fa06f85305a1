//! One direction of a link that takes time: each frame leaves as long after it has entered as the link is slow.
//!
//! Pure: time is an argument. Buffers are used again, so in steady state nothing is allocated.

use std::collections::VecDeque;

/// Frames under way at most: what a link of 10 Gbit/s has of 150 bytes in 8 ms. More are lost and counted.
pub const FRAMES: usize = 65_536;
/// Their bytes at most: what a link of 10 Gbit/s has under way in 50 ms.
pub const BYTES: usize = 64 << 20;
/// Buffers kept for frames to come.
const SPARE: usize = 1024;

/// See the module.
#[derive(Debug)]
pub struct DelayLine {
    latency_ns: u64,
    /// When each leaves, in order.
    frames: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    lost: u64,
}

impl DelayLine {
    /// A line that each frame is on for so long.
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

    /// A frame enters; it is lost if the line is full. None overtakes another, whatever the clock says.
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

    /// The next frame that has left by now, and when that was. Give it back with [`Self::recycle`].
    pub fn pop(&mut self, now_ns: u64) -> Option<(u64, Vec<u8>)> {
        let (due, frame) = self.frames.pop_front_if(|(due, _)| *due <= now_ns)?;
        self.bytes -= frame.len();
        Some((due, frame))
    }

    /// Takes a frame's buffer back.
    pub fn recycle(&mut self, frame: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(frame);
        }
    }

    /// When the next frame leaves.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        self.frames.front().map(|(due, _)| *due)
    }

    /// Frames that found the line full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drives a line as a loop does: the frames that left, with the time of each.
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
        // A buffer that is used again holds the new frame alone.
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
    fn a_full_line_loses_what_comes_and_counts_it() {
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
