//! A packet socket (packet(7)) of one interface. Each packet that it receives or sends has a virtio header before it.
#![allow(unsafe_code)]

use crate::bundle::Offload;
use crate::udp_filter::filter_udp;
use nix::sys::socket::{MsgFlags, sendmsg};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Requested size of a socket's buffer in bytes, with or without a ring. If the system grants less, that suffices.
const SOCKET_BUFFER: libc::c_int = 16 << 20;

/// Length of the Ethernet header in bytes, the shortest frame without padding.
pub(crate) const ETHERNET_HEADER: usize = 14;

/// Which frames of an interface a socket receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hears {
    /// All frames that reach the interface, which is then promiscuous.
    #[default]
    Everything,
    /// Whole IPv4 datagrams to this UDP port, addressed to the host or to any multicast group, and ICMP messages about
    /// them: the kernel filters out the rest.
    Udp(u16),
}

/// An AF_PACKET socket for one interface. Nothing is received before [`PacketSocket::bind`].
pub(crate) struct PacketSocket {
    pub(crate) fd: OwnedFd,
    index: libc::c_int,
}

impl PacketSocket {
    /// Opens a socket for an interface of this network namespace.
    pub(crate) fn open(interface: &str) -> io::Result<Self> {
        let index = nix::net::if_::if_nametoindex(interface)? as libc::c_int;
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; a result that is not -1 is a descriptor without another owner.
        let fd = unsafe {
            // Protocol 0: nothing is received until the socket is bound to its interface.
            let fd = libc::socket(libc::AF_PACKET, kind, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let socket = Self { fd, index };
        // Frames sent by this host are not received (Linux 4.20).
        socket.set(libc::PACKET_IGNORE_OUTGOING, &1)?;
        socket.set(libc::PACKET_VNET_HDR, &1)?;
        for (forced, plain) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            // Larger buffers only save frames in a burst.
            if socket
                .set_at(libc::SOL_SOCKET, forced, &SOCKET_BUFFER)
                .is_err()
            {
                socket.set_at(libc::SOL_SOCKET, plain, &SOCKET_BUFFER)?;
            }
        }
        Ok(socket)
    }

    /// A socket of another kind in place of a packet socket.
    #[cfg(test)]
    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Self { fd, index: 0 }
    }

    /// Binds the socket to its interface; from then on it receives the frames that `hears` selects.
    pub(crate) fn bind(&self, hears: Hears) -> io::Result<()> {
        if let Hears::Udp(port) = hears {
            filter_udp(&self.fd, port)?;
        }
        // SAFETY: plain data, for which all zeros is a value.
        let mut membership: libc::packet_mreq = unsafe { zeroed() };
        membership.mr_ifindex = self.index;
        let kind = match hears {
            Hears::Everything => libc::PACKET_MR_PROMISC,
            Hears::Udp(_) => libc::PACKET_MR_ALLMULTI,
        };
        membership.mr_type = kind as libc::c_ushort;
        self.set_at(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        // SAFETY: plain data, for which all zeros is a value.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = self.index;
        // SAFETY: the address outlives the call and has the length that is passed.
        let bound = unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        result(bound).map(drop)
    }

    /// Sets an option of packet(7) for the socket.
    pub(crate) fn set(&self, option: libc::c_int, value: &libc::c_int) -> io::Result<()> {
        self.set_at(libc::SOL_PACKET, option, value)
    }

    /// Sets a socket option of the protocol level `level`.
    pub(crate) fn set_at<T>(
        &self,
        level: libc::c_int,
        option: libc::c_int,
        value: &T,
    ) -> io::Result<()> {
        // SAFETY: the value outlives the call and has the length that is passed; the kernel only reads it.
        let set = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                (value as *const T).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        result(set).map(drop)
    }

    /// Reads a socket option of the protocol level `level`.
    ///
    /// # Safety
    /// Any bytes are a value of `T`, as of integers and structures of them.
    unsafe fn ask<T>(
        &self,
        level: libc::c_int,
        option: libc::c_int,
        value: &mut T,
    ) -> io::Result<()> {
        let mut length = size_of_val(value) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which is the value's size.
        let asked = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                (&raw mut *value).cast(),
                &raw mut length,
            )
        };
        result(asked).map(drop)
    }

    /// Number of received frames lost for lack of buffer space since the last call, which resets the kernel's count.
    pub(crate) fn overflow(&self) -> u64 {
        // SAFETY: plain data, for which all zeros is a value.
        let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
        // SAFETY: a structure of integers.
        unsafe { self.ask(libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut statistics) }
            .map_or(0, |()| statistics.tp_drops.into())
    }

    /// Returns and clears the socket's error, which makes it readable without a frame (the interface went down).
    pub(crate) fn take_error(&self) -> io::Result<()> {
        let mut error: libc::c_int = 0;
        // SAFETY: an integer.
        unsafe { self.ask(libc::SOL_SOCKET, libc::SO_ERROR, &mut error) }?;
        match error {
            0 | libc::ENETDOWN => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Reads a packet that waits beside the ring to the buffer, with its virtio header; `None`: it does not fit, or none waits.
    pub(crate) fn receive<'a>(
        &self,
        buffer: &'a mut [u8],
    ) -> io::Result<Option<(Offload, &'a mut [u8])>> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        loop {
            // SAFETY: the buffer outlives the call and has the length that is passed.
            let received = unsafe {
                libc::recv(
                    self.fd.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    flags,
                )
            };
            if let Ok(received) = usize::try_from(received) {
                let whole = buffer.get_mut(..received);
                let parts = whole.and_then(|whole| whole.split_first_chunk_mut());
                return Ok(parts.map(|(header, packet)| (Offload::from_bytes(*header), packet)));
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EAGAIN) => return Ok(None),
                // Reading the error has cleared it; the packet is still queued.
                Some(libc::EINTR | libc::ENETDOWN) => {}
                _ => return Err(error),
            }
        }
    }

    /// Sends a frame.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        let header = [0u8; Offload::LEN];
        let parts = [io::IoSlice::new(&header), io::IoSlice::new(frame)];
        let flags = MsgFlags::MSG_DONTWAIT;
        sendmsg::<()>(self.fd.as_raw_fd(), &parts, &[], flags, None)?;
        Ok(())
    }

    /// Number of bytes of kernel memory that hold sent packets which have not left the interface (`SIOCOUTQ`).
    pub(crate) fn unsent_bytes(&self) -> usize {
        let mut bytes: libc::c_int = 0;
        // SAFETY: this request writes an int, which outlives the call.
        let asked = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
        match asked {
            0 => usize::try_from(bytes).unwrap_or(0),
            _ => 0,
        }
    }
}

fn result(value: libc::c_int) -> io::Result<libc::c_int> {
    if value < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(value)
    }
}
