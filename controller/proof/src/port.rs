//! Frames that are replayed together, as input of the modules that follow readings of them.

use std::collections::VecDeque;
use std::ops::Range;

use super::facts::EpochWrite;
use super::judge::Scene;
use super::trace::Queue;

/// Frames to which either of two epochs may apply: a range of frame numbers.
#[derive(Debug, Clone)]
pub struct Boundary {
    pub range: Range<usize>,
    pub sent_ns: u64,
}

/// Frames of one port, or all frames that are replayed together.
#[derive(Clone, Copy)]
pub struct PortFrames<'a> {
    /// Model and captured frames.
    pub scene: Scene<'a>,
    /// Undecided frames.
    pub queue: &'a Queue,
    /// Number after that of the last frame about which all is known.
    pub known: usize,
    /// Writes of epochs, in order.
    pub writes: &'a [EpochWrite],
    /// Boundaries of the writes that are not in effect for all further frames.
    pub boundaries: &'a VecDeque<Boundary>,
}

impl PortFrames<'_> {
    /// Whether a unit or a trigger may look at a frame.
    pub fn is_watched(self, number: usize) -> bool {
        !self.scene.engine.ignores(&self.queue[number].frame)
    }

    /// Epoch in force after the first `writes_done` writes; 0 before the first.
    pub fn epoch(&self, writes_done: usize) -> u16 {
        writes_done
            .checked_sub(1)
            .map_or(0, |write| self.writes[write].epoch)
    }

    /// Number of the first frame after `number` with which a write may take effect; `usize::MAX` if there is none.
    pub fn next_write(&self, number: usize) -> usize {
        let later = self.boundaries.iter();
        let later = later.filter(|boundary| boundary.range.end > number + 1);
        later
            .map(|boundary| boundary.range.start.max(number + 1))
            .min()
            .unwrap_or(usize::MAX)
    }
}
