//! The daemon that serves ranks to other processes: start, admission of clients, and shutdown.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept4, bind, connect, getsockopt,
    listen, socket,
};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Group, User, chown};

use super::message::Answer;
use super::session::{self, Environment, OPERATIONS};
use super::socket::{Socket, send};
use crate::collective::Failure;
use crate::frames::{Io, open_interface};

/// `weir-agent serve`
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ServeArgs {
    /// Path of the Unix socket that processes connect to (`WEIR_AGENT`).
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
    /// An interface for ranks; may be repeated. A client that names no interface gets the first.
    #[arg(long = "iface", required = true, value_name = "NAME")]
    pub interfaces: Vec<String>,
    /// Packet I/O: auto, bundles, rings, calls or pnet.
    #[arg(long, default_value_t = Io::Auto, value_name = "WAY")]
    pub io: Io,
    /// Permissions of the socket, which decide who may connect.
    #[arg(long, default_value = "660", value_name = "OCTAL", value_parser = mode)]
    pub mode: u32,
    /// Owner of the socket, such as root:training; without, the user and group of this process.
    #[arg(long, value_name = "USER[:GROUP]|:GROUP")]
    pub owner: Option<String>,
    /// Maximum number of connected processes.
    #[arg(long, default_value_t = 64, value_name = "NUMBER")]
    pub clients: usize,
    /// Maximum size of the values that each of them may have in flight, in MiB.
    #[arg(long, default_value_t = 1_024, value_name = "MIB")]
    pub memory: u64,
}

fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| format!("`{text}` is not a mode: use one such as 660 or 600"))
}

/// Reason why the daemon cannot run.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// An interface to be served cannot be opened.
    #[error("cannot open the interface {interface}: {source}")]
    Interface {
        /// Name of the interface.
        interface: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The Unix socket cannot be created.
    #[error("cannot listen at {}: {source}", .path.display())]
    Listen {
        /// Path of the socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The user or group that should own the socket does not exist.
    #[error("`{0}` is not an owner: use one such as root, root:training or :training")]
    Owner(String),
    /// The limit on open files is too low, since each operation in flight needs an open file.
    #[error(
        "--clients {clients} needs at least {needed} open files, and the limit is {limit} (ulimit -Hn): use fewer --clients"
    )]
    Files {
        /// Maximum number of clients.
        clients: usize,
        /// Required number of open files.
        needed: u64,
        /// The limit of this process.
        limit: u64,
    },
    /// Any other system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for DaemonError {
    fn from(errno: Errno) -> DaemonError {
        DaemonError::Io(errno.into())
    }
}

/// Serves until SIGTERM or SIGINT; calls `ready` once clients can connect. It must be called before another thread exists,
/// since this thread takes the signals.
///
/// The ranks end with the process, and the clients' connections close.
pub fn serve(args: &ServeArgs, ready: impl FnOnce() -> io::Result<()>) -> Result<(), DaemonError> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    signals.thread_block()?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
    for interface in &args.interfaces {
        // Report a missing interface now, and not to the first client that joins.
        open_interface(interface, args.io).map_err(|source| DaemonError::Interface {
            interface: interface.clone(),
            source,
        })?;
    }
    let owner = args.owner.as_deref().map(owner).transpose()?;
    let operations = operations(raise_files()?, args.clients)?;
    let listener = Listener::bind(&args.socket, args.mode, owner)?;
    let env = Arc::new(Environment {
        interfaces: args.interfaces.clone(),
        io: args.io,
        memory: args.memory.saturating_mul(1 << 20),
        operations,
    });
    ready()?;
    let connected = Arc::new(AtomicUsize::new(0));
    loop {
        let mut sources =
            [listener.socket.as_fd(), signals.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut sources, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
            Ok(_) if sources[1].any() == Some(true) => return Ok(()),
            Ok(_) => {}
        }
        let flags = SockFlag::SOCK_CLOEXEC;
        let Ok(fd) = accept4(listener.socket.as_raw_fd(), flags) else {
            // The client has disconnected, or there are no free descriptors at the moment.
            std::thread::sleep(std::time::Duration::from_millis(10));
            continue;
        };
        admit(owned(fd), &env, &connected, args.clients);
    }
}

/// Number of open files of the daemon itself, and of each session without its operations: Unix socket, sockets for frames,
/// wake-up descriptor of the thread, and a message's memory.
const OWN_FILES: u64 = 64;
const FILES_OF_SESSION: u64 = 8;
/// Minimum number of operations in flight that a client needs to make progress.
const LEAST_OPERATIONS: u64 = 4;

/// Maximum number of operations in flight per session: each holds its memory open as a file, and no session may exhaust the
/// files of other sessions.
fn operations(files: u64, clients: usize) -> Result<u64, DaemonError> {
    let clients_files = (clients as u64).max(1);
    let needed =
        OWN_FILES.saturating_add(clients_files.saturating_mul(FILES_OF_SESSION + LEAST_OPERATIONS));
    if files < needed {
        return Err(DaemonError::Files {
            clients,
            needed,
            limit: files,
        });
    }
    Ok(((files - OWN_FILES) / clients_files - FILES_OF_SESSION).min(OPERATIONS))
}

