//! Memory of an RDMA region, which a device may read and write at any time.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Page size in bytes: pinned memory consists of whole pages, shared with nothing else.
const PAGE: usize = 4096;
const WORD: usize = size_of::<u64>();

/// Memory pages without Rust references: bytes are copied in and out by atomic operations, since a device may access them at
/// the same time. A copy of bytes that change meanwhile is a mixture of old and new.
pub struct Pages {
    /// Pointer to the memory, which was allocated with `layout` and is freed only by `drop`.
    base: NonNull<u8>,
    layout: Layout,
    len: usize,
}

impl Pages {
    /// Allocates `len` bytes of 0; `None` if the system has no memory left.
    pub fn new(len: usize) -> Option<Self> {
        let size = len.max(1).checked_next_multiple_of(PAGE)?;
        let layout = Layout::from_size_align(size, PAGE).ok()?;
        // SAFETY: the layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { base, layout, len })
    }

    /// Address of the memory's first byte.
    pub fn address(&self) -> NonNull<u8> {
        self.base
    }

    /// Copies bytes into the memory, from `offset` on.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let (head, words) = self.parts(offset, bytes.len());
        let (first, rest) = bytes.split_at(head);
        let (whole, last) = rest.as_chunks::<WORD>();
        self.write_bytes(offset, first);
        for (at, word) in whole.iter().enumerate() {
            self.word(words + at)
                .store(u64::from_ne_bytes(*word), Relaxed);
        }
        self.write_bytes(offset + bytes.len() - last.len(), last);
    }

    /// Copies bytes out of the memory, from `offset` on.
    ///
    /// # Panics
    /// If the range exceeds the memory.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let (head, words) = self.parts(offset, into.len());
        let end = offset + into.len();
        let (first, rest) = into.split_at_mut(head);
        let (whole, last) = rest.as_chunks_mut::<WORD>();
        self.read_bytes(offset, first);
        for (at, word) in whole.iter_mut().enumerate() {
            *word = self.word(words + at).load(Relaxed).to_ne_bytes();
        }
        self.read_bytes(end - last.len(), last);
    }

    /// Number of bytes of a range before its first whole 8-byte word, and index of this word in the memory.
    fn parts(&self, offset: usize, len: usize) -> (usize, usize) {
        let end = offset.checked_add(len).expect("a range");
        assert!(end <= self.len, "{len} bytes at {offset} of {}", self.len);
        let head = len.min(offset.next_multiple_of(WORD) - offset);
        (head, offset.div_ceil(WORD))
    }

    fn write_bytes(&self, offset: usize, bytes: &[u8]) {
        for (at, byte) in bytes.iter().enumerate() {
            self.byte(offset + at).store(*byte, Relaxed);
        }
    }

    fn read_bytes(&self, offset: usize, into: &mut [u8]) {
        for (at, byte) in into.iter_mut().enumerate() {
            *byte = self.byte(offset + at).load(Relaxed);
        }
    }

    fn byte(&self, at: usize) -> &AtomicU8 {
        assert!(at < self.layout.size());
        // SAFETY: the byte is inside the allocation, which lives as long as this value; only atomic operations of this module
        // and devices access it.
        unsafe { AtomicU8::from_ptr(self.base.as_ptr().add(at)) }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < self.layout.size() / WORD);
        // SAFETY: as above; the allocation is aligned to pages.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().cast::<u64>().add(at)) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and is freed nowhere else. Code that registers pages keeps them
        // as long as a device may access them.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_in_and_out_at_any_offset() {
        let pages = Pages::new(100).unwrap();
        let mut model = [0_u8; 100];
        for offset in 0..20 {
            for len in 0..=80 {
                let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + offset + len) as u8).collect();
                pages.write(offset, &bytes);
                model[offset..offset + len].copy_from_slice(&bytes);
                let mut read = vec![0; len];
                pages.read(offset, &mut read);
                assert_eq!(read, bytes, "{offset} {len}");
            }
        }
        let mut all = [1; 100];
        pages.read(0, &mut all);
        assert_eq!(all, model);
    }

    #[test]
    fn accesses_beyond_the_end_panic() {
        let pages = Pages::new(10).unwrap();
        for (offset, len) in [(0, 11), (10, 1), (11, 0), (usize::MAX, 1), (usize::MAX, 0)] {
            let read = || pages.read(offset, &mut vec![0; len]);
            let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
            let write = || pages.write(offset, &vec![0; len]);
            let write = std::panic::catch_unwind(std::panic::AssertUnwindSafe(write));
            assert!(read.is_err() && write.is_err(), "{offset} {len}");
        }
        assert!(Pages::new(usize::MAX).is_none());
        assert!(Pages::new(0).is_some());
    }
}
