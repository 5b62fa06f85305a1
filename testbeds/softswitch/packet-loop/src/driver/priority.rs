//! How soon the packet thread runs when a frame or a deadline wakes it.
//!
//! An ordinary thread waits for whoever has the processor: up to several slices of some milliseconds, which is the lateness of
//! a held frame. A real-time thread goes first. Who may ask for that, Linux says: root outside of any user namespace, who has a
//! limit (`ulimit -r`, `ulimit -e`), and who was started by one that had it, since priority is inherited.
#![allow(unsafe_code)]

use nix::errno::Errno;

/// The lowest of the real-time priorities: before all ordinary threads, behind whatever else is real-time.
const REAL_TIME: libc::c_int = 1;
/// The highest niceness.
const NICEST: libc::c_int = -20;

/// What the packet thread was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// It runs before all ordinary threads (SCHED_FIFO).
    RealTime,
    /// It has the greatest share of the processor among ordinary threads (niceness -20).
    High,
    /// It waits its turn.
    Ordinary,
}

impl Priority {
    /// As reports name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Priority::RealTime => "real-time",
            Priority::High => "high",
            Priority::Ordinary => "ordinary",
        }
    }
}

/// Gives the calling thread the highest priority that it may have.
///
/// With one processor it stays an ordinary thread: while it holds frames it would keep everybody else from running.
pub(super) fn raise() -> Priority {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors == 1 {
        lower();
        return Priority::Ordinary;
    }
    if set_scheduler(libc::SCHED_FIFO, REAL_TIME).is_ok() {
        return Priority::RealTime;
    }
    // SAFETY: no pointers; 0 is the calling thread.
    let nicer = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICEST) };
    if nicer == 0 {
        Priority::High
    } else {
        Priority::Ordinary
    }
}

/// Makes the calling thread an ordinary one, which it may always become: a priority is inherited from whoever started it.
pub fn lower() {
    // Refused at most to one that is ordinary already.
    let _ = set_scheduler(libc::SCHED_OTHER, 0);
}

fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> Result<libc::c_int, Errno> {
    // SAFETY: plain data, for which all zeros is a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the kernel only reads the parameters, which outlive the call; 0 is the calling thread.
    Errno::result(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Linux says of the calling thread.
    fn policy() -> (libc::c_int, libc::c_int) {
        // SAFETY: no pointers; 0 is the calling thread.
        unsafe {
            (
                libc::sched_getscheduler(0),
                libc::getpriority(libc::PRIO_PROCESS, 0),
            )
        }
    }

    #[test]
    fn a_thread_has_the_priority_that_it_is_told() {
        let raised = std::thread::spawn(|| {
            let raised = raise();
            let (scheduler, niceness) = policy();
            let real_time = scheduler == libc::SCHED_FIFO;
            assert_eq!(real_time, raised == Priority::RealTime);
            assert_eq!(!real_time && niceness == NICEST, raised == Priority::High);
            lower();
            assert_eq!(policy().0, libc::SCHED_OTHER);
        });
        raised.join().unwrap();
    }
}
