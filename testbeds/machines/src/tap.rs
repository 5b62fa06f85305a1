//! Creates tap interfaces: the test receives the frames that a virtual machine sends at one.
#![allow(unsafe_code)]

use nix::errno::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

nix::ioctl_write_int!(set_interface, b'T', 202);

/// Makes a tap interface in the network namespace of the calling thread, up, without IPv6, for packets of up to `mtu`
/// bytes. The kernel removes the interface when all processes that have the returned file have closed it.
pub(crate) fn open(name: &str, mtu: u16) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    // SAFETY: all zeroes are a valid value of this structure of numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte fewer, as a zero byte ends the name.
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    let request: *const libc::ifreq = &raw const request;
    // SAFETY: TUNSETIFF reads a structure of this type at that address, which outlives the call.
    unsafe { set_interface(file.as_raw_fd(), request as libc::c_ulong) }?;
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    let output = Command::new("ip")
        .args(["link", "set", name, "mtu", &mtu.to_string(), "up"])
        .output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(message));
    }
    Ok(file)
}

/// The error that creating a tap interface in this thread gives; `None` if it works.
pub(crate) fn refusal() -> Option<Errno> {
    match open("weir-tap-test", 1500) {
        Ok(_) => None,
        Err(error) => Some(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)),
    }
}
