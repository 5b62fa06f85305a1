//! Frames of a flow arrive in the order in which they were sent, as on a wire.
//!
//! Either processor may send for a virtual Ethernet interface: the one that has a frame, or the one whose timer finds that a
//! shaper lets it go. Each frame then waits on that processor to be received, so one may overtake another. Where the kernel
//! steers what is received by its flow (RPS), all of a flow wait on one processor.

use std::fs;

/// Of interfaces that are made in this network namespace; since Linux 6.3.
const DEFAULT_MASK: &str = "/proc/sys/net/core/rps_default_mask";

/// Asks for it for all interfaces that are made from now on in this thread's network namespace, which must be our own. Where the
/// kernel has no such setting, or /proc may not be written, frames overtake each other now and then.
pub fn keep_order() {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let _ = fs::write(DEFAULT_MASK, mask(count));
}

/// All processors, as the kernel writes sets of them: words of 32 bits in hexadecimal digits, the highest first.
fn mask(count: usize) -> String {
    let words = (0..count.div_ceil(32)).rev().map(|word| {
        let in_word = (count - word * 32).min(32);
        format!("{:x}", u32::MAX >> (32 - in_word))
    });
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_all_processors() {
        for (count, expected) in [
            (1, "1"),
            (2, "3"),
            (32, "ffffffff"),
            (33, "1,ffffffff"),
            (72, "ff,ffffffff,ffffffff"),
        ] {
            assert_eq!(mask(count), expected);
        }
    }
}
