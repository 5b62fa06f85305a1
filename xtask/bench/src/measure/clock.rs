//! Measures CPU time, which does not include the time of other processes.

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// CPU time of this thread so far, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    // The clock exists on every Linux; without it all figures would be 0.
    nanoseconds(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// CPU time of all threads of this process so far, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// CPU time of all threads of another process so far, in nanoseconds, including threads that have
/// ended. A kernel thread is a process of one thread.
///
/// The kernel adds a softirq to the thread that it interrupts; a kernel built with
/// `CONFIG_IRQ_TIME_ACCOUNTING` adds it to no thread, except in ksoftirqd.
///
/// It is an error if the process has ended and its parent has waited for it.
pub fn cpu_ns(process: u32) -> Result<u64> {
    let clock = clock_getcpuclockid(Pid::from_raw(process.cast_signed()));
    let time = clock.and_then(nanoseconds);
    time.with_context(|| format!("the CPU clock of process {process}"))
}

fn nanoseconds(clock: ClockId) -> nix::Result<u64> {
    let time = clock_gettime(clock)?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Median CPU time in nanoseconds of one of the `per_round` items that `run` handles, over `rounds`
/// rounds after a warm-up round.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_keeps_the_time_of_a_thread_that_has_ended() {
        let this = std::process::id();
        let before = cpu_ns(this).unwrap();
        let thread = std::thread::spawn(|| {
            while thread_cpu_ns() < 20_000_000 {
                std::hint::spin_loop();
            }
            thread_cpu_ns()
        });
        let spent = thread.join().unwrap();
        let after = cpu_ns(this).unwrap();
        assert!(after - before >= spent, "{} of {spent}", after - before);
        assert!(process_cpu_ns() >= after);
    }

    #[test]
    fn another_process_is_counted_until_its_parent_has_waited_for_it() {
        let mut child = Command::new("sh")
            .args(["-c", "read line"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let process = child.id();
        cpu_ns(process).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        let error = cpu_ns(process).unwrap_err();
        assert!(error.to_string().contains(&process.to_string()), "{error}");
    }
}
