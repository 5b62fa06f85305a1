//! A network card's own queue is short: what it cannot send yet stays with the queue pairs, and an ACK waits behind few packets.
//! Without that, the ACKs of a host that sends wait behind a window of its data, and the hosts that wait for them idle.

use std::time::Duration;

/// Bytes that may wait for the link: 5 ms of it at 200 Mbit/s, which bridges what a busy processor misses.
const BYTES: usize = 128 << 10;

/// Between two looks whether there is room: a link of 100 Gbit/s takes three frames in the first, one of 100 Mbit/s in the last.
const SHORTEST: Duration = Duration::from_micros(1);
const LONGEST: Duration = Duration::from_micros(500);

/// When to look again whether the queue has room. Each look that comes too early doubles the time, each that finds the queue
/// nearly empty halves it.
#[derive(Debug)]
pub struct Backlog {
    /// Frames that may wait.
    pub frames: usize,
    pause: Duration,
    is_full: bool,
}

impl Backlog {
    /// Nothing waits. Frames are at most so long.
    pub fn new(frame_len: usize) -> Self {
        Self {
            frames: BYTES / frame_len,
            pause: SHORTEST,
            is_full: false,
        }
    }

    /// The queue has no room for what there would be.
    pub fn found_full(&mut self) {
        if self.is_full {
            self.pause = (self.pause * 2).min(LONGEST);
        }
        self.is_full = true;
    }

    /// The queue has taken all, and so little was before it.
    pub fn found_room(&mut self, is_nearly_empty: bool) {
        if self.is_full && is_nearly_empty {
            self.pause = (self.pause / 2).max(SHORTEST);
        }
        self.is_full = false;
    }

    /// How long to wait for room, if something waits for it.
    pub fn pause(&self) -> Option<Duration> {
        self.is_full.then_some(self.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_as_often_as_the_link_is_fast() {
        let mut backlog = Backlog::new(4154);
        assert_eq!(backlog.frames, 31);
        assert_eq!(backlog.pause(), None);
        // Nothing goes: each look is twice as late as the one before, up to an end.
        for _ in 0..20 {
            backlog.found_full();
        }
        assert_eq!(backlog.pause(), Some(LONGEST));
        // Too late.
        backlog.found_room(true);
        assert_eq!(backlog.pause(), None);
        backlog.found_full();
        assert_eq!(backlog.pause(), Some(LONGEST / 2));
        // In time.
        backlog.found_room(false);
        backlog.found_full();
        assert_eq!(backlog.pause(), Some(LONGEST / 2));
        for _ in 0..20 {
            backlog.found_full();
            backlog.found_room(true);
        }
        backlog.found_full();
        assert!(backlog.pause() < Some(SHORTEST * 2));
    }
}
