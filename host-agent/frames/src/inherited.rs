//! Takes over sockets that this process inherited from its parent.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Takes the socket inherited under this number, which no other part of this process may own; programs started by this
/// process do not inherit it. Returns an error if it is not open, or is a standard stream.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // 0 to 2 are the standard streams.
    if number < 3 {
        return Err(Errno::EBADF.into());
    }
    // SAFETY: an inherited descriptor has no other owner in this process; that it is open is checked next, before anything
    // else is done with it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    if let Err(errno) = fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)) {
        // Not open, so not ours to close.
        std::mem::forget(socket);
        return Err(errno.into());
    }
    Ok(socket)
}
