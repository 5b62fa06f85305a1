//! RoCEv2 packets over a UDP socket, which needs no capability; both ends must use this transport.
//!
//! The ICRC covers the IP and UDP headers, which a socket neither shows nor lets the program choose. But both ends can derive
//! them: the IP identification is 0 on an unconnected socket that forbids fragmentation, and the source port is the socket's
//! own. So the sender strips these headers from its frames, and the receiver rebuilds them. An RDMA device uses other source
//! ports, so the receiver would find its ICRC wrong.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use frames::{Frames, MAX_FRAME, Received, Sink};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrIn,
    bind, recvmsg, sendmsg, setsockopt, socket, sockopt,
};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};

use roce::packet::{Address, Ecn, NETWORK_LEN, Packet, Route, UDP_PORT, rebuild_network_headers};

/// Requested size in bytes of the socket's kernel buffer, for each direction: the packets in flight of several connections.
const BUFFER: usize = 4 << 20;

/// Transport of frames over a UDP socket at RoCEv2's port. It makes up Ethernet addresses, derived from IP addresses.
pub struct UdpFrames {
    socket: OwnedFd,
    own: Ipv4Addr,
    buffer: Vec<u8>,
    control: Vec<u8>,
    lost: usize,
}

/// The Ethernet address that this transport derives from an IP address.
pub fn made_up_mac(ip: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = ip.octets();
    [0x02, 0, a, b, c, d]
}

impl UdpFrames {
    /// Binds RoCEv2's UDP port at this local address.
    ///
    /// # Errors
    /// If the address is not local, or the port is in use there.
    pub fn open(own: Ipv4Addr) -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Inet,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            None,
        )?;
        set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DO)?;
        setsockopt(&socket, sockopt::IpRecvTos, &true)?;
        // A smaller buffer, as the system allows, is sufficient.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER);
        let _ = setsockopt(&socket, sockopt::SndBuf, &BUFFER);
        bind(
            socket.as_raw_fd(),
            &SockaddrIn::from(SocketAddrV4::new(own, UDP_PORT)),
        )?;
        Ok(Self {
            socket,
            own,
            buffer: vec![0; MAX_FRAME],
            control: cmsg_space!(u8, u32),
            lost: 0,
        })
    }

    /// Receives a datagram, and writes the rebuilt headers in front of it; returns the frame's length, or `None` if none came.
    fn take(&mut self) -> io::Result<Option<usize>> {
        let (_, payload) = self.buffer.split_at_mut(NETWORK_LEN);
        let mut parts = [io::IoSliceMut::new(payload)];
        let received = recvmsg::<SockaddrIn>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut self.control),
            MsgFlags::empty(),
        );
        let received = match received {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            // The peer's host reports an unreachable port; timeouts detect the silent peer.
            Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let tos = received.cmsgs().ok().and_then(|messages| {
            messages.into_iter().find_map(|message| match message {
                ControlMessageOwned::Ipv4Tos(tos) => Some(tos),
                _ => None,
            })
        });
        let tos = tos.unwrap_or(0);
        let Some(from) = received.address else {
            return Ok(None);
        };
        let end = NETWORK_LEN + received.bytes;
        let route = Route {
            from: Address {
                mac: made_up_mac(from.ip()),
                ip: from.ip(),
            },
            to: Address {
                mac: made_up_mac(self.own),
                ip: self.own,
            },
            source_port: from.port(),
            dscp: tos >> 2,
            ecn: Ecn::of_tos(tos),
        };
        rebuild_network_headers(&mut self.buffer[..end], &route);
        Ok(Some(end))
    }
}

impl Frames for UdpFrames {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let packet = Packet::parse_unchecked(frame).map_err(io::Error::other)?;
        let route = packet.route();
        let to = SockaddrIn::from(SocketAddrV4::new(route.to.ip, UDP_PORT));
        let tos = route.dscp << 2 | route.ecn as u8;
        let sent = sendmsg(
            self.socket.as_raw_fd(),
            &[io::IoSlice::new(&frame[NETWORK_LEN..])],
            &[ControlMessage::Ipv4Tos(&tos)],
            MsgFlags::MSG_NOSIGNAL,
            Some(&to),
        );
        match sent {
            Ok(_) => Ok(()),
            // A datagram that is not sent is lost, as on any wire.
            Err(
                Errno::EAGAIN
                | Errno::ENOBUFS
                | Errno::EINTR
                | Errno::ECONNREFUSED
                | Errno::EHOSTUNREACH
                | Errno::ENETUNREACH,
            ) => {
                self.lost += 1;
                Ok(())
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let mut received = Received::default();
        while received.frames < budget
            && let Some(len) = self.take()?
        {
            received.frames += 1;
            sink.arrived();
            sink.frame(&self.buffer[..len], 0);
        }
        Ok(received)
    }

    fn flush(&mut self) -> io::Result<usize> {
        Ok(std::mem::take(&mut self.lost))
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn descriptors(&self) -> Vec<RawFd> {
        vec![self.socket.as_raw_fd()]
    }

    fn name(&self) -> &str {
        "UDP"
    }
}
