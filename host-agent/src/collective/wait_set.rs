//! Events that a rank's thread waits for, and those that a caller waits for while it drives the rank.
//!
//! The thread waits by epoll(7), because callers change what it waits for without waking it: a driving caller takes the frames'
//! descriptors out of the set, so that a frame wakes that caller alone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// Labels of the descriptors in the epoll set.
const WAKE: u64 = 0;
const TIMER: u64 = 1;
const OTHER: u64 = 2;

/// Events that wake a rank's thread or its driving caller.
#[derive(Debug)]
pub struct WaitSet {
    epoll: Epoll,
    /// Wakes the thread.
    wake: Arc<EventFd>,
    /// Wakes the thread when the rank's next timer is due: epoll's own timeout has a resolution of a millisecond.
    timer: TimerFd,
    /// Wakes the driving caller.
    nudge: EventFd,
}

impl WaitSet {
    /// A set without descriptors of frames.
    pub fn new() -> io::Result<WaitSet> {
        let event = || {
            let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
            EventFd::from_flags(flags)
        };
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let set = WaitSet {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            wake: Arc::new(event()?),
            timer: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?,
            nudge: event()?,
        };
        let readable = |label| EpollEvent::new(EpollFlags::EPOLLIN, label);
        set.epoll.add(&*set.wake, readable(WAKE))?;
        set.epoll.add(&set.timer, readable(TIMER))?;
        Ok(set)
    }

    /// Adds a descriptor that wakes the thread when it is readable. It leaves the set when it is closed.
    pub fn add(&self, descriptor: impl AsFd) -> io::Result<()> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, OTHER);
        Ok(self.epoll.add(descriptor, event)?)
    }

    /// Adds copies of descriptors that become readable when frames arrive. The thread and a driving caller wait for copies, since
    /// the carrier, to which the originals belong, is used by one thread at a time.
    pub fn add_copies(&self, frames: Vec<BorrowedFd<'_>>) -> io::Result<Arc<[OwnedFd]>> {
        let copies = frames.into_iter().map(|frames| {
            let copy = frames.try_clone_to_owned()?;
            self.add(&copy)?;
            Ok(copy)
        });
        copies.collect()
    }

    /// The event that wakes the thread, for observers.
    pub fn wake_event(&self) -> &Arc<EventFd> {
        &self.wake
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        // The write fails only if the counter is full; the thread then wakes, too.
        let _ = self.wake.write(1);
    }

    /// Wakes the caller that drives the rank.
    pub fn nudge(&self) {
        let _ = self.nudge.write(1);
    }

    /// Sets the time after which the timer wakes the thread. It replaces the earlier one.
    pub fn set_timer(&self, after: Duration) -> io::Result<()> {
        // A time of 0 would stop the timer.
        let after = TimeSpec::from(after.max(Duration::from_nanos(1)));
        let flags = TimerSetTimeFlags::empty();
        Ok(self.timer.set(Expiration::OneShot(after), flags)?)
    }

    /// Waits in the rank's thread for an event, at most `timeout`, rounded up to milliseconds.
    pub fn wait(&self, timeout: Duration) -> io::Result<()> {
        let ms = timeout.as_nanos().div_ceil(1_000_000);
        let timeout = EpollTimeout::try_from(ms).unwrap_or(EpollTimeout::MAX);
        let mut events = [EpollEvent::empty(); 4];
        let ready = match self.epoll.wait(&mut events, timeout) {
            Err(Errno::EINTR) => 0,
            ready => ready?,
        };
        for event in &events[..ready] {
            let read = match event.data() {
                WAKE => self.wake.read().map(drop),
                TIMER => self.timer.wait(),
                _ => Ok(()),
            };
            match read {
                // A caller has set the timer anew since it fired.
                Ok(()) | Err(Errno::EAGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Waits in the driving caller, at most `timeout`, until frames have arrived or the thread has nudged it.
    pub fn wait_driving(&self, frames: &[OwnedFd], timeout: Duration) -> io::Result<()> {
        let source = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
        let nudge = source(self.nudge.as_fd());
        let frames = frames.iter().map(|frames| source(frames.as_fd()));
        let mut sources: Vec<PollFd<'_>> = [nudge].into_iter().chain(frames).collect();
        match ppoll(&mut sources, Some(timeout.into()), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if sources[0].any() == Some(true) {
            self.nudge.read()?;
        }
        Ok(())
    }

    /// Takes the frames' descriptors out of the set until the result is dropped.
    pub fn lend<'a>(&'a self, frames: &'a [OwnedFd]) -> io::Result<Lent<'a>> {
        let lent = Lent { set: self, frames };
        lent.expect(EpollFlags::empty())?;
        Ok(lent)
    }
}

/// Descriptors of frames that do not wake the rank's thread.
#[derive(Debug)]
pub struct Lent<'a> {
    set: &'a WaitSet,
    frames: &'a [OwnedFd],
}

impl Lent<'_> {
    fn expect(&self, events: EpollFlags) -> io::Result<()> {
        for frames in self.frames {
            let mut event = EpollEvent::new(events, OTHER);
            self.set.epoll.modify(frames, &mut event)?;
        }
        Ok(())
    }
}

impl Drop for Lent<'_> {
    /// Frames that have arrived meanwhile wake the thread at once, since the events are level-triggered.
    fn drop(&mut self) {
        // The kernel refuses only descriptors that are not in the set.
        let _ = self.expect(EpollFlags::EPOLLIN);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(5);

    /// Whether the set wakes the thread before a wait of `timeout` is over.
    fn wakes(set: &WaitSet, timeout: Duration) -> bool {
        let begun = Instant::now();
        set.wait(timeout).unwrap();
        begun.elapsed() < timeout
    }

    #[test]
    fn events_and_timers_wake_the_thread_once() {
        let set = WaitSet::new().unwrap();
        set.wake();
        assert!(wakes(&set, LONG));
        assert!(!wakes(&set, SHORT));
        for after in [Duration::ZERO, Duration::from_micros(100)] {
            set.set_timer(after).unwrap();
            assert!(wakes(&set, LONG));
            assert!(!wakes(&set, SHORT));
        }
        // The later time replaces the earlier one.
        set.set_timer(Duration::ZERO).unwrap();
        set.set_timer(LONG).unwrap();
        assert!(!wakes(&set, SHORT));
    }

    #[test]
    fn lent_descriptors_wake_only_the_caller() {
        let set = WaitSet::new().unwrap();
        let arrived = EventFd::new().unwrap();
        let frames = set.add_copies(vec![arrived.as_fd()]).unwrap();
        let lent = set.lend(&frames).unwrap();
        arrived.write(1).unwrap();
        assert!(!wakes(&set, SHORT));
        let begun = Instant::now();
        set.wait_driving(&frames, LONG).unwrap();
        drop(lent);
        // Frames that no caller has taken wake the thread.
        assert!(wakes(&set, LONG));
        arrived.read().unwrap();
        set.nudge();
        set.wait_driving(&frames, LONG).unwrap();
        assert!(begun.elapsed() < LONG);
        let begun = Instant::now();
        set.wait_driving(&frames, SHORT).unwrap();
        assert!(begun.elapsed() >= SHORT);
    }
}
