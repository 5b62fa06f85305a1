//! A rank's driver, which the rank's thread shares with callers of small operations.
//!
//! To wake another thread takes 10 to 25 µs in a virtual machine, and a small operation needs little else. So a caller submits
//! such an operation itself, and drives the rank while it waits for the result. The thread drives the rank at all other times:
//! while no caller waits, for large operations, and for observers and timers.
//!
//! The thread that drives the rank holds the driver, and releases it while it waits. Frames that arrive wake the driving caller if
//! there is one, and otherwise the rank's thread. Before a thread releases the driver, it sets the timer of the rank's thread.

use std::fmt;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::carrier::io_error;
use super::driver::Driver;
use super::wait_set::WaitSet;
use super::{CollectiveError, Command};

/// Maximum time for which a caller spins while another thread holds the driver: about that of the wake-up that it saves. A caller
/// that has just received a result from the thread finds the thread in its last turn. If the caller did not spin, it would wake the
/// thread for its next operation, and for each one after it.
const PATIENCE: Duration = Duration::from_micros(20);

/// A rank's driver, and the events for which the thread or caller that drives it waits.
pub struct SharedDriver {
    /// `None` once the rank has ended: the thread has taken the driver out.
    driver: Mutex<Option<Driver>>,
    wait_set: WaitSet,
    /// Whether a caller drives the rank.
    is_driven: AtomicBool,
}

impl SharedDriver {
    /// Shares a driver, whose thread waits for the events of `wait_set`.
    pub fn new(driver: Driver, wait_set: WaitSet) -> SharedDriver {
        SharedDriver {
            driver: Mutex::new(Some(driver)),
            wait_set,
            is_driven: AtomicBool::new(false),
        }
    }

    /// The events for which the rank's thread waits.
    pub fn wait_set(&self) -> &WaitSet {
        &self.wait_set
    }

    /// Drives the rank, as its thread, until its [`Member`](super::Member) is dropped or an error occurs.
    pub fn run(&self) {
        let _end = EmptyOnDrop(&self.driver);
        let (driver, ended) = loop {
            // After a panic of a caller, the state of the driver is unknown.
            let Ok(mut held) = self.driver.lock() else {
                break (None, Ok(()));
            };
            let served = held.as_mut().map(|driver| driver.serve(&self.wait_set));
            match served {
                Some(Ok(Some(rest))) => {
                    drop(held);
                    self.nudge();
                    self.wait(rest);
                }
                Some(ended) => break (held.take(), ended.map(drop)),
                None => break (None, Ok(())),
            }
        };
        self.nudge();
        if let Some(driver) = driver {
            driver.end(ended, &self.wait_set);
        }
    }

    fn wait(&self, rest: Duration) {
        if let Err(error) = self.wait_set.wait(rest)
            && let Ok(Some(driver)) = self.driver.lock().as_deref_mut()
        {
            driver.fail(io_error(error));
        }
    }

    /// Wakes the driving caller after the thread has driven the rank, since the thread may have received the caller's frames.
    fn nudge(&self) {
        if self.is_driven.load(Ordering::SeqCst) {
            self.wait_set.nudge();
        }
    }

    /// Submits a small operation and transmits its frames, in the caller's thread. Returns the command if the thread must submit
    /// it, behind those that are queued.
    pub fn submit(&self, command: Command) -> Result<(), Command> {
        let mut left = Some(command);
        self.try_with(|driver| {
            if driver.submit_small(&mut left) {
                driver.settle(&self.wait_set)?;
            }
            Ok(())
        });
        left.map_or(Ok(()), Err)
    }

    /// Drives the rank in the caller's thread until `poll` has a result, for at most `timeout`. Returns `None` before that if
    /// another thread drives the rank, or if the rank has ended: the caller then waits for its result.
    pub fn drive<T>(&self, timeout: Duration, mut poll: impl FnMut() -> Option<T>) -> Option<T> {
        let begun = Instant::now();
        if let Some(ended) = poll() {
            return Some(ended);
        }
        // The caller takes the seat before it uses the driver: the thread nudges it after any later turn of the thread.
        let _seat = Seat::take(&self.is_driven)?;
        let frames = self.try_with(|driver| Ok(Arc::clone(driver.frames())))?;
        if frames.is_empty() {
            return None;
        }
        let _lent = self.wait_set.lend(&frames).ok()?;
        loop {
            let turn = self.try_with(|driver| {
                let received = driver.turn()?;
                Ok((received, driver.settle(&self.wait_set)?))
            });
            if let Some(ended) = poll() {
                return Some(ended);
            }
            let left = timeout.saturating_sub(begun.elapsed());
            let (received, rest) = turn.filter(|_| !left.is_zero())?;
            if received == 0 {
                let rest = rest.min(left);
                self.wait_set.wait_driving(&frames, rest).ok()?;
            }
        }
    }

    /// Locks the driver, unless another thread keeps it for longer than [`PATIENCE`].
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Driver>>> {
        let begun = Instant::now();
        loop {
            match self.driver.try_lock() {
                Ok(driver) => return Some(driver),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => spin_loop(),
                Err(_) => return None,
            }
        }
    }

    /// Uses the driver in a caller's thread, unless another thread keeps it or the rank has ended. An error ends the rank, as if it
    /// had occurred in the rank's thread.
    fn try_with<T>(
        &self,
        act: impl FnOnce(&mut Driver) -> Result<T, CollectiveError>,
    ) -> Option<T> {
        let mut driver = self.try_lock()?;
        let driver = driver.as_mut().filter(|driver| !driver.has_failed())?;
        act(driver)
            .inspect_err(|error| {
                driver.fail(error.clone());
                self.wait_set.wake();
            })
            .ok()
    }
}

impl fmt::Debug for SharedDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedDriver").finish_non_exhaustive()
    }
}

/// The right of one caller to drive the rank, until it is dropped.
struct Seat<'a>(&'a AtomicBool);

impl<'a> Seat<'a> {
    fn take(is_driven: &'a AtomicBool) -> Option<Seat<'a>> {
        let is_free = !is_driven.swap(true, Ordering::SeqCst);
        is_free.then(|| Seat(is_driven))
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Drops the driver at the end of the rank's thread, also after a panic: waiting callers then notice their closed channels.
struct EmptyOnDrop<'a>(&'a Mutex<Option<Driver>>);

impl Drop for EmptyOnDrop<'_> {
    fn drop(&mut self) {
        let driver = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(driver);
    }
}
