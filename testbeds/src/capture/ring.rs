//! Recording an interface through a TPACKET_V3 ring: its memory is not bounded by net.core.rmem_max, which an
//! unprivileged user cannot raise, and the kernel copies only the bytes that are kept.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::pipe2;

use super::{CaptureError, Direction, Filter, Limits, Recorder, Recording};
use crate::host::Namespace;

/// A slow link fills a block with a few frames before it is handed over, so it is the number of blocks that says how long
/// the recorder may be kept from its work, [`RETIRE_MS`] each: a second. A fast link fills them; that is 32 MiB.
const BLOCK_BYTES: u32 = 1 << 17;
const BLOCKS: u32 = 256;
/// A block that is not full is handed over after this long.
const RETIRE_MS: u32 = 4;
/// What passed before [`Capture::stop`] is mostly handed over this long after it.
const SETTLE: Duration = Duration::from_millis(5 * RETIRE_MS as u64);
/// The kernel's timer that hands a block over may be late on a busy machine, but not by so much.
const HANDING_OVER: Duration = Duration::from_secs(2);

/// A capture that runs.
///
/// It sees what the interface receives and sends. A socket with PACKET_QDISC_BYPASS sends past all captures of its own
/// interface: capture at the other end of the link then.
#[derive(Debug)]
pub struct Capture {
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<io::Result<Recording>>>,
    interface: String,
}

impl Capture {
    /// Starts to record. Every frame that passes after this has returned is recorded, or counted as not recorded.
    pub fn start(
        namespace: &Namespace,
        interface: &str,
        filter: Filter,
        limits: Limits,
    ) -> Result<Capture, CaptureError> {
        let error = |what| {
            move |source| CaptureError {
                interface: interface.into(),
                what,
                source,
            }
        };
        let ring = namespace
            .run(|| Ring::open(interface, filter, limits.frame_bytes))
            .map_err(error("cannot open a packet socket with a ring"))?;
        let (stopped, stop) = pipe2(OFlag::O_CLOEXEC)
            .map_err(io::Error::from)
            .map_err(error("cannot make a pipe"))?;
        let thread = thread::Builder::new()
            .name(format!("capture {interface}"))
            .spawn(move || record(ring, &stopped, limits))
            .map_err(error("cannot start a thread"))?;
        Ok(Capture {
            stop: Some(stop),
            thread: Some(thread),
            interface: interface.into(),
        })
    }

    /// Ends several recordings at one time: no frame is in one that passed when another had ended. Whom each belongs to is kept.
    pub fn stop_all<T>(
        captures: impl IntoIterator<Item = (T, Capture)>,
    ) -> Result<Vec<(T, Recording)>, CaptureError> {
        let mut captures: Vec<(T, Capture)> = captures.into_iter().collect();
        let end = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let end_ns = end.map_or(u64::MAX, |end| {
            u64::try_from(end.as_nanos()).unwrap_or(u64::MAX)
        });
        for (_, capture) in &mut captures {
            capture.stop = None;
        }
        let stopped = captures.into_iter().map(|(whose, capture)| {
            let mut recording = capture.stop()?;
            recording.frames.retain(|frame| frame.at_ns <= end_ns);
            Ok((whose, recording))
        });
        stopped.collect()
    }

