//! Frames over an Ethernet interface: pnet's datalink channel on an AF_PACKET socket that we configure.
#![allow(unsafe_code)]

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockopt, setsockopt, socket, sockopt,
};
use pnet::datalink::{self, Channel, DataLinkReceiver, DataLinkSender};

use crate::{FRAME_LIMIT, Frames, Link, LinkFault, wait_readable};

/// Requested size of the receive buffer in bytes; without privilege, net.core.rmem_max limits it.
const RECEIVE_BUFFER: usize = 16 << 20;

/// An Ethernet interface, whose frames pass through pnet.
pub struct EthernetFrames {
    sender: Box<dyn DataLinkSender>,
    receiver: Box<dyn DataLinkReceiver>,
    /// A duplicate of pnet's socket, to wait for frames: pnet's own timeout is fixed when the channel is opened.
    socket: OwnedFd,
    /// File descriptor number of pnet's own socket.
    owned: RawFd,
    link: Link,
    unsent: u64,
    quiet: Quiet,
}

impl EthernetFrames {
    /// Opens an interface of the current network namespace, for UDP frames with this destination port.
    pub fn open(interface: &str, udp_port: u16) -> io::Result<EthernetFrames> {
        let interface = datalink::interfaces()
            .into_iter()
            .find(|found| found.name == interface)
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::NotFound,
                    format!("no interface is named {interface}"),
                )
            })?;
        let link = Link::from_name(&interface.name)?;
        let socket = packet_socket()?;
        rings::filter_udp(&socket, udp_port)?;
        let waiting = socket.try_clone()?;
        let owned = socket.into_raw_fd();
        let config = datalink::Config {
            read_buffer_size: FRAME_LIMIT,
            // pnet only polls for a frame; `receive` does the waiting.
            read_timeout: Some(Duration::ZERO),
            promiscuous: false,
            // pnet closes the descriptor, also on failure.
            socket_fd: Some(owned),
            ..datalink::Config::default()
        };
        let Channel::Ethernet(sender, receiver) = datalink::channel(&interface, config)? else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        Ok(EthernetFrames {
            sender,
            receiver,
            socket: waiting,
            owned,
            link,
            unsent: 0,
            quiet: quiet(udp_port),
        })
    }

    /// Takes a frame that has arrived; `None` if no frame has.
    fn take(&mut self) -> io::Result<Option<&[u8]>> {
        match self.receiver.next() {
            Ok(frame) => Ok(Some(frame)),
            Err(error) if is_passing(&error) => Ok(None),
            // pnet reports an error without its kind; reading SO_ERROR gives the kind and clears the error.
            Err(error) => match getsockopt(&self.socket, sockopt::SocketError) {
                Ok(number) if is_passing(&io::Error::from_raw_os_error(number)) => Ok(None),
                _ => Err(error),
            },
        }
    }
}

impl AsFd for EthernetFrames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Frames for EthernetFrames {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match self.sender.send_to(frame, None) {
            Some(Err(error)) if is_passing(&error) => {
                self.unsent += 1;
                Ok(())
            }
            Some(Err(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn receive(&mut self, timeout: Duration) -> io::Result<Option<&[u8]>> {
        // pnet polls before it reads, as a caller that never waits needs. A caller that waits needs only the one poll here.
        if !timeout.is_zero() && !wait_readable([self.socket.as_fd()], timeout)? {
            return Ok(None);
        }
        self.take()
    }

    fn overflow(&mut self) -> Option<u64> {
        dropped(&self.socket)
    }

    fn unsent(&self) -> u64 {
        self.unsent
    }

    fn fault(&self) -> Option<LinkFault> {
        self.link.fault()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let sockets = [self.socket.as_raw_fd(), self.owned];
        sockets.into_iter().chain(self.quiet.descriptor()).collect()
    }
}

/// Number of frames that the packet socket dropped since the last call because its buffer was full; `None` if unknown.
fn dropped(socket: &OwnedFd) -> Option<u64> {
    let mut statistics = libc::tpacket_stats {
        tp_packets: 0,
        tp_drops: 0,
    };
    let mut length = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which is the size of `statistics`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut length,
        )
    };
    Errno::result(result)
        .is_ok()
        .then(|| statistics.tp_drops.into())
}

/// Keeps the kernel from answering received frames with "port unreachable", by a bound UDP socket that nobody reads.
pub(crate) struct Quiet {
    port: Option<OwnedFd>,
}

impl Quiet {
    /// Descriptor of the bound UDP socket; `None` if the bind failed.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        self.port.as_ref().map(AsRawFd::as_raw_fd)
    }
}

/// Keeps the kernel from answering frames to this UDP port in the current network namespace.
pub(crate) fn quiet(udp_port: u16) -> Quiet {
    // The bind fails if another process holds the port exclusively; then the kernel does not answer either.
    let port = shared_port(udp_port).ok();
    Quiet { port }
}

/// Binds a UDP port with address reuse, so that it stays bound until the last process of this host closes it.
fn shared_port(udp_port: u16) -> nix::Result<OwnedFd> {
    let port = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    setsockopt(&port, sockopt::ReuseAddr, &true)?;
    setsockopt(&port, sockopt::RcvBuf, &0)?;
    let anywhere = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, udp_port));
    bind(port.as_raw_fd(), &anywhere)?;
    Ok(port)
}

/// Whether the link error may pass by itself: the link is full or down. [`Link`] has the details.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    let of_link = [libc::ENOBUFS, libc::ENETDOWN, libc::ENXIO, libc::ENODEV];
    matches!(error.kind(), TimedOut | WouldBlock | Interrupted)
        || error
            .raw_os_error()
            .is_some_and(|error| of_link.contains(&error))
}

/// Opens a packet socket without binding it, so that nothing arrives before pnet binds it.
fn packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: socket(2) takes no pointers.
    let number = Errno::result(unsafe {
        libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0)
    })?;
    // SAFETY: the descriptor was just created, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    let yes: libc::c_int = 1;
    // SAFETY: the kernel reads an int from a reference to one.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            (&raw const yes).cast(),
            size_of_val(&yes) as libc::socklen_t,
        )
    };
    // Kernels before 4.20 lack this option; there our own frames come back, and are dropped by their destination address.
    let _ = Errno::result(result);
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER)?;
    }
    Ok(socket)
}
