//! A network card's own queue is short: what it cannot send yet stays with the queue pairs, and an ACK waits behind few packets.
//! Without that, the ACKs of a host that sends wait behind a window of its data, and the hosts that wait for them idle.

use std::time::Duration;

/// Bytes that may wait for the link: 5 ms of it at 200 Mbit/s, which bridges what a busy processor misses.
const BYTES: usize = 128 << 10;

/// Between two looks whether there is room: a link of 100 Gbit/s takes three frames in the first, one of 200 Mbit/s in the last.
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
    /// When something was sent, or the pause became longer.
    since_ns: u64,
}

/// What a look at the queue has found.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// When.
    pub now_ns: u64,
    /// Before anything was sent.
    pub was_nearly_empty: bool,
    /// Frames.
    pub sent: usize,
    /// Whether there was no room for what else there may be.
    pub is_full: bool,
}

impl Backlog {
    /// Nothing waits. Frames are at most so long.
    pub fn new(frame_len: usize) -> Self {
        Self {
            frames: BYTES / frame_len,
            pause: SHORTEST,
            is_full: false,
            since_ns: 0,
        }
    }

    /// The queue was looked at. A look before the pause is over tells nothing of its length.
    pub fn looked(&mut self, look: Look) {
        let is_over = look.now_ns.saturating_sub(self.since_ns) >= self.pause.as_nanos() as u64;
        if self.is_full && look.was_nearly_empty {
            self.pause = (self.pause / 2).max(SHORTEST);
        } else if self.is_full && look.is_full && look.sent == 0 && is_over {
            self.pause = (self.pause * 2).min(LONGEST);
            self.since_ns = look.now_ns;
        }
        if look.sent > 0 {
            self.since_ns = look.now_ns;
        }
        self.is_full = look.is_full;
    }

    /// How long to wait for room, if something may wait for it.
    pub fn pause(&self) -> Option<Duration> {
        self.is_full.then_some(self.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(now_ns: u64, sent: usize) -> Look {
        Look {
            now_ns,
            was_nearly_empty: false,
            sent,
            is_full: true,
        }
    }

    #[test]
    fn looks_come_as_often_as_the_link_is_fast() {
        let mut backlog = Backlog::new(4154);
        assert_eq!((backlog.frames, backlog.pause()), (31, None));
        backlog.looked(look(0, 31));
        // At once again: that tells nothing.
        backlog.looked(look(10, 0));
        assert_eq!(backlog.pause(), Some(SHORTEST));
        // Nothing goes: each look is twice as late as the one before, up to an end.
        let mut now_ns = 0;
        for _ in 0..20 {
            now_ns += backlog.pause().unwrap().as_nanos() as u64;
            backlog.looked(look(now_ns, 0));
        }
        assert_eq!(backlog.pause(), Some(LONGEST));
        // Too late, though the queue is full again now.
        let late = Look {
            was_nearly_empty: true,
            ..look(now_ns, 30)
        };
        backlog.looked(late);
        assert_eq!(backlog.pause(), Some(LONGEST / 2));
        // In time.
        backlog.looked(look(now_ns + 300_000, 8));
        assert_eq!(backlog.pause(), Some(LONGEST / 2));
        for _ in 0..20 {
            backlog.looked(late);
        }
        assert_eq!(backlog.pause(), Some(SHORTEST));
        // All is sent.
        backlog.looked(Look {
            is_full: false,
            ..late
        });
        assert_eq!(backlog.pause(), None);
    }
}
