//! All-reduce by recursive halving and doubling (Rabenseifner; Thakur, Rabenseifner and Gropp, "Optimization of
//! Collective Communication Operations in MPICH", IJHPCA 2005). Partners at distances that halve exchange halves of
//! what they hold; then the sums return over the same exchanges in reverse order.
//!
//! If the number of workers is not a power of two, each worker beyond the next lower power first sends its whole
//! gradient to a partner, and receives all sums from it at the end.

use super::Schedule;

/// Schedule of the halving and doubling all-reduce of `workers` ranks. Fewer than two workers need no messages.
#[must_use]
pub fn schedule(workers: usize) -> Schedule {
    let mut schedule = Schedule::default();
    if workers < 2 {
        return schedule;
    }
    let core = 1_usize << workers.ilog2();
    let mut needs: Vec<Vec<usize>> = vec![Vec::new(); core];
    for extra in core..workers {
        let given = schedule.send(extra, extra - core, 1.0, Vec::new());
        needs[extra - core].push(given);
    }
    let distances: Vec<usize> = (0..core.ilog2()).rev().map(|bit| 1 << bit).collect();
    // After an exchange at distance d among n workers, each holds d / n of the gradient.
    let back = distances.iter().rev();
    for distance in distances.iter().chain(back) {
        let share = *distance as f64 / core as f64;
        let sent: Vec<usize> = (0..core)
            .map(|rank| {
                // An exchange needs both partners: a large message waits for its receiver.
                let partner = rank ^ distance;
                let mut after = [&needs[rank][..], &needs[partner][..]].concat();
                after.sort_unstable();
                after.dedup();
                schedule.send(rank, partner, share, after)
            })
            .collect();
        needs = (0..core)
            .map(|rank| vec![sent[rank ^ distance], sent[rank]])
            .collect();
    }
    for extra in core..workers {
        let after = needs[extra - core].clone();
        schedule.send(extra - core, extra, 1.0, after);
    }
    schedule
}
