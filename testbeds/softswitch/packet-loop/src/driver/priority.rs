//! The scheduling priority of the packet thread, which determines how soon it runs after a frame or deadline wakes it.
//!
//! An ordinary thread waits until other threads have used their time slices of some milliseconds, which delays the frames that
//! it holds. A real-time thread runs first. Linux permits real-time threads to root outside of any user namespace, to a user
//! with a limit (`ulimit -r`, `ulimit -e`), and to children of a permitted process, since priority is inherited.
#![allow(unsafe_code)]

use nix::errno::Errno;

/// The lowest real-time priority: above all ordinary threads, below all other real-time threads.
const REAL_TIME: libc::c_int = 1;
/// The nice value with the highest priority.
const NICEST: libc::c_int = -20;

/// The scheduling priority of the packet thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// The thread runs before all ordinary threads (SCHED_FIFO).
    RealTime,
    /// The thread has the greatest share of the processor among ordinary threads (niceness -20).
    High,
    /// The packet thread has the scheduling of any other thread.
    Ordinary,
}

impl Priority {
    /// Name of the priority in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Priority::RealTime => "real-time",
            Priority::High => "high",
            Priority::Ordinary => "ordinary",
        }
    }
}

/// Gives the calling thread the highest priority that the system permits.
///
/// With one processor it stays an ordinary thread: otherwise no other thread could run while it holds frames.
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

/// Makes the calling thread an ordinary one, which is always permitted: a thread inherits the priority of its parent.
pub fn lower() {
    // Fails at most for a thread that is already ordinary.
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

    /// The scheduling policy of the calling thread, according to Linux.
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
    fn a_thread_gets_its_priority() {
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
