//! Whether an interface is there and works: what a full queue loses is mended, and what no frame passes any more is told.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Why no frame passes an interface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkFault {
    /// It was taken away, and perhaps made anew: what was opened stays closed.
    #[error("the interface {0} is gone")]
    Gone(String),
    /// It is switched off, and may come back.
    #[error("the interface {0} is down")]
    Down(String),
    /// Nobody is at the other end.
    #[error("the interface {0} has no carrier: its other end is down, or no cable is in it")]
    NoCarrier(String),
}

impl LinkFault {
    /// Whether it may work again.
    pub fn may_pass(&self) -> bool {
        !matches!(self, LinkFault::Gone(_))
    }
}

/// An interface of the network namespace in which this was made.
#[derive(Debug)]
pub struct Link {
    name: String,
    index: i32,
    /// Any socket: the namespace is the one that it was made in, whichever thread asks.
    socket: OwnedFd,
}

impl Link {
    /// That of a name.
    pub fn of(name: &str) -> io::Result<Link> {
        let socket = socket(
            AddressFamily::Unix,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        let mut link = Link {
            name: name.to_owned(),
            index: 0,
            socket,
        };
        // SAFETY: the union's integers may hold any bits.
        link.index = unsafe {
            link.ask(libc::SIOCGIFINDEX as libc::Ioctl)?
                .ifr_ifru
                .ifru_ifindex
        };
        Ok(link)
    }

    /// What is wrong with it now.
    pub fn fault(&self) -> Option<LinkFault> {
        let name = || self.name.clone();
        let gone = Some(LinkFault::Gone(name()));
        // SAFETY: the union's integers may hold any bits.
        let index = self
            .ask(libc::SIOCGIFINDEX as libc::Ioctl)
            .map(|told| unsafe { told.ifr_ifru.ifru_ifindex });
        if index.ok() != Some(self.index) {
            return gone;
        }
        let Ok(told) = self.ask(libc::SIOCGIFFLAGS as libc::Ioctl) else {
            return gone;
        };
        // SAFETY: as above.
        let flags = libc::c_int::from(unsafe { told.ifr_ifru.ifru_flags });
        if flags & libc::IFF_UP == 0 {
            return Some(LinkFault::Down(name()));
        }
        (flags & libc::IFF_RUNNING == 0).then(|| LinkFault::NoCarrier(name()))
    }

    fn ask(&self, what: libc::Ioctl) -> io::Result<libc::ifreq> {
        // SAFETY: all of it is integers and arrays of them, for which zeros are a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays zero.
        let room = request.ifr_name.len() - 1;
        for (to, from) in request.ifr_name[..room].iter_mut().zip(self.name.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: the kernel reads and writes an ifreq, which `request` is.
        Errno::result(unsafe { libc::ioctl(self.socket.as_raw_fd(), what, &raw mut request) })?;
        Ok(request)
    }
}
