//! Time and memory of this process.

use std::time::Instant;

use anyhow::{Context, Result};

/// How long something took.
#[derive(Debug, Clone, Copy)]
pub struct Took {
    /// In seconds, by the clock.
    pub wall_s: f64,
    /// In seconds that this thread had a processor: the same on a machine that nobody else uses.
    pub cpu_s: f64,
}

impl Took {
    /// What no run has taken yet.
    pub const NEVER: Took = Took {
        wall_s: f64::INFINITY,
        cpu_s: f64::INFINITY,
    };

    /// The least of each.
    pub fn min(self, other: Took) -> Took {
        Took {
            wall_s: self.wall_s.min(other.wall_s),
            cpu_s: self.cpu_s.min(other.cpu_s),
        }
    }

    /// For JSON.
    pub fn json(self) -> serde_json::Value {
        serde_json::json!({"wall_s": self.wall_s, "cpu_s": self.cpu_s})
    }
}

/// What it gives, and how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> Result<(T, Took)> {
    let (start, cpu) = (Instant::now(), on_processor_s()?);
    let done = work();
    let took = Took {
        wall_s: start.elapsed().as_secs_f64(),
        cpu_s: on_processor_s()? - cpu,
    };
    Ok((done, took))
}

/// How long this thread had a processor, in seconds.
fn on_processor_s() -> Result<f64> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(std::time::Duration::from(now).as_secs_f64())
}

/// The most memory that this process ever had in use, in bytes (`VmHWM` of proc(5)).
pub fn peak_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kib = kib.context("the kernel does not tell VmHWM in kB")?;
    Ok(kib.trim().parse::<u64>()? * 1024)
}
