//! How one thread asks another what it knows. The other looks at a flag now and then, and writes something down only when
//! somebody has asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where one thread writes what others ask for.
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
    /// Whether somebody asks: all that it costs while nobody does.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Writes it down.
    pub fn write(&self, value: T) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the value is there: who asks from now on wants a newer one.
        self.asked.store(false, Ordering::Relaxed);
        written.last = Some((value, Instant::now()));
        written.times += 1;
        self.changed.notify_all();
    }

    /// Nothing more will be written: the last stands.
    pub fn close(&self) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.is_over = true;
        self.changed.notify_all();
    }
}

impl<T: Clone> Board<T> {
    /// What is written from now on, or, if that does not come in time, what was written last; and when it was. `wake` is called
    /// once the question stands.
    pub fn ask(&self, patience: Duration, wake: impl FnOnce()) -> Option<(T, Instant)> {
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
    fn who_asks_has_what_is_written_then_or_the_last() {
        let board = Arc::new(Board::default());
        assert_eq!(board.ask(Duration::from_millis(1), || {}), None);
        assert!(board.is_asked());
        board.write(1);
        assert!(!board.is_asked());
        // Nobody writes: the last, and when that was.
        let (last, _) = board.ask(Duration::from_millis(1), || {}).unwrap();
        assert_eq!(last, 1);
        let other = Arc::clone(&board);
        let writer = std::thread::spawn(move || {
            while !other.is_asked() {
                std::thread::yield_now();
            }
            other.write(2);
        });
        let (told, _) = board.ask(Duration::from_secs(60), || {}).unwrap();
        // The question of before stood, so the other may have answered that one.
        assert_eq!(told, 2);
        writer.join().unwrap();
        board.close();
        let begun = Instant::now();
        assert_eq!(board.ask(Duration::from_secs(60), || {}).unwrap().0, 2);
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
