//! A Linux interface through plain system calls, one per batch (recvmmsg(2), sendmmsg(2)): the fallback without the ring.
#![allow(unsafe_code)]

use crate::offload::finish_checksum;
use crate::socket::{Hears, PacketSocket, stripped_tag};
use crate::{MAX_FRAME, PortIo, Received, Sink};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Maximum number of frames per system call.
const BATCH: usize = 32;
/// Length of the VLAN tag that the kernel removes from a frame, in bytes.
const TAG: usize = 4;
const BUFFER: usize = TAG + MAX_FRAME + 1;
/// Length of a control buffer in 64-bit words. The buffer holds the structure of PACKET_AUXDATA and its header.
const CONTROL_WORDS: usize = 8;

/// An interface, in promiscuous mode as long as this value exists. Frames that the host itself sends are not received.
pub struct Mmsg {
    name: String,
    socket: PacketSocket,
    /// `BATCH` receive buffers of `BUFFER` bytes each.
    incoming: Vec<u8>,
    outgoing: Vec<Vec<u8>>,
    queued: usize,
    lost: usize,
}

impl Mmsg {
    /// Opens the interface of this name in this network namespace.
    pub fn open(interface: &str) -> io::Result<Self> {
        let socket = PacketSocket::open(interface)?;
        socket.set(libc::PACKET_AUXDATA, &1)?;
        socket.bind(Hears::Everything)?;
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

impl PortIo for Mmsg {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
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
                    self.socket.fd.as_raw_fd(),
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
            sink.arrived();
            for (i, header) in headers[..count].iter().enumerate() {
                let buffer = &mut self.incoming[i * BUFFER..(i + 1) * BUFFER];
                let len = header.msg_len as usize;
                if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 || len > MAX_FRAME {
                    received.errors += 1;
                    continue;
                }
                received.frames += 1;
                let aux = auxiliary(&header.msg_hdr);
                let tag =
                    aux.and_then(|a| stripped_tag(a.tp_status, a.tp_vlan_tpid, a.tp_vlan_tci));
                let frame = match tag {
                    Some(tag) if len >= 12 => {
                        buffer.copy_within(TAG..TAG + 12, 0);
                        buffer[12..16].copy_from_slice(&tag);
                        &mut buffer[..TAG + len]
                    }
                    _ => &mut buffer[TAG..TAG + len],
                };
                if aux.is_some_and(|aux| aux.tp_status & libc::TP_STATUS_CSUMNOTREADY != 0) {
                    finish_checksum(frame);
                }
                sink.frame(frame, 0);
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

    fn overflow(&mut self) -> u64 {
        self.socket.overflow()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.fd.as_fd())
    }

    fn interface(&self) -> Option<u32> {
        Some(self.socket.interface())
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Mmsg {
    /// Hands the queued frames to the kernel; frames that it does not take are lost, as on any full link.
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
                    self.socket.fd.as_raw_fd(),
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
                // The frame is at fault: too long for the link, or too short for Ethernet.
                Some(libc::EMSGSIZE | libc::EINVAL) => {
                    self.lost += 1;
                    first += 1;
                }
                // The link is at fault: full, down, or removed.
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

/// The auxiliary data (PACKET_AUXDATA) that the kernel attached to a received frame; `None` if it is missing.
fn auxiliary(message: &libc::msghdr) -> Option<libc::tpacket_auxdata> {
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
            return Some(aux);
        }
        // SAFETY: `next` came from this message.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    None
}