    /// Ends the recording.
    pub fn stop(mut self) -> Result<Recording, CaptureError> {
        self.stop = None;
        let result = match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the recorder panicked")),
        };
        result.map_err(|source| CaptureError {
            interface: self.interface.clone(),
            what: "the recording failed",
            source,
        })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn record(mut ring: Ring, stopped: &OwnedFd, limits: Limits) -> io::Result<Recording> {
    let mut recorder = Recorder::new(limits);
    let mut end: Option<Instant> = None;
    loop {
        while ring.take_block(&mut recorder) {}
        let now = Instant::now();
        let wait = match end {
            Some(end) if now >= end => break,
            Some(end) => PollTimeout::try_from(end - now + Duration::from_millis(1))
                .unwrap_or(PollTimeout::ZERO),
            None => PollTimeout::NONE,
        };
        let mut sources = [
            PollFd::new(ring.socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(stopped.as_fd(), PollFlags::POLLIN),
        ];
        // Once the pipe is closed it would always be ready.
        let watched = if end.is_some() {
            &mut sources[..1]
        } else {
            &mut sources[..]
        };
        match poll(watched, wait) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if sources[0]
            .revents()
            .is_some_and(|events| events.contains(PollFlags::POLLERR))
        {
            // The interface went down or away. Asking for the error clears it; else there is no waiting any more.
            getsockopt(&ring.socket, sockopt::SocketError)?;
        }
        if end.is_none()
            && sources[1]
                .revents()
                .is_some_and(|events| !events.is_empty())
        {
            // What passes from now on would be in a block that nobody waits for, and pass for lost.
            ring.accept_no_more()?;
            end = Some(Instant::now() + SETTLE);
        }
    }
    let patience = Instant::now() + HANDING_OVER;
    loop {
        while ring.take_block(&mut recorder) {}
        ring.count()?;
        if ring.delivered + ring.dropped >= ring.passed || Instant::now() > patience {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(recorder.finish(ring.passed.saturating_sub(ring.delivered)))
}

/// A tag was taken out of the frame; TPID known. (`linux/if_packet.h`; `libc` lacks them.)
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
const TPID_8021Q: u16 = 0x8100;
/// What a tag stands after.
const ADDRESSES: usize = 12;

/// The VLAN tag that the kernel keeps beside a frame instead of in it.
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

struct Ring {
    socket: OwnedFd,
    memory: *mut u8,
    next_block: u32,
    /// Frames that we have taken out.
    delivered: u64,
    /// Frames that the filter accepted, as far as [`count`](Self::count) has asked, whether or not the ring had room for them.
    passed: u64,
    /// Those for which it had none.
    dropped: u64,
}

// SAFETY: the memory belongs to this value alone; it is mapped until the value is dropped.
unsafe impl Send for Ring {}

impl Ring {
    fn open(interface: &str, filter: Filter, keep: u32) -> io::Result<Ring> {
        let index = nix::net::if_::if_nametoindex(interface)?;
        // Protocol 0: nothing arrives before the socket is bound, when ring and filter are in place.
        // SAFETY: socket(2) takes no pointers.
        let fd = Errno::result(unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0)
        })?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        set_option(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V3 as i32),
        )?;
        let mut program = filter.program(keep.max(1));
        let program = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        set_option(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        // Somebody who asks for stamps makes the kernel stamp a frame where it enters, once for all packet sockets; else each
        // socket reads the clock when it is its turn.
        set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES,
            tp_block_nr: BLOCKS,
            tp_frame_size: 2048,
            tp_frame_nr: BLOCK_BYTES / 2048 * BLOCKS,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the ring, where the kernel likes, of exactly the size that was requested.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                RING_BYTES,
                protection,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = Ring {
            socket,
            memory: memory.cast(),
            next_block: 0,
            delivered: 0,
            passed: 0,
            dropped: 0,
        };
        bind(&ring.socket, index)?;
        Ok(ring)
    }

    /// Records the next block, if the kernel has handed it over.
    fn take_block(&mut self, recorder: &mut Recorder) -> bool {
        // SAFETY: next_block < BLOCKS, so the block lies within the mapping, and is aligned as the mapping is.
        let block = unsafe {
            self.memory
                .add(self.next_block as usize * BLOCK_BYTES as usize)
        };
        let description: *mut libc::tpacket_block_desc = block.cast();
        // SAFETY: the kernel writes a block's header before it sets the user bit, with a barrier between; while the bit is
        // set the block is ours. The status word is only ever accessed atomically.
        unsafe {
            let header = &raw mut (*description).hdr.bh1;
            let status = AtomicU32::from_ptr(&raw mut (*header).block_status);
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return false;
            }
            let mut at = (*header).offset_to_first_pkt as usize;
            for _ in 0..(*header).num_pkts {
                let packet: *const libc::tpacket3_hdr = block.add(at).cast();
                self.record_packet(packet, recorder);
                at += (*packet).tp_next_offset as usize;
            }
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next_block = (self.next_block + 1) % BLOCKS;
        true
    }

    /// # Safety
    /// `packet` is a frame of a block that is ours.
    unsafe fn record_packet(&mut self, packet: *const libc::tpacket3_hdr, recorder: &mut Recorder) {
        // SAFETY: the kernel filled the header; the frame begins tp_mac after it, with tp_snaplen bytes; the address
        // follows the header, aligned to 16 bytes (TPACKET_ALIGN).
        let (header, address, bytes) = unsafe {
            let header = &*packet;
            let address = packet
                .cast::<u8>()
                .add(size_of::<libc::tpacket3_hdr>().next_multiple_of(16));
            let address = &*address.cast::<libc::sockaddr_ll>();
            let start = packet.cast::<u8>().add(header.tp_mac.into());
            (
                header,
                address,
                std::slice::from_raw_parts(start, header.tp_snaplen as usize),
            )
        };
        let direction = if address.sll_pkttype == libc::PACKET_OUTGOING {
            Direction::Out
        } else {
            Direction::In
        };
        let at_ns = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        let status = header.tp_status;
        match stripped_tag(
            status,
            header.hv1.tp_vlan_tpid,
            header.hv1.tp_vlan_tci as u16,
        ) {
            Some(tag) if bytes.len() >= ADDRESSES => {
                let (addresses, rest) = bytes.split_at(ADDRESSES);
                let tagged = [addresses, &tag, rest].concat();
                let wire_len = header.tp_len + tag.len() as u32;
                recorder.record(at_ns, direction, wire_len, &tagged);
            }
            _ => recorder.record(at_ns, direction, header.tp_len, bytes),
        }
        self.delivered += 1;
    }

    /// From now on no frame is recorded, nor counted.
    fn accept_no_more(&self) -> io::Result<()> {
        let mut nothing = [libc::sock_filter {
            code: (libc::BPF_RET | libc::BPF_K) as u16,
            jt: 0,
            jf: 0,
            k: 0,
        }];
        let program = libc::sock_fprog {
            len: 1,
            filter: nothing.as_mut_ptr(),
        };
        set_option(
            &self.socket,
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            &program,
        )
    }

    /// Asks what the kernel has counted since it was asked last: asking resets its counts.
    fn count(&mut self) -> io::Result<()> {
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
            libc::munmap(self.memory.cast(), RING_BYTES);
        }
    }
}

const RING_BYTES: usize = BLOCK_BYTES as usize * BLOCKS as usize;

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
