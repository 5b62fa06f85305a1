//! Kernel filter of a packet socket (bpf(4)): the kernel drops frames for other receivers before this process sees them.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Makes an unbound packet socket receive only whole IPv4 UDP datagrams to this port, and ICMP, in frames without a
/// VLAN tag and with headers without options. Returns the system's error.
pub fn filter_udp(socket: impl AsFd, port: u16) -> io::Result<()> {
    let program = only_udp(port);
    let program = libc::sock_fprog {
        len: program.len() as libc::c_ushort,
        // The kernel only reads it, and copies it before the call returns.
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the program and what it points at outlive the call, and the lengths are right.
    let set = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    };
    match set {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// BPF program of [`filter_udp`]. The kernel removes a VLAN tag before a socket sees the frame, and only reports that it did.
fn only_udp(port: u16) -> [libc::sock_filter; 15] {
    const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
    const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const HAS_TAG: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_VLAN_TAG_PRESENT) as u32;
    const IPV4: u32 = 0x0800;
    /// First byte of an IPv4 header without options: version 4, and a length of five 32-bit words.
    const WITHOUT_OPTIONS: u32 = 0x45;
    const UDP: u32 = 17;
    const ICMP: u32 = 1;
    /// Bits of an IPv4 header that are set in a fragment: More Fragments, and the fragment offset.
    const FRAGMENT: u32 = 0x3fff;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    [
        step(LOAD_WORD, 0, 0, HAS_TAG),
        step(IF_EQUAL, 0, 12, 0),
        step(LOAD_HALF, 0, 0, 12),
        step(IF_EQUAL, 0, 10, IPV4),
        step(LOAD_BYTE, 0, 0, 14),
        step(IF_EQUAL, 0, 8, WITHOUT_OPTIONS),
        step(LOAD_HALF, 0, 0, 14 + 6),
        step(IF_ANY_BIT, 6, 0, FRAGMENT),
        step(LOAD_BYTE, 0, 0, 14 + 9),
        step(IF_EQUAL, 3, 0, ICMP),
        step(IF_EQUAL, 0, 3, UDP),
        step(LOAD_HALF, 0, 0, 14 + 20 + 2),
        step(IF_EQUAL, 0, 1, port.into()),
        step(RETURN, 0, 0, u32::MAX),
        step(RETURN, 0, 0, 0),
    ]
}
