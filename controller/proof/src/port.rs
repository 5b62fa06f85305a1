//! The captured frames of a port or switch that are replayed in one sequence, as input of [`super::courses`].

use std::collections::VecDeque;
use std::ops::Range;

use super::facts::EpochWrite;
use super::judge::Scene;
use super::trace::Queue;

/// The frames, as a range of frame numbers, to which the epoch before or after one write may apply.
#[derive(Debug, Clone)]
pub struct Boundary {
    pub range: Range<usize>,
    pub sent_ns: u64,
}

/// Frames of one port, or all frames of a switch, that are replayed in one sequence.
#[derive(Clone, Copy)]
pub struct PortFrames<'a> {
    /// Model of the switch, and its captured frames.
    pub scene: Scene<'a>,
    /// Arrived frames that are not decided yet.
    pub queue: &'a Queue,
    /// Number of the first frame that may not be replayed yet, because not all that affects it is known.
    pub known: usize,
    /// Writes of epochs to the switch, in order of time.
    pub writes: &'a [EpochWrite],
    /// For each epoch write that not all further frames certainly follow: the frames that may come before or after it.
    pub boundaries: &'a VecDeque<Boundary>,
}

impl PortFrames<'_> {
    /// Whether a fault or a trigger may look at frame `number`.
    pub fn is_watched(self, number: usize) -> bool {
        !self.scene.engine.ignores(&self.queue[number].frame)
    }

    /// Epoch in force after the first `writes_done` epoch writes; 0 before the first.
    pub fn epoch(&self, writes_done: usize) -> u16 {
        writes_done
            .checked_sub(1)
            .map_or(0, |write| self.writes[write].epoch)
    }

    /// Number of the first frame after `number` with which an epoch write may take effect; `usize::MAX` if there is none.
    pub fn next_write(&self, number: usize) -> usize {
        let later = self.boundaries.iter();
        let later = later.filter(|boundary| boundary.range.end > number + 1);
        later
            .map(|boundary| boundary.range.start.max(number + 1))
            .min()
            .unwrap_or(usize::MAX)
    }
}
