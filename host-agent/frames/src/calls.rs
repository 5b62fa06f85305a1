//! Receiving by system calls, one per batch (recvmmsg(2)): the fallback without the ring.
#![allow(unsafe_code)]

use crate::bundle::Offload;
use crate::intake::{About, Intake, LARGEST};
use crate::slots::HEADROOM;
use crate::socket::PacketSocket;
use crate::vlan::stripped_tag;
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;

/// Maximum number of packets per system call.
const BATCH: usize = 32;
/// Length of a control buffer in 64-bit words. The buffer holds the structure of PACKET_AUXDATA and its header.
const CONTROL_WORDS: usize = 8;

/// Packets that were received together.
pub(crate) struct Calls {
    /// `BATCH` buffers of [`LARGEST`] bytes each. The system provides memory for the bytes that are used.
    buffers: Vec<u8>,
    /// The packets of the last call, until they are taken.
    packets: Vec<Packet>,
    next: usize,
}

/// A received packet in its buffer.
#[derive(Debug, Clone, Copy)]
struct Packet {
    /// Length with the virtio header; `None`: longer than the buffer.
    len: Option<usize>,
    tag: Option<[u8; 4]>,
}

impl Calls {
    /// Prepares a socket that is not bound yet.
    pub(crate) fn new(socket: &PacketSocket) -> io::Result<Self> {
        socket.set(libc::PACKET_AUXDATA, &1)?;
        Ok(Self {
            buffers: vec![0; BATCH * LARGEST],
            packets: Vec::with_capacity(BATCH),
            next: 0,
        })
    }

    /// Whether packets wait here that a call has received.
    pub(crate) fn has_packets(&self) -> bool {
        self.next < self.packets.len()
    }

    /// Passes the next packet to `intake`; false if none has arrived.
    pub(crate) fn take(
        &mut self,
        socket: &PacketSocket,
        intake: &mut Intake<'_>,
    ) -> io::Result<bool> {
        if !self.has_packets()
            && let Err(error) = self.receive(socket)
        {
            // A bundle of a kind that this kernel cannot describe (UDP before Linux 6.2). It is lost, and its call fails.
            if error.raw_os_error() == Some(libc::EINVAL) {
                intake.received.errors += 1;
                return Ok(true);
            }
            return Err(error);
        }
        let Some(packet) = self.packets.get(self.next) else {
            return Ok(false);
        };
        let buffer = &mut self.buffers[self.next * LARGEST..][..LARGEST];
        self.next += 1;
        let whole = packet.len.and_then(|len| buffer.get_mut(..len));
        let Some((header, _)) = whole.as_ref().and_then(|whole| whole.split_first_chunk()) else {
            intake.received.errors += 1;
            intake.tell_of_long_bundle();
            return Ok(true);
        };
        let about = About {
            offload: Offload::from_bytes(*header),
            tag: packet.tag,
            at_ns: None,
        };
        if let Some(whole) = whole {
            intake.packet(about, &mut whole[Offload::LEN - HEADROOM..]);
        }
        Ok(true)
    }

    /// Receives up to a batch of packets.
    fn receive(&mut self, socket: &PacketSocket) -> io::Result<()> {
        self.next = 0;
        self.packets.clear();
        // SAFETY: plain data, for which all zeros is a value.
        let mut vectors: [libc::iovec; BATCH] = unsafe { zeroed() };
        let mut controls = [[0u64; CONTROL_WORDS]; BATCH];
        // SAFETY: as above; null pointers with length 0 are what recvmmsg expects for parts that are not wanted.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        for (i, buffer) in self.buffers.chunks_exact_mut(LARGEST).enumerate() {
            vectors[i].iov_base = buffer.as_mut_ptr().cast();
            vectors[i].iov_len = buffer.len();
            headers[i].msg_hdr.msg_iov = &raw mut vectors[i];
            headers[i].msg_hdr.msg_iovlen = 1;
            headers[i].msg_hdr.msg_control = controls[i].as_mut_ptr().cast();
            headers[i].msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
        }
        let count = loop {
            // SAFETY: the headers point to one vector each, the vectors to disjoint buffers of the length they say, the
            // controls likewise; all outlive the call.
            let count = unsafe {
                libc::recvmmsg(
                    socket.fd.as_raw_fd(),
                    headers.as_mut_ptr(),
                    BATCH as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                    std::ptr::null_mut(),
                )
            };
            if let Ok(count) = usize::try_from(count) {
                break count;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // The interface is down, or was, and may come back.
                Some(libc::EAGAIN | libc::ENETDOWN) => return Ok(()),
                _ => return Err(error),
            }
        };
        self.packets.extend(headers[..count].iter().map(|header| {
            let is_whole = header.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
            let aux = auxiliary(&header.msg_hdr);
            Packet {
                len: is_whole.then_some(header.msg_len as usize),
                tag: aux.and_then(|a| stripped_tag(a.tp_status, a.tp_vlan_tpid, a.tp_vlan_tci)),
            }
        }));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Link;
    use crate::bundle::Checksums;
    use crate::intake::Pending;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    use std::sync::Arc;

    /// A stream that is not connected refuses each call with EINVAL, as a packet socket does for a bundle that the kernel cannot
    /// describe.
    #[test]
    fn bundles_that_the_kernel_cannot_describe_are_counted_up_to_the_budget() {
        let refusing = socket(
            AddressFamily::Unix,
            SockType::Stream,
            SockFlag::SOCK_CLOEXEC,
            None,
        );
        let socket = PacketSocket::from_fd(refusing.unwrap());
        let mut calls = Calls {
            buffers: vec![0; BATCH * LARGEST],
            packets: Vec::new(),
            next: 0,
        };
        let link = Arc::new(Link::from_name("lo").unwrap());
        let mut pending = Pending::new(link, Checksums::Finish, 1514);
        let mut sink = |_: &[u8]| panic!("no frame has come");
        let mut intake = Intake::begin(&mut pending, 2, &mut sink);
        while intake.has_room() {
            assert!(calls.take(&socket, &mut intake).unwrap());
        }
        assert_eq!((intake.received.frames, intake.received.errors), (0, 2));
    }
}
