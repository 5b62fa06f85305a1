//! Real-time priority for the switches of a sandbox.
//!
//! Inside a user namespace nobody may ask for it, not even root; but it is inherited. So where the user outside may have it, the
//! sandbox is started with it. Inside, one thread keeps it and starts the switches; everything else becomes ordinary.
#![allow(unsafe_code)]

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};
use std::thread;

use nix::errno::Errno;

/// The lowest of the real-time priorities.
const LOWEST: libc::c_int = 1;

type Job = Box<dyn FnOnce() + Send>;

/// To the thread that has kept the priority, if there is one.
static KEEPER: OnceLock<Sender<Job>> = OnceLock::new();

/// Makes the calling thread real-time, if it may be and others have a processor left.
pub(super) fn raise() {
    if thread::available_parallelism().map_or(1, usize::from) > 1 {
        // Refused: the switches are ordinary, and say so.
        let _ = set_scheduler(libc::SCHED_FIFO, LOWEST);
    }
}

/// Makes the calling thread ordinary, which it may always become.
pub(super) fn lower() {
    let _ = set_scheduler(libc::SCHED_OTHER, 0);
}

/// Leaves the priority that this process was started with to a thread that lives as long as it does.
pub(super) fn keep() -> io::Result<()> {
    // SAFETY: no pointers; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    if policy != libc::SCHED_FIFO || KEEPER.get().is_some() {
        return Ok(());
    }
    let (sender, jobs) = mpsc::channel::<Job>();
    thread::Builder::new()
        .name("priority".into())
        .spawn(move || jobs.into_iter().for_each(|job| job()))?;
    lower();
    let _ = KEEPER.set(sender);
    Ok(())
}

/// Starts a process that inherits the kept priority, if there is one.
pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
    let Some(keeper) = KEEPER.get() else {
        return command.spawn();
    };
    let (sender, started) = mpsc::sync_channel(1);
    let job = move || {
        let _ = sender.send(command.spawn());
    };
    let gone = || io::Error::other("the thread that starts switches has ended");
    keeper.send(Box::new(job)).map_err(|_| gone())?;
    started.recv().map_err(|_| gone())?
}

fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> Result<libc::c_int, Errno> {
    // SAFETY: plain data, for which all zeros is a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the kernel only reads the parameters, which outlive the call; 0 is the calling thread.
    Errno::result(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) })
}
