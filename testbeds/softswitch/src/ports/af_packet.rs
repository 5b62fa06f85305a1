//! A Linux interface through an AF_PACKET socket, in batches (packet(7), recvmmsg(2), sendmmsg(2)).
#![allow(unsafe_code)]

use super::{MAX_FRAME, PortIo, Received};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Frames per system call.
const BATCH: usize = 32;
/// Room for the VLAN tag that the kernel took out of a frame.
const TAG: usize = 4;
const BUFFER: usize = TAG + MAX_FRAME + 1;
const SOCKET_BUFFER: libc::c_int = 16 << 20;
/// PACKET_AUXDATA's structure fits, aligned, with its header.
const CONTROL_WORDS: usize = 8;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
const TPID_8021Q: u16 = 0x8100;

/// An interface, in promiscuous mode as long as this lives. Frames that the host itself sends are not received.
pub struct AfPacket {
    name: String,
    socket: OwnedFd,
    /// `BATCH` buffers of `BUFFER` bytes.
    incoming: Vec<u8>,
    outgoing: Vec<Vec<u8>>,
    queued: usize,
    lost: usize,
}

impl AfPacket {
    /// Opens an interface of this network namespace.
    pub fn open(interface: &str) -> io::Result<Self> {
        let index = nix::net::if_::if_nametoindex(interface)? as libc::c_int;
        // Protocol 0: nothing is received until the socket is bound to its interface.
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; a result that is not -1 is a descriptor that nobody else owns.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_PACKET, kind, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        // Frames that we send, and those of other sockets, are not ours to receive (Linux 4.20).
        set_option(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            &1 as &libc::c_int,
        )?;
        set_option(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_AUXDATA,
            &1 as &libc::c_int,
        )?;
        for (forced, plain) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            // Larger buffers only save frames in a burst: what the system allows is good enough.
            if set_option(&socket, libc::SOL_SOCKET, forced, &SOCKET_BUFFER).is_err() {
                set_option(&socket, libc::SOL_SOCKET, plain, &SOCKET_BUFFER)?;
            }
        }
        // SAFETY: plain data, for which all zeros is a value.
        let mut membership: libc::packet_mreq = unsafe { zeroed() };
        membership.mr_ifindex = index;
        membership.mr_type = libc::PACKET_MR_PROMISC as libc::c_ushort;
        set_option(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &membership,
        )?;

        // SAFETY: plain data, for which all zeros is a value.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        // SAFETY: the address outlives the call and has the length that is passed.
        let bound = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            name: interface.to_owned(),
            socket,
            incoming: vec![0; BATCH * BUFFER],
            outgoing: (0..BATCH).map(|_| Vec::with_capacity(2048)).collect(),
            queued: 0,
            lost: 0,
        })
    }
}

