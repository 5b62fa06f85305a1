//! The memory that a packet socket shares with the kernel (PACKET_MMAP, TPACKET_V2): a run of slots of equal size, each
//! with a status word that states its owner.
//!
//! Protocol of the status words: the owner of a slot reads and writes it, then stores the status that gives it away with
//! release ordering; the other side loads the status with acquire ordering before it touches the slot. The kernel gives
//! received frames with `TP_STATUS_USER` and takes frames to send with `TP_STATUS_SEND_REQUEST`.
//!
//! This module trusts the kernel's data only after checking it: lengths and offsets are compared with the size of the
//! slot.
#![allow(unsafe_code)]

use crate::MAX_FRAME;
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
/// Offset in a slot of the data to send (`tp_hdrlen - sizeof(struct sockaddr_ll)`): a `struct virtio_net_hdr`, then the
/// frame. The header makes the kernel copy the whole frame: bytes that are not copied are attached to the packet as a
/// page, which a veth pair has to copy all the same, into a page that it has to allocate first.
const SEND_OFFSET: usize = HEADER;
/// Length of `struct virtio_net_hdr`, whose fields except `hdr_len` are 0, in bytes.
const OFFLOAD_HEADER: usize = 10;
const OFFLOAD_LENGTH: usize = 2;
const SEND_FRAME: usize = SEND_OFFSET + OFFLOAD_HEADER;
/// Smallest offset of a received frame in its slot: after the slot's header and the link-layer address.
const RECEIVE_OFFSET: usize = HEADER + size_of::<libc::sockaddr_ll>();
/// Usual offset of a received frame: the network header is aligned to 16 bytes, with 16 bytes for a link header before it.
const USUAL_FRAME: usize = (RECEIVE_OFFSET + 16).next_multiple_of(16) - 14;
/// Number of bytes before a received frame that may be overwritten, to put a VLAN tag back.
pub(crate) const HEADROOM: usize = 4;

const _: () = assert!(align_of::<libc::tpacket2_hdr>() <= 16);
const _: () = assert!(SlotSize::of_frames(MAX_FRAME).0 <= BLOCK);

/// Size of a slot in bytes: an odd number of cache lines, so that consecutive slots fall into different cache sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotSize(usize);

impl SlotSize {
    /// Size of a slot that takes frames of up to `longest` bytes, sent or received; at least Ethernet's usual frames
    /// fit, and at most those that the switch takes.
    pub(crate) const fn of_frames(longest: usize) -> SlotSize {
        let longest = match longest {
            ..USUAL_LONGEST => USUAL_LONGEST + TAGS,
            LONGEST.. => MAX_FRAME,
            _ => longest + TAGS,
        };
        SlotSize(((USUAL_FRAME + longest).div_ceil(CACHE_LINE) | 1) * CACHE_LINE)
    }

    pub(crate) const fn bytes(self) -> usize {
        self.0
    }

    /// Number of slots in a block of memory. A slot does not cross blocks.
    pub(crate) const fn per_block(self) -> usize {
        BLOCK / self.0
    }

    /// Length of the longest frame that a slot takes for sending, in bytes.
    pub(crate) const fn send_room(self) -> usize {
        self.0 - SEND_FRAME
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

/// A received frame in its slot, which the kernel has handed over.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    /// Status word of the slot (`TP_STATUS_…`).
    pub status: u32,
    /// The frame's length on the link in bytes, without a VLAN tag that the kernel has removed.
    pub len: usize,
    pub vlan_tpid: u16,
    pub vlan_tci: u16,
    /// Time at which the frame arrived, by the machine's clock (`CLOCK_REALTIME`), in nanoseconds.
    pub at_ns: u64,
    /// [`HEADROOM`] bytes, then as much of the frame as the slot holds.
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
            let frame = self.slot(index).as_ptr().wrapping_add(USUAL_FRAME);
            // SAFETY: a hint, which reads and writes nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(frame.cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = index;
    }

