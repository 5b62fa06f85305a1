//! Frames that are replayed together, as those see them who follow readings of them.

use std::collections::VecDeque;
use std::ops::Range;

use super::facts::EpochWrite;
use super::judge::Scene;
use super::trace::Queue;

/// Frames that either of two epochs may have met: by their numbers.
#[derive(Debug, Clone)]
pub struct Boundary {
    pub range: Range<usize>,
    pub sent_ns: u64,
}

/// What is known of the frames of one port, or of all that are replayed together.
#[derive(Clone, Copy)]
pub struct PortFrames<'a> {
    /// What its faults do, and what was seen.
    pub scene: Scene<'a>,
    /// Those that are not decided.
    pub queue: &'a Queue,
    /// Behind the last of which all is known that may be asked.
    pub known: usize,
    /// The epochs, in order.
    pub writes: &'a [EpochWrite],
    /// Of those writes that are not over.
    pub boundaries: &'a VecDeque<Boundary>,
}

impl PortFrames<'_> {
    /// Whether a unit may look at a frame, or a trigger.
    pub fn is_watched(self, number: usize) -> bool {
        !self.scene.engine.ignores(&self.queue[number].frame)
    }

    /// What is in force after so many writes.
    pub fn epoch(&self, writes_done: usize) -> u16 {
        writes_done
            .checked_sub(1)
            .map_or(0, |write| self.writes[write].epoch)
    }

    /// Behind a frame, the first with which a write may take effect.
    pub fn next_write(&self, number: usize) -> usize {
        let later = self.boundaries.iter();
        let later = later.filter(|boundary| boundary.range.end > number + 1);
        later
            .map(|boundary| boundary.range.start.max(number + 1))
            .min()
            .unwrap_or(usize::MAX)
    }
}
