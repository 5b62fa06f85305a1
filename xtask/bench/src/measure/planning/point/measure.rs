//! Measures the time of work in this process: elapsed time and processor time.

use std::time::Instant;

use anyhow::Result;

/// Duration of some work, as elapsed time and as processor time.
#[derive(Debug, Clone, Copy)]
pub struct ElapsedTimes {
    /// Elapsed time in seconds.
    pub wall_s: f64,
    /// Processor time of this thread in seconds.
    pub cpu_s: f64,
}

impl ElapsedTimes {
    /// Times greater than any duration, as the start value of a minimum.
    pub const NEVER: ElapsedTimes = ElapsedTimes {
        wall_s: f64::INFINITY,
        cpu_s: f64::INFINITY,
    };

    /// The smaller elapsed time and the smaller processor time of both values.
    pub fn min(self, other: ElapsedTimes) -> ElapsedTimes {
        ElapsedTimes {
            wall_s: self.wall_s.min(other.wall_s),
            cpu_s: self.cpu_s.min(other.cpu_s),
        }
    }

    pub fn json(self) -> serde_json::Value {
        serde_json::json!({"wall_s": self.wall_s, "cpu_s": self.cpu_s})
    }
}

/// Runs `work`; returns its result, and its duration.
pub fn timed<T>(work: impl FnOnce() -> T) -> Result<(T, ElapsedTimes)> {
    let (start, cpu) = (Instant::now(), on_processor_s()?);
    let done = work();
    let took = ElapsedTimes {
        wall_s: start.elapsed().as_secs_f64(),
        cpu_s: on_processor_s()? - cpu,
    };
    Ok((done, took))
}

/// Processor time of this thread so far, in seconds.
fn on_processor_s() -> Result<f64> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(std::time::Duration::from(now).as_secs_f64())
}
