//! CPU time: what other processes do does not count.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of CPU that this thread has had.
pub fn thread_cpu_ns() -> u64 {
    // The clock exists on every Linux; without it all figures are 0 and no row is believed.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0, |t| {
        t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
    })
}

/// Nanoseconds of CPU that all threads of this process have had.
pub fn process_cpu_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(0, |t| {
        t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
    })
}

/// Median nanoseconds of CPU that one of `per_round` things takes, over `rounds` runs of `run`; one more run goes first,
/// uncounted.
pub fn median_ns(rounds: usize, per_round: u64, mut run: impl FnMut()) -> f64 {
    run();
    let mut samples: Vec<u64> = (0..rounds)
        .map(|_| {
            let start = thread_cpu_ns();
            run();
            thread_cpu_ns() - start
        })
        .collect();
    samples.sort_unstable();
    samples[samples.len() / 2] as f64 / per_round as f64
}
