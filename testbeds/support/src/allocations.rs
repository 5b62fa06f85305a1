//! Counts the memory allocations of all threads of a program, for tests of programs that must not allocate once they run.
#![allow(unsafe_code)] // A counting allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, which also counts allocations. [`count`] is 0 unless this is the program's
/// `#[global_allocator]`.
pub struct Counting;

/// Number of memory allocations of all threads since the program started.
pub fn count() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

// SAFETY: forwards to the system's allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to alloc's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to dealloc's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}
