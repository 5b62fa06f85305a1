//! Limits the number of frames in the network card's queue, so that an ACK waits behind few frames; others stay with the queue
//! pairs. Otherwise a host's ACKs would wait behind a whole window of its data, and its peers would idle.

use std::time::Duration;

/// Maximum number of bytes in the network card's queue: 5 ms at 200 Mbit/s, which covers the pauses of a busy processor.
const BYTES: usize = 128 << 10;

/// Shortest and longest interval between two polls for space in the card's queue. A link of 100 Gbit/s sends three frames in
/// the shortest; a link of 200 Mbit/s sends three in the longest.
const SHORTEST: Duration = Duration::from_micros(1);
const LONGEST: Duration = Duration::from_micros(500);

/// Schedules polls for space in the card's queue. A poll that comes too early doubles the interval; a poll that finds the queue
/// nearly empty halves it.
#[derive(Debug)]
pub struct Backlog {
    /// Maximum number of frames in the network card's queue.
    pub frames: usize,
    pause: Duration,
    is_full: bool,
    /// Time of the last transmission, or of the last increase of the interval, in nanoseconds.
    since_ns: u64,
}

/// Result of a poll for space in the network card's queue.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Time of the poll in nanoseconds.
    pub now_ns: u64,
    /// Whether the queue was nearly empty before this poll sent anything.
    pub was_nearly_empty: bool,
    /// Number of frames that this poll sent.
    pub sent: usize,
    /// Whether the queue is full, so that queue pairs may have further frames to send.
    pub is_full: bool,
}

impl Backlog {
    /// Creates the schedule for an empty queue and frames of at most `frame_len` bytes.
    pub fn new(frame_len: usize) -> Self {
        Self {
            frames: BYTES / frame_len,
            pause: SHORTEST,
            is_full: false,
            since_ns: 0,
        }
    }

    /// Records the result of a poll, and adapts the interval between polls to it.
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

    /// Time until the next poll for space; `None` if the queue is not full, so that no frame waits for space.
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
    fn the_poll_interval_follows_the_link_rate() {
        let mut backlog = Backlog::new(4154);
        assert_eq!((backlog.frames, backlog.pause()), (31, None));
        backlog.looked(look(0, 31));
        // Polled again at once, which says nothing.
        backlog.looked(look(10, 0));
        assert_eq!(backlog.pause(), Some(SHORTEST));
        // Nothing is sent: each interval is twice the previous one, up to the limit.
        let mut now_ns = 0;
        for _ in 0..20 {
            now_ns += backlog.pause().unwrap().as_nanos() as u64;
            backlog.looked(look(now_ns, 0));
        }
        assert_eq!(backlog.pause(), Some(LONGEST));
        // Polled too late, although the queue is full again now.
        let late = Look {
            was_nearly_empty: true,
            ..look(now_ns, 30)
        };
        backlog.looked(late);
        assert_eq!(backlog.pause(), Some(LONGEST / 2));
        // Polled in time, before the queue was nearly empty.
        backlog.looked(look(now_ns + 300_000, 8));
        assert_eq!(backlog.pause(), Some(LONGEST / 2));
        for _ in 0..20 {
            backlog.looked(late);
        }
        assert_eq!(backlog.pause(), Some(SHORTEST));
        // Everything is sent.
        backlog.looked(Look {
            is_full: false,
            ..late
        });
        assert_eq!(backlog.pause(), None);
    }
}
