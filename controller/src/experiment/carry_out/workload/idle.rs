//! The idle workload: the timeline runs for a given time, while weir runs no program.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{Load, Measured, Position, WorkloadError};

pub struct Idle {
    length: Duration,
    begun: Option<Instant>,
}

impl Idle {
    pub fn new(for_ns: u64) -> Idle {
        Idle {
            length: Duration::from_nanos(for_ns),
            begun: None,
        }
    }

    fn elapsed(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }
}

impl Load for Idle {
    fn begin(&mut self) -> Result<(), WorkloadError> {
        self.begun = Some(Instant::now());
        Ok(())
    }

    fn poll(&mut self, most: Duration) -> Result<ControlFlow<()>, WorkloadError> {
        let left = self.length.saturating_sub(self.elapsed());
        std::thread::sleep(left.min(most));
        Ok(if left.is_zero() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    /// Progress of the workload in seconds, including the one that has just begun.
    fn position(&self) -> Position {
        let total = self.length.as_secs_f64().ceil() as u64;
        Position {
            unit: "s",
            done: self.elapsed().as_secs().min(total),
            total,
            message: String::new(),
        }
    }

    fn finish(self: Box<Self>) -> Result<Measured, WorkloadError> {
        Ok(Measured::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_pass_up_to_the_last() -> Result<(), WorkloadError> {
        let mut idle = Idle::new(1_500_000_000);
        assert_eq!((idle.position().done, idle.position().total), (0, 2));
        idle.begun = Instant::now().checked_sub(Duration::from_millis(1100));
        assert_eq!(idle.position().done, 1);
        assert!(idle.poll(Duration::from_millis(5))?.is_continue());
        idle.begun = Instant::now().checked_sub(Duration::from_secs(9));
        assert_eq!(idle.position().done, 2);
        assert!(idle.poll(Duration::from_millis(5))?.is_break());
        Ok(())
    }
}
