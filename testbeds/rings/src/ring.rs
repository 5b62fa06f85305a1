//! A Linux interface through rings shared with the kernel (PACKET_MMAP): frames are read where the kernel put them, and
//! written where it sends from. Sending takes one system call per batch; receiving takes none.
//!
//! TPACKET_V2, not V3: V3 hands over blocks of frames, and a block that is not full only after a millisecond or more,
//! which is acceptable for a capture but not for a switch (docs/decisions).

use crate::ecn;
use crate::offload::finish_checksum;
use crate::slots::{self, Arrived, BLOCK, HEADROOM, SlotSize, Slots};
use crate::socket::{ETHERNET_HEADER, Hears, PacketSocket, stripped_tag};
use crate::{MAX_FRAME, PortIo, Received, Sink};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::{SystemTime, UNIX_EPOCH};

/// Number of frames to send that are queued before the kernel is notified.
const BATCH: usize = 64;
/// Number of slots for frames to send: two batches.
const SEND_SLOTS: usize = 2 * BATCH;
/// Maximum of [`Options::mark_at`]: the ring cannot count more waiting frames.
pub const MOST_MARK_AT: usize = SEND_SLOTS - 1;
const TAG: usize = 4;
/// Longest credible time that a received frame has waited, in nanoseconds; longer ones count as 0.
const LONGEST_WAIT_NS: u64 = 1_000_000_000;

/// Options of a ring that is shared with the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of received frames that wait for the switch; each takes 1,600 bytes with an MTU of 1,500, or
    /// 9,152 with 9,000. Further frames are lost and counted.
    pub slots: usize,
    /// Whether frames are sent past the interface's queueing discipline: a little cheaper, but `tc` has no effect, and captures
    /// on the interface do not see frames that the switch sends.
    pub qdisc_bypass: bool,
    /// Number of frames waiting for the link, 1 to [`MOST_MARK_AT`], from which on a new frame is marked if its transport
    /// supports ECN. `None`: no frame is marked, and the queue is not checked.
    pub mark_at: Option<usize>,
    /// Which frames the ring receives.
    pub hears: Hears,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // 2 MiB, resident from the start.
            slots: 1280,
            qdisc_bypass: false,
            mark_at: None,
            hears: Hears::Everything,
        }
    }
}

/// An interface; promiscuous while this value exists if all frames are received. The host's own frames are not received.
pub struct Ring {
    name: String,
    /// Socket that receives frames, and sends those that fit no slot: the other socket, with the transmit ring, cannot.
    socket: PacketSocket,
    incoming: Slots,
    /// Index of the slot that the kernel fills next with a received frame.
    next_in: usize,
    sender: PacketSocket,
    /// Length of the longest frame sent through a slot. Longer frames do not fit, or the link may not take them: the
    /// kernel does not check the length of a frame with an offload header.
    slot_room: usize,
    outgoing: Slots,
    /// Index of the slot that takes the next frame to send.
    next_out: usize,
    /// Number of queued frames: those in the slots before `next_out` of which the kernel has not been notified.
    queued: usize,
    /// Length that [`Ring::room`] granted in a slot, until [`Ring::written`]; `None`: no slot is granted.
    given: Option<usize>,
    lost: usize,
    mark_at: Option<usize>,
    /// Number of frames marked (ECN) since the last query.
    marked: u64,
    /// Copy of the frame that is being marked (ECN).
    marking: Vec<u8>,
    /// Number of received frames that the kernel has cut since the last query because the socket's buffer was full.
    cut: u64,
    large: Vec<u8>,
    warned: bool,
}

/// Result of taking a received frame from its slot.
enum Taken {
    /// The sink got the whole frame.
    Whole,
    /// The frame is lost: the kernel kept only the part of it that fits a slot.
    Cut,
    /// The frame is lost: it is longer than [`MAX_FRAME`].
    TooLong,
}

