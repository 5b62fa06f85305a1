//! `weir doctor`: finds chunks that are stuck in switches or ranks, and wrong table entries.
//!
//! The doctor reads each switch and each rank twice: a chunk or rank that has not moved in between is stuck.
//! [`host_agent::doctor`] finds the reasons why a host cannot be a rank.

mod cells;
mod consistent;
mod guard;
mod ranks;
mod reading;
mod standing;
mod switch_jobs;

use std::time::Duration;

use host_agent::doctor::Finding;

pub use cells::{Cell, Cells};
pub use guard::GuardReading;
pub use ranks::RankReadings;
pub use reading::{ReadingError, Session, SwitchReading};
pub use switch_jobs::{JobMember, SummedJob, SwitchJobs};

/// States of a switch at the doctor's first and second reading.
#[derive(Debug, Clone)]
pub struct SwitchReadings {
    /// Name of the switch.
    pub name: String,
    /// State of the switch at the first reading.
    pub before: SwitchReading,
    /// State of the switch at the second reading, after a pause.
    pub after: SwitchReading,
}

/// Returns all findings on the switches and ranks that were read twice; `apart` is the time between the two readings.
pub fn judge(switches: &[SwitchReadings], ranks: &[RankReadings], apart: Duration) -> Vec<Finding> {
    let mut found = Vec::new();
    for switch in switches {
        found.extend(consistent::judge(
            &switch.name,
            &switch.after.told,
            switch.after.pairs(),
        ));
        found.extend(guard::judge(switch, apart));
        if let Err(why) = &switch.after.cells {
            let text = format!("its cells cannot be read, so its stuck chunks are unknown: {why}");
            found.push(Finding::note(&format!("switch {}", switch.name), text));
        }
    }
    found.extend(ranks::judge(ranks));
    found.extend(standing::judge(switches, ranks, apart));
    found
}

/// Formats a duration for readers: `250 ms`, `1.5 s`, `3 min`.
fn spoken(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}

/// Formats worker numbers with their noun: `worker 4`, or `workers 4, 5 and 6`.
fn workers(numbers: &[u16]) -> String {
    let all: Vec<String> = numbers.iter().map(u16::to_string).collect();
    match &all[..] {
        [] => "nobody".to_owned(),
        [one] => format!("worker {one}"),
        [others @ .., last] => format!("workers {} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests;
