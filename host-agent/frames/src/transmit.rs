//! Sending through a packet socket, one system call per batch (sendmmsg(2)). Frames that continue each other leave as one bundle
//! where the other end takes bundles.
#![allow(unsafe_code)]

use crate::bundle::{Checksums, Cut, Joins, Offload, Run};
use crate::socket::{ETHERNET_HEADER, PacketSocket};
use std::collections::VecDeque;
use std::io;
use std::mem::zeroed;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Maximum number of packets per system call.
const BATCH: usize = 32;
/// Maximum number of sent packets of which the number of frames is remembered, to count those that still wait.
const REMEMBERED: usize = 1024;

/// Frames to send, and the packets that the kernel has taken.
pub(crate) struct Transmit {
    name: String,
    /// Bundles that the other end takes, as far as known, and that the kernel takes.
    joins: Joins,
    refused: Joins,
    /// The packets that the kernel has not been given; the last one may still grow.
    runs: Vec<Run>,
    queued: usize,
    lost: usize,
    /// A frame that was written to a run's room but does not continue the run.
    unfit: Vec<u8>,
    /// Number of frames, and estimated kernel memory in bytes, of each packet that may still wait for the link.
    sent: VecDeque<(usize, usize)>,
    /// Whether to remember sent packets.
    counts: bool,
}

impl Transmit {
    /// `counts`: whether [`Self::waiting`] will be asked.
    pub(crate) fn new(name: &str, joins: Joins, counts: bool) -> Self {
        Self {
            name: name.to_owned(),
            joins,
            refused: Joins::default(),
            runs: (0..BATCH).map(|_| Run::new()).collect(),
            queued: 0,
            lost: 0,
            unfit: Vec::new(),
            sent: VecDeque::new(),
            counts,
        }
    }

    /// Also sends bundles of these kinds from now on, unless the kernel has refused them.
    pub(crate) fn allow(&mut self, joins: Joins) {
        self.joins = self.joins.with(joins).without(self.refused);
    }

    /// Whether bundles of UDP are not sent yet, but may be.
    pub(crate) fn may_learn_udp(&self) -> bool {
        !self.joins.udp && !self.refused.udp
    }

    /// Number of frames lost since the last call.
    pub(crate) fn take_lost(&mut self) -> usize {
        std::mem::take(&mut self.lost)
    }

    /// Queues a frame for sending.
    pub(crate) fn send(&mut self, socket: &PacketSocket, frame: &[u8]) -> io::Result<()> {
        if frame.len() < ETHERNET_HEADER {
            self.lost += 1;
            return Ok(());
        }
        if self.queued > 0 && self.runs[self.queued - 1].add(frame, self.joins) {
            return Ok(());
        }
        let joins = self.joins;
        self.next_run(socket)?.add(frame, joins);
        Ok(())
    }

    /// Sends the queued packets as one bundle each, whether or not the other end is known to take bundles.
    pub(crate) fn send_together(
        &mut self,
        socket: &PacketSocket,
        frames: [&[u8]; 2],
    ) -> io::Result<()> {
        let joins = self.joins;
        self.transmit(socket)?;
        self.joins = Joins::ALL.without(self.refused);
        for frame in frames {
            self.send(socket, frame)?;
        }
        let sent = self.transmit(socket);
        self.joins = joins.without(self.refused);
        sent
    }

    /// A place for the next frame, of at most `len` bytes; `None` if it is longer than any frame.
    pub(crate) fn room(&mut self, socket: &PacketSocket, len: usize) -> io::Result<&mut [u8]> {
        let open = self.queued.checked_sub(1).map(|open| &self.runs[open]);
        if !open.is_some_and(|open| open.is_empty() || open.may_grow(len, self.joins)) {
            self.next_run(socket)?;
        }
        Ok(self.runs[self.queued - 1].room(len))
    }

