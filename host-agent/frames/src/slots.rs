//! The memory in which a packet socket receives (PACKET_MMAP, TPACKET_V2), shared with the kernel: a run of slots of equal size,
//! each with a status word that states its owner.
//!
//! Protocol of the status words: the owner of a slot reads and writes it, then stores the status that gives it away with
//! release ordering; the other side loads the status with acquire ordering before it touches the slot. The kernel gives
//! received packets with `TP_STATUS_USER`.
//!
//! This module trusts the kernel's data only after checking it: lengths and offsets are compared with the size of the
//! slot.
#![allow(unsafe_code)]

use crate::MAX_FRAME;
use crate::bundle::Offload;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a block of slots, which the kernel allocates in one piece; a multiple of any page size.
pub(crate) const BLOCK: usize = 64 << 10;
const CACHE_LINE: usize = 64;
/// Length of two VLAN tags, in bytes: a link accepts them in addition to its longest frame.
const TAGS: usize = 8;
/// Length of the longest frame with an MTU of 1,500, in bytes.
const USUAL_LONGEST: usize = 1514;
const LONGEST: usize = MAX_FRAME - TAGS;

/// Length of a slot's header, `struct tpacket2_hdr`, aligned to 16 bytes.
const HEADER: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(16);
/// Smallest offset of a received packet in its slot: after the slot's header, the link-layer address, and the virtio header
/// (PACKET_VNET_HDR).
const RECEIVE_OFFSET: usize = HEADER + size_of::<libc::sockaddr_ll>() + Offload::LEN;
/// Usual offset of a received packet: without the virtio header, its network header would be aligned to 16 bytes, with 16 bytes
/// for a link header before it.
const USUAL_PACKET: usize =
    (HEADER + size_of::<libc::sockaddr_ll>() + 16).next_multiple_of(16) + Offload::LEN - 14;
/// Number of bytes before a received packet that may be overwritten, to put a VLAN tag back.
pub(crate) const HEADROOM: usize = 4;

const _: () = assert!(align_of::<libc::tpacket2_hdr>() <= 16);
const _: () = assert!(SlotSize::of_frames(MAX_FRAME).0 <= BLOCK);

/// Size of a slot in bytes: an odd number of cache lines, so that consecutive slots fall into different cache sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotSize(usize);

impl SlotSize {
    /// Size of a slot that takes frames of up to `longest` bytes; at least Ethernet's usual frames
    /// fit, and at most those that the switch takes.
    pub(crate) const fn of_frames(longest: usize) -> SlotSize {
        let longest = match longest {
            ..USUAL_LONGEST => USUAL_LONGEST + TAGS,
            LONGEST.. => MAX_FRAME,
            _ => longest + TAGS,
        };
        SlotSize(((USUAL_PACKET + longest).div_ceil(CACHE_LINE) | 1) * CACHE_LINE)
    }

    pub(crate) const fn bytes(self) -> usize {
        self.0
    }

    /// Number of slots in a block of memory. A slot does not cross blocks.
    pub(crate) const fn per_block(self) -> usize {
        BLOCK / self.0
    }
}

/// Maps the memory of the ring that was requested for a socket, and returns its slots.
pub(crate) fn map(socket: &impl AsRawFd, blocks: usize, size: SlotSize) -> io::Result<Slots> {
    let bytes = blocks * BLOCK;
    // SAFETY: a new mapping where the kernel likes; nothing of ours is touched.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            socket.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // A forked process must not keep the socket open through this memory. Kernels that cannot exclude it leave it in.
    // SAFETY: it is the mapping that was just made; this process keeps it.
    unsafe { libc::madvise(start, bytes, libc::MADV_DONTFORK) };
    let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
    Ok(Slots {
        start,
        size,
        count: blocks * size.per_block(),
        _memory: Some(Mapping { start, bytes }),
    })
}

/// The memory of a socket's ring; dropping it unmaps the memory.
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and size; the `Slots` in it hold this value, so they are no longer used.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.bytes);
        }
    }
}

