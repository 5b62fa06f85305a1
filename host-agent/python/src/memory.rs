//! Access to Python's memory: copying values from it, writing sums to it, and reusable buffers for them.

use std::sync::{Mutex, PoisonError};

use pyo3::PyResult;
use pyo3::exceptions::PyValueError;

/// Maximum size of all buffers kept for reuse, in bytes.
const SPARE_LIMIT: usize = 256 << 20;

/// Reusable buffers of finished sums. The kernel maps a new buffer of a gradient's size page by page, which takes longer than
/// filling it.
#[derive(Default)]
pub struct Spare(Mutex<Vec<Vec<f32>>>);

impl Spare {
    /// An empty buffer with capacity for `length` values: the smallest kept buffer that suffices, or a new one.
    pub fn take(&self, length: usize) -> Vec<f32> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = kept.iter().enumerate();
        let fits = fits.filter(|(_, buffer)| buffer.capacity() >= length);
        match fits.min_by_key(|(_, buffer)| buffer.capacity()) {
            Some((at, _)) => kept.swap_remove(at),
            None => Vec::with_capacity(length),
        }
    }

    /// Keeps a buffer for reuse, unless the kept buffers would exceed the limit.
    pub fn give(&self, mut buffer: Vec<f32>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held: usize = kept.iter().map(Vec::capacity).sum();
        if size_of::<f32>() * (held + buffer.capacity()) <= SPARE_LIMIT {
            buffer.clear();
            kept.push(buffer);
        }
    }
}

fn is_aligned<T>(address: usize) -> PyResult<()> {
    if address == 0 || !address.is_multiple_of(align_of::<T>()) {
        return Err(PyValueError::new_err(format!(
            "values stand at a multiple of {} bytes",
            align_of::<T>()
        )));
    }
    Ok(())
}

/// Copies `length` values from a memory address to the end of `into`.
///
/// # Safety
/// If the address is aligned, it must hold `length` values of this type, which nothing writes meanwhile.
pub unsafe fn copied<T: Copy>(address: usize, length: usize, mut into: Vec<T>) -> PyResult<Vec<T>> {
    is_aligned::<T>(address)?;
    // SAFETY: guaranteed by the caller, as stated above.
    into.extend_from_slice(unsafe { std::slice::from_raw_parts(address as *const T, length) });
    Ok(into)
}

/// Writes values to a memory address.
///
/// # Safety
/// If the address is aligned, it must have capacity for `length` values of this type, which nothing else accesses meanwhile.
pub unsafe fn put<T: Copy>(values: &[T], address: usize, length: usize) -> PyResult<()> {
    is_aligned::<T>(address)?;
    if values.len() != length {
        return Err(PyValueError::new_err(
            "the sums are as many as the values were",
        ));
    }
    // SAFETY: guaranteed by the caller, as stated above; `values` is our own memory.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), address as *mut T, length) };
    Ok(())
}

/// Copies bytes from a memory address into words; the last word is padded with zeros.
///
/// # Safety
/// The address must hold this many bytes, which nothing writes meanwhile.
pub unsafe fn words(address: usize, bytes: usize) -> PyResult<Vec<i32>> {
    is_aligned::<u8>(address)?;
    let mut words = vec![0_i32; bytes.div_ceil(size_of::<i32>())];
    // SAFETY: guaranteed by the caller, as stated above; the words are our own memory, with at least as many bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(address as *const u8, words.as_mut_ptr().cast(), bytes);
    }
    Ok(words)
}

/// Writes the bytes of words to a memory address; padding in the last word is left out.
///
/// # Safety
/// The address must have capacity for this many bytes, which nothing else accesses meanwhile.
pub unsafe fn put_bytes(words: &[i32], address: usize, bytes: usize) -> PyResult<()> {
    is_aligned::<u8>(address)?;
    if words.len() != bytes.div_ceil(size_of::<i32>()) {
        return Err(PyValueError::new_err(
            "as many bytes are taken as were asked for",
        ));
    }
    // SAFETY: guaranteed by the caller, as stated above; the words are our own memory.
    unsafe { std::ptr::copy_nonoverlapping(words.as_ptr().cast(), address as *mut u8, bytes) };
    Ok(())
}
