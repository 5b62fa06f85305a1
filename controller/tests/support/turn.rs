//! Which tests of a program run beside each other, and which run alone: tests in real time wait most of their time, and some
//! of them measure time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Weight that may run at a time: that of four tests beside each other.
const CAPACITY: usize = 4;

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    free: CAPACITY,
    tickets: 0,
    served: 0,
});
static CHANGED: Condvar = Condvar::new();

/// Tests take their turns in the order in which they ask for one, so that none starves.
struct Queue {
    free: usize,
    tickets: u64,
    served: u64,
}

/// The right to run, until it is dropped. A test that holds one asks for no second one.
pub struct Turn(usize);

/// Waits until nothing else in this program has a turn: for a test whose verdict depends on time or on the machine's load.
pub fn alone() -> Turn {
    take(CAPACITY)
}

/// Waits until at most three other tests of this program have a turn, and none has it alone.
pub fn beside() -> Turn {
    take(1)
}

fn take(weight: usize) -> Turn {
    let mut queue = queue();
    let ticket = queue.tickets;
    queue.tickets += 1;
    while queue.served < ticket || queue.free < weight {
        queue = CHANGED.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
    queue.served += 1;
    queue.free -= weight;
    CHANGED.notify_all();
    Turn(weight)
}

impl Drop for Turn {
    fn drop(&mut self) {
        queue().free += self.0;
        CHANGED.notify_all();
    }
}

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}
