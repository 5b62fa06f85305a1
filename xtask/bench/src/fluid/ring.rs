//! Ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC
//! 2009). Each of n workers sends an n-th of the gradient to the next worker: n − 1 times to sum, then n − 1 times to
//! distribute the sums.

use super::Schedule;

/// Schedule of the ring all-reduce of `workers` ranks, each of which sends to the next rank. Fewer
/// than two workers need no messages.
#[must_use]
pub fn schedule(workers: usize) -> Schedule {
    let mut schedule = Schedule::default();
    let mut needs = vec![Vec::new(); workers];
    for _ in 0..2 * workers.saturating_sub(1) {
        let sent: Vec<usize> = (0..workers)
            .map(|rank| {
                let after = needs[rank].clone();
                schedule.send(rank, (rank + 1) % workers, 1.0 / workers as f64, after)
            })
            .collect();
        // A rank forwards what it received from its predecessor once its own previous message has left.
        needs = (0..workers)
            .map(|rank| vec![sent[(rank + workers - 1) % workers], sent[rank]])
            .collect();
    }
    schedule
}