    /// Queues the frame that was written to the place from [`Self::room`].
    pub(crate) fn written(&mut self, socket: &PacketSocket, len: usize) -> io::Result<()> {
        let open = self.queued - 1;
        if self.runs[open].written(len, self.joins, &mut self.unfit) {
            return Ok(());
        }
        // It does not continue the run, and begins another.
        let frame = std::mem::take(&mut self.unfit);
        let joins = self.joins;
        self.next_run(socket)?.add(&frame, joins);
        self.unfit = frame;
        Ok(())
    }

    fn next_run(&mut self, socket: &PacketSocket) -> io::Result<&mut Run> {
        if self.queued == self.runs.len() {
            self.transmit(socket)?;
        }
        self.queued += 1;
        Ok(&mut self.runs[self.queued - 1])
    }

    /// Hands the queued packets to the kernel; what it does not take is lost, as on any full link.
    pub(crate) fn transmit(&mut self, socket: &PacketSocket) -> io::Result<()> {
        let mut queued = std::mem::take(&mut self.queued);
        if queued > 0 && self.runs[queued - 1].is_empty() {
            // A place that was given, but not written to.
            queued -= 1;
        }
        let mut first = 0;
        let mut result = Ok(());
        while first < queued && result.is_ok() {
            let error = match self.hand_over(socket, first..queued) {
                Ok(sent) => {
                    first += sent;
                    continue;
                }
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // The packet is at fault: too long for the link, or a bundle of a kind that the kernel does not take.
                Some(libc::EMSGSIZE | libc::EINVAL) => {
                    result = self.send_apart(socket, first, &error);
                    first += 1;
                }
                // The packet was lost in a full queue.
                Some(libc::ENOBUFS) => {
                    self.lost += self.runs[first].count();
                    first += 1;
                }
                // The link is at fault: full, down, or removed.
                Some(libc::EAGAIN | libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => break,
                _ => result = Err(error),
            }
        }
        self.lost += self.runs[first..queued]
            .iter()
            .map(Run::count)
            .sum::<usize>();
        self.runs[..queued].iter_mut().for_each(Run::clear);
        result
    }

    /// Hands these packets to the kernel; returns how many it took, at least one.
    fn hand_over(&mut self, socket: &PacketSocket, which: Range<usize>) -> io::Result<usize> {
        let first = which.start;
        let mut headers = [[0; Offload::LEN]; BATCH];
        // SAFETY: plain data, for which all zeros is a value.
        let mut parts: [[libc::iovec; 2]; BATCH] = unsafe { zeroed() };
        // SAFETY: as above.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        let count = which.len();
        for (i, run) in self.runs[which].iter_mut().enumerate() {
            let (offload, packet) = run.finish();
            headers[i] = offload.to_bytes();
            for (part, bytes) in parts[i].iter_mut().zip([&headers[i], packet]) {
                part.iov_base = bytes.as_ptr().cast_mut().cast();
                part.iov_len = bytes.len();
            }
            messages[i].msg_hdr.msg_iov = parts[i].as_mut_ptr();
            messages[i].msg_hdr.msg_iovlen = 2;
        }
        // SAFETY: the first `count` messages point to two vectors each, the vectors to bytes of the length they say; all
        // outlive the call, and the kernel only reads them.
        let sent = unsafe {
            libc::sendmmsg(
                socket.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT as _,
            )
        };
        let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        if self.counts {
            let packets = self.runs[first..first + sent].iter_mut().map(|run| {
                let (_, packet) = run.finish();
                (packet.len(), run.count())
            });
            self.sent
                .extend(packets.map(|(len, frames)| (frames, kernel_memory(len))));
            let surplus = self.sent.len().saturating_sub(REMEMBERED);
            self.sent.drain(..surplus);
        }
        Ok(sent)
    }

    /// Handles a packet that the kernel does not take: sends the frames of a bundle one by one, and no such bundle again.
    fn send_apart(
        &mut self,
        socket: &PacketSocket,
        index: usize,
        why: &io::Error,
    ) -> io::Result<()> {
        let (offload, packet) = self.runs[index].finish();
        if !offload.is_bundle() {
            self.lost += 1;
            return Ok(());
        }
        let mut packet = packet.to_vec();
        if offload.joins().without(self.refused) != Joins::default() {
            self.refused = self.refused.with(offload.joins());
            self.joins = self.joins.without(self.refused);
            tracing::warn!(
                interface = self.name,
                %why,
                "the interface takes no bundles of frames any more: frames are sent one by one"
            );
        }
        let whole = Cut::new(offload, &packet, 0, Checksums::Finish, usize::MAX);
        let mut cut = whole.expect("a run is a bundle that can be cut");
        while let Some(frame) = cut.next(&mut packet) {
            match socket.send(frame) {
                Ok(()) => {}
                Err(error) if is_of_link(&error) => self.lost += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Number of sent frames that still wait for the link.
    ///
    /// The kernel tells how much memory waiting packets hold. They leave in order, so they are the last ones with that much
    /// memory, which is estimated for each packet.
    pub(crate) fn waiting(&self, socket: &PacketSocket) -> usize {
        let mut bytes = socket.unsent_bytes();
        let mut frames = 0;
        for (count, memory) in self.sent.iter().rev() {
            if bytes == 0 {
                break;
            }
            frames += count;
            bytes = bytes.saturating_sub(*memory);
        }
        frames
    }

    /// Number of frames that the kernel has not been given.
    pub(crate) fn queued_frames(&self) -> usize {
        self.runs[..self.queued].iter().map(Run::count).sum()
    }
}

/// Estimated memory, in bytes, that Linux takes for a packet of this length: the values of Linux 6.18 on x86-64. A short packet
/// has a buffer of a fixed size, a longer one below a page a power of two, and one above it whole pages beside a short buffer.
///
/// The estimate is right to a page unless the qdisc cuts a bundle into its frames, as tbf does with bundles longer than its burst: these
/// take up to twice as much.
fn kernel_memory(len: usize) -> usize {
    const PAGE: usize = 4096;
    /// Structure of a packet (`struct sk_buff`).
    const STRUCTURE: usize = 256;
    /// Bytes before the packet.
    const BEFORE: usize = 16;
    /// Structure after the packet (`struct skb_shared_info`).
    const AFTER: usize = 320;
    /// Buffer of a short packet, with the structure after it.
    const SHORT: usize = 576;
    match len + BEFORE {
        all if all + AFTER <= SHORT => STRUCTURE + SHORT,
        all if all < PAGE => STRUCTURE + (all + AFTER).next_power_of_two(),
        // The headers are in the short buffer, at least Ethernet's.
        _ => STRUCTURE + SHORT + (len - ETHERNET_HEADER).next_multiple_of(PAGE),
    }
}

/// Whether a link that is full, down or removed is to blame, or the frame's length; the frame is lost.
fn is_of_link(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EMSGSIZE
                | libc::EINVAL
                | libc::EAGAIN
                | libc::ENOBUFS
                | libc::ENETDOWN
                | libc::ENXIO
                | libc::ENODEV
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measured with Linux 6.18: the growth of SIOCOUTQ after a packet was sent to a veth interface behind a slow tbf.
    #[test]
    fn memory_of_packets_is_that_of_linux() {
        for (len, memory) in [
            (14, 832),
            (200, 832),
            (300, 1280),
            (680, 1280),
            (690, 2304),
            (1514, 2304),
            (1710, 2304),
            (1720, 4352),
            (3760, 4352),
            (4000, 8448),
            (4079, 8448),
            (4080, 4928),
            (4100, 4928),
            (5000, 9024),
            (8200, 9024),
            (9230, 13_120),
        ] {
            assert_eq!(kernel_memory(len), memory, "{len}");
        }
    }
}
