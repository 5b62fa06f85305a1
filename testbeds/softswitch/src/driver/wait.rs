//! What the packet loop does when no frame waits: it looks for a moment, then sleeps.
//!
//! How long it looks adapts, as KVM's halt polling does: a sleep that was over at once would have been better spent looking,
//! so the time to look grows; after a long sleep there is none. While it looks it yields, so that whoever has work for the
//! same processor goes first.

use super::core::{Core, Port};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Looks at most this long.
const LONGEST_LOOK: Duration = Duration::from_micros(10);
const SHORTEST_LOOK: Duration = Duration::from_micros(2);
/// Looks at the rings between two looks at the clock.
const LOOKS: u32 = 16;

/// Descriptors that are polled without a list on the heap.
const FEW_SOURCES: usize = 33;

/// Knows what may wake the packet loop.
pub(super) struct Waiter {
    wake: Arc<EventFd>,
    /// The descriptors of ports, and the ports' positions. Duplicates, so that they can be borrowed beside the ports.
    sources: Vec<(OwnedFd, usize)>,
    /// Some port tells only by its descriptor whether a frame waits.
    asks_kernel: bool,
    look: Duration,
}

impl Waiter {
    pub(super) fn new(ports: &[Port], wake: Arc<EventFd>) -> io::Result<Self> {
        let mut sources = Vec::new();
        for (position, port) in ports.iter().enumerate() {
            if let Some(fd) = port.io.fd() {
                sources.push((fd.try_clone_to_owned()?, position));
            }
        }
        let asks_kernel = ports
            .iter()
            .any(|port| port.io.fd().is_some() && port.io.has_arrived().is_none());
        Ok(Self {
            wake,
            sources,
            asks_kernel,
            look: Duration::ZERO,
        })
    }

    /// Finds out which ports have frames, without waiting.
    pub(super) fn look(&mut self, core: &mut Core) {
        core.mark_arrived();
        if self.asks_kernel {
            self.poll(core, Some(Duration::ZERO));
        }
    }

    /// Waits until a port has frames, a command has come, or something is due.
    pub(super) fn wait(&mut self, core: &mut Core, has_command: impl Fn() -> bool) {
        let due = core.idle_time();
        if due.is_some_and(|due| due.is_zero()) {
            return self.look(core);
        }
        let started = Instant::now();
        if !self.look.is_zero() {
            let until = started + due.map_or(self.look, |due| due.min(self.look));
            while Instant::now() < until {
                for _ in 0..LOOKS {
                    if core.mark_arrived() || has_command() {
                        return;
                    }
                    std::hint::spin_loop();
                }
                std::thread::yield_now();
            }
        }
        let due = core.idle_time();
        self.poll(core, due);
        self.look = match started.elapsed() {
            slept if slept > 2 * LONGEST_LOOK => Duration::ZERO,
            _ => (self.look * 2).clamp(SHORTEST_LOOK, LONGEST_LOOK),
        };
    }

    fn poll(&mut self, core: &mut Core, timeout: Option<Duration>) {
        self.sources.retain(|(_, position)| !core.failed(*position));
        let count = 1 + self.sources.len();
        let source = |i: usize| {
            let fd = match i.checked_sub(1) {
                Some(i) => self
                    .sources
                    .get(i)
                    .map_or(self.wake.as_fd(), |(fd, _)| fd.as_fd()),
                None => self.wake.as_fd(),
            };
            PollFd::new(fd, PollFlags::POLLIN)
        };
        // On the stack unless there are many: a switch that sleeps after each frame allocates nothing either.
        let mut few: [PollFd<'_>; FEW_SOURCES];
        let mut many: Vec<PollFd<'_>>;
        let fds = if count <= FEW_SOURCES {
            few = std::array::from_fn(source);
            &mut few[..count]
        } else {
            many = (0..count).map(source).collect();
            &mut many[..]
        };
        // EINTR is the only failure left, and as good as a timeout.
        if ppoll(fds, timeout.map(TimeSpec::from_duration), None).is_ok() {
            for (fd, (_, position)) in fds[1..].iter().zip(&self.sources) {
                if fd.any().unwrap_or(true) {
                    core.mark_ready(*position);
                }
            }
            if fds[0].any().unwrap_or(false) {
                // Cleared before the commands are looked at.
                let _ = self.wake.read();
            }
        }
    }
}
