//! The workers beside the first, and how they are stopped between two batches.
//!
//! Each lies behind a lock that its thread holds for a turn, and not while it sleeps. The first worker's thread shuts the
//! gate, which no thread passes on its way to the lock, and takes the workers one by one: from then on it owns all that any
//! of them works on.

use super::crossing::Inbox;
use super::wait::Waiter;
use super::worker::Worker;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A worker's thread has panicked.
#[derive(Debug)]
pub(super) struct Lost;

type Place = Option<Worker>;

/// The workers beside the first.
pub(super) struct Fleet {
    /// A place is empty while the first worker's thread has the worker, for which the gate is shut.
    places: Box<[Mutex<Place>]>,
    /// Of all workers, the first's too.
    inboxes: Arc<[Inbox]>,
    is_shut: AtomicBool,
    /// Changes of `is_shut` from true to false, and of `has_ended`.
    gate: Mutex<()>,
    opened: Condvar,
    has_ended: AtomicBool,
}

impl Fleet {
    /// Without its workers: the gate is shut.
    pub(super) fn new(inboxes: Arc<[Inbox]>) -> Fleet {
        Fleet {
            places: inboxes.iter().skip(1).map(|_| Mutex::new(None)).collect(),
            inboxes,
            is_shut: AtomicBool::new(true),
            gate: Mutex::new(()),
            opened: Condvar::new(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Stops the workers and takes them. Waits for the ends of their turns.
    pub(super) fn shut(&self, to: &mut Vec<Worker>) -> Result<(), Lost> {
        self.is_shut.store(true, Ordering::SeqCst);
        for place in &self.places {
            let mut place = place.lock().map_err(|_| Lost)?;
            to.push(place.take().ok_or(Lost)?);
        }
        Ok(())
    }

    /// Puts all workers but the first back and lets them go on, with other ports than before if `moved`.
    pub(super) fn open(&self, workers: &mut Vec<Worker>, moved: bool) {
        for (place, worker) in self.places.iter().zip(workers.drain(1..)) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
        }
        self.change_gate(|| self.is_shut.store(false, Ordering::SeqCst));
        if moved {
            // Who sleeps, sleeps on ports that it may not have any more.
            self.inboxes.iter().for_each(Inbox::wake);
        }
    }

    /// Of all workers.
    pub(super) fn inboxes(&self) -> Arc<[Inbox]> {
        Arc::clone(&self.inboxes)
    }

    /// Ends the workers' threads.
    pub(super) fn end(&self) {
        self.change_gate(|| self.has_ended.store(true, Ordering::SeqCst));
        self.inboxes.iter().for_each(Inbox::wake);
    }

    fn change_gate(&self, change: impl FnOnce()) {
        let guard = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        change();
        self.opened.notify_all();
        drop(guard);
    }

    fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::SeqCst)
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// The place of a worker, with the worker in it; None at the end. `number` counts from 1.
    fn enter(&self, number: usize) -> Option<MutexGuard<'_, Place>> {
        let place = self.places.get(number - 1)?;
        loop {
            if self.is_shut() {
                let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
                while self.is_shut() && !self.has_ended() {
                    gate = self
                        .opened
                        .wait(gate)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
            if self.has_ended() {
                return None;
            }
            let guard = place.lock().ok()?;
            if guard.is_some() {
                return Some(guard);
            }
            // Taken since the look at the gate, which is shut.
        }
    }

    /// What the thread of a worker does.
    pub(super) fn work(&self, number: usize, mut waiter: Waiter) {
        while let Some(mut guard) = self.enter(number) {
            let Some(worker) = guard.as_mut() else {
                continue;
            };
            waiter.follow(worker);
            let frames = worker.turn();
            waiter.handled(frames);
            let sleep = waiter.after(worker, frames, || self.is_shut());
            drop(guard);
            if let Some(sleep) = sleep {
                waiter.sleep(sleep, Some(&self.inboxes[number]));
            }
        }
    }
}
