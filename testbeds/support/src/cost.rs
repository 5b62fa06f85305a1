//! Measures the cost of a computation: processor time and peak memory. For tests with inputs that try to cost too much.
#![allow(unsafe_code)] // A counting allocator.

use nix::time::{ClockId, clock_gettime};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

/// Size of the stack of a measured computation, in bytes; the same as of test threads and tokio's threads.
const STACK: usize = 2 << 20;

thread_local! {
    /// Number of bytes that this thread has allocated and not freed, and the maximum of this number.
    static LIVE: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, which also counts each thread's bytes. [`measure`] sees no memory unless this is the
/// program's `#[global_allocator]`.
pub struct Counting;

fn count(bytes: isize) {
    // The cell of a thread that ends has been dropped.
    let _ = LIVE.try_with(|live| {
        let now = live.get().0 + bytes;
        live.set((now, live.get().1.max(now)));
    });
}

// SAFETY: forwards to the system's allocator; counting does not allocate.
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

/// Processor time and memory that a computation took.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Processor time of the computation's thread, in seconds.
    pub seconds: f64,
    /// Maximum number of bytes allocated at one time, without those allocated before. 0 without [`Counting`].
    pub peak_bytes: usize,
}

/// Limit on the processor time of a small computation in seconds, also for dev builds.
const SMALL_SECONDS: f64 = 1.0;

/// Maximum number of times that [`least`] runs a computation.
const ATTEMPTS: usize = 3;

impl Cost {
    /// Checks the limits of a small computation: a second and 256 MiB.
    ///
    /// # Panics
    /// The cost exceeds a limit.
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

/// Like [`measure`], but repeats a computation that takes too long, and returns the lowest cost. Other programs on the core, its
/// caches and its memory can more than double the processor time, but never reduce it, so the lowest is closest to the
/// computation's own.
pub fn least<T: Send + 'static>(run: impl Fn() -> T + Clone + Send + 'static) -> (T, Cost) {
    let (mut result, mut cost) = measure(run.clone());
    for _ in 1..ATTEMPTS {
        if cost.seconds < SMALL_SECONDS {
            break;
        }
        let (again, less) = measure(run.clone());
        if less.seconds < cost.seconds {
            (result, cost) = (again, less);
        }
    }
    (result, cost)
}

/// Runs a computation on a new thread with a stack of 2 MiB; returns its result and its cost, which does not include dropping the
/// result.
///
/// # Panics
/// The computation panics.
pub fn measure<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> (T, Cost) {
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