/// The slots of a ring, numbered from 0 to `count - 1`.
///
/// Invariant: `start` is aligned to 16 bytes; from it `count / size.per_block()` whole blocks are readable and writable, by this
/// value and by the kernel only.
pub(crate) struct Slots {
    start: NonNull<u8>,
    size: SlotSize,
    count: usize,
    /// The memory that contains the slots; `None` in tests.
    _memory: Option<Mapping>,
}

// SAFETY: the memory is valid in every thread and belongs to this value (and the kernel) alone.
unsafe impl Send for Slots {}

/// A received packet in its slot, which the kernel has handed over.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    /// Status word of the slot (`TP_STATUS_…`).
    pub status: u32,
    /// The packet's length on the link in bytes, without a VLAN tag that the kernel has removed.
    pub len: usize,
    pub vlan_tpid: u16,
    pub vlan_tci: u16,
    /// Time at which the packet arrived, by the machine's clock (`CLOCK_REALTIME`), in nanoseconds.
    pub at_ns: u64,
    /// The packet's virtio header.
    pub offload: Offload,
    /// [`HEADROOM`] bytes, then as much of the packet as the slot holds.
    pub bytes: &'a mut [u8],
}

impl Slots {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Address of a slot's first byte; the whole slot is readable from it.
    fn slot(&self, index: usize) -> NonNull<u8> {
        assert!(index < self.count);
        let per_block = self.size.per_block();
        // SAFETY: the index is in range, so the slot lies within its block, and that among the readable ones.
        unsafe {
            self.start
                .add(index / per_block * BLOCK + index % per_block * self.size.bytes())
        }
    }

    fn status_word(&self, index: usize) -> &AtomicU32 {
        let header: *mut libc::tpacket2_hdr = self.slot(index).as_ptr().cast();
        // SAFETY: the slot is valid as long as self and aligned for its header; on both sides the word is only ever
        // accessed atomically.
        unsafe { AtomicU32::from_ptr(&raw mut (*header).tp_status) }
    }

    /// Status word of a slot, which states whether the kernel or this process owns the slot.
    pub(crate) fn status(&self, index: usize) -> u32 {
        self.status_word(index).load(Ordering::Acquire)
    }

    /// Sets a slot's status word: gives the slot to the kernel, or takes it back before the kernel has examined it.
    pub(crate) fn set_status(&mut self, index: usize, status: u32) {
        self.status_word(index).store(status, Ordering::Release);
    }

    /// Whether the kernel has handed over this slot, with a received frame.
    pub(crate) fn has_arrived(&self, index: usize) -> bool {
        self.status(index) & libc::TP_STATUS_USER != 0
    }

