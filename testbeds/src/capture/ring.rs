//! A TPACKET_V3 ring: the kernel puts frames of an interface into shared memory, block by block. The ring's memory is not
//! bounded by net.core.rmem_max, which an unprivileged user cannot raise, and the kernel copies only the requested bytes.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};

use super::Filter;
use super::size::RingSize;

/// Time after which the kernel hands over a block that is not full, in milliseconds.
pub(super) const RETIRE_MS: u32 = 4;

/// A packet socket that has no ring yet, and receives nothing.
pub(super) struct PacketSocket {
    socket: OwnedFd,
    interface: u32,
    /// MTU of the interface in bytes.
    pub mtu: u32,
}

impl PacketSocket {
    /// Opens a socket for an interface of the calling thread's namespace. The kernel will copy the first `snap` bytes
    /// of each frame that passes the filter.
    pub fn open(interface: &str, filter: Filter, snap: u32) -> io::Result<PacketSocket> {
        let index = nix::net::if_::if_nametoindex(interface)?;
        // Protocol 0: nothing arrives before the socket is bound, when ring and filter are in place.
        // SAFETY: socket(2) takes no pointers.
        let fd = Errno::result(unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0)
        })?;
        // SAFETY: the descriptor was just made and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        set_option(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V3 as i32),
        )?;
        attach(&socket, filter.program(snap.max(1)))?;
        // A socket that asks for stamps makes the kernel stamp a frame where it enters, once for all packet sockets. Without that,
        // each socket reads the clock when it is its turn.
        set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
        let mtu = mtu(&socket, interface)?;
        Ok(PacketSocket {
            socket,
            interface: index,
            mtu,
        })
    }

    /// Gives the socket a ring of this size; from then on the kernel puts frames there.
    pub fn start(self, size: RingSize) -> io::Result<Ring> {
        let frame_bytes = 2048;
        let request = libc::tpacket_req3 {
            tp_block_size: size.block_bytes,
            tp_block_nr: size.blocks,
            tp_frame_size: frame_bytes,
            tp_frame_nr: size.block_bytes / frame_bytes * size.blocks,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(
            &self.socket,
            libc::SOL_PACKET,
            libc::PACKET_RX_RING,
            &request,
        )?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the ring at an address that the kernel chooses, of exactly the size that was requested.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size.bytes(),
                protection,
                libc::MAP_SHARED,
                self.socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // A process that is started would get a copy of the page tables of all rings first, which takes longer than all else that
        // starting it does. A kernel that refuses this starts processes as slowly as that.
        // SAFETY: the mapping was made above, of this size, and only this process uses it.
        unsafe { libc::madvise(memory, size.bytes(), libc::MADV_DONTFORK) };
        let ring = Ring {
            socket: self.socket,
            memory: memory.cast(),
            size,
            next_block: 0,
            delivered: 0,
            passed: 0,
            dropped: 0,
        };
        bind(&ring.socket, self.interface)?;
        Ok(ring)
    }
}

/// A count of the blocks of a ring that the kernel has handed over and that are not read yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReadyBlocks {
    /// Number of ready blocks.
    pub blocks: u32,
    /// Number of frames in the ready blocks.
    pub frames: usize,
    /// Number of bytes in the ready blocks, including headers.
    pub bytes: usize,
}

/// A received or sent frame in a block of the ring.
pub(super) struct CapturedFrame<'b> {
    /// Time at which the frame passed, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Whether the interface sent the frame, rather than received it.
    pub is_outgoing: bool,
    /// Length of the frame on the link in bytes, without FCS.
    pub wire_len: u32,
    /// The frame's VLAN tag, which the kernel has removed from the bytes after the addresses; `None`: it has removed none.
    pub tag: Option<[u8; 4]>,
    /// First bytes of the frame, as many as the socket has requested from the kernel.
    pub bytes: &'b [u8],
}

