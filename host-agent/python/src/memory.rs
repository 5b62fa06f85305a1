//! Memory of Python's: values that are copied from there, sums that are written there, and buffers in between.

use std::sync::{Mutex, PoisonError};

use pyo3::PyResult;
use pyo3::exceptions::PyValueError;

/// Bytes that are kept for values to come.
const SPARE_LIMIT: usize = 256 << 20;

/// Buffers whose sums were taken. A new one of a gradient's size comes from the kernel page by page, which takes longer than to
/// fill it.
#[derive(Default)]
pub struct Spare(Mutex<Vec<Vec<f32>>>);

impl Spare {
    /// An empty buffer with room for so many: the smallest that there is, or a new one.
    pub fn take(&self, length: usize) -> Vec<f32> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = kept.iter().enumerate();
        let fits = fits.filter(|(_, buffer)| buffer.capacity() >= length);
        match fits.min_by_key(|(_, buffer)| buffer.capacity()) {
            Some((at, _)) => kept.swap_remove(at),
            None => Vec::with_capacity(length),
        }
    }

    /// Keeps a buffer, if there is room for it.
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

/// A copy of values.
///
/// # Safety
/// `length` values of this type stand at `address`, if that is aligned, and nobody writes to them meanwhile.
pub unsafe fn copied<T: Copy>(address: usize, length: usize, mut into: Vec<T>) -> PyResult<Vec<T>> {
    is_aligned::<T>(address)?;
    // SAFETY: said above.
    into.extend_from_slice(unsafe { std::slice::from_raw_parts(address as *const T, length) });
    Ok(into)
}

/// Writes values.
///
/// # Safety
/// There is room for `length` values of this type at `address`, if that is aligned, and nobody else touches it meanwhile.
pub unsafe fn put<T: Copy>(values: &[T], address: usize, length: usize) -> PyResult<()> {
    is_aligned::<T>(address)?;
    if values.len() != length {
        return Err(PyValueError::new_err(
            "the sums are as many as the values were",
        ));
    }
    // SAFETY: said above; `values` is memory of our own.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), address as *mut T, length) };
    Ok(())
}

/// Bytes as words; zeros fill the last one up.
///
/// # Safety
/// So many bytes stand at `address`, and nobody writes to them meanwhile.
pub unsafe fn words(address: usize, bytes: usize) -> PyResult<Vec<i32>> {
    is_aligned::<u8>(address)?;
    let mut words = vec![0_i32; bytes.div_ceil(size_of::<i32>())];
    // SAFETY: said above; the words are memory of our own, and at least as many bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(address as *const u8, words.as_mut_ptr().cast(), bytes);
    }
    Ok(words)
}

/// Writes the bytes that words were made of.
///
/// # Safety
/// There is room for so many bytes at `address`, and nobody else touches it meanwhile.
pub unsafe fn put_bytes(words: &[i32], address: usize, bytes: usize) -> PyResult<()> {
    is_aligned::<u8>(address)?;
    if words.len() != bytes.div_ceil(size_of::<i32>()) {
        return Err(PyValueError::new_err(
            "as many bytes are taken as were asked for",
        ));
    }
    // SAFETY: said above; the words are memory of our own.
    unsafe { std::ptr::copy_nonoverlapping(words.as_ptr().cast(), address as *mut u8, bytes) };
    Ok(())
}
