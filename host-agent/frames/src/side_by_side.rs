//! Runs calls in parallel that wait for an RCU grace period of the kernel, 9 to 24 ms each: creating the ring of a
//! packet socket, and closing it. Calls that wait at the same time share the grace period.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Maximum number of threads that run calls in parallel.
const THREADS: usize = 64;

/// Runs `work` on all items in parallel and returns the results in the order of the items.
///
/// # Panics
/// If `work` panics.
pub fn side_by_side<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let share = items.len().div_ceil(THREADS).max(1);
    let mut items = items.into_iter();
    let mut shares = Vec::new();
    while items.len() > 0 {
        shares.push(items.by_ref().take(share).collect::<Vec<T>>());
    }
    let shares: Vec<Mutex<Vec<T>>> = shares.into_iter().map(Mutex::new).collect();
    let carry_out = |share: &Mutex<Vec<T>>| {
        let share = std::mem::take(&mut *share.lock().unwrap_or_else(PoisonError::into_inner));
        share.into_iter().map(&work).collect::<Vec<R>>()
    };
    thread::scope(|scope| {
        let start = |share| thread::Builder::new().spawn_scoped(scope, move || carry_out(share));
        let threads: Vec<_> = shares.iter().map(start).collect();
        let results = threads
            .into_iter()
            .zip(&shares)
            .map(|(thread, share)| match thread {
                Ok(thread) => thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // The system allows no more threads: this thread does the work.
                Err(_) => carry_out(share),
            });
        results.flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for count in [0, 1, 63, 64, 65, 1000] {
            let results = side_by_side((0..count).collect(), |item| item * 2);
            assert_eq!(results, (0..count).map(|item| item * 2).collect::<Vec<_>>());
        }
    }
}
