//! A region's bytes: memory of our own that a device writes and reads whenever a peer wants.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// What is pinned is whole pages: none is shared with anything else.
const PAGE: usize = 4096;
const WORD: usize = size_of::<u64>();

/// Pages that nobody has a reference to: bytes are copied in and out by atomic operations, since a device may be at them at the
/// same time. What a copy has of bytes that change meanwhile is some of both.
pub struct Pages {
    /// Of `layout`, allocated here, and freed by `drop` alone.
    base: NonNull<u8>,
    layout: Layout,
    len: usize,
}

impl Pages {
    /// So many bytes, all 0; `None`: there are not so many.
    pub fn new(len: usize) -> Option<Self> {
        let size = len.max(1).checked_next_multiple_of(PAGE)?;
        let layout = Layout::from_size_align(size, PAGE).ok()?;
        // SAFETY: the layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { base, layout, len })
    }

    /// The address of the first byte.
    pub fn address(&self) -> NonNull<u8> {
        self.base
    }

    /// Copies bytes in.
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

    /// Copies bytes out.
    ///
    /// # Panics
    /// If there are not so many.
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

    /// How many bytes come before the first whole word, and which word that is.
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
        // SAFETY: inside of the allocation, which lives as long as this; all of it is written by atomic operations only, here,
        // and by devices.
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
        // SAFETY: allocated with this layout, and freed nowhere else. Whoever registers pages keeps them for as long as a device
        // may be at them.
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
    fn nothing_is_reached_beyond_the_end() {
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
