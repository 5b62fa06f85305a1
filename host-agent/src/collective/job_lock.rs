//! Lock of a job on an interface of a host: two ranks of the job at one interface would corrupt each other's chunks, and the
//! switch cannot distinguish them.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, socket,
};

/// The lock of a job's rank on an interface in this network namespace, held as long as this value lives: an abstract Unix
/// socket with a derived name, which disappears with its process.
#[derive(Debug)]
pub struct JobLock {
    socket: OwnedFd,
}

/// Reason why the lock of a job was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobLockError {
    /// Another process has a rank of the job at this interface.
    #[error(
        "job {job} already has a rank on {interface}{}: a second rank would corrupt its sums; end that rank, or use another job", by(*.process)
    )]
    Taken {
        /// Number of the job.
        job: u16,
        /// Name of the interface.
        interface: String,
        /// Number of the process that holds the lock; `None` if this process cannot see it.
        process: Option<i32>,
    },
    /// The system refused to create the lock's socket.
    #[error("cannot lock job {job} on {interface}: {}", .errno.desc())]
    Refused {
        /// Number of the job.
        job: u16,
        /// Name of the interface.
        interface: String,
        /// The error of the system.
        errno: Errno,
    },
}

fn by(process: Option<i32>) -> String {
    process.map_or_else(String::new, |id| format!(" (process {id})"))
}

impl JobLock {
    /// Descriptor of the socket that is the lock.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Takes the lock of a job on an interface; an error if another process holds it.
    pub fn take(interface: &str, job: u16) -> Result<JobLock, JobLockError> {
        let interface = || interface.to_owned();
        bound(&name(&interface(), job)).map_err(|errno| match errno {
            Errno::EADDRINUSE => JobLockError::Taken {
                job,
                interface: interface(),
                process: holder(&name(&interface(), job)),
            },
            errno => JobLockError::Refused {
                job,
                interface: interface(),
                errno,
            },
        })
    }
}

fn name(interface: &str, job: u16) -> String {
    format!("weir rank of job {job} on {interface}")
}

fn stream() -> Result<OwnedFd, Errno> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(AddressFamily::Unix, SockType::Stream, flags, None)
}

fn bound(name: &str) -> Result<JobLock, Errno> {
    let socket = stream()?;
    bind(
        socket.as_raw_fd(),
        &UnixAddr::new_abstract(name.as_bytes())?,
    )?;
    // Connections are never accepted: a client only reads the listener's process number, and a full queue hides it.
    listen(&socket, Backlog::MAXCONN)?;
    Ok(JobLock { socket })
}

fn holder(name: &str) -> Option<i32> {
    let socket = stream().ok()?;
    let address = UnixAddr::new_abstract(name.as_bytes()).ok()?;
    connect(socket.as_raw_fd(), &address).ok()?;
    let id = getsockopt(&socket, PeerCredentials).ok()?.pid();
    // The process is in another PID namespace.
    (id != 0).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_one_rank_on_an_interface() {
        let own = std::process::id() as i32;
        let held = JobLock::take("place0", 7).unwrap();
        for _ in 0..5 {
            let refused = JobLock::take("place0", 7).unwrap_err();
            let told = format!("job 7 already has a rank on place0 (process {own}): a second rank");
            assert!(refused.to_string().starts_with(&told), "{refused}");
        }
        let _other = JobLock::take("place0", 8).unwrap();
        let _elsewhere = JobLock::take("place1", 7).unwrap();
        drop(held);
        JobLock::take("place0", 7).unwrap();
    }
}
