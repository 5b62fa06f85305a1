//! What the packet loop does when no frame waits: it looks for a moment, then sleeps.
//!
//! Under load it does neither but lets frames gather, as a network card moderates its interrupts: to be woken by each frame
//! costs more than the frame. It is load when a run without a pause was of many frames, and the one before too; a single
//! frame, or a single burst, is never held.
//!
//! How long it looks adapts, as KVM's halt polling does: a sleep that was over at once would have been better spent looking,
//! so the time to look grows; after a long sleep there is none. While it looks it yields, so that whoever has work for the
//! same processor goes first.

use super::crossing::Inbox;
use super::worker::Worker;
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
/// Frames without a pause that are load.
const LOAD: usize = 32;
/// Lets frames gather for this long.
const GATHER: Duration = Duration::from_micros(50);

/// Descriptors that are polled without a list on the heap.
const FEW_SOURCES: usize = 33;

/// How a worker's thread is to sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sleep {
    /// Until something arrives or so much time has passed.
    Until(Option<Duration>),
    /// For so long, whatever arrives.
    Gather(Duration),
}

/// Knows what may wake a worker.
pub(super) struct Waiter {
    wake: Arc<EventFd>,
    /// The descriptors of ports, and the ports' positions. Duplicates, so that the worker is not borrowed while it sleeps.
    sources: Vec<(OwnedFd, usize)>,
    /// Some port tells only by its descriptor whether a frame waits.
    asks_kernel: bool,
    /// Of the worker's ports, as they were when the sources were taken.
    generation: Option<u64>,
    /// The positions of ports that have become readable.
    readable: Vec<usize>,
    /// After a sleep that has not looked at the ports.
    looks_next: bool,
    look: Duration,
    /// When the sleep began, the look before it included.
    slept_from: Instant,
    /// Frames since the last pause.
    run: usize,
    /// The run before was load.
    loaded: bool,
}

impl Waiter {
    /// `wake` ends every sleep.
    pub(super) fn new(wake: Arc<EventFd>) -> Self {
        Self {
            wake,
            sources: Vec::new(),
            asks_kernel: false,
            generation: None,
            readable: Vec::new(),
            looks_next: false,
            look: Duration::ZERO,
            slept_from: Instant::now(),
            run: 0,
            loaded: false,
        }
    }

    /// Before a turn: tells the worker what the last sleep has seen.
    pub(super) fn follow(&mut self, worker: &mut Worker) {
        if self.generation != Some(worker.generation) {
            // Too many open files: tried again before each turn.
            if let Err(error) = self.take_sources(worker) {
                tracing::warn!(%error, "ports cannot be waited for");
            }
            self.readable.clear();
            self.looks_next = true;
        }
        for position in self.readable.drain(..) {
            worker.mark_ready(position);
        }
        if std::mem::take(&mut self.looks_next) {
            self.look(worker);
        }
    }

    fn take_sources(&mut self, worker: &Worker) -> io::Result<()> {
        self.sources.clear();
        let ports = &worker.ports;
        for (position, port) in ports.iter().enumerate() {
            if let Some(fd) = port.io.fd() {
                self.sources.push((fd.try_clone_to_owned()?, position));
            }
        }
        self.asks_kernel = ports
            .iter()
            .any(|port| port.io.fd().is_some() && port.io.has_arrived().is_none());
        self.generation = Some(worker.generation);
        self.readable.reserve(self.sources.len());
        Ok(())
    }

    /// A turn has handled so many frames.
    pub(super) fn handled(&mut self, frames: usize) {
        self.run += frames;
    }

    /// Finds out which ports have frames, without waiting.
    pub(super) fn look(&mut self, worker: &mut Worker) {
        worker.mark_arrived();
        if self.asks_kernel {
            self.poll(Some(Duration::ZERO));
            for position in self.readable.drain(..) {
                worker.mark_ready(position);
            }
        }
    }

    /// After a turn of so many frames: looks for more, for a moment; then says how to sleep, unless there are any.
    pub(super) fn after(
        &mut self,
        worker: &mut Worker,
        frames: usize,
        is_wanted: impl Fn() -> bool,
    ) -> Option<Sleep> {
        if frames > 0 {
            self.look(worker);
            return None;
        }
        let due = worker.idle_time();
        if due.is_some_and(|due| due.is_zero()) {
            self.look(worker);
            return None;
        }
        let load = std::mem::take(&mut self.run) >= LOAD;
        if std::mem::replace(&mut self.loaded, load) && load {
            return Some(Sleep::Gather(due.map_or(GATHER, |due| due.min(GATHER))));
        }
        self.slept_from = Instant::now();
        if !self.look.is_zero() {
            let until = self.slept_from + due.map_or(self.look, |due| due.min(self.look));
            while Instant::now() < until {
                for _ in 0..LOOKS {
                    if worker.mark_arrived() || is_wanted() {
                        return None;
                    }
                    std::hint::spin_loop();
                }
                std::thread::yield_now();
            }
        }
        self.sources
            .retain(|(_, position)| !worker.has_failed(*position));
        Some(Sleep::Until(worker.idle_time()))
    }

    /// Sleeps. What arrives in `inbox` ends a sleep until something arrives.
    pub(super) fn sleep(&mut self, sleep: Sleep, inbox: Option<&Inbox>) {
        match sleep {
            Sleep::Gather(time) => {
                poll(&self.wake, &[], Some(time), |_| {});
                self.looks_next = true;
            }
            Sleep::Until(timeout) => {
                if inbox.is_none_or(Inbox::falls_asleep) {
                    self.poll(timeout);
                    inbox.inspect(|inbox| inbox.awakes());
                }
                self.look = match self.slept_from.elapsed() {
                    slept if slept > 2 * LONGEST_LOOK => Duration::ZERO,
                    _ => (self.look * 2).clamp(SHORTEST_LOOK, LONGEST_LOOK),
                };
            }
        }
    }

    /// Waits for the ports; notes which are readable.
    fn poll(&mut self, timeout: Option<Duration>) {
        let readable = &mut self.readable;
        poll(&self.wake, &self.sources, timeout, |position| {
            readable.push(position);
        });
    }
}

/// Waits until one of the sources, or `wake`, is readable, or the time is over; tells the positions of those that are.
fn poll(
    wake: &EventFd,
    sources: &[(OwnedFd, usize)],
    timeout: Option<Duration>,
    mut readable: impl FnMut(usize),
) {
    let source = |i: usize| {
        let source = i.checked_sub(1).and_then(|i| sources.get(i));
        let fd = source.map_or(wake.as_fd(), |(fd, _)| fd.as_fd());
        PollFd::new(fd, PollFlags::POLLIN)
    };
    let count = 1 + sources.len();
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
        for (fd, (_, position)) in fds[1..].iter().zip(sources) {
            if fd.any().unwrap_or(true) {
                readable(*position);
            }
        }
        if fds[0].any().unwrap_or(false) {
            // Cleared before the commands are looked at.
            let _ = wake.read();
        }
    }
}