/// A ring in which the kernel puts the frames of an interface.
pub(super) struct Ring {
    socket: OwnedFd,
    memory: *mut u8,
    size: RingSize,
    next_block: u32,
    /// Number of frames that [`Ring::read`] has read.
    pub delivered: u64,
    /// Number of frames that the filter accepted until the last [`Ring::count`], whether or not the ring had capacity for them.
    pub passed: u64,
    /// Number of frames that were dropped until the last [`Ring::count`] because the ring was full.
    pub dropped: u64,
}

// SAFETY: the mapping belongs to this value alone, from `PacketSocket::start` until the value is dropped.
unsafe impl Send for Ring {}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Ring {
    /// Number and size of the ring's blocks.
    pub fn size(&self) -> RingSize {
        self.size
    }

    /// The header of the block that is `ahead` blocks after the next block to read.
    fn header(&self, ahead: u32) -> *mut libc::tpacket_hdr_v1 {
        let block = (self.next_block + ahead) % self.size.blocks;
        // SAFETY: the block's number is below the number of blocks, so it lies within the mapping.
        let block = unsafe {
            self.memory
                .add(block as usize * self.size.block_bytes as usize)
        };
        let description: *mut libc::tpacket_block_desc = block.cast();
        // SAFETY: every block begins with its description, and is aligned to a page as the mapping is.
        unsafe { &raw mut (*description).hdr.bh1 }
    }

