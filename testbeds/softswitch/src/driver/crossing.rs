//! Frames on their way to a port of another worker.
//!
//! What a worker's turn has for the ports of another goes there in one parcel: one lock, and at most one wake-up, for all of
//! its frames. Parcels come back empty, so that in steady state nothing is allocated.

use nix::sys::eventfd::EventFd;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Frames that wait for a worker at most; more are lost and counted.
const WAITING: usize = 4096;
/// Frames of a parcel.
const PARCEL: usize = 64;
/// Empty parcels that are kept.
const SPENT: usize = 64;

/// Frames for ports of one worker.
#[derive(Debug, Default)]
struct Parcel {
    bytes: Vec<u8>,
    /// Port and length of each frame.
    frames: Vec<(u32, usize)>,
}

impl Parcel {
    fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }
}

/// What waits for a worker, and how it is woken.
#[derive(Debug)]
pub(super) struct Inbox {
    parcels: Mutex<Parcels>,
    /// Frames in them. Only written with the lock held.
    waiting: AtomicUsize,
    /// The worker sleeps, or is about to; it looks at `waiting` after it has set this, and who adds to `waiting` looks at
    /// this afterwards, so one of the two sees the other.
    asleep: AtomicBool,
    wake: Arc<EventFd>,
    /// The first worker is to look after the workers: only used in its inbox.
    wants_control: AtomicBool,
}

#[derive(Debug, Default)]
struct Parcels {
    full: VecDeque<Parcel>,
    spent: Vec<Parcel>,
}

impl Inbox {
    pub(super) fn new(wake: Arc<EventFd>) -> Inbox {
        Inbox {
            parcels: Mutex::default(),
            waiting: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            wake,
            wants_control: AtomicBool::new(false),
        }
    }

    fn parcels(&self) -> MutexGuard<'_, Parcels> {
        // Parcels are moved whole, so a panic elsewhere leaves nothing half-done.
        self.parcels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a parcel, for which the caller gets an empty one; how many frames are lost because too many wait.
    fn put(&self, parcel: &mut Parcel) -> u64 {
        let frames = parcel.frames.len();
        {
            let mut parcels = self.parcels();
            let waiting = self.waiting.load(Ordering::Relaxed);
            if waiting + frames > WAITING {
                parcel.clear();
                return frames as u64;
            }
            let empty = parcels.spent.pop().unwrap_or_default();
            parcels.full.push_back(std::mem::replace(parcel, empty));
            self.waiting.store(waiting + frames, Ordering::SeqCst);
        }
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
        0
    }

    /// The next parcel.
    fn take(&self) -> Option<Parcel> {
        let mut parcels = self.parcels();
        let parcel = parcels.full.pop_front()?;
        let waiting = self.waiting.load(Ordering::Relaxed);
        self.waiting
            .store(waiting - parcel.frames.len(), Ordering::SeqCst);
        Some(parcel)
    }

    fn give_back(&self, mut parcel: Parcel) {
        parcel.clear();
        let mut parcels = self.parcels();
        if parcels.spent.len() < SPENT {
            parcels.spent.push(parcel);
        }
    }

    /// The worker is about to sleep; false if it must not.
    pub(super) fn falls_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let sleeps =
            self.waiting.load(Ordering::SeqCst) == 0 && !self.wants_control.load(Ordering::SeqCst);
        if !sleeps {
            self.awakes();
        }
        sleeps
    }

    pub(super) fn awakes(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Ends the worker's sleep.
    pub(super) fn wake(&self) {
        // Fails only if the counter is full: then it is set anyway.
        let _ = self.wake.write(1);
    }

    /// Whether the first worker has been asked to look after the workers; forgets it.
    pub(super) fn takes_control(&self) -> bool {
        self.wants_control.load(Ordering::Relaxed)
            && self.wants_control.swap(false, Ordering::SeqCst)
    }
}

/// One worker's way to all others.
#[derive(Debug)]
pub(super) struct Crossing {
    own: usize,
    inboxes: Arc<[Inbox]>,
    /// For each, what this turn has for it.
    parcels: Vec<Parcel>,
    /// Which worker has a port, in order of port.
    routes: Arc<[(u32, usize)]>,
}

impl Crossing {
    /// Of the worker with this number.
    pub(super) fn new(own: usize, inboxes: Arc<[Inbox]>) -> Crossing {
        Crossing {
            own,
            parcels: inboxes.iter().map(|_| Parcel::default()).collect(),
            inboxes,
            routes: Arc::new([]),
        }
    }

    /// From here on the ports are there: port and worker, in order of port.
    pub(super) fn set_routes(&mut self, routes: Arc<[(u32, usize)]>) {
        self.routes = routes;
    }

    /// Takes a frame for another worker's port; how many frames were lost. None: nobody has the port.
    pub(super) fn send(&mut self, port: u32, frame: &[u8]) -> Option<u64> {
        let at = self.routes.binary_search_by_key(&port, |(port, _)| *port);
        let (_, worker) = self.routes[at.ok()?];
        let parcel = &mut self.parcels[worker];
        parcel.bytes.extend_from_slice(frame);
        parcel.frames.push((port, frame.len()));
        if parcel.frames.len() < PARCEL {
            return Some(0);
        }
        Some(self.inboxes[worker].put(parcel))
    }

    /// Hands over what was taken; how many frames were lost.
    pub(super) fn flush(&mut self) -> u64 {
        let parcels = self.parcels.iter_mut().zip(&*self.inboxes);
        parcels
            .filter(|(parcel, _)| !parcel.frames.is_empty())
            .map(|(parcel, inbox)| inbox.put(parcel))
            .sum()
    }

    /// Whether a frame waits for this worker.
    pub(super) fn has_arrived(&self) -> bool {
        self.inbox().waiting.load(Ordering::Relaxed) > 0
    }

    /// Hands over the frames that wait for this worker now, with their ports; how many.
    pub(super) fn take(&self, mut sink: impl FnMut(u32, &[u8])) -> usize {
        let inbox = self.inbox();
        let waiting = inbox.waiting.load(Ordering::Relaxed);
        let mut taken = 0;
        while taken < waiting {
            let Some(parcel) = inbox.take() else {
                break;
            };
            let mut rest = &parcel.bytes[..];
            for (port, length) in &parcel.frames {
                let (frame, behind) = rest.split_at(*length);
                sink(*port, frame);
                rest = behind;
            }
            taken += parcel.frames.len();
            inbox.give_back(parcel);
        }
        taken
    }

    /// Asks the first worker to look after the workers.
    pub(super) fn ask_for_control(&self) {
        self.inboxes[0].wants_control.store(true, Ordering::SeqCst);
        self.inboxes[0].wake();
    }

    /// Of this worker.
    pub(super) fn inbox(&self) -> &Inbox {
        &self.inboxes[self.own]
    }
}