/// Raises this process's limit on open files to its hard limit, and returns the hard limit.
#[allow(unsafe_code)]
fn raise_files() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls read or write one rlimit, which is ours.
    unsafe {
        Errno::result(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        limit.rlim_cur = limit.rlim_max;
        Errno::result(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit))?;
    }
    Ok(limit.rlim_cur)
}

/// Takes ownership of a descriptor that the kernel has just created.
#[allow(unsafe_code)]
fn owned(fd: std::os::fd::RawFd) -> OwnedFd {
    use std::os::fd::FromRawFd;
    // SAFETY: accept4(2) created the descriptor, and nothing else uses it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Starts a session thread for a client, if the limit on clients allows it.
fn admit(client: OwnedFd, env: &Arc<Environment>, connected: &Arc<AtomicUsize>, limit: usize) {
    let who = getsockopt(&client, PeerCredentials);
    let who = who.map_or_else(
        |_| "a process".to_owned(),
        |who| format!("process {} of user {}", who.pid(), who.uid()),
    );
    let told = move |what: &str| eprintln!("weir-agent: {who} {what}");
    if connected.fetch_add(1, Ordering::Relaxed) >= limit {
        connected.fetch_sub(1, Ordering::Relaxed);
        told("exceeds the limit of clients");
        let text = format!("{limit} processes are connected, which is the limit (--clients)");
        let kind = Failure::Refused;
        let _ = send(client.as_fd(), &Answer::No { kind, text }, None);
        return;
    }
    let env = Arc::clone(env);
    let seat = Seat(Arc::clone(connected));
    let thread = std::thread::Builder::new().name("weir session".to_owned());
    // If no thread can be created, the seat becomes free with the dropped closure.
    let _ = thread.spawn(move || {
        // Dropped last: a client that waits for the end may reconnect at once.
        let socket = Socket::new(client);
        let _seat = seat;
        match session::run(&socket, &env, &told) {
            Ok(()) => told("has left"),
            Err(error) => told(&format!("has left: {error}")),
        }
    });
}

/// The count of one connected client, which is released when its session ends for any reason.
struct Seat(Arc<AtomicUsize>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Parses the owner of the socket: `USER`, `USER:GROUP` or `:GROUP`. In the result, `None` stands for a missing user or group.
fn owner(text: &str) -> Result<(Option<User>, Option<Group>), DaemonError> {
    let wrong = || DaemonError::Owner(text.to_owned());
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    if user.is_empty() && group.is_empty() {
        return Err(wrong());
    }
    let user = match user {
        "" => None,
        name => Some(User::from_name(name)?.ok_or_else(wrong)?),
    };
    let group = match group {
        "" => None,
        name => Some(Group::from_name(name)?.ok_or_else(wrong)?),
    };
    Ok((user, group))
}

/// The listening Unix socket, whose file is removed when this value is dropped.
struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Listener {
    fn bind(
        path: &Path,
        mode: u32,
        owner: Option<(Option<User>, Option<Group>)>,
    ) -> Result<Listener, DaemonError> {
        let failed = |errno: Errno| DaemonError::Listen {
            path: path.to_owned(),
            source: errno.into(),
        };
        let open = || {
            socket(
                AddressFamily::Unix,
                SockType::SeqPacket,
                SockFlag::SOCK_CLOEXEC,
                None,
            )
        };
        let address = UnixAddr::new(path).map_err(failed)?;
        // A killed process has left its socket behind, without a listener.
        let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
        if is_socket && connect(open()?.as_raw_fd(), &address) == Err(Errno::ECONNREFUSED) {
            fs::remove_file(path)?;
        }
        let socket = open()?;
        // Nobody may connect before the socket has its owner and mode. There is no other thread yet.
        let before = umask(Mode::from_bits_truncate(0o777));
        let bound = bind(socket.as_raw_fd(), &address);
        umask(before);
        bound.map_err(failed)?;
        let listener = Listener {
            socket,
            path: path.to_owned(),
        };
        if let Some((user, group)) = owner {
            let path = CString::new(path.as_os_str().as_encoded_bytes())
                .map_err(|_| failed(Errno::EINVAL))?;
            let (user, group) = (user.map(|user| user.uid), group.map(|group| group.gid));
            chown(path.as_c_str(), user, group).map_err(failed)?;
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        listen(&listener.socket, Backlog::new(16)?).map_err(failed)?;
        Ok(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_owners_are_read() {
        assert_eq!(mode("660"), Ok(0o660));
        for wrong in ["", "rw", "668", "7777"] {
            assert!(mode(wrong).is_err(), "{wrong}");
        }
        let (user, group) = owner("root").unwrap();
        assert_eq!((user.unwrap().uid.as_raw(), group), (0, None));
        assert!(owner(":root").unwrap().0.is_none());
        for wrong in ["", ":", "nobody-of-that-name", "root:nobody-of-that-name"] {
            assert!(
                matches!(owner(wrong), Err(DaemonError::Owner(_))),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_limits_leave_open_files_for_every_client() {
        assert_eq!(operations(1 << 20, 64).unwrap(), OPERATIONS);
        let few = operations(1_024, 64).unwrap();
        assert!(
            few >= LEAST_OPERATIONS && OWN_FILES + 64 * (few + FILES_OF_SESSION) <= 1_024,
            "{few}"
        );
        for clients in [100, usize::MAX] {
            let told = operations(1_024, clients).unwrap_err().to_string();
            assert!(told.contains("the limit is 1024"), "{told}");
        }
    }
}
