//! How the packet loop waits when no frame is left: it polls for a moment, then sleeps.
//!
//! Under load it instead lets frames accumulate for a while, as a network card moderates its interrupts, because a wake-up per
//! frame costs more than the frame. Load means that the last two series of iterations without a pause both had many frames. A
//! single frame, or a single burst, is never held.
//!
//! The polling time adapts, as in KVM's halt polling. After a sleep that ended at once, polling would have been better, so the
//! time grows; after a long sleep it is zero. While it polls, the thread yields, so that other threads on its processor run
//! first.

use super::engine::Engine;
use super::port::Port;
use super::priority::Priority;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time for which the packet loop polls before it sleeps.
const LONGEST_LOOK: Duration = Duration::from_micros(10);
const SHORTEST_LOOK: Duration = Duration::from_micros(2);
/// Number of times that the loop polls the ports' rings before it reads the clock again.
const POLLS: u32 = 16;
/// Number of frames that count as load if the packet loop processes them without a pause.
const LOAD: usize = 32;
/// Time for which frames accumulate under load.
const GATHER: Duration = Duration::from_micros(50);

/// Number of file descriptors that can be polled at once without allocating a list for them.
const FEW_SOURCES: usize = 33;

/// How long the packet loop sleeps, and what wakes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sleep {
    /// Until a frame or a command arrives, or this time has passed; `None`: no time limit.
    Until(Option<Duration>),
    /// For this time, even if frames arrive; a command ends the sleep.
    Gather(Duration),
}

/// Decides how the packet loop waits for frames, and waits.
pub(super) struct Waiter {
    wake: Arc<EventFd>,
    /// Whether for some port only a poll of its file descriptor, which is a system call, shows that frames wait.
    polls_kernel: bool,
    /// Time for which the next wait polls before it sleeps.
    look: Duration,
    longest_poll: Duration,
    /// Start of the last wait: the polling, and the sleep after it.
    slept_from: Instant,
    /// Number of frames that the packet loop has processed since its last pause.
    run: usize,
    /// Whether enough frames for load were processed between the last pause and the pause before it.
    loaded: bool,
}

impl Waiter {
    /// Creates a waiter for these ports; `wake` is the event that ends every sleep.
    pub(super) fn new(wake: Arc<EventFd>, ports: &[Port]) -> Self {
        let polls_kernel =
            |port: &Port| port.io.readable().is_some() && port.io.has_arrived().is_none();
        Self {
            wake,
            polls_kernel: ports.iter().any(polls_kernel),
            look: Duration::ZERO,
            longest_poll: LONGEST_LOOK,
            slept_from: Instant::now(),
            run: 0,
            loaded: false,
        }
    }

    /// Disables polling for a real-time thread, which is woken at once and would keep other threads from the processor.
    pub(super) fn set_priority(&mut self, priority: Priority) {
        if priority == Priority::RealTime {
            self.longest_poll = Duration::ZERO;
        }
    }

    /// Marks the ports on which frames have arrived, without waiting.
    pub(super) fn poll_ports(&self, engine: &Engine) {
        engine.mark_arrived();
        if self.polls_kernel {
            self.poll(engine, Some(Duration::ZERO));
        }
    }

    /// Called after an iteration with `frames` frames. Polls for more; returns how to sleep (`None`: the loop continues).
    pub(super) fn after(
        &mut self,
        engine: &Engine,
        frames: usize,
        is_wanted: impl Fn() -> bool,
    ) -> Option<Sleep> {
        self.run += frames;
        if frames > 0 {
            self.poll_ports(engine);
            return None;
        }
        let due = engine.idle_time();
        if due.is_some_and(|due| due.is_zero()) {
            self.poll_ports(engine);
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
                for _ in 0..POLLS {
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

    /// Sleeps as `sleep` says, then marks the ports on which frames have arrived.
    pub(super) fn sleep(&mut self, engine: &Engine, sleep: Sleep) {
        match sleep {
            Sleep::Gather(time) => {
                poll(&self.wake, &[], Some(time));
                self.poll_ports(engine);
            }
            Sleep::Until(timeout) => {
                self.poll(engine, timeout);
                self.look = match self.slept_from.elapsed() {
                    slept if slept > 2 * LONGEST_LOOK => Duration::ZERO,
                    _ => (self.look * 2).max(SHORTEST_LOOK).min(self.longest_poll),
                };
            }
        }
    }

    /// Waits until a port is readable, a command arrives or the timeout passes; marks the readable ports.
    fn poll(&self, engine: &Engine, timeout: Option<Duration>) {
        poll(&self.wake, &engine.ports, timeout);
    }
}

/// Waits until a port or `wake` is readable or the timeout passes (`None`: no timeout); marks the readable ports.
fn poll(wake: &EventFd, ports: &[Port], timeout: Option<Duration>) {
    let polled = || {
        let working = ports.iter().filter(|port| !port.failed);
        working.filter_map(|port| Some((port, port.io.readable()?)))
    };
    let mut sources = polled().map(|(_, fd)| fd);
    let count = sources.clone().count();
    // On the stack unless there are many: a switch that sleeps after each frame must not allocate either.
    let mut few: [PollFd<'_>; FEW_SOURCES];
    let mut many: Vec<PollFd<'_>>;
    let mut next = |_| PollFd::new(sources.next().unwrap_or(wake.as_fd()), PollFlags::POLLIN);
    // The last descriptor is `wake`.
    let fds = if count < FEW_SOURCES {
        few = std::array::from_fn(next);
        &mut few[..=count]
    } else {
        many = (0..=count).map(&mut next).collect();
        &mut many[..]
    };
    // The only remaining failure is EINTR, which is treated as a timeout.
    if ppoll(fds, timeout.map(TimeSpec::from_duration), None).is_ok() {
        for ((port, _), fd) in polled().zip(&*fds) {
            port.ready.set(port.ready.get() || fd.any().unwrap_or(true));
        }
        if fds[count].any().unwrap_or(false) {
            // Cleared before the commands are checked.
            let _ = wake.read();
        }
    }
}
