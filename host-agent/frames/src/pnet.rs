//! An interface through pnet's datalink channel, on an AF_PACKET socket that we configure. The portable way: frames pass one by
//! one, and bundles are lost.
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

use crate::{Frames, Hears, Link, LinkFault, MAX_FRAME, Received, Sink, filter_udp};

/// Requested size of the receive buffer in bytes; without privilege, net.core.rmem_max limits it.
const RECEIVE_BUFFER: usize = 16 << 20;

/// An Ethernet interface, whose frames pass through pnet.
pub struct PnetFrames {
    name: String,
    sender: Box<dyn DataLinkSender>,
    receiver: Box<dyn DataLinkReceiver>,
    /// A duplicate of pnet's socket, to wait for frames: pnet's own timeout is fixed when the channel is opened.
    socket: OwnedFd,
    /// File descriptor number of pnet's own socket.
    owned: RawFd,
    link: Link,
    /// Length of the longest frame that the interface takes, with VLAN tags, when that was last read.
    longest: usize,
    has_warned: bool,
    lost: usize,
    quiet: Option<Quiet>,
}

impl PnetFrames {
    /// Opens an interface of the current network namespace, for the frames that `hears` selects.
    pub fn open(interface: &str, hears: Hears) -> io::Result<PnetFrames> {
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
        let longest = longest(&link)?;
        let socket = packet_socket()?;
        if let Hears::Udp(port) = hears {
            filter_udp(&socket, port)?;
        }
        let waiting = socket.try_clone()?;
        let owned = socket.into_raw_fd();
        let config = datalink::Config {
            read_buffer_size: MAX_FRAME + 1,
            // pnet only polls for a frame; `receive` does the waiting.
            read_timeout: Some(Duration::ZERO),
            promiscuous: hears == Hears::Everything,
            // pnet closes the descriptor, also on failure.
            socket_fd: Some(owned),
            ..datalink::Config::default()
        };
        let Channel::Ethernet(sender, receiver) = datalink::channel(&interface, config)? else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        Ok(PnetFrames {
            name: interface.name,
            sender,
            receiver,
            socket: waiting,
            owned,
            link,
            longest,
            has_warned: false,
            lost: 0,
            quiet: Quiet::of(hears),
        })
    }

    /// Takes a frame that has arrived; `None` if no frame has.
    fn take<'a>(
        receiver: &'a mut dyn DataLinkReceiver,
        socket: &OwnedFd,
    ) -> io::Result<Option<&'a [u8]>> {
        match receiver.next() {
            Ok(frame) => Ok(Some(frame)),
            Err(error) if is_passing(&error) => Ok(None),
            // pnet reports an error without its kind; reading SO_ERROR gives the kind and clears the error.
            Err(error) => match getsockopt(socket, sockopt::SocketError) {
                Ok(number) if is_passing(&io::Error::from_raw_os_error(number)) => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// Length of the longest frame that an interface takes, with two VLAN tags, in bytes; at most [`MAX_FRAME`].
fn longest(link: &Link) -> io::Result<usize> {
    const TAGS: usize = 2 * size_of::<crate::vlan::Tag>();
    Ok(MAX_FRAME.min(link.longest_frame()? + TAGS))
}

impl Frames for PnetFrames {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let mut received = Received::default();
        while received.frames + received.errors < budget {
            let Some(frame) = Self::take(&mut *self.receiver, &self.socket)? else {
                break;
            };
            if frame.len() > self.longest {
                self.longest = longest(&self.link).unwrap_or(self.longest);
            }
            if frame.len() <= self.longest {
                received.frames += 1;
                sink.arrived();
                sink.frame(frame, 0);
                continue;
            }
            received.errors += 1;
            if !std::mem::replace(&mut self.has_warned, true) {
                tracing::warn!(
                    interface = self.name,
                    "a packet of {} bytes, above the MTU, is lost: pnet does not split bundles; at the other end: `ethtool -K IF tx off`",
                    frame.len()
                );
            }
        }
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match self.sender.send_to(frame, None) {
            Some(Err(error)) if is_passing(&error) => {
                self.lost += 1;
                Ok(())
            }
            Some(Err(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<usize> {
        Ok(std::mem::take(&mut self.lost))
    }

    fn overflow(&mut self) -> Option<u64> {
        dropped(&self.socket)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn interface(&self) -> Option<u32> {
        Some(self.link.index())
    }

    fn fault(&self) -> Option<LinkFault> {
        self.link.fault()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let sockets = [self.socket.as_raw_fd(), self.owned];
        let quiet = self.quiet.iter().map(Quiet::descriptor);
        sockets.into_iter().chain(quiet).collect()
    }

    fn name(&self) -> &str {
        &self.name
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
pub(crate) struct Quiet(OwnedFd);

impl Quiet {
    /// Keeps the kernel from answering the UDP frames that are heard, in the current network namespace; `None` if none are, or if
    /// another process holds the port exclusively: then the kernel does not answer either.
    pub(crate) fn of(hears: Hears) -> Option<Quiet> {
        match hears {
            Hears::Everything => None,
            Hears::Udp(port) => shared_port(port).ok().map(Quiet),
        }
    }

    /// Descriptor of the bound UDP socket.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
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