    /// Fetches the beginning of a slot's frame into the cache: another processor has written it. The slot's status lies
    /// in an earlier cache line.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: usize) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let frame = self.slot(index).as_ptr().wrapping_add(USUAL_PACKET);
            // SAFETY: a hint, which reads and writes nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(frame.cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = index;
    }

    /// The received packet in a slot that [has arrived](Self::has_arrived); `None` if its offset or length is invalid.
    pub(crate) fn arrived(&mut self, index: usize) -> Option<Arrived<'_>> {
        let status = self.status(index);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let slot = self.slot(index);
        // SAFETY: the status, loaded with acquire ordering, shows that the slot is ours until we give it away, for which
        // `self` has to be borrowed again; so the kernel does not write it now. The header is read by value.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
        let (at, held) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        if at < RECEIVE_OFFSET || at + held > self.size.bytes() {
            return None;
        }
        // SAFETY: as above; offset and length lie within the slot, as just checked, and the borrow of `self` keeps anybody
        // else in this process away.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(
                slot.add(at - Offload::LEN).as_ptr(),
                Offload::LEN + held,
            )
        };
        let (offload, _) = bytes.split_first_chunk()?;
        Some(Arrived {
            status,
            len: header.tp_len as usize,
            vlan_tpid: header.tp_vlan_tpid,
            vlan_tci: header.tp_vlan_tci,
            at_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            offload: Offload::from_bytes(*offload),
            bytes: &mut bytes[Offload::LEN - HEADROOM..],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size for links with an MTU of 1,500, which is the usual one.
    const SIZE: SlotSize = SlotSize::of_frames(1514);
    const SLOT: usize = SIZE.bytes();
    const PER_BLOCK: usize = SIZE.per_block();

    /// A kernel of our own: ordinary memory in place of the mapping.
    struct Memory {
        words: Vec<u128>,
        blocks: usize,
    }

    impl Memory {
        fn new(blocks: usize) -> Self {
            Self {
                words: vec![0; blocks * BLOCK / 16],
                blocks,
            }
        }

        fn slots(&mut self) -> Slots {
            Slots {
                start: NonNull::new(self.words.as_mut_ptr().cast()).unwrap(),
                size: SIZE,
                count: self.blocks * PER_BLOCK,
                _memory: None,
            }
        }
    }

    /// Writes a frame as the kernel would.
    fn arrive(slots: &mut Slots, index: usize, at: usize, snaplen: usize, len: usize) {
        let header = slots.slot(index).cast::<libc::tpacket2_hdr>();
        // SAFETY: the memory belongs to the test.
        unsafe {
            let header = header.as_ptr();
            (*header).tp_mac = at as u16;
            (*header).tp_snaplen = snaplen as u32;
            (*header).tp_len = len as u32;
        }
        slots.set_status(index, libc::TP_STATUS_USER);
    }

    #[test]
    fn a_slot_is_ours_only_while_its_status_shows_it() {
        let mut memory = Memory::new(2);
        let mut slots = memory.slots();
        assert_eq!(slots.count(), 2 * PER_BLOCK);
        for index in [0, PER_BLOCK - 1, PER_BLOCK, 2 * PER_BLOCK - 1] {
            assert!(!slots.has_arrived(index) && slots.arrived(index).is_none());
            arrive(&mut slots, index, 76, 60, 60);
            assert!(slots.has_arrived(index));
            let arrived = slots.arrived(index).unwrap();
            assert_eq!((arrived.len, arrived.bytes.len()), (60, HEADROOM + 60));
            arrived.bytes.fill(0xff);
            slots.set_status(index, libc::TP_STATUS_KERNEL);
            assert!(slots.arrived(index).is_none());
        }
    }

    #[test]
    fn slots_have_room_for_the_frames_of_their_link() {
        let sizes = [590, 1514, 9014, 9230, 65_549].map(SlotSize::of_frames);
        assert_eq!(sizes.map(SlotSize::bytes), [1600, 1600, 9152, 9408, 9408]);
        assert_eq!(sizes.map(SlotSize::per_block), [40, 40, 7, 6, 6]);
        for (size, frame) in sizes
            .into_iter()
            .zip([598, 1522, 9022, MAX_FRAME, MAX_FRAME])
        {
            assert!(USUAL_PACKET + frame <= size.bytes());
        }
    }

    #[test]
    fn a_frame_that_would_leave_its_slot_is_refused() {
        let mut memory = Memory::new(1);
        let mut slots = memory.slots();
        let last = PER_BLOCK - 1;
        for (at, snaplen, fits) in [
            (76, SLOT - 76, true),
            (76, SLOT - 75, false),
            (RECEIVE_OFFSET, 0, true),
            (RECEIVE_OFFSET - 1, 0, false),
            (0, 60, false),
            (u16::MAX.into(), 60, false),
            (76, u32::MAX as usize, false),
        ] {
            arrive(&mut slots, last, at, snaplen, snaplen);
            assert_eq!(slots.arrived(last).is_some(), fits, "{at} {snaplen}");
        }
    }

    #[test]
    #[should_panic(expected = "index < self.count")]
    fn there_is_no_slot_after_the_last() {
        let mut memory = Memory::new(1);
        memory.slots().status(PER_BLOCK);
    }
}
