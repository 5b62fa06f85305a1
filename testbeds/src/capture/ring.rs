//! A TPACKET_V3 ring: the kernel puts packets of an interface into shared memory, block by block. The ring's memory is not
//! bounded by net.core.rmem_max, which an unprivileged user cannot raise, and the kernel copies only the requested bytes.
//!
//! A packet is a frame, or a bundle of frames that the kernel passes as one (`frames::bundle`).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use frames::bundle::{Checksums, Cut, Offload};
use frames::vlan::{Tag, put_back, stripped_tag};
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
    /// of each frame that passes the filter, and the whole of each packet that is too long for a frame.
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
        // The kernel then says which packets are bundles, and which checksums are unfinished.
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1_i32)?;
        let mtu = frames::Link::from_name(interface)?.mtu()?;
        attach(
            &socket,
            filter.program(snap.max(1), ETHERNET_HEADER + mtu + TAGS),
        )?;
        // A socket that asks for stamps makes the kernel stamp a frame where it enters, once for all packet sockets. Without that,
        // each socket reads the clock when it is its turn.
        set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
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
            longest_frame: (ETHERNET_HEADER + self.mtu) as usize,
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
    /// Number of packets in the ready blocks.
    pub packets: usize,
    /// Number of bytes in the ready blocks, including headers.
    pub bytes: usize,
}

/// A received or sent packet in a block of the ring: a frame, or a bundle of frames.
pub(super) struct CapturedPacket<'b> {
    /// Time at which the packet passed, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Whether the interface sent the packet, rather than received it.
    pub is_outgoing: bool,
    /// The packet's virtio header.
    pub offload: Offload,
    /// Number of bytes of a VLAN tag that was put back: the kernel had removed it before it wrote `offload`.
    pub inserted: usize,
    /// Length of the packet with its tag in bytes, without FCS. For a frame, it is the length on the link.
    pub len: usize,
    /// First bytes of the packet, as many as the socket has requested from the kernel, with its VLAN tag.
    pub bytes: &'b mut [u8],
}

impl CapturedPacket<'_> {
    /// Passes each frame of the packet to `take`, with its length on the link, as a wire would carry it: bundles are split, and
    /// checksums are finished. Returns the number of frames that are lost because the kernel has cut their bundle off.
    ///
    /// `longest_frame` is the length of the longest frame that the link carries, in bytes without VLAN tags. A packet that
    /// contradicts its virtio header is passed as the kernel gave it. A frame that is cut off keeps its unfinished checksum.
    pub fn split(self, longest_frame: usize, mut take: impl FnMut(&[u8], u32)) -> u64 {
        let is_whole = self.bytes.len() >= self.len;
        if !is_whole && self.offload.is_bundle() {
            return self.count_frames(longest_frame);
        }
        let cut = is_whole.then(|| self.cut(self.bytes, longest_frame));
        match cut.flatten() {
            Some(mut cut) => {
                while let Some(frame) = cut.next(self.bytes) {
                    take(frame, frame.len() as u32);
                }
            }
            None => take(self.bytes, self.len as u32),
        }
        0
    }

    fn cut(&self, bytes: &[u8], longest_frame: usize) -> Option<Cut> {
        let checksums = Checksums::Finish;
        Cut::new(self.offload, bytes, self.inserted, checksums, longest_frame).ok()
    }

    /// Number of frames of a bundle that is cut off, which its headers tell.
    fn count_frames(&self, longest_frame: usize) -> u64 {
        let mut extended = self.bytes.to_vec();
        extended.resize(self.len, 0);
        let cut = self.cut(&extended, longest_frame);
        cut.map_or(1, |cut| cut.frames() as u64)
    }
}

