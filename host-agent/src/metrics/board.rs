//! Exchange of a value between threads on request: the writing thread polls a flag, and writes only after a request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A value that one thread writes when other threads request it.
#[derive(Debug)]
pub struct Board<T> {
    asked: AtomicBool,
    written: Mutex<Written<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Written<T> {
    last: Option<(T, Instant)>,
    times: u64,
    is_over: bool,
}

impl<T> Default for Board<T> {
    fn default() -> Self {
        Self {
            asked: AtomicBool::new(false),
            written: Mutex::new(Written {
                last: None,
                times: 0,
                is_over: false,
            }),
            changed: Condvar::new(),
        }
    }
}

impl<T> Board<T> {
    /// Whether another thread requests a value: this check is the only cost without requests.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Writes the value, which answers all requests so far.
    pub fn write(&self, value: T) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        // Clear the flag first: a request from now on needs a newer value.
        self.asked.store(false, Ordering::Relaxed);
        written.last = Some((value, Instant::now()));
        written.times += 1;
        self.changed.notify_all();
    }

    /// Marks the value written last as final, so that later requests do not wait.
    pub fn close(&self) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.is_over = true;
        self.changed.notify_all();
    }
}

impl<T: Clone> Board<T> {
    /// Requests a new value, calls `wake`, and waits at most `patience`. Returns the new value, or otherwise the last one, with
    /// the time at which it was written; `None` if none was ever written.
    pub fn request(&self, patience: Duration, wake: impl FnOnce()) -> Option<(T, Instant)> {
        let lock = || self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let before = {
            let written = lock();
            self.asked.store(true, Ordering::Relaxed);
            written.times
        };
        wake();
        let (written, _) = self
            .changed
            .wait_timeout_while(lock(), patience, |written| {
                written.times == before && !written.is_over
            })
            .unwrap_or_else(PoisonError::into_inner);
        written.last.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_request_gets_the_new_status_or_the_last_one() {
        let board = Arc::new(Board::default());
        assert_eq!(board.request(Duration::from_millis(1), || {}), None);
        assert!(board.is_asked());
        board.write(1);
        assert!(!board.is_asked());
        // Nobody writes: the last value, with its time.
        let (last, _) = board.request(Duration::from_millis(1), || {}).unwrap();
        assert_eq!(last, 1);
        let other = Arc::clone(&board);
        let writer = std::thread::spawn(move || {
            while !other.is_asked() {
                std::thread::yield_now();
            }
            other.write(2);
        });
        let (told, _) = board.request(Duration::from_secs(60), || {}).unwrap();
        // The earlier request was still set, so the other thread may have answered that one.
        assert_eq!(told, 2);
        writer.join().unwrap();
        board.close();
        let begun = Instant::now();
        assert_eq!(board.request(Duration::from_secs(60), || {}).unwrap().0, 2);
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
