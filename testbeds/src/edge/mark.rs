//! Marks taken interfaces by a name that the kernel gives to one process at a time, and frees when that process ends.

use std::io;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::EdgeError;

/// A mark that an interface is taken; it lasts as long as this value, or a process that has inherited it.
///
/// An abstract socket: its name belongs to the network namespace, as the interface's index does, and no file is left behind.
#[derive(Debug)]
pub struct Mark(UnixDatagram);

impl Mark {
    /// Marks an interface of the calling thread's namespace. Call it before reading the interface's state: another weir
    /// that has taken the interface has changed its state.
    pub fn set(interface: &str, index: u32) -> Result<Mark, EdgeError> {
        let bound = SocketAddr::from_abstract_name(format!("weir/interface/{index}"))
            .and_then(|name| UnixDatagram::bind_addr(&name));
        bound.map(Mark).map_err(|source| {
            let interface = interface.to_owned();
            match source.kind() {
                io::ErrorKind::AddrInUse => EdgeError::Taken { interface },
                _ => EdgeError::Mark { interface, source },
            }
        })
    }

    /// Runs `start`, which starts one process that inherits the marks until its end. Meanwhile no other process may be started.
    pub(super) fn inherited<T>(
        marks: &[Mark],
        start: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let set = |flags| {
            let mut each = marks.iter();
            each.try_for_each(|mark| fcntl(mark.0.as_fd(), FcntlArg::F_SETFD(flags)).map(drop))
        };
        set(FdFlag::empty())?;
        let started = start();
        set(FdFlag::FD_CLOEXEC)?;
        started
    }
}
