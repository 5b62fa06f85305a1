//! Finds contiguous free aggregation slots of a switch for a job's window.
//!
//! The size of a window is a power of two, and a window begins at a multiple of its size from its partition's first slot on. So
//! windows are placed as in a buddy allocator: no two overlap partially, a new window fits where one of the same size was, and
//! fragmentation stays as low as the running jobs permit. The lowest free position is taken.

use std::ops::Range;

/// First slot of the lowest free position in `partition` for `window` slots, beside those in `taken`; `None` if there is none.
pub fn place(partition: &Range<u32>, taken: &[Range<u32>], window: u32) -> Option<u32> {
    let step = usize::try_from(window).ok().filter(|step| *step > 0)?;
    let last = partition.end.checked_sub(window)?;
    (partition.start..=last)
        .step_by(step)
        .find(|base| is_free(taken, &(*base..base + window)))
}

/// Size of the largest window that fits into `partition` beside the windows in `taken`; 0 if no slot is free.
pub fn largest(partition: &Range<u32>, taken: &[Range<u32>]) -> u32 {
    let sizes = (0..32).rev().map(|power| 1_u32 << power);
    let mut fitting = sizes.filter(|window| place(partition, taken, *window).is_some());
    fitting.next().unwrap_or(0)
}

fn is_free(taken: &[Range<u32>], wanted: &Range<u32>) -> bool {
    let meets = |other: &Range<u32>| other.start < wanted.end && wanted.start < other.end;
    !taken.iter().any(meets)
}