/// A ring in which the kernel puts the frames of an interface.
pub(super) struct Ring {
    socket: OwnedFd,
    memory: *mut u8,
    size: RingSize,
    /// Length of the longest frame that the interface carries, in bytes without VLAN tags.
    pub longest_frame: usize,
    next_block: u32,
    /// Number of packets that [`Ring::read`] has read.
    pub delivered: u64,
    /// Number of packets that the filter accepted until the last [`Ring::count`], whether or not the ring had capacity for them.
    pub passed: u64,
    /// Number of packets that were dropped until the last [`Ring::count`] because the ring was full.
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
            let (packets, bytes) = unsafe { ((*header).num_pkts, (*header).blk_len) };
            ready.blocks += 1;
            ready.packets += packets as usize;
            ready.bytes += bytes as usize;
        }
        ready
    }

    /// Reads the next blocks in place, as many as [`Ring::ready`] has counted, and gives them back to the kernel.
    pub fn read(&mut self, ready: ReadyBlocks, mut take: impl FnMut(CapturedPacket<'_>)) {
        for _ in 0..ready.blocks {
            let header = self.header(0);
            if !Ring::is_ours(header) {
                return;
            }
            // SAFETY: the block is ours, so the kernel has filled its header.
            let (packets, first) =
                unsafe { ((*header).num_pkts, (*header).offset_to_first_pkt as usize) };
            let block = header
                .cast::<u8>()
                .wrapping_sub(std::mem::offset_of!(libc::tpacket_block_desc, hdr));
            let mut at = first;
            for _ in 0..packets {
                // SAFETY: the block is ours and has this many packets, each at its offset from the block's start; `captured`
                // borrows the packet's bytes until `take` returns, before the block is given back.
                let next = unsafe {
                    let packet: *mut libc::tpacket3_hdr = block.add(at).cast();
                    let next = (*packet).tp_next_offset as usize;
                    take(captured(packet));
                    next
                };
                at += next;
            }
            self.delivered += u64::from(packets);
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

/// Length of the Ethernet header without VLAN tags, and of two tags, in bytes.
const ETHERNET_HEADER: u32 = 14;
const TAGS: u32 = 8;

/// Reads the description of a packet in a block that the kernel has handed over, and puts its VLAN tag back.
///
/// # Safety
/// `packet` points to a packet of a block that stays ours for as long as the result lives, and nothing else refers to its bytes.
unsafe fn captured<'b>(packet: *mut libc::tpacket3_hdr) -> CapturedPacket<'b> {
    // SAFETY: the kernel filled the header; the frame begins tp_mac after it, with tp_snaplen bytes, right after its virtio header;
    // the address follows the header, aligned to 16 bytes (TPACKET_ALIGN).
    let (header, is_outgoing, place) = unsafe {
        let header = &*packet;
        let packet = packet.cast::<u8>();
        let address = packet.add(size_of::<libc::tpacket3_hdr>().next_multiple_of(16));
        let address = &*address.cast::<libc::sockaddr_ll>();
        let start = packet.add(usize::from(header.tp_mac) - Offload::LEN);
        let len = Offload::LEN + header.tp_snaplen as usize;
        (
            header,
            address.sll_pkttype == libc::PACKET_OUTGOING,
            std::slice::from_raw_parts_mut(start, len),
        )
    };
    let tag = stripped_tag(
        header.tp_status,
        header.hv1.tp_vlan_tpid,
        header.hv1.tp_vlan_tci as u16,
    );
    let (offload, inserted, bytes) = with_tag(place, tag);
    CapturedPacket {
        at_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
        is_outgoing,
        offload,
        inserted,
        len: header.tp_len as usize + tag.map_or(0, |tag| tag.len()),
        bytes,
    }
}

/// The virtio header that `place` begins with, and the packet that follows it, into which a VLAN tag is put back over the header's
/// bytes; also the number of bytes put back. A packet that is too short for a tag stays as it is.
fn with_tag(place: &mut [u8], tag: Option<Tag>) -> (Offload, usize, &mut [u8]) {
    let header = place.first_chunk().copied().unwrap_or_default();
    let start = put_back(tag, place, Offload::LEN);
    (
        Offload::from_bytes(header),
        Offload::LEN - start,
        &mut place[start..],
    )
}

/// Size of a memory page of this machine, in bytes. A block of a ring has a whole number of pages.
#[must_use]
pub fn page_bytes() -> u32 {
    // SAFETY: sysconf(3) takes no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u32::try_from(bytes).unwrap_or(4096)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of UDP over IPv4 with this many bytes of payload; its checksums are wrong.
    fn udp(payload: usize) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend(((28 + payload) as u16).to_be_bytes());
        frame.extend([
            0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 9,
        ]);
        frame.extend(((8 + payload) as u16).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend((0..payload).map(|at| at as u8));
        frame
    }

    fn packet(bytes: &mut [u8], offload: Offload, len: usize) -> CapturedPacket<'_> {
        CapturedPacket {
            at_ns: 0,
            is_outgoing: false,
            offload,
            inserted: 0,
            len,
            bytes,
        }
    }

    const BUNDLE: Offload = Offload {
        flags: Offload::NEEDS_CSUM,
        kind: Offload::UDP_L4,
        header_length: 42,
        segment: 100,
        checksum_start: 34,
        checksum_offset: 6,
    };

    #[test]
    fn a_tag_is_put_back_over_the_virtio_header() {
        let tagged: Vec<u8> = (0..100).collect();
        let stripped = [&BUNDLE.to_bytes()[..], &tagged[..12], &tagged[16..]].concat();
        let mut place = stripped.clone();
        let (offload, inserted, bytes) = with_tag(&mut place, Some([12, 13, 14, 15]));
        assert_eq!((offload, inserted, &*bytes), (BUNDLE, 4, &tagged[..]));
        let mut place = stripped.clone();
        let (offload, inserted, bytes) = with_tag(&mut place, None);
        assert_eq!((offload, inserted, &*bytes), (BUNDLE, 0, &stripped[10..]));
        let mut short = stripped[..21].to_vec();
        let (_, inserted, bytes) = with_tag(&mut short, Some([12, 13, 14, 15]));
        assert_eq!((inserted, &*bytes), (0, &stripped[10..21]));
    }

    #[test]
    fn a_bundle_is_split_and_one_that_is_cut_off_is_counted() {
        let whole = udp(250);
        let mut lengths = Vec::new();
        let lost = packet(&mut whole.clone(), BUNDLE, whole.len())
            .split(1514, |frame, wire_len| {
                lengths.push((frame.len(), wire_len))
            });
        assert_eq!((lost, lengths), (0, vec![(142, 142), (142, 142), (92, 92)]));
        let lost = packet(&mut whole[..60].to_vec(), BUNDLE, whole.len())
            .split(1514, |_, _| panic!("a frame without its bytes"));
        assert_eq!(lost, 3);
        // Its headers are missing.
        let lost = packet(&mut whole[..20].to_vec(), BUNDLE, whole.len())
            .split(1514, |_, _| panic!("a frame without its bytes"));
        assert_eq!(lost, 1);
    }

    #[test]
    fn other_packets_are_one_frame() {
        let contradictory = Offload {
            segment: 0,
            ..BUNDLE
        };
        let unfinished = Offload {
            kind: Offload::PLAIN,
            segment: 0,
            ..BUNDLE
        };
        let whole = udp(250);
        for (offload, captured, is_changed) in [
            (Offload::NONE, whole.len(), false),
            (Offload::NONE, 60, false),
            (contradictory, whole.len(), false),
            (unfinished, whole.len(), true),
            (unfinished, 60, false),
        ] {
            let mut frames = Vec::new();
            let lost = packet(&mut whole[..captured].to_vec(), offload, whole.len())
                .split(1514, |frame, wire_len| {
                    frames.push((frame.to_vec(), wire_len))
                });
            let (frame, wire_len) = &frames[0];
            assert_eq!((lost, frames.len(), *wire_len), (0, 1, whole.len() as u32));
            assert_eq!(frame.len(), captured);
            assert_eq!(*frame != whole[..captured], is_changed, "{offload:?}");
        }
    }
}
