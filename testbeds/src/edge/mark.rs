//! Which interfaces are taken: a name that the kernel gives to one at a time, and takes back from whoever ends.

use std::io;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::EdgeError;

/// One interface is taken, as long as this, or whoever has inherited it, is there.
///
/// An abstract socket: its name belongs to the network namespace, as the interface's index does, and no file is left behind.
#[derive(Debug)]
pub struct Mark(UnixDatagram);

impl Mark {
    /// Takes an interface of the calling thread's namespace; to be done before it is looked at, since whoever else has taken it
    /// has changed it.
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

    /// Runs `start`, which starts one process; that holds the marks, too, to its end. Nobody else is to start one meanwhile.
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
