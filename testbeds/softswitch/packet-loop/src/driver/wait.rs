//! What the packet loop does when no frame waits: it looks for a moment, then sleeps.
//!
//! Under load it does neither but lets frames gather, as a network card moderates its interrupts: to be woken by each frame
//! costs more than the frame. It is load when a run without a pause was of many frames, and the one before too; a single
//! frame, or a single burst, is never held.
//!
//! How long it looks adapts, as KVM's halt polling does: a sleep that was over at once would have been better spent looking,
//! so the time to look grows; after a long sleep there is none. While it looks it yields, so that whoever has work for the
//! same processor goes first.

use super::engine::Engine;
use super::port::Port;
use super::priority::Priority;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
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

/// How the loop is to sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sleep {
    /// Until something arrives or so much time has passed.
    Until(Option<Duration>),
    /// For so long, whatever arrives.
    Gather(Duration),
}

/// Knows what may wake the loop.
pub(super) struct Waiter {
    wake: Arc<EventFd>,
    /// Some port tells only by its descriptor whether a frame waits.
    asks_kernel: bool,
    /// How long it looks before it sleeps.
    look: Duration,
    longest_look: Duration,
    /// When the sleep began, the look before it included.
    slept_from: Instant,
    /// Frames since the last pause.
    run: usize,
    /// The run before was load.
    loaded: bool,
}

impl Waiter {
    /// `wake` ends every sleep.
    pub(super) fn new(wake: Arc<EventFd>, ports: &[Port]) -> Self {
        let asks_kernel = |port: &Port| port.io.fd().is_some() && port.io.has_arrived().is_none();
        Self {
            wake,
            asks_kernel: ports.iter().any(asks_kernel),
            look: Duration::ZERO,
            longest_look: LONGEST_LOOK,
            slept_from: Instant::now(),
            run: 0,
            loaded: false,
        }
    }

    /// A real-time thread is woken at once and keeps others from the processor while it looks: it does not look.
    pub(super) fn set_priority(&mut self, priority: Priority) {
        if priority == Priority::RealTime {
            self.longest_look = Duration::ZERO;
        }
    }

    /// Finds out which ports have frames, without waiting.
    pub(super) fn look(&self, engine: &Engine) {
        engine.mark_arrived();
        if self.asks_kernel {
            self.poll(engine, Some(Duration::ZERO));
        }
    }

    /// After a turn of so many frames: looks for more, for a moment; then says how to sleep, unless there are any.
    pub(super) fn after(
        &mut self,
        engine: &Engine,
        frames: usize,
        is_wanted: impl Fn() -> bool,
    ) -> Option<Sleep> {
        self.run += frames;
        if frames > 0 {
            self.look(engine);
            return None;
        }
        let due = engine.idle_time();
        if due.is_some_and(|due| due.is_zero()) {
            self.look(engine);
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
                    if engine.mark_arrived() || is_wanted() {
                        return None;
                    }
                    std::hint::spin_loop();
                }
                std::thread::yield_now();
            }
        }
        Some(Sleep::Until(engine.idle_time()))
    }

    /// Sleeps, and marks the ports that have frames then.
    pub(super) fn sleep(&mut self, engine: &Engine, sleep: Sleep) {
        match sleep {
            Sleep::Gather(time) => {
                poll(&self.wake, &[], Some(time));
                self.look(engine);
            }
            Sleep::Until(timeout) => {
                self.poll(engine, timeout);
                self.look = match self.slept_from.elapsed() {
                    slept if slept > 2 * LONGEST_LOOK => Duration::ZERO,
                    _ => (self.look * 2).max(SHORTEST_LOOK).min(self.longest_look),
                };
            }
        }
    }

    /// Waits for the ports; marks those that are readable.
    fn poll(&self, engine: &Engine, timeout: Option<Duration>) {
        poll(&self.wake, &engine.ports, timeout);
    }
}

/// Waits until one of the ports, or `wake`, is readable, or the time is over; marks the ports that are.
fn poll(wake: &EventFd, ports: &[Port], timeout: Option<Duration>) {
    let polled = || {
        let working = ports.iter().filter(|port| !port.failed);
        working.filter_map(|port| Some((port, port.io.fd()?)))
    };
    let mut sources = polled().map(|(_, fd)| fd);
    let count = sources.clone().count();
    // On the stack unless there are many: a switch that sleeps after each frame allocates nothing either.
    let mut few: [PollFd<'_>; FEW_SOURCES];
    let mut many: Vec<PollFd<'_>>;
    let mut next = |_| PollFd::new(sources.next().unwrap_or(wake.as_fd()), PollFlags::POLLIN);
    // The last one is `wake`.
    let fds = if count < FEW_SOURCES {
        few = std::array::from_fn(next);
        &mut few[..=count]
    } else {
        many = (0..=count).map(&mut next).collect();
        &mut many[..]
    };
    // EINTR is the only failure left, and as good as a timeout.
    if ppoll(fds, timeout.map(TimeSpec::from_duration), None).is_ok() {
        for ((port, _), fd) in polled().zip(&*fds) {
            port.ready.set(port.ready.get() || fd.any().unwrap_or(true));
        }
        if fds[count].any().unwrap_or(false) {
            // Cleared before the commands are looked at.
            let _ = wake.read();
        }
    }
}