impl Ring {
    /// Opens an interface of this network namespace.
    pub fn open(interface: &str, options: Options) -> io::Result<Self> {
        let socket = PacketSocket::open(interface)?;
        let sender = PacketSocket::open(interface)?;
        for socket in [&socket, &sender] {
            socket.set(
                libc::PACKET_VERSION,
                &(libc::tpacket_versions::TPACKET_V2 as libc::c_int),
            )?;
            if options.qdisc_bypass {
                socket.set(libc::PACKET_QDISC_BYPASS, &1)?;
            }
        }
        // Frames to send have a header with the number of bytes to copy.
        sender.set(libc::PACKET_VNET_HDR, &1)?;
        // A frame that does not fit its slot is queued beside the ring, whole.
        socket.set(libc::PACKET_COPY_THRESH, &1)?;
        let longest = socket.longest_frame(interface)?;
        let size = SlotSize::of_frames(longest);
        let blocks = |slots: usize| slots.max(1).div_ceil(size.per_block());
        let (receive, send) = (blocks(options.slots), blocks(SEND_SLOTS));
        for (socket, option, blocks) in [
            (&socket, libc::PACKET_RX_RING, receive),
            (&sender, libc::PACKET_TX_RING, send),
        ] {
            let number = |n: usize| {
                libc::c_uint::try_from(n).map_err(|_| {
                    io::Error::new(io::ErrorKind::InvalidInput, "the ring is too large")
                })
            };
            let request = libc::tpacket_req {
                tp_block_size: number(BLOCK)?,
                tp_block_nr: number(blocks)?,
                tp_frame_size: number(size.bytes())?,
                tp_frame_nr: number(blocks * size.per_block())?,
            };
            socket.set_at(libc::SOL_PACKET, option, &request)?;
        }
        let incoming = slots::map(&socket.fd, receive, size)?;
        let outgoing = slots::map(&sender.fd, send, size)?;
        sender.bind_to_send()?;
        socket.bind(options.hears)?;
        Ok(Self {
            name: interface.to_owned(),
            slot_room: longest.min(size.send_room()),
            socket,
            incoming,
            next_in: 0,
            sender,
            outgoing,
            next_out: 0,
            queued: 0,
            given: None,
            lost: 0,
            mark_at: options.mark_at.map(|frames| frames.clamp(1, MOST_MARK_AT)),
            marked: 0,
            marking: Vec::new(),
            cut: 0,
            large: Vec::new(),
            warned: false,
        })
    }

    /// Number of received frames that wait in the ring, up to `most`.
    fn arrived(&self, most: usize) -> usize {
        let count = self.incoming.count();
        (0..most.min(count))
            .map(|ahead| (self.next_in + ahead) % count)
            .take_while(|slot| self.incoming.has_arrived(*slot))
            .inspect(|slot| self.incoming.prefetch(*slot))
            .count()
    }

    /// Passes the next received frame to `sink`; `now_ns` is the time of the machine's clock.
    fn hand_over(&mut self, sink: &mut dyn Sink, now_ns: u64) -> io::Result<Taken> {
        let Some(arrived) = self.incoming.arrived(self.next_in) else {
            return Ok(Taken::Cut);
        };
        let Arrived {
            status,
            len,
            vlan_tpid,
            vlan_tci,
            at_ns,
            bytes,
        } = arrived;
        let waited_ns = waited_ns(now_ns, at_ns);
        let tag = stripped_tag(status, vlan_tpid, vlan_tci);
        let frame = if status & libc::TP_STATUS_COPY != 0 {
            self.large.resize(HEADROOM + MAX_FRAME, 0);
            let received = self.socket.receive(&mut self.large[HEADROOM..])?;
            if received != Some(len) || len > MAX_FRAME {
                return Ok(self.not_whole(len));
            }
            &mut self.large[..HEADROOM + len]
        } else if bytes.len() == HEADROOM + len && len <= MAX_FRAME {
            bytes
        } else {
            return Ok(self.not_whole(len));
        };
        let start = match tag {
            // The kernel leaves space before the frame, so only the addresses are moved.
            Some(tag) if len >= 2 * 6 => {
                frame.copy_within(HEADROOM..HEADROOM + 12, HEADROOM - TAG);
                frame[HEADROOM - TAG + 12..HEADROOM + 12].copy_from_slice(&tag);
                HEADROOM - TAG
            }
            _ => HEADROOM,
        };
        if status & libc::TP_STATUS_CSUMNOTREADY != 0 {
            finish_checksum(&mut frame[start..]);
        }
        sink.frame(&frame[start..], waited_ns);
        Ok(Taken::Whole)
    }

    /// Result for a received frame of length `len` of which the kernel has kept only a part.
    fn not_whole(&mut self, len: usize) -> Taken {
        if len <= MAX_FRAME {
            return Taken::Cut;
        }
        if !self.warned {
            self.warned = true;
            tracing::warn!(
                port = self.name,
                "frames of {len} bytes arrive, longer than any of Ethernet: turn segmentation off at the other end \
                 (ethtool -K INTERFACE tso off gso off)"
            );
        }
        Taken::TooLong
    }

