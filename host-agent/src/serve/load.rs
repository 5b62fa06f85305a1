//! What a process has under way: bounded in number and in bytes.
//!
//! Who gives more bytes than there is room for waits: were an operation refused that other ranks make, all that come after it
//! would meet the wrong ones. Of more operations than its number allows a client of ours does not tell the daemon, so that who
//! waits for room still hears what else it asks.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// See the module.
#[derive(Debug)]
pub struct Load {
    operations: u64,
    memory: u64,
    held: Mutex<Held>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    operations: u64,
    bytes: u64,
    is_closed: bool,
}

impl Load {
    /// Room for so many operations, and bytes of their values.
    pub fn new(operations: u64, memory: u64) -> Self {
        Self {
            operations,
            memory,
            held: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many bytes one operation may have.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Begins an operation; `false` if as many are under way as may be.
    pub fn begin(&self) -> bool {
        let mut held = self.lock();
        let may = held.operations < self.operations;
        held.operations += u64::from(may);
        may
    }

    /// An operation has ended: its answer may be said.
    pub fn end(&self) {
        self.lock().operations -= 1;
    }

    /// Waits for room for an operation's values, and takes it; `false` once nobody waits any more.
    pub fn take(&self, bytes: u64) -> bool {
        let mut held = self.lock();
        while !held.is_closed && held.bytes.saturating_add(bytes) > self.memory {
            let woken = self.freed.wait(held);
            held = woken.unwrap_or_else(PoisonError::into_inner);
        }
        held.bytes += bytes;
        !held.is_closed
    }

    /// Gives back what was taken.
    pub fn free(&self, bytes: u64) {
        self.lock().bytes -= bytes;
        self.freed.notify_all();
    }

    /// Nobody waits for room any more.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc;

    #[test]
    fn who_waits_for_room_has_it_or_is_told_that_there_will_be_none() {
        let load = Arc::new(Load::new(2, 100));
        assert!(load.begin() && load.begin() && !load.begin());
        load.end();
        assert!(load.begin());
        assert!(load.take(60) && load.take(40));
        let (took, taken) = mpsc::channel();
        let waiting = {
            let load = Arc::clone(&load);
            std::thread::spawn(move || {
                for bytes in [50, 100] {
                    took.send(load.take(bytes)).unwrap();
                }
            })
        };
        load.free(60);
        assert_eq!(taken.recv(), Ok(true));
        load.close();
        assert_eq!(taken.recv(), Ok(false));
        waiting.join().unwrap();
    }
}
