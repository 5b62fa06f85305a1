//! PID 1 of the sandbox: sets up the namespaces, starts the program, reaps orphans, forwards signals, ends with the program.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use super::Step;
use crate::ioctl;

/// User and group that call weir, as numbered outside of the sandbox.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    pub uid: u32,
    pub gid: u32,
}

/// Exit status of the sandbox when PID 1 itself failed.
const INIT_FAILED: i32 = 2;

/// Ends of the two pipes between the outer process and PID 1 of the sandbox.
pub(super) struct Handshake {
    /// PID 1 reads one byte here if the outer process still exists.
    pub go: OwnedFd,
    pub go_writer: OwnedFd,
    /// PID 1 writes the step that failed here; if none failed, PID 1 closes it without writing.
    pub report: OwnedFd,
}

/// Forks the calling process into new namespaces.
///
/// Unlike unshare(2), this makes the child itself PID 1 of the new PID namespace. The caller has one thread.
pub(super) fn clone(user_namespace: bool) -> Result<ForkResult, Errno> {
    let mut flags = libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::SIGCHLD;
    if user_namespace {
        flags |= libc::CLONE_NEWUSER;
    }
    let none: libc::c_ulong = 0;
    // SAFETY: without CLONE_VM and with no stack this is fork(2): the child has its own memory and continues from here.
    // The caller has one thread, so no lock can be held by a thread that the child lacks. The C library does not know of
    // the child; PID 1 therefore starts no thread, and forks the program by the C library's own fork(2).
    // All arguments but the flags are zero, so their order, which differs between architectures, does not matter.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags as libc::c_ulong,
            none,
            none,
            none,
            none,
        )
    };
    Ok(match Errno::result(result)? {
        0 => ForkResult::Child,
        pid => ForkResult::Parent {
            child: Pid::from_raw(pid as libc::pid_t),
        },
    })
}

/// Runs PID 1 of the sandbox, which ends in this call. The call returns only in the program, which is PID 1's child.
pub(super) fn run(identity: Identity, user_namespace: bool, handshake: Handshake) {
    let Handshake {
        go,
        go_writer,
        report,
    } = handshake;
    // An open writer would make this process wait for a dead parent.
    drop(go_writer);
    let program = set_up(identity, user_namespace, &go).and_then(|()| {
        // SAFETY: PID 1 is the copy of a process with one thread, and has started none.
        unsafe { fork() }.map_err(|errno| (Step::Fork, errno))
    });
    let status = match program {
        Ok(ForkResult::Child) => return,
        Ok(ForkResult::Parent { child }) => {
            super::priority::lower();
            drop(report);
            live(child).unwrap_or(INIT_FAILED)
        }
        Err((step, errno)) => {
            let _ = nix::unistd::write(&report, &encode_report(step, errno));
            INIT_FAILED
        }
    };
    // SAFETY: ends the process. The destructors and buffers that PID 1 has copied belong to the other two processes.
    unsafe { libc::_exit(status) }
}

fn set_up(identity: Identity, user_namespace: bool, go: &OwnedFd) -> Result<(), (Step, Errno)> {
    let at = |step: Step| move |errno: Errno| (step, errno);
    // From here on, PID 1 dies with the outer process. If that process died before, reading gives end of file.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(at(Step::Namespaces))?;
    let mut byte = [0];
    if nix::unistd::read(go, &mut byte) != Ok(1) {
        return Err((Step::Namespaces, Errno::ECANCELED));
    }
    if user_namespace {
        map_identity(identity).map_err(at(Step::Identity))?;
    }
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(at(Step::Mounts))?;
    // If a container masks parts of /proc, the kernel refuses a fresh mount (EPERM). Nothing here depends on it: the
    // old mount still shows each process itself, which is enough.
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let _ = mount(Some("proc"), "/proc", Some("proc"), flags, none);
    ioctl::loopback_up().map_err(|error| (Step::Loopback, errno_of(&error)))
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}

/// Maps the caller's user and group to root inside the sandbox; files still see the caller's user.
fn map_identity(identity: Identity) -> Result<(), Errno> {
    let write = |path: &str, text: String| fs::write(path, text).map_err(|error| errno_of(&error));
    match write("/proc/self/setgroups", "deny".into()) {
        // Kernels before 3.19 have no such file and need none.
        Ok(()) | Err(Errno::ENOENT) => {}
        Err(errno) => return Err(errno),
    }
    write("/proc/self/uid_map", format!("0 {} 1", identity.uid))?;
    write("/proc/self/gid_map", format!("0 {} 1", identity.gid))
}

/// Waits for the program's end, and reaps orphans meanwhile. Returns the program's exit status.
fn live(program: Pid) -> Result<i32, Errno> {
    // The outer process blocked these before it forked PID 1; only SIGKILL interrupts this loop.
    let watched: SigSet = super::watched_signals();
    let signals = SignalFd::new(&watched)?;
    loop {
        // First the dead, then the signals: the program may have ended before the descriptor was there.
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == program => return Ok(code),
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                    return Ok(128 + signal as i32);
                }
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => break,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        if let Some(info) = signals.read_signal()?
            && info.ssi_signo != Signal::SIGCHLD as u32
        {
            super::forward(&info, program);
        }
    }
}

fn encode_report(step: Step, errno: Errno) -> [u8; 5] {
    let mut message = [0; 5];
    message[0] = step as u8;
    message[1..].copy_from_slice(&(errno as i32).to_le_bytes());
    message
}

/// Reads PID 1's report: the step that failed and the error; `None`: the report is empty, so all steps succeeded.
pub(super) fn decode_report(message: &[u8]) -> Option<(Step, Errno)> {
    let (&step, errno) = message.split_first()?;
    let step = Step::ALL
        .get(usize::from(step))
        .copied()
        .unwrap_or(Step::Namespaces);
    let errno = errno
        .try_into()
        .map(i32::from_le_bytes)
        .map_or(Errno::UnknownErrno, Errno::from_raw);
    Some((step, errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_round_trip() {
        for step in Step::ALL {
            assert_eq!(
                decode_report(&encode_report(step, Errno::EPERM)),
                Some((step, Errno::EPERM))
            );
        }
        assert_eq!(decode_report(&[]), None);
        assert_eq!(
            decode_report(&[200]),
            Some((Step::Namespaces, Errno::UnknownErrno))
        );
    }
}
