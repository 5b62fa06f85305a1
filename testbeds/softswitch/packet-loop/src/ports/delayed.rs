//! A port behind a link that delays each frame by its latency. The link is between the port's interface and the program:
//! captures at the interface record an incoming frame before the delay, and an outgoing frame after it.

use super::delay_line::DelayLine;
use super::{Frames, Received, Sink};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Latency of a port's link in each direction, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Latency {
    /// Latency from the interface to the program.
    pub in_ns: u64,
    /// Latency from the program to the interface.
    pub out_ns: u64,
}

/// A port whose frames pass a link with latency.
pub struct Delayed {
    port: Box<dyn Frames>,
    origin: Instant,
    incoming: DelayLine,
    outgoing: DelayLine,
    /// Number of lost frames of `incoming` that the last query already returned.
    told_in: u64,
    told_out: u64,
}

impl Delayed {
    /// Puts a link with this latency between a port and the program.
    #[must_use]
    pub fn new(port: Box<dyn Frames>, latency: Latency) -> Self {
        Self {
            port,
            origin: Instant::now(),
            incoming: DelayLine::new(latency.in_ns),
            outgoing: DelayLine::new(latency.out_ns),
            told_in: 0,
            told_out: 0,
        }
    }
}

/// Puts the frames that arrive at the interface on the delay line.
struct Entrance<'a> {
    line: &'a mut DelayLine,
    origin: Instant,
    now_ns: u64,
}

impl Sink for Entrance<'_> {
    fn arrived(&mut self) {
        self.now_ns = elapsed_ns(self.origin);
    }

    fn frame(&mut self, frame: &[u8], waited_ns: u64) {
        self.line.push(self.now_ns.saturating_sub(waited_ns), frame);
    }
}

impl Frames for Delayed {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let mut entrance = Entrance {
            line: &mut self.incoming,
            origin: self.origin,
            now_ns: 0,
        };
        let entered = self.port.receive(budget, &mut entrance)?;
        let mut received = Received {
            frames: 0,
            errors: entered.errors,
        };
        let now_ns = elapsed_ns(self.origin);
        sink.arrived();
        while received.frames < budget
            && let Some((left_ns, frame)) = self.incoming.pop(now_ns)
        {
            sink.frame(&frame, now_ns - left_ns);
            self.incoming.recycle(frame);
            received.frames += 1;
        }
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.outgoing.push(elapsed_ns(self.origin), frame);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<usize> {
        let now_ns = elapsed_ns(self.origin);
        while let Some((_, frame)) = self.outgoing.pop(now_ns) {
            let sent = self.port.send(&frame);
            self.outgoing.recycle(frame);
            sent?;
        }
        let lost = self.outgoing.lost();
        let full = lost - std::mem::replace(&mut self.told_out, lost);
        Ok(self.port.flush()? + usize::try_from(full).unwrap_or(usize::MAX))
    }

    fn due(&self) -> Option<Instant> {
        let due = [&self.incoming, &self.outgoing].map(DelayLine::poll_timeout);
        let due_ns = due.into_iter().flatten().min()?;
        Some(self.origin + Duration::from_nanos(due_ns))
    }

    fn has_arrived(&self) -> Option<bool> {
        self.port.has_arrived()
    }

    fn overflow(&mut self) -> Option<u64> {
        let lost = self.incoming.lost();
        let here = lost - std::mem::replace(&mut self.told_in, lost);
        Some(self.port.overflow().unwrap_or(0) + here)
    }

    fn marked(&mut self) -> u64 {
        self.port.marked()
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.port.readable()
    }

    fn interface(&self) -> Option<u32> {
        self.port.interface()
    }

    fn name(&self) -> &str {
        self.port.name()
    }
}

fn elapsed_ns(origin: Instant) -> u64 {
    u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
