//! The sandbox: the process continues in a copy of itself, inside new namespaces.
//!
//! ```text
//! weir run (outer)           outside: waits, forwards signals, exits with the program's status
//!   └─ PID 1 (init)          inside: new user, network, mount and PID namespace; reaps; dies with the outer process
//!        └─ weir run (PID 2) the program: returns from `enter` with all that the outer process had read and planned
//!             └─ agents, switches, redis …
//! ```
//!
//! When PID 1 ends, for whatever reason, the kernel kills every process of its PID namespace; with the last process
//! the network namespaces go, and with them all interfaces. So exit, Ctrl-C and `kill -9` of the outer process all
//! clean up the same way: by lifetime, not by code that has to run.

mod init;
pub(crate) mod priority;
mod refusal;

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, getegid, geteuid, pipe2};

pub use refusal::{Refusal, Step};

/// Whether this process is the program inside a sandbox.
static IS_INSIDE: AtomicBool = AtomicBool::new(false);

/// Error of entering the sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The kernel, or a policy of this machine, refuses the namespaces.
    #[error("{0}")]
    Refused(Refusal),
    /// A process that has threads cannot be copied safely.
    #[error(
        "the sandbox must be entered before any thread is started; this process has {0} threads"
    )]
    Threads(usize),
    /// Another operation of entering the sandbox failed.
    #[error("cannot enter a sandbox: {what}: {source}")]
    Io {
        /// The operation that failed, as text.
        what: &'static str,
        /// Error that the operating system reported.
        source: io::Error,
    },
}

/// Whether this process is the program inside a sandbox.
pub(crate) fn is_inside() -> bool {
    IS_INSIDE.load(Ordering::Relaxed)
}

/// Enters a sandbox: returns only inside it, or with an error outside. Inside a sandbox it does nothing.
///
/// Call it before any thread is started. The process forks: its child inside continues with the caller's memory and open
/// files, and the outer process waits for it, and exits with its status.
pub fn enter() -> Result<(), SandboxError> {
    if is_inside() {
        return Ok(());
    }
    // Both processes flush at their ends: the text would appear twice.
    let _ = io::stdout().flush();
    if let Some(status) = supervise()? {
        std::process::exit(status);
    }
    IS_INSIDE.store(true, Ordering::Relaxed);
    priority::keep().map_err(|source| SandboxError::Io {
        what: "start a thread",
        source,
    })
}

fn io_error(what: &'static str) -> impl Fn(Errno) -> SandboxError {
    move |errno| SandboxError::Io {
        what,
        source: errno.into(),
    }
}

/// Starts PID 1 of the sandbox and waits for it. Returns its exit status outside, and `None` inside the sandbox.
fn supervise() -> Result<Option<i32>, SandboxError> {
    let threads = thread_count();
    if threads > 1 {
        return Err(SandboxError::Threads(threads));
    }
    let identity = init::Identity {
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
    };
    let watched = watched_signals();
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&watched), Some(&mut before))
        .map_err(io_error("block signals"))?;
    let result = start_and_wait(identity, &watched);
    // The program inside, and the caller after a refusal, must find their signals unchanged.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)
        .map_err(io_error("unblock signals"))?;
    result
}

fn start_and_wait(identity: init::Identity, watched: &SigSet) -> Result<Option<i32>, SandboxError> {
    let signals = SignalFd::new(watched).map_err(io_error("open a signal descriptor"))?;
    let Some((child, report)) = start_init(identity)? else {
        return Ok(None);
    };
    await_setup(child, report)?;
    loop {
        let Some(info) = signals
            .read_signal()
            .map_err(io_error("wait for a signal"))?
        else {
            continue;
        };
        if info.ssi_signo == Signal::SIGCHLD as u32 {
            match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(_, code)) => return Ok(Some(code)),
                Ok(WaitStatus::Signaled(_, signal, _)) => return Ok(Some(128 + signal as i32)),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(io_error("wait for the sandbox")(errno)),
            }
        } else {
            forward(&info, child);
        }
    }
}

/// Forwards a signal that was sent to this process alone. Signals of the terminal (Ctrl-C) come from the kernel
/// and have reached the processes inside already, as they are in the same process group.
fn forward(info: &nix::libc::signalfd_siginfo, to: Pid) {
    if info.ssi_code == nix::libc::SI_KERNEL {
        return;
    }
    if let Ok(signal) = Signal::try_from(info.ssi_signo as i32) {
        // ESRCH: the process has just ended, and its SIGCHLD is read next.
        let _ = kill(to, signal);
    }
}

fn watched_signals() -> SigSet {
    [
        Signal::SIGCHLD,
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ]
    .into_iter()
    .collect()
}

/// Starts PID 1; root does without a user namespace where only that is refused. Returns outside: PID 1 and the pipe
/// with its report. Returns `None` inside.
fn start_init(identity: init::Identity) -> Result<Option<(Pid, OwnedFd)>, SandboxError> {
    let mut refused = match try_start(identity, true) {
        Ok(started) => return Ok(started),
        Err(errno) => errno,
    };
    if identity.uid == 0 {
        match try_start(identity, false) {
            Ok(started) => return Ok(started),
            Err(errno) => refused = errno,
        }
    }
    Err(SandboxError::Refused(Refusal::explain(
        Step::Namespaces,
        refused,
        refusal::read_setting,
    )))
}

fn try_start(
    identity: init::Identity,
    user_namespace: bool,
) -> Result<Option<(Pid, OwnedFd)>, Errno> {
    let (go, go_writer) = pipe2(OFlag::O_CLOEXEC)?;
    let (report_reader, report) = pipe2(OFlag::O_CLOEXEC)?;
    let handshake = init::Handshake {
        go,
        go_writer,
        report,
    };
    // Before the user namespace, inside which it is refused.
    priority::raise();
    let started = match init::clone(user_namespace) {
        Ok(ForkResult::Child) => {
            init::run(identity, user_namespace, handshake);
            return Ok(None);
        }
        Ok(ForkResult::Parent { child }) => Ok(Some((child, report_reader))),
        Err(errno) => Err(errno),
    };
    priority::lower();
    // If PID 1 has failed meanwhile, its report gives the reason.
    let _ = nix::unistd::write(&handshake.go_writer, b"g");
    started
}

/// Reads PID 1's report on the set-up of the sandbox: nothing if it succeeded, else the failed step and the error number.
fn await_setup(child: Pid, report: OwnedFd) -> Result<(), SandboxError> {
    let mut message = Vec::new();
    fs::File::from(report)
        .take(64)
        .read_to_end(&mut message)
        .map_err(|source| SandboxError::Io {
            what: "read the sandbox's report",
            source,
        })?;
    let Some((step, errno)) = init::decode_report(&message) else {
        return Ok(());
    };
    let _ = waitpid(child, None);
    Err(SandboxError::Refused(Refusal::explain(
        step,
        errno,
        refusal::read_setting,
    )))
}

fn thread_count() -> usize {
    fs::read_dir("/proc/self/task")
        .map(|tasks| tasks.count())
        .unwrap_or(1)
}
