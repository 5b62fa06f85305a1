//! Real-time priority for the switches of a sandbox.
//!
//! Inside a user namespace no process may request real-time priority, not even root's; but child processes inherit it.
//! If the user outside may have it, the sandbox is started with it. Inside, one thread keeps it and starts the
//! switches; all other threads become ordinary.
#![allow(unsafe_code)]

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::thread;

use nix::errno::Errno;

use crate::starter::{self, Starter};

/// The lowest real-time priority of Linux.
const LOWEST: libc::c_int = 1;

/// Thread with real-time priority that starts threads with the same priority; unset without this privilege.
static KEEPER: OnceLock<Starter> = OnceLock::new();

/// Gives the calling thread real-time priority, if this is permitted and other threads have a processor left.
pub(super) fn raise() {
    if thread::available_parallelism().map_or(1, usize::from) > 1 {
        // Refused: the switches have ordinary priority, and report it.
        let _ = set_scheduler(libc::SCHED_FIFO, LOWEST);
    }
}

/// Gives the calling thread ordinary scheduling, which Linux always permits.
pub(super) fn lower() {
    let _ = set_scheduler(libc::SCHED_OTHER, 0);
}

/// Hands the real-time priority with which this process was started to a thread that lives as long as the process.
pub(super) fn keep() -> io::Result<()> {
    // SAFETY: no pointers; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    if policy != libc::SCHED_FIFO || KEEPER.get().is_some() {
        return Ok(());
    }
    let keeper = Starter::new("priority")?;
    lower();
    let _ = KEEPER.set(keeper);
    Ok(())
}

/// Starts a child process that inherits the kept real-time priority, if there is one.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    match KEEPER.get() {
        Some(keeper) => keeper.spawn(command),
        None => starter::spawn(command),
    }
}

fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> Result<libc::c_int, Errno> {
    // SAFETY: plain data, for which all zeros is a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the kernel only reads the parameters, which outlive the call; 0 is the calling thread.
    Errno::result(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) })
}
