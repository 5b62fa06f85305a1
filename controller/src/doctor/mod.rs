//! `weir doctor`: what hangs where, and what was told wrongly.
//!
//! | file | what |
//! |---|---|
//! | `look.rs` | a switch is asked by P4Runtime, as one who does not control it |
//! | `told.rs` | what a switch was told of jobs, from its entries |
//! | `consistent.rs` | what of that cannot work |
//! | `cells.rs` | chunks that are incomplete in a switch's cells |
//! | `guard.rs` | frames that a switch drops: after a job's lease, or by a port of no rank of the job |
//! | `ranks.rs` | what ranks show of themselves |
//! | `standing.rs` | both together: what waits for whom, and since when |
//!
//! Everything is looked at twice: what has not moved in between hangs. What keeps a host from being a rank is
//! [`host_agent::doctor`].

mod cells;
mod consistent;
mod guard;
mod look;
mod ranks;
mod standing;
mod told;

use std::time::Duration;

use host_agent::doctor::Finding;

pub use cells::{Cell, Cells};
pub use guard::Guard;
pub use look::{Look, LookError, Session};
pub use ranks::Asked;
pub use told::{Job, Member, Told};

/// A switch, looked at twice.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// What was seen first.
    pub before: Look,
    /// What was seen then.
    pub after: Look,
}

/// What the two looks at switches and ranks come to; `apart` is how long they are from each other.
pub fn judge(switches: &[Seen], ranks: &[Asked], apart: Duration) -> Vec<Finding> {
    let mut found = Vec::new();
    for switch in switches {
        found.extend(consistent::judge(
            &switch.name,
            &switch.after.told,
            switch.after.pairs(),
        ));
        found.extend(guard::judge(switch, apart));
        if let Err(why) = &switch.after.cells {
            let text = format!("its cells cannot be read, so what hangs there is not known: {why}");
            found.push(Finding::note(&format!("switch {}", switch.name), text));
        }
    }
    found.extend(ranks::judge(ranks));
    found.extend(standing::judge(switches, ranks, apart));
    found
}

/// A time, as people say it.
fn spoken(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}

/// `worker 4`, or `workers 4, 5 and 6`.
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
