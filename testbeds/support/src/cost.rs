//! What a computation costs: processor time, and memory at its peak. For programs that try to cost too much.
#![allow(unsafe_code)] // A counting allocator.

use nix::time::{ClockId, clock_gettime};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

/// Stack of a test's thread, and of one of tokio's.
const STACK: usize = 2 << 20;

thread_local! {
    /// Bytes that this thread has allocated and not freed, and the most of it.
    static LIVE: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, counting by thread. [`of`] sees nothing unless this is the test's `#[global_allocator]`.
pub struct Counting;

fn count(bytes: isize) {
    // A thread that ends has no cell any more.
    let _ = LIVE.try_with(|live| {
        let now = live.get().0 + bytes;
        live.set((now, live.get().1.max(now)));
    });
}

// SAFETY: everything is the system allocator's; the count beside it allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps to alloc's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps to alloc_zeroed's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps to dealloc's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Processor time of the thread.
    pub seconds: f64,
    /// The most that was allocated at a time, beyond what was before. 0 with another allocator than [`Counting`].
    pub peak_bytes: usize,
}

/// Seconds that what is small takes at most, in dev builds, too.
const SMALL_SECONDS: f64 = 1.0;

/// How often [`least`] tries.
const ATTEMPTS: usize = 3;

impl Cost {
    /// A second and 256 MiB.
    ///
    /// # Panics
    /// If it was more.
    #[track_caller]
    pub fn assert_small(self) {
        assert!(self.seconds < SMALL_SECONDS, "{} s", self.seconds);
        assert!(self.peak_bytes < 256 << 20, "{} MiB", self.peak_bytes >> 20);
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} s {:6} KiB", self.seconds, self.peak_bytes >> 10)
    }
}

/// As [`of`]; what takes too long is done again, and the least that it took counts. Processor time is not the wall clock's, but
/// neighbours that share the core, its caches and its memory add to it, at times more than as much again; they never take
/// away from it, so the least is what the computation itself takes at most.
pub fn least<T: Send + 'static>(run: impl Fn() -> T + Clone + Send + 'static) -> (T, Cost) {
    let (mut result, mut cost) = of(run.clone());
    for _ in 1..ATTEMPTS {
        if cost.seconds < SMALL_SECONDS {
            break;
        }
        let (again, less) = of(run.clone());
        if less.seconds < cost.seconds {
            (result, cost) = (again, less);
        }
    }
    (result, cost)
}

/// What a computation gives, and what it costs, on a thread of its own with a stack of 2 MiB. What it gives is dropped by the
/// caller, at no cost.
///
/// # Panics
/// If it does.
pub fn of<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> (T, Cost) {
    let measured = move || {
        let clock = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock");
        let (before, from) = (LIVE.get().0, clock());
        LIVE.set((before, before));
        let result = run();
        let spent = Duration::from(clock()) - Duration::from(from);
        let cost = Cost {
            seconds: spent.as_secs_f64(),
            peak_bytes: (LIVE.get().1 - before).max(0) as usize,
        };
        (result, cost)
    };
    let thread = std::thread::Builder::new().stack_size(STACK);
    let thread = thread.spawn(measured).expect("a thread");
    thread.join().expect("no panic")
}