    /// The received frame in a slot that [has arrived](Self::has_arrived); `None` if its offset or length is invalid.
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
        if at < RECEIVE_OFFSET + HEADROOM || at + held > self.size.bytes() {
            return None;
        }
        // SAFETY: as above; offset and length lie within the slot, as just checked, and the borrow of `self` keeps anybody
        // else in this process away.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(slot.add(at - HEADROOM).as_ptr(), HEADROOM + held)
        };
        Some(Arrived {
            status,
            len: header.tp_len as usize,
            vlan_tpid: header.tp_vlan_tpid,
            vlan_tci: header.tp_vlan_tci,
            at_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            bytes,
        })
    }

    /// Puts a frame to send into a free slot and gives it to the kernel, which examines it at the next send; false if
    /// the slot is not free.
    ///
    /// # Panics
    /// If the frame is longer than [`SlotSize::send_room`].
    pub(crate) fn put(&mut self, index: usize, frame: &[u8]) -> bool {
        assert!(frame.len() <= self.size.send_room(), "longer than a slot");
        let Some(room) = self.room(index) else {
            return false;
        };
        room[..frame.len()].copy_from_slice(frame);
        self.release(index, frame.len());
        true
    }

    /// Space in a slot to write a frame to, for [`release`](Self::release); `None` if the slot is not free.
    pub(crate) fn room(&mut self, index: usize) -> Option<&mut [u8]> {
        if self.status(index) != libc::TP_STATUS_AVAILABLE {
            return None;
        }
        // SAFETY: the status, loaded with acquire ordering, shows that the slot is ours until `release`, and the borrow ends
        // before: the kernel looks at no slot with this status. The bytes lie within the slot, behind its header, and are
        // initialised: the kernel gave the memory out as zeros.
        Some(unsafe {
            std::slice::from_raw_parts_mut(
                self.slot(index).add(SEND_FRAME).as_ptr(),
                self.size.send_room(),
            )
        })
    }

    /// Gives a slot to the kernel, with a frame of this length in its [room](Self::room).
    ///
    /// # Panics
    /// If the frame is longer than [`SlotSize::send_room`], or the slot is not free.
    pub(crate) fn release(&mut self, index: usize, len: usize) {
        assert!(len <= self.size.send_room(), "longer than a slot");
        assert!(self.status(index) == libc::TP_STATUS_AVAILABLE, "not free");
        let slot = self.slot(index);
        // SAFETY: the status shows that the slot is ours; the headers lie within it. The status word itself is not written here.
        unsafe {
            let mut offload = [0; OFFLOAD_HEADER];
            offload[OFFLOAD_LENGTH..OFFLOAD_LENGTH + 2]
                .copy_from_slice(&(len as u16).to_ne_bytes());
            slot.add(SEND_OFFSET)
                .cast::<[u8; OFFLOAD_HEADER]>()
                .write(offload);
            let header: *mut libc::tpacket2_hdr = slot.cast().as_ptr();
            (*header).tp_len = (OFFLOAD_HEADER + len) as u32;
        }
        self.set_status(index, libc::TP_STATUS_SEND_REQUEST);
    }

    /// Moves a frame to send to another slot; the kernel has taken neither of the two slots.
    pub(crate) fn move_frame(&mut self, from: usize, to: usize) {
        let (source, target) = (self.slot(from), self.slot(to));
        let sending = |slot| self.status(slot) & libc::TP_STATUS_SENDING != 0;
        assert!(!sending(from) && !sending(to));
        if from == to {
            return;
        }
        // SAFETY: two different slots, so disjoint; the kernel looks at neither before the next send. The status words lie
        // before what is copied.
        unsafe {
            let (source_header, target_header): (*mut libc::tpacket2_hdr, *mut libc::tpacket2_hdr) =
                (source.cast().as_ptr(), target.cast().as_ptr());
            (*target_header).tp_len = (*source_header).tp_len;
            std::ptr::copy_nonoverlapping(
                source.add(SEND_OFFSET).as_ptr(),
                target.add(SEND_OFFSET).as_ptr(),
                self.size.bytes() - SEND_OFFSET,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size for links with an MTU of 1,500, which is the usual one.
    const SIZE: SlotSize = SlotSize::of_frames(1514);
    const SLOT: usize = SIZE.bytes();
    const PER_BLOCK: usize = SIZE.per_block();
    const SEND_ROOM: usize = SIZE.send_room();

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
            arrive(&mut slots, index, 66, 60, 60);
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
            assert!(frame <= size.send_room() && USUAL_FRAME + frame <= size.bytes());
        }
    }

    #[test]
    fn a_frame_that_would_leave_its_slot_is_refused() {
        let mut memory = Memory::new(1);
        let mut slots = memory.slots();
        let last = PER_BLOCK - 1;
        for (at, snaplen, fits) in [
            (66, SLOT - 66, true),
            (66, SLOT - 65, false),
            (RECEIVE_OFFSET + HEADROOM, 0, true),
            (RECEIVE_OFFSET + HEADROOM - 1, 0, false),
            (0, 60, false),
            (u16::MAX.into(), 60, false),
            (66, u32::MAX as usize, false),
        ] {
            arrive(&mut slots, last, at, snaplen, snaplen);
            assert_eq!(slots.arrived(last).is_some(), fits, "{at} {snaplen}");
        }
    }

    #[test]
    fn a_slot_takes_one_frame_until_it_is_sent() {
        let mut memory = Memory::new(1);
        let mut slots = memory.slots();
        assert!(slots.put(3, &[7; SEND_ROOM]));
        assert_eq!(slots.status(3), libc::TP_STATUS_SEND_REQUEST);
        assert!(!slots.put(3, &[8; 60]), "not sent yet");
        assert!(slots.put(4, &[9; 60]));
        slots.move_frame(4, 3);
        drop(slots);
        let bytes: Vec<u8> = memory.words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let offload = &bytes[3 * SLOT + SEND_OFFSET..][..OFFLOAD_HEADER];
        assert_eq!(offload, [0, 0, 60, 0, 0, 0, 0, 0, 0, 0], "all is copied");
        let frame = &bytes[3 * SLOT + SEND_FRAME..][..SEND_ROOM];
        assert!(frame[..60].iter().all(|b| *b == 9));
        assert_eq!(&bytes[2 * SLOT..3 * SLOT], &[0; SLOT], "nothing before it");
        assert_eq!(bytes[5 * SLOT..6 * SLOT], [0; SLOT], "nothing after it");
    }

    #[test]
    #[should_panic(expected = "index < self.count")]
    fn there_is_no_slot_after_the_last() {
        let mut memory = Memory::new(1);
        memory.slots().status(PER_BLOCK);
    }

    #[test]
    #[should_panic(expected = "longer than a slot")]
    fn a_frame_that_is_too_long_is_a_defect() {
        let mut memory = Memory::new(1);
        memory.slots().put(0, &[0; SEND_ROOM + 1]);
    }
}
