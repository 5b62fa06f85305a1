//! State of an Ethernet interface. Protocols recover frames lost in a full queue, but a link that passes no frame is reported.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::socket::ETHERNET_HEADER;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Reason why no frame passes an interface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkFault {
    /// The interface of this name was removed, and perhaps created again: sockets opened before stay dead.
    #[error("the interface {0} no longer exists")]
    Gone(String),
    /// The interface of this name is down, and may come up again.
    #[error("the interface {0} is down")]
    Down(String),
    /// The interface of this name has no carrier: cable or peer is missing.
    #[error(
        "the interface {0} has no carrier: check the cable, and whether the peer's interface is up"
    )]
    NoCarrier(String),
}

impl LinkFault {
    /// Whether the interface may work again by itself.
    pub fn may_pass(&self) -> bool {
        !matches!(self, LinkFault::Gone(_))
    }
}

/// An Ethernet interface of the network namespace in which this value was created.
#[derive(Debug)]
pub struct Link {
    name: String,
    index: i32,
    /// A socket for queries: it stays in the namespace of its creation, whichever thread uses it.
    socket: OwnedFd,
}

impl Link {
    /// Finds the interface with this name.
    pub fn from_name(name: &str) -> io::Result<Link> {
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
        link.index = link.ask_index()?;
        Ok(link)
    }

    /// The interface's name when this value was created.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface's index.
    pub fn index(&self) -> u32 {
        // Indices are positive (netdevice(7)).
        self.index.unsigned_abs()
    }

    /// The interface's MTU in bytes, also after it was renamed. (/sys shows the interfaces of the namespace in which it was
    /// mounted.)
    pub fn mtu(&self) -> io::Result<u32> {
        // The kernel finds an MTU by the name that the interface has now.
        let mut request = empty();
        request.ifr_ifru.ifru_ifindex = self.index;
        let named = self.query(libc::SIOCGIFNAME, request)?;
        let mut request = empty();
        request.ifr_name = named.ifr_name;
        let told = self.query(libc::SIOCGIFMTU, request)?;
        // SAFETY: the union's integers may hold any bits.
        let mtu = unsafe { told.ifr_ifru.ifru_mtu };
        Ok(mtu.max(0) as u32)
    }

    /// Length of the longest frame that the interface sends, in bytes without VLAN tags.
    pub(crate) fn longest_frame(&self) -> io::Result<usize> {
        Ok(ETHERNET_HEADER + self.mtu()? as usize)
    }

    /// The current fault of the interface; `None` if frames can pass.
    pub fn fault(&self) -> Option<LinkFault> {
        let name = || self.name.clone();
        let gone = Some(LinkFault::Gone(name()));
        if self.ask_index().ok() != Some(self.index) {
            return gone;
        }
        let Ok(told) = self.ask(libc::SIOCGIFFLAGS) else {
            return gone;
        };
        // SAFETY: as above.
        let flags = libc::c_int::from(unsafe { told.ifr_ifru.ifru_flags });
        if flags & libc::IFF_UP == 0 {
            return Some(LinkFault::Down(name()));
        }
        (flags & libc::IFF_RUNNING == 0).then(|| LinkFault::NoCarrier(name()))
    }

    fn ask_index(&self) -> io::Result<i32> {
        let told = self.ask(libc::SIOCGIFINDEX)?;
        // SAFETY: the union's integers may hold any bits.
        Ok(unsafe { told.ifr_ifru.ifru_ifindex })
    }

    fn ask(&self, what: libc::c_ulong) -> io::Result<libc::ifreq> {
        let mut request = empty();
        // The last byte stays zero.
        if self.name.len() >= request.ifr_name.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(self.name.bytes()) {
            *to = from as libc::c_char;
        }
        self.query(what, request)
    }

    fn query(&self, what: libc::c_ulong, mut request: libc::ifreq) -> io::Result<libc::ifreq> {
        // SAFETY: the kernel reads and writes an ifreq, which `request` is.
        let asked = unsafe { libc::ioctl(self.socket.as_raw_fd(), what as _, &raw mut request) };
        Errno::result(asked)?;
        Ok(request)
    }
}

fn empty() -> libc::ifreq {
    // SAFETY: all fields are integers and arrays of integers, for which zero is a valid value.
    unsafe { std::mem::zeroed() }
}
