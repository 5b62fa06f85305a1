//! Sending through a packet socket, one system call per batch (sendmmsg(2)). Frames that continue each other leave as one bundle
//! where the other end takes bundles.
#![allow(unsafe_code)]

use crate::Link;
use crate::bundle::{Checksums, Cut, Joins, Longest, Offload, Run};
use crate::socket::{ETHERNET_HEADER, PacketSocket};
use std::collections::VecDeque;
use std::io;
use std::mem::zeroed;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of packets per system call.
const BATCH: usize = 32;
/// Maximum number of sent packets of which the number of frames is remembered, to count those that still wait.
const REMEMBERED: usize = 1024;

/// Interval at which the interface's MTU is read again while bundles are sent: the kernel does not compare their frames with it.
const MTU_INTERVAL: Duration = Duration::from_millis(100);

/// Frames to send, and the packets that the kernel has taken.
pub(crate) struct Transmit {
    link: Arc<Link>,
    /// Bundles that the other end takes, as far as known, and that the kernel takes.
    joins: Joins,
    refused: Joins,
    /// Length of the longest frame that the interface sends, in bytes without VLAN tags, and when that was read.
    longest: usize,
    read_at: Instant,
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
    /// `longest` and `bundles`: lengths of the longest frame and the longest bundle that the interface sends whole; `counts`: whether
    /// [`Self::waiting`] will be asked.
    pub(crate) fn new(
        link: Arc<Link>,
        longest: usize,
        bundles: Longest,
        joins: Joins,
        counts: bool,
    ) -> Self {
        Self {
            link,
            joins,
            refused: Joins::default(),
            longest,
            read_at: Instant::now(),
            runs: (0..BATCH).map(|_| Run::up_to(bundles)).collect(),
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

    /// Sends these frames as one bundle, whether or not the other end is known to take bundles.
    pub(crate) fn send_together(
        &mut self,
        socket: &PacketSocket,
        frames: [&[u8]; 2],
    ) -> io::Result<()> {
        self.transmit(socket)?;
        let joins = std::mem::replace(&mut self.joins, Joins::ALL.without(self.refused));
        let sent = frames
            .iter()
            .try_for_each(|frame| self.send(socket, frame))
            .and_then(|()| self.transmit(socket));
        // Also after an error: the other end is still not known to take bundles.
        self.joins = joins.without(self.refused);
        sent
    }

    /// A place for the next frame, of at most `len` bytes.
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
        self.read_mtu(queued);
        let mut first = 0;
        let mut result = Ok(());
        while first < queued && result.is_ok() {
            let fit = self.runs[first..queued]
                .iter()
                .take_while(|run| self.fits(run));
            let end = first + fit.count();
            if end == first {
                result = self.send_apart(socket, first);
                first += 1;
                continue;
            }
            let error = match self.hand_over(socket, first..end) {
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
                    self.refuse(first, &error);
                    result = self.send_apart(socket, first);
                    first += 1;
                }
                // The packet was lost in a full queue, or for lack of memory.
                Some(libc::ENOBUFS | libc::ENOMEM) => {
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

    /// Reads the interface's MTU again, if bundles are to be sent and some time has passed, or if it seems too low for them.
    fn read_mtu(&mut self, queued: usize) {
        let bundles = self.runs[..queued].iter().filter(|run| run.count() > 1);
        let Some(longest) = bundles.map(Run::longest_frame).max() else {
            return;
        };
        if longest <= self.longest && self.read_at.elapsed() < MTU_INTERVAL {
            return;
        }
        self.read_at = Instant::now();
        if let Ok(longest) = self.link.longest_frame() {
            self.longest = longest;
        }
    }

    /// Whether a packet may be handed to the kernel as it is. The kernel itself refuses single frames that are too long.
    fn fits(&self, run: &Run) -> bool {
        run.count() <= 1 || run.longest_frame() <= self.longest
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

    /// Sends no more bundles of this packet's kind, if it is one: the kernel does not take it.
    fn refuse(&mut self, index: usize, why: &io::Error) {
        let (offload, _) = self.runs[index].finish();
        if !offload.is_bundle() || offload.joins().without(self.refused) == Joins::default() {
            return;
        }
        self.refused = self.refused.with(offload.joins());
        self.joins = self.joins.without(self.refused);
        let protocol = if offload.joins().udp { "UDP" } else { "TCP" };
        tracing::warn!(
            interface = self.link.name(),
            %why,
            "the interface takes no bundles of {protocol} frames: they are sent one by one from now on"
        );
    }

    /// Sends the frames of a bundle one by one. A packet that is a single frame is lost: the kernel does not take it.
    fn send_apart(&mut self, socket: &PacketSocket, index: usize) -> io::Result<()> {
        let (offload, packet) = self.runs[index].finish();
        if !offload.is_bundle() {
            self.lost += 1;
            return Ok(());
        }
        let mut packet = packet.to_vec();
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
                | libc::ENOMEM
                | libc::ENETDOWN
                | libc::ENXIO
                | libc::ENODEV
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tracing::span;

    /// Counts warnings.
    #[derive(Clone, Default)]
    struct Warnings(Arc<AtomicUsize>);

    impl tracing::Subscriber for Warnings {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            let is_warning = *event.metadata().level() == tracing::Level::WARN;
            self.0.fetch_add(usize::from(is_warning), Ordering::Relaxed);
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    /// A UDP frame without a checksum.
    fn datagram(number: u16, payload: usize) -> Vec<u8> {
        let mut frame = vec![number as u8; 42 + payload];
        frame[..42].fill(0);
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(28 + payload as u16).to_be_bytes());
        frame[18..20].copy_from_slice(&number.to_be_bytes());
        frame[23] = 17;
        let checksum = !crate::bundle::fold(crate::bundle::sum(&frame[14..34]));
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame[38..40].copy_from_slice(&(8 + payload as u16).to_be_bytes());
        frame
    }

    /// A UDP socket refuses the longest bundles (EMSGSIZE), as a kernel or an interface may.
    #[test]
    fn frames_of_refused_bundles_leave_one_by_one_with_one_warning() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(peer.local_addr().unwrap()).unwrap();
        peer.set_nonblocking(true).unwrap();
        let socket = PacketSocket::from_fd(socket.into());
        let warnings = Warnings::default();
        let _guard = tracing::subscriber::set_default(warnings.clone());
        let mut transmit = Transmit::new(
            Arc::new(Link::from_name("lo").unwrap()),
            1514,
            Longest::default(),
            Joins::ALL,
            false,
        );
        let frames: Vec<_> = (0..60).map(|number| datagram(number, 1091)).collect();
        for turn in 0..3 {
            for frame in &frames {
                transmit.send(&socket, frame).unwrap();
            }
            let packets = if turn == 0 { 1 } else { BATCH };
            assert!(transmit.queued <= packets, "{turn}");
            transmit.transmit(&socket).unwrap();
            assert_eq!(transmit.take_lost(), 0);
            let mut buffer = [0; 2000];
            for frame in &frames {
                let len = peer.recv(&mut buffer).unwrap();
                let (header, arrived) = buffer[..len].split_at(Offload::LEN);
                assert_eq!(header, [0; Offload::LEN]);
                // A frame of a bundle has a UDP checksum.
                assert_eq!(arrived[..40], frame[..40]);
                assert_eq!(arrived[42..], frame[42..]);
                assert_eq!(arrived[40..42] == [0, 0], turn > 0);
            }
            assert!(peer.recv(&mut buffer).is_err(), "no further packet");
            assert_eq!(warnings.0.load(Ordering::Relaxed), 1);
        }
        // The other end has sent a bundle meanwhile: this kernel does not take one all the same.
        transmit.allow(Joins::ALL);
        assert!(!transmit.joins.udp && transmit.joins.tcp && !transmit.may_learn_udp());
    }

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
