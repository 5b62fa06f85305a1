//! Lower bound of forwarding between two interfaces: frames go from a TPACKET_V3 receive ring into a transmit ring. The
//! code is separate from the switch's, so that a defect there does not raise the bound.
#![allow(unsafe_code)]

use anyhow::{Context, Result};
use nix::errno::Errno;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

const BLOCK: usize = 128 << 10;
const RECEIVE_BLOCKS: usize = 32;
const SLOT: usize = 2048;
const SEND_SLOTS: usize = 512;
/// Number of frames that are sent with one system call.
const BATCH: usize = 64;
/// Offset of a frame in its slot of a transmit ring: the size of `struct tpacket3_hdr`, aligned to 16 bytes.
const SEND_OFFSET: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(16);

struct Ring {
    socket: OwnedFd,
    /// Start of the ring's memory, which stays mapped until the process ends.
    memory: *mut u8,
}

impl Ring {
    fn open(interface: &str, option: i32, blocks: usize) -> Result<Ring> {
        let index = nix::net::if_::if_nametoindex(interface)?;
        // SAFETY: socket(2) takes no pointers, and no other value owns the new descriptor.
        let socket = unsafe {
            let fd = Errno::result(libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0))?;
            OwnedFd::from_raw_fd(fd)
        };
        set(&socket, libc::PACKET_VERSION, &2i32)?;
        set(&socket, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        let receives = option == libc::PACKET_RX_RING;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: (BLOCK / SLOT * blocks) as u32,
            tp_retire_blk_tov: u32::from(receives),
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, option, &request)?;
        // SAFETY: a new mapping of the ring's size, at an address that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BLOCK * blocks,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).context("cannot map a ring");
        }
        // SAFETY: plain data, valid if all bytes are zero.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = index as i32;
        if receives {
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        }
        // SAFETY: the address is a sockaddr_ll of the length that is passed.
        Errno::result(unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as u32,
            )
        })?;
        Ok(Ring {
            socket,
            memory: memory.cast(),
        })
    }
}

/// # Safety
/// `word` is a status word of a ring: aligned, mapped as long as the process lives, and only ever accessed atomically.
unsafe fn status<T>(word: *mut T) -> &'static AtomicU32 {
    // SAFETY: the caller upholds the contract of `from_ptr`.
    unsafe { AtomicU32::from_ptr(word.cast()) }
}

fn set<T>(socket: &OwnedFd, option: i32, value: &T) -> Result<()> {
    // SAFETY: the kernel reads size_of::<T>() bytes from a reference to a T.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const *value).cast(),
            size_of::<T>() as u32,
        )
    };
    Errno::result(result)?;
    Ok(())
}

/// Sends frames through a transmit ring, with one system call for each batch.
pub struct Sender {
    ring: Ring,
    next: usize,
    queued: usize,
}

impl Sender {
    pub fn open(interface: &str) -> Result<Sender> {
        let ring = Ring::open(interface, libc::PACKET_TX_RING, SEND_SLOTS * SLOT / BLOCK)?;
        Ok(Sender {
            ring,
            next: 0,
            queued: 0,
        })
    }

    /// Queues a frame of at most 1,500 bytes for the next [`Sender::flush`].
    pub fn send(&mut self, frame: &[u8]) {
        assert!(frame.len() <= SLOT - SEND_OFFSET);
        // SAFETY: `next` is less than the number of slots, so the slot lies within the ring. It is written only while
        // its status says that this process owns it.
        unsafe {
            let slot = self.ring.memory.add(self.next * SLOT);
            let header: *mut libc::tpacket3_hdr = slot.cast();
            let owner = status(&raw mut (*header).tp_status);
            while owner.load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
                self.flush();
            }
            std::ptr::copy_nonoverlapping(frame.as_ptr(), slot.add(SEND_OFFSET), frame.len());
            (*header).tp_len = frame.len() as u32;
            (*header).tp_next_offset = 0;
            owner.store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        }
        self.next = (self.next + 1) % SEND_SLOTS;
        self.queued += 1;
        if self.queued == BATCH {
            self.flush();
        }
    }

    /// Hands the queued frames to the kernel, which sends them.
    pub fn flush(&mut self) {
        if self.queued > 0 {
            // SAFETY: packet(7) requires null with length 0.
            unsafe {
                libc::send(
                    self.ring.socket.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                )
            };
            self.queued = 0;
        }
    }
}

/// Forwards all frames that arrive at the interface `from` to the interface `to`, forever.
pub fn forward(from: &str, to: &str) -> Result<()> {
    let mut sender = Sender::open(to)?;
    let ring = Ring::open(from, libc::PACKET_RX_RING, RECEIVE_BLOCKS)?;
    let mut next = 0;
    loop {
        // SAFETY: `next` is less than the number of blocks. Block and frames are read only while the status says that
        // this process owns the block, and the kernel's offsets lie within it.
        unsafe {
            let block = ring.memory.add(next * BLOCK);
            let header = &raw mut (*block.cast::<libc::tpacket_block_desc>()).hdr.bh1;
            let owner = status(&raw mut (*header).block_status);
            if owner.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                let mut poll = libc::pollfd {
                    fd: ring.socket.as_raw_fd(),
                    events: libc::POLLIN,
                    revents: 0,
                };
                libc::poll(&raw mut poll, 1, -1);
                continue;
            }
            let mut frame: *const libc::tpacket3_hdr =
                block.add((*header).offset_to_first_pkt as usize).cast();
            for _ in 0..(*header).num_pkts {
                let bytes = frame.cast::<u8>().add((*frame).tp_mac.into());
                sender.send(std::slice::from_raw_parts(
                    bytes,
                    (*frame).tp_snaplen as usize,
                ));
                frame = frame
                    .cast::<u8>()
                    .add((*frame).tp_next_offset as usize)
                    .cast();
            }
            sender.flush();
            owner.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        next = (next + 1) % RECEIVE_BLOCKS;
    }
}