    /// Whether the kernel has handed a block over to us. If so, everything that the kernel wrote in it is visible, and
    /// the kernel leaves it alone until [`give_back`](Self::give_back).
    fn is_ours(header: *mut libc::tpacket_hdr_v1) -> bool {
        // SAFETY: the header lies within the mapping. Both sides access its status atomically only, and the kernel sets the user
        // bit after it has written the block, with a barrier between.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*header).block_status) };
        status.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    fn give_back(header: *mut libc::tpacket_hdr_v1) {
        // SAFETY: as in `is_ours`.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*header).block_status) };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }

    /// Counts the ready blocks from the next one on: at most `most_blocks`, and none after the block with which they
    /// have `enough_bytes`.
    pub fn ready(&self, most_blocks: u32, enough_bytes: usize) -> ReadyBlocks {
        let mut ready = ReadyBlocks::default();
        while ready.blocks < most_blocks.min(self.size.blocks) && ready.bytes < enough_bytes {
            let header = self.header(ready.blocks);
            if !Ring::is_ours(header) {
                break;
            }
            // SAFETY: the block is ours.
            let (frames, bytes) = unsafe { ((*header).num_pkts, (*header).blk_len) };
            ready.blocks += 1;
            ready.frames += frames as usize;
            ready.bytes += bytes as usize;
        }
        ready
    }

    /// Reads the next blocks in place, as many as [`Ring::ready`] has counted, and gives them back to the kernel.
    pub fn read(&mut self, ready: ReadyBlocks, mut take: impl FnMut(CapturedFrame<'_>)) {
        for _ in 0..ready.blocks {
            let header = self.header(0);
            if !Ring::is_ours(header) {
                return;
            }
            // SAFETY: the block is ours, so the kernel has filled its header.
            let (frames, first) =
                unsafe { ((*header).num_pkts, (*header).offset_to_first_pkt as usize) };
            let block = header
                .cast::<u8>()
                .wrapping_sub(std::mem::offset_of!(libc::tpacket_block_desc, hdr));
            let mut at = first;
            for _ in 0..frames {
                // SAFETY: the block is ours and has this many frames, each at its offset from the block's start; `captured`
                // borrows the block until `take` returns, before it is given back.
                let next = unsafe {
                    let packet: *const libc::tpacket3_hdr = block.add(at).cast();
                    take(captured(packet));
                    (*packet).tp_next_offset as usize
                };
                at += next;
            }
            self.delivered += u64::from(frames);
            Ring::give_back(header);
            self.next_block = (self.next_block + 1) % self.size.blocks;
        }
    }

    /// Stops the socket: its filter accepts no more frames, so none is recorded or counted.
    pub fn accept_no_more(&self) -> io::Result<()> {
        attach(&self.socket, Filter::nothing())
    }

    /// Clears the error that the socket has after its interface went down or away; the error would make it readable forever.
    pub fn clear_error(&self) -> io::Result<()> {
        getsockopt(&self.socket, sockopt::SocketError)?;
        Ok(())
    }

    /// Adds the kernel's counts since the last call to `passed` and `dropped`; the kernel then resets its counts.
    pub fn count(&mut self) -> io::Result<()> {
        // SAFETY: plain data, for which all zeros is a value.
        let mut statistics: libc::tpacket_stats_v3 = unsafe { std::mem::zeroed() };
        let mut length = size_of_val(&statistics) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which is the structure's size.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        Errno::result(result)?;
        // The kernel includes the dropped ones in tp_packets.
        self.passed += u64::from(statistics.tp_packets);
        self.dropped += u64::from(statistics.tp_drops);
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and size, and nothing refers into it any more.
        unsafe {
            libc::munmap(self.memory.cast(), self.size.bytes());
        }
    }
}

/// Status flag: the kernel has removed a VLAN tag from the frame, and its TPID is known. (`linux/if_packet.h`; not in `libc`.)
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
const TPID_8021Q: u16 = 0x8100;

/// Reads the description of a frame in a block that the kernel has handed over.
///
/// # Safety
/// `packet` points to a frame of a block that stays ours for as long as the result lives.
unsafe fn captured<'b>(packet: *const libc::tpacket3_hdr) -> CapturedFrame<'b> {
    // SAFETY: the kernel filled the header; the frame begins tp_mac after it, with tp_snaplen bytes; the address follows the header,
    // aligned to 16 bytes (TPACKET_ALIGN).
    let (header, address, bytes) = unsafe {
        let header = &*packet;
        let packet = packet.cast::<u8>();
        let address = packet.add(size_of::<libc::tpacket3_hdr>().next_multiple_of(16));
        let start = packet.add(header.tp_mac.into());
        (
            header,
            &*address.cast::<libc::sockaddr_ll>(),
            std::slice::from_raw_parts(start, header.tp_snaplen as usize),
        )
    };
    let tag = stripped_tag(
        header.tp_status,
        header.hv1.tp_vlan_tpid,
        header.hv1.tp_vlan_tci as u16,
    );
    CapturedFrame {
        at_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
        is_outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
        wire_len: header.tp_len + tag.map_or(0, |tag| tag.len() as u32),
        tag,
        bytes,
    }
}

/// The VLAN tag that the kernel has removed from a frame; `None`: it has removed none. The arguments describe the frame.
fn stripped_tag(status: u32, tpid: u16, tci: u16) -> Option<[u8; 4]> {
    if status & TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let tpid = match status & TP_STATUS_VLAN_TPID_VALID {
        0 => TPID_8021Q,
        _ => tpid,
    };
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
    Some([a, b, c, d])
}

/// Size of a memory page of this machine, in bytes. A block of a ring has a whole number of pages.
#[must_use]
pub fn page_bytes() -> u32 {
    // SAFETY: sysconf(3) takes no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u32::try_from(bytes).unwrap_or(4096)
}

fn mtu(socket: &OwnedFd, interface: &str) -> io::Result<u32> {
    // SAFETY: plain data, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The kernel has found the interface by its name, so the name is short enough, with a zero at its end.
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the kernel reads and writes one ifreq.
    Errno::result(unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request)
    })?;
    // SAFETY: SIOCGIFMTU fills this member of the union.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(u32::try_from(mtu).unwrap_or(0))
}

fn attach(socket: &OwnedFd, mut program: Vec<libc::sock_filter>) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn set_option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads size_of::<T>() bytes from a reference to a T.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const *value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    Errno::result(result)?;
    Ok(())
}

fn bind(socket: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: plain data, for which all zeros is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    // SAFETY: the address is a sockaddr_ll, and its length is given.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    Errno::result(result)?;
    Ok(())
}
