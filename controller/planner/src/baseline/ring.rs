//! Ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009):
//! each of n workers sends an n-th of the gradient to the next, n − 1 times to sum, and n − 1 times to pass sums on.

use crate::fluid::Schedule;

/// Among so many workers, in the order of their ranks. Of fewer than two, nothing is sent.
#[must_use]
pub fn schedule(workers: usize) -> Schedule {
    let mut schedule = Schedule::default();
    let ranks: Vec<usize> = (0..workers).collect();
    let none = vec![Vec::new(); workers];
    turns(&mut schedule, &ranks, 1.0, 2, none);
    schedule
}

/// Adds a ring that goes round so many times, less one message each time: once to sum, or to pass sums on; twice for both.
/// `ready` says what each needs before it begins; what each needs before it has all is given back.
pub(super) fn turns(
    schedule: &mut Schedule,
    ranks: &[usize],
    share: f64,
    times: usize,
    ready: Vec<Vec<usize>>,
) -> Vec<Vec<usize>> {
    let count = ranks.len();
    if count < 2 {
        return ready;
    }
    let mut needs = ready;
    for _ in 0..times * (count - 1) {
        let sent: Vec<usize> = (0..count)
            .map(|place| {
                let to = ranks[(place + 1) % count];
                let after = needs[place].clone();
                schedule.send(ranks[place], to, share / count as f64, after)
            })
            .collect();
        // What came from the one before goes on next, when the own message before that is out.
        needs = (0..count)
            .map(|place| vec![sent[(place + count - 1) % count], sent[place]])
            .collect();
    }
    needs
}
