//! Parallel calls that wait for an RCU grace period of the kernel, 9 to 24 ms each: creating the ring of a packet socket, and closing
//! it. Calls that wait at the same time share the grace period.

use std::thread;

/// Maximum number of threads.
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
    let work = &work;
    thread::scope(|scope| {
        let start = |share: Vec<T>| scope.spawn(|| share.into_iter().map(work).collect::<Vec<R>>());
        let threads: Vec<_> = shares.into_iter().map(start).collect();
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
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
