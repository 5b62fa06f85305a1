//! Requests to network interfaces by ioctl(2), in the namespace of the calling thread. The sandbox brings its loopback
//! interface up this way, before netlink can run.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Brings the loopback interface of the current namespace up.
pub fn loopback_up() -> io::Result<()> {
    let socket = control_socket()?;
    let mut request = interface_request("lo")?;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads the name and the flags of an ifreq, both set.
    let result = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw mut request,
        )
    };
    Errno::result(result)?;
    Ok(())
}

/// Opens a socket for ioctl requests to interfaces.
pub fn control_socket() -> io::Result<OwnedFd> {
    Ok(socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?)
}

/// The argument structure of an ioctl request to the interface `name`, with only the name filled in.
pub fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: ifreq is plain data, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays zero, as the end.
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}