fn set_option<T>(
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the value outlives the call and has the length that is passed; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (value as *const T).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

impl PortIo for AfPacket {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<Received> {
        let mut received = Received::default();
        while received.frames + received.errors < budget {
            let wanted = BATCH.min(budget - received.frames - received.errors);
            // SAFETY: plain data, for which all zeros is a value.
            let mut vectors: [libc::iovec; BATCH] = unsafe { zeroed() };
            let mut controls = [[0u64; CONTROL_WORDS]; BATCH];
            // SAFETY: as above; null pointers with length 0 are what recvmmsg expects for parts that are not wanted.
            let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
            for (i, buffer) in self.incoming.chunks_exact_mut(BUFFER).enumerate() {
                let room = &mut buffer[TAG..];
                vectors[i].iov_base = room.as_mut_ptr().cast();
                vectors[i].iov_len = room.len();
                headers[i].msg_hdr.msg_iov = &raw mut vectors[i];
                headers[i].msg_hdr.msg_iovlen = 1;
                headers[i].msg_hdr.msg_control = controls[i].as_mut_ptr().cast();
                headers[i].msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
            }
            // SAFETY: the first `wanted` headers point to one vector each, the vectors to disjoint buffers of the length
            // they say, the controls likewise; all outlive the call.
            let count = unsafe {
                libc::recvmmsg(
                    self.socket.as_raw_fd(),
                    headers.as_mut_ptr(),
                    wanted as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                    std::ptr::null_mut(),
                )
            };
            if count < 0 {
                let error = io::Error::last_os_error();
                return match error.kind() {
                    io::ErrorKind::WouldBlock => Ok(received),
                    io::ErrorKind::Interrupted => continue,
                    // The interface is down, or was, and may come back.
                    _ if error.raw_os_error() == Some(libc::ENETDOWN) => Ok(received),
                    _ => Err(error),
                };
            }
            let count = count as usize;
            for (i, header) in headers[..count].iter().enumerate() {
                let buffer = &mut self.incoming[i * BUFFER..(i + 1) * BUFFER];
                let len = header.msg_len as usize;
                if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 || len > MAX_FRAME {
                    received.errors += 1;
                    continue;
                }
                received.frames += 1;
                match stripped_tag(&header.msg_hdr) {
                    Some(tag) if len >= 12 => {
                        buffer.copy_within(TAG..TAG + 12, 0);
                        buffer[12..16].copy_from_slice(&tag);
                        each(&buffer[..TAG + len]);
                    }
                    _ => each(&buffer[TAG..TAG + len]),
                }
            }
            if count < wanted {
                break;
            }
        }
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.queued == BATCH {
            self.transmit()?;
        }
        let slot = &mut self.outgoing[self.queued];
        slot.clear();
        slot.extend_from_slice(frame);
        self.queued += 1;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<usize> {
        self.transmit()?;
        Ok(std::mem::take(&mut self.lost))
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl AfPacket {
    /// Hands the queued frames to the kernel; what it does not take is lost, as on any full link.
    fn transmit(&mut self) -> io::Result<()> {
        let mut first = 0;
        while first < self.queued {
            // SAFETY: plain data, for which all zeros is a value.
            let mut vectors: [libc::iovec; BATCH] = unsafe { zeroed() };
            // SAFETY: as above.
            let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
            let frames = &mut self.outgoing[first..self.queued];
            let pending = frames.len();
            for (i, frame) in frames.iter_mut().enumerate() {
                vectors[i].iov_base = frame.as_mut_ptr().cast();
                vectors[i].iov_len = frame.len();
                headers[i].msg_hdr.msg_iov = &raw mut vectors[i];
                headers[i].msg_hdr.msg_iovlen = 1;
            }
            // SAFETY: the first `pending` headers point to one vector each, the vectors to frames of the length they
            // say; all outlive the call, and the kernel only reads the frames.
            let sent = unsafe {
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    headers.as_mut_ptr(),
                    pending as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                )
            };
            if sent >= 0 {
                first += sent as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // This frame: too long for the link, too short for Ethernet.
                Some(libc::EMSGSIZE | libc::EINVAL) => {
                    self.lost += 1;
                    first += 1;
                }
                // The link: full, down, gone.
                Some(
                    libc::EAGAIN | libc::ENOBUFS | libc::ENETDOWN | libc::ENXIO | libc::ENODEV,
                ) => {
                    self.lost += pending;
                    break;
                }
                _ => {
                    self.queued = 0;
                    return Err(error);
                }
            }
        }
        self.queued = 0;
        Ok(())
    }
}

/// The VLAN tag that the kernel keeps beside the frame instead of in it.
fn stripped_tag(message: &libc::msghdr) -> Option<[u8; TAG]> {
    let mut next = {
        // SAFETY: recvmmsg has filled in the header; its control buffer is alive and aligned to 8.
        unsafe { libc::CMSG_FIRSTHDR(message) }
    };
    while !next.is_null() {
        // SAFETY: not null, so within the control buffer, as the macros guarantee.
        let (level, kind, len) =
            unsafe { ((*next).cmsg_level, (*next).cmsg_type, (*next).cmsg_len) };
        let enough = {
            // SAFETY: pure arithmetic.
            unsafe { libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as u32) as _ }
        };
        if level == libc::SOL_PACKET && kind == libc::PACKET_AUXDATA && len >= enough {
            // SAFETY: the message is long enough to hold the structure; it may be unaligned.
            let aux: libc::tpacket_auxdata = unsafe {
                libc::CMSG_DATA(next)
                    .cast::<libc::tpacket_auxdata>()
                    .read_unaligned()
            };
            if aux.tp_status & TP_STATUS_VLAN_VALID == 0 {
                return None;
            }
            let tpid = if aux.tp_status & TP_STATUS_VLAN_TPID_VALID != 0 {
                aux.tp_vlan_tpid
            } else {
                TPID_8021Q
            };
            let ([a, b], [c, d]) = (tpid.to_be_bytes(), aux.tp_vlan_tci.to_be_bytes());
            return Some([a, b, c, d]);
        }
        // SAFETY: `next` came from this message.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    None
}
