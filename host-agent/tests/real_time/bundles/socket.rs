//! Packet sockets with and without virtio header, and interfaces that leave nothing to a card.
#![allow(unsafe_code)]

use frames::bundle::Offload;
use std::ffi::c_int;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// linux/if_packet.h; not in `libc`.
const PACKET_VNET_HDR: c_int = 15;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
/// More than any packet and its virtio header.
const LARGEST: usize = 70_000;

/// linux/ethtool.h: segmentation by TCP and in general, scatter-gather, checksums.
const SENDING_OFFLOADS: [u32; 4] = [0x1f, 0x24, 0x19, 0x17];

/// A packet as a socket shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub offload: Offload,
    pub packet: Vec<u8>,
    /// Length of the VLAN tag that this socket put back.
    pub inserted: usize,
}

/// A packet socket of one interface, with a virtio header before each packet or without.
pub struct PacketSocket {
    fd: OwnedFd,
    has_header: bool,
}

impl PacketSocket {
    pub fn open(interface: &str, has_header: bool) -> PacketSocket {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: no pointers; a result that is not -1 is a descriptor without another owner.
        let fd = unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            assert!(fd >= 0, "{}", io::Error::last_os_error());
            OwnedFd::from_raw_fd(fd)
        };
        let socket = PacketSocket { fd, has_header };
        socket.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1);
        socket.set(libc::SOL_PACKET, libc::PACKET_AUXDATA, 1);
        socket.set(libc::SOL_PACKET, PACKET_VNET_HDR, c_int::from(has_header));
        // As large as the system allows.
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUF, 16 << 20);
        // SAFETY: plain data, for which all zeros is a value.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = nix::net::if_::if_nametoindex(interface).unwrap() as c_int;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address has this length.
        let bound =
            unsafe { libc::bind(socket.fd.as_raw_fd(), (&raw const address).cast(), length) };
        assert_eq!(bound, 0, "{}", io::Error::last_os_error());
        socket
    }

    fn set(&self, level: c_int, name: c_int, value: c_int) {
        let length = size_of::<c_int>() as libc::socklen_t;
        // SAFETY: the value has this length.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                name,
                (&raw const value).cast(),
                length,
            )
        };
        assert_eq!(result, 0, "option {name}: {}", io::Error::last_os_error());
    }

    pub fn send(&self, offload: Offload, packet: &[u8]) {
        let header = offload.to_bytes();
        let bytes = match self.has_header {
            true => [&header, packet].concat(),
            false => packet.to_vec(),
        };
        let sent = nix::unistd::write(&self.fd, &bytes);
        assert_eq!(sent, Ok(bytes.len()));
    }

    /// The next packet, or `None` if none comes within the timeout.
    pub fn receive(&self, timeout: Duration) -> Option<Received> {
        if !frames::wait_readable([std::os::fd::AsFd::as_fd(&self.fd)], timeout).unwrap() {
            return None;
        }
        let mut bytes = vec![0u8; LARGEST];
        let mut control = [0u64; 16];
        let mut vector = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        // SAFETY: plain data, for which all zeros is a value.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        // SAFETY: the message points to buffers of the lengths that it has.
        let length = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, 0) };
        bytes.truncate(usize::try_from(length).expect("a packet"));
        let mut offload = Offload::NONE;
        if self.has_header {
            let packet = bytes.split_off(Offload::LEN);
            offload = Offload::from_bytes(bytes.try_into().unwrap());
            bytes = packet;
        }
        let tag = tag(&message);
        if let Some(tag) = tag {
            bytes.splice(12..12, tag);
        }
        Some(Received {
            offload,
            packet: bytes,
            inserted: if tag.is_some() { 4 } else { 0 },
        })
    }

    /// `count` packets, and no further one.
    pub fn receive_all(&self, count: usize) -> Vec<Received> {
        let mut all = Vec::new();
        while all.len() <= count {
            let patience = if all.len() == count { 1 } else { 2000 };
            match self.receive(Duration::from_millis(patience)) {
                Some(received) => all.push(received),
                None => break,
            }
        }
        all
    }
}

/// The VLAN tag that the kernel has removed from a packet.
fn tag(message: &libc::msghdr) -> Option<[u8; 4]> {
    // SAFETY: the kernel has written the message's control data; the first control message, if any, is PACKET_AUXDATA.
    let data = unsafe {
        let first = libc::CMSG_FIRSTHDR(message);
        if first.is_null() || (*first).cmsg_type != libc::PACKET_AUXDATA {
            return None;
        }
        libc::CMSG_DATA(first)
            .cast::<libc::tpacket_auxdata>()
            .read_unaligned()
    };
    let [a, b] = data.tp_vlan_tpid.to_be_bytes();
    let [c, d] = data.tp_vlan_tci.to_be_bytes();
    (data.tp_status & TP_STATUS_VLAN_VALID != 0).then_some([a, b, c, d])
}

/// Makes the kernel finish each frame before it leaves by this interface.
pub fn finish_frames(interface: &str) {
    #[repr(C)]
    struct EthtoolValue {
        command: u32,
        data: u32,
    }
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    for command in SENDING_OFFLOADS {
        let mut value = EthtoolValue { command, data: 0 };
        // SAFETY: plain data, for which all zeros is a value.
        let mut request: libc::ifreq = unsafe { zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: SIOCETHTOOL takes an ifreq whose data points to an ethtool_value for these commands.
        let result =
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
        assert_eq!(result, 0, "{command:#x}: {}", io::Error::last_os_error());
    }
}