    /// Whether a frame sent now would have at least `frames` frames ahead of it that wait for the link.
    ///
    /// The kernel returns slots in order, when the frame has left the queueing discipline and the device. Frames that the
    /// kernel has not been notified of wait as well, but only if the link is busy: a batch for an idle link is no queue.
    pub fn has_waiting(&self, frames: usize) -> bool {
        let count = self.outgoing.count();
        // The ring limits the slots: a full ring has the maximum number of frames waiting.
        let before = frames.max(self.queued + 1).min(count);
        let slot = (self.next_out + count - before) % count;
        self.outgoing.status(slot) == libc::TP_STATUS_SENDING
    }

    fn send_marked(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut marking = std::mem::take(&mut self.marking);
        marking.clear();
        marking.extend_from_slice(frame);
        self.marked += u64::from(ecn::mark(&mut marking));
        let sent = self.enqueue(&marking);
        self.marking = marking;
        sent
    }

    /// Queues a frame for sending; without a free slot, sends it at once.
    fn enqueue(&mut self, frame: &[u8]) -> io::Result<()> {
        if frame.len() > self.slot_room {
            return self.send_beside(frame);
        }
        if frame.len() < ETHERNET_HEADER {
            self.lost += 1;
            return Ok(());
        }
        if self.queued == BATCH {
            self.transmit()?;
        }
        if !self.outgoing.put(self.next_out, frame) {
            // The oldest frame still waits for the link in its slot, so this one is copied to the link's queue.
            return self.send_beside(frame);
        }
        self.next_out = (self.next_out + 1) % self.outgoing.count();
        self.queued += 1;
        Ok(())
    }

    /// Space to write the next frame in place if it has at most `len` bytes; [`written`](Self::written) then queues it.
    /// `None`: use [`PortIo::send`] instead.
    ///
    /// # Errors
    /// The link fails.
    pub fn room(&mut self, len: usize) -> io::Result<Option<&mut [u8]>> {
        self.given = None;
        if len > self.slot_room || self.mark_at.is_some() {
            return Ok(None);
        }
        if self.queued == BATCH {
            self.transmit()?;
        }
        let room = self.outgoing.room(self.next_out);
        self.given = room.is_some().then_some(len);
        Ok(room.map(|room| &mut room[..len]))
    }

    /// Queues the frame that the caller has written to the [room](Self::room) last requested, with length `len`.
    ///
    /// # Panics
    /// If it is longer than the room, or there was none.
    pub fn written(&mut self, len: usize) {
        let room = self.given.take().expect("room was given");
        assert!((ETHERNET_HEADER..=room).contains(&len), "no frame for it");
        self.outgoing.release(self.next_out, len);
        self.next_out = (self.next_out + 1) % self.outgoing.count();
        self.queued += 1;
    }

