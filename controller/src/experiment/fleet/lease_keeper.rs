//! Keeps refreshing the lease of a switch's faults, as the switch ends them when it runs out. A separate thread and session do
//! so, so that no other work of the controller delays a refresh.

use std::convert::Infallible;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use scenario::model::lease::Lease;

use crate::target::{Item, LeaseSession, TargetError, UpdateType};

/// Why the lease of a switch's faults cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The switch or its session returned an error.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The thread that refreshes the lease did not start.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Builds the updates that set the deadline of a lease; the argument is the deadline in ticks of the switch's clock.
type SetDeadline = Box<dyn Fn(u64) -> Vec<(UpdateType, Item)> + Send>;

/// Keeps refreshing the lease of a switch's faults until it is dropped; the faults end soon after, with their lease.
pub(super) struct LeaseKeeper {
    /// The thread ends when this sender is dropped.
    running: Option<Sender<Infallible>>,
    thread: Option<JoinHandle<Result<(), TargetError>>>,
}

impl LeaseKeeper {
    /// Refreshes the lease once, and then starts the thread that keeps refreshing it.
    pub fn start(
        session: Box<dyn LeaseSession>,
        lease: Lease,
        set_deadline: SetDeadline,
    ) -> Result<LeaseKeeper, LeaseError> {
        let mut held = Held {
            session,
            lease,
            set_deadline,
        };
        let begun = Instant::now();
        held.refresh()?;
        let (running, ended) = channel();
        let thread = thread::Builder::new()
            .name("lease".to_owned())
            .spawn(move || held.keep(begun, &ended))
            .map_err(LeaseError::Thread)?;
        Ok(LeaseKeeper {
            running: Some(running),
            thread: Some(thread),
        })
    }

    /// Returns the error that ended the thread, but only once; the lease then runs out.
    pub fn check(&mut self) -> Result<(), TargetError> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => join(thread),
            None => Ok(()),
        }
    }

    /// Asks the keeper's thread to end, without waiting until it has ended.
    pub fn begin_end(&mut self) {
        self.running = None;
    }

    /// Ends the thread, and returns the error that ended it before, unless [`LeaseKeeper::check`] has returned this error.
    pub fn end(mut self) -> Result<(), TargetError> {
        self.begin_end();
        self.thread.take().map_or(Ok(()), join)
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.begin_end();
        if let Some(thread) = self.thread.take() {
            // The caller that drops the keeper asks for no error.
            let _ = thread.join();
        }
    }
}

fn join(thread: JoinHandle<Result<(), TargetError>>) -> Result<(), TargetError> {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// State that the thread owns: its session with the switch, and the lease.
struct Held {
    session: Box<dyn LeaseSession>,
    lease: Lease,
    set_deadline: SetDeadline,
}

impl Held {
    /// Refreshes the lease every `refresh_ns`, until the sender of `ended` is dropped.
    fn keep(mut self, begun: Instant, ended: &Receiver<Infallible>) -> Result<(), TargetError> {
        let every = Duration::from_nanos(self.lease.refresh_ns);
        let mut begun = begun;
        loop {
            let wait = every.saturating_sub(begun.elapsed());
            if ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                return Ok(());
            }
            begun = Instant::now();
            self.refresh()?;
        }
    }

    /// Sets the deadline to the switch's clock plus the duration of the lease. The clock is read before the deadline is
    /// written, so that a lease never lasts longer than the file says.
    fn refresh(&mut self) -> Result<(), TargetError> {
        let deadline = self.session.clock()?.after(self.lease.for_ns);
        self.session.write(&(self.set_deadline)(deadline))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::target::Clock;

    const LEASE: Lease = Lease {
        for_ns: 40_000_000,
        refresh_ns: 10_000_000,
    };
    const PATIENCE: Duration = Duration::from_secs(20);

    /// A switch whose clock counts its requests, and which answers a limited number of them.
    struct Counting {
        asked: Arc<AtomicU64>,
        answers: u64,
    }

    impl LeaseSession for Counting {
        fn clock(&mut self) -> Result<Clock, TargetError> {
            let ticks = self.asked.fetch_add(1, Ordering::SeqCst);
            match ticks < self.answers {
                true => Ok(Clock { ticks, tick_ns: 1 }),
                false => Err(TargetError::Clock {
                    switch: "s".to_owned(),
                    reason: "it is gone".to_owned(),
                }),
            }
        }

        fn write(&mut self, _: &[(UpdateType, Item)]) -> Result<(), TargetError> {
            Ok(())
        }
    }

    fn keeper(answers: u64) -> (Result<LeaseKeeper, LeaseError>, Arc<AtomicU64>) {
        let asked = Arc::new(AtomicU64::new(0));
        let session = Counting {
            asked: Arc::clone(&asked),
            answers,
        };
        let none = Box::new(|_| Vec::new());
        (LeaseKeeper::start(Box::new(session), LEASE, none), asked)
    }

    fn wait_until(holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_lease_is_refreshed_until_its_keeper_ends() {
        let (keeper, asked) = keeper(u64::MAX);
        let mut keeper = keeper.expect("a keeper");
        // The first refresh has finished when `start` returns.
        assert!(asked.load(Ordering::SeqCst) >= 1);
        // The test leaves the keeper alone meanwhile.
        wait_until(|| asked.load(Ordering::SeqCst) > 5);
        keeper.check().expect("it goes on");
        keeper.end().expect("it went on");
        // The thread has ended, and with it the session.
        assert_eq!(Arc::strong_count(&asked), 1);
    }

    #[test]
    fn a_keeper_that_is_dropped_ends() {
        let (keeper, asked) = keeper(u64::MAX);
        drop(keeper);
        assert_eq!(Arc::strong_count(&asked), 1);
    }

    #[test]
    fn what_a_switch_refuses_is_reported_once() {
        assert!(keeper(0).0.is_err());
        let (first, second) = (keeper(3).0, keeper(3).0);
        let mut first = first.expect("a keeper");
        wait_until(|| first.thread.as_ref().is_some_and(JoinHandle::is_finished));
        let error = first.check().expect_err("it is gone");
        assert!(error.to_string().contains("it is gone"), "{error}");
        first.check().expect("it was reported");
        first.end().expect("it was reported");
        // Or when the keeper ends.
        let second = second.expect("a keeper");
        wait_until(|| second.thread.as_ref().is_some_and(JoinHandle::is_finished));
        second.end().expect_err("it is gone");
    }
}