    /// Hands the queued frames to the kernel; frames that it does not take are lost, as on any full link.
    fn transmit(&mut self) -> io::Result<()> {
        while self.queued > 0 {
            let Err(error) = self.sender.send(&[]) else {
                self.queued = 0;
                break;
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // The first remaining frame: too long for the link, or lost at the other end, which is full.
                Some(libc::EMSGSIZE | libc::EINVAL | libc::ENOBUFS) => {
                    self.forget_sent();
                    self.withdraw_first();
                }
                // The link is at fault: full, down, or removed.
                Some(libc::EAGAIN | libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                    self.forget_sent();
                    self.withdraw_all();
                }
                _ => {
                    self.forget_sent();
                    self.withdraw_all();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Index of the slot with the first queued frame.
    fn first_queued(&self) -> usize {
        let count = self.outgoing.count();
        (self.next_out + count - self.queued) % count
    }

    /// Removes the frames from the queue that the kernel has taken for sending.
    fn forget_sent(&mut self) {
        let ours = libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT;
        while self.queued > 0 && self.outgoing.status(self.first_queued()) & ours == 0 {
            self.queued -= 1;
        }
    }

    /// Removes the first queued frame, which counts as lost. The kernel goes on at that frame's slot, so later frames move up.
    fn withdraw_first(&mut self) {
        if self.queued == 0 {
            return;
        }
        let count = self.outgoing.count();
        let first = self.first_queued();
        for ahead in 1..self.queued {
            let (from, to) = ((first + ahead) % count, (first + ahead - 1) % count);
            self.outgoing.move_frame(from, to);
        }
        self.next_out = (self.next_out + count - 1) % count;
        self.queued -= 1;
        self.lost += 1;
        self.outgoing
            .set_status(self.next_out, libc::TP_STATUS_AVAILABLE);
        for ahead in 0..self.queued {
            let slot = (first + ahead) % count;
            self.outgoing.set_status(slot, libc::TP_STATUS_SEND_REQUEST);
        }
    }

    fn withdraw_all(&mut self) {
        let (count, first) = (self.outgoing.count(), self.first_queued());
        for ahead in 0..self.queued {
            self.outgoing
                .set_status((first + ahead) % count, libc::TP_STATUS_AVAILABLE);
        }
        self.next_out = first;
        self.lost += self.queued;
        self.queued = 0;
    }

    /// Sends a frame that fits no slot through the receiving socket. It is lost if the link's queue is full.
    fn send_beside(&mut self, frame: &[u8]) -> io::Result<()> {
        // Frames queued before are sent before.
        self.transmit()?;
        loop {
            let Err(error) = self.socket.send(frame) else {
                return Ok(());
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(
                    libc::EMSGSIZE
                    | libc::EINVAL
                    | libc::EAGAIN
                    | libc::ENOBUFS
                    | libc::ENETDOWN
                    | libc::ENXIO
                    | libc::ENODEV,
                ) => {
                    self.lost += 1;
                    return Ok(());
                }
                _ => return Err(error),
            }
        }
    }
}

/// Time that a frame has waited in the ring, in nanoseconds; 0 if it is not credible, because the machine's clock was set.
fn waited_ns(now_ns: u64, at_ns: u64) -> u64 {
    match now_ns.checked_sub(at_ns) {
        Some(waited) if waited <= LONGEST_WAIT_NS => waited,
        _ => 0,
    }
}

/// Makes a sink read its clock, and returns the kernel's clock, read just before. If the thread was preempted between
/// the two readings, frames would seem to arrive later, so both clocks are read again.
fn stamp_arrival(sink: &mut dyn Sink) -> u64 {
    let mut read_ns = clock_ns();
    for _ in 0..3 {
        let before_ns = read_ns;
        sink.arrived();
        read_ns = clock_ns();
        if read_ns.saturating_sub(before_ns) <= TOGETHER_NS {
            return before_ns;
        }
    }
    read_ns
}

/// Current time of the clock with which the kernel stamps frames, in nanoseconds.
fn clock_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Maximum time, in nanoseconds, between two clock readings that count as simultaneous.
const TOGETHER_NS: u64 = 5_000;

impl Ring {
    /// Descriptors of the ring's two sockets.
    pub fn descriptors(&self) -> [RawFd; 2] {
        [&self.socket, &self.sender].map(|socket| socket.fd.as_raw_fd())
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.fd.as_fd()
    }
}

impl PortIo for Ring {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let mut received = Received::default();
        let ready = self.arrived(budget);
        if ready == 0 {
            // Readable without a frame: the interface went down, and may come back.
            self.socket.take_error()?;
            return Ok(received);
        }
        let now_ns = stamp_arrival(sink);
        for _ in 0..ready {
            let handed_over = self.hand_over(sink, now_ns);
            self.incoming
                .set_status(self.next_in, libc::TP_STATUS_KERNEL);
            self.next_in = (self.next_in + 1) % self.incoming.count();
            match handed_over? {
                Taken::Whole => received.frames += 1,
                Taken::Cut => self.cut += 1,
                Taken::TooLong => received.errors += 1,
            }
        }
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match self.mark_at {
            Some(frames) if self.has_waiting(frames) => self.send_marked(frame),
            _ => self.enqueue(frame),
        }
    }

    fn flush(&mut self) -> io::Result<usize> {
        self.transmit()?;
        Ok(std::mem::take(&mut self.lost))
    }

    fn has_arrived(&self) -> Option<bool> {
        Some(self.incoming.has_arrived(self.next_in))
    }

    fn overflow(&mut self) -> u64 {
        self.socket.overflow() + std::mem::take(&mut self.cut)
    }

    fn marked(&mut self) -> u64 {
        std::mem::take(&mut self.marked)
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
