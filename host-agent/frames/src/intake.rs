//! From received packets to frames: puts VLAN tags back, finishes checksums, takes bundles apart, and passes frames to the sink.

use crate::bundle::{Checksums, Cut, Joins, Malformed, Offload};
use crate::slots::HEADROOM;
use crate::vlan::{Tag, put_back};
use crate::{Link, MAX_FRAME, Received, Sink};
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Length of the buffer for a packet with its virtio header.
pub(crate) const LARGEST: usize = Offload::LEN + MAX_PACKET;
/// Length of the longest packet: an IP packet's greatest length, and the Ethernet header with tags.
pub(crate) const MAX_PACKET: usize = 14 + 2 * size_of::<Tag>() + 65_535;
/// Longest credible time that a received frame has waited, in nanoseconds; longer ones count as 0.
const LONGEST_WAIT_NS: u64 = 1_000_000_000;
/// Maximum time, in nanoseconds, between two clock readings that count as simultaneous.
const TOGETHER_NS: u64 = 5_000;

/// The kernel's description of a received packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About {
    /// The packet's virtio header.
    pub(crate) offload: Offload,
    /// The VLAN tag that the kernel has removed.
    pub(crate) tag: Option<Tag>,
    /// Time of the packet's arrival, by the machine's clock, in nanoseconds; `None` if unknown.
    pub(crate) at_ns: Option<u64>,
}

/// State that outlives a call of `receive`: the rest of a bundle, and what was learnt of the link.
pub(crate) struct Pending {
    pub(crate) link: Arc<Link>,
    checksums: Checksums,
    /// Length of the longest frame that the interface takes, in bytes without VLAN tags, when that was last read.
    longest: usize,
    /// A bundle whose frames have not all been passed on; allocated when the first one comes.
    bytes: Vec<u8>,
    /// The bundle's place in `bytes`.
    place: (usize, usize),
    cut: Option<Cut>,
    at_ns: Option<u64>,
    /// The kinds of bundles that the other end takes: those that have come, and TCP's if the other end is a kernel's TCP.
    pub(crate) came: Joins,
    /// Names of the reasons for which packets were lost and that were told.
    told: Vec<&'static str>,
}

impl Pending {
    pub(crate) fn new(link: Arc<Link>, checksums: Checksums, longest: usize) -> Self {
        Self {
            link,
            checksums,
            longest,
            bytes: Vec::new(),
            place: (0, 0),
            cut: None,
            at_ns: None,
            came: Joins::default(),
            told: Vec::new(),
        }
    }

    /// Reads the interface's MTU again; returns whether it has grown.
    fn has_grown(&mut self) -> bool {
        let known = self.longest;
        self.longest = known.max(self.link.longest_frame().unwrap_or(0));
        self.longest > known
    }

    /// Whether this reason was not told yet. From then on it was.
    fn is_new(&mut self, reason: &'static str) -> bool {
        let is_new = !self.told.contains(&reason);
        if is_new {
            self.told.push(reason);
        }
        is_new
    }

    fn warn_of_long_frame(&mut self, len: usize) {
        if self.is_new("long frame") {
            tracing::warn!(
                interface = self.link.name(),
                "frames of {len} bytes arrive and are lost: the maximum is {MAX_FRAME}; lower the MTU of the other end to 9216"
            );
        }
    }

    fn warn_of_long_bundle(&mut self) {
        if self.is_new("long bundle") {
            tracing::warn!(
                interface = self.link.name(),
                "bundles of more than 65,535 bytes arrive and are lost: lower the limit at the other end (`ip link set IF gso_max_size 65536`)"
            );
        }
    }

    /// Whether frames of a bundle wait.
    pub(crate) fn has_frames(&self) -> bool {
        self.cut.is_some()
    }
}

/// One call of `receive`.
pub(crate) struct Intake<'a> {
    pending: &'a mut Pending,
    sink: &'a mut dyn Sink,
    budget: usize,
    now_ns: u64,
    pub(crate) received: Received,
}

impl<'a> Intake<'a> {
    /// Begins a call, for up to `budget` frames, and passes on the frames of a bundle that an earlier call left.
    pub(crate) fn begin(pending: &'a mut Pending, budget: usize, sink: &'a mut dyn Sink) -> Self {
        let now_ns = stamp_arrival(sink);
        let mut intake = Self {
            pending,
            sink,
            budget,
            now_ns,
            received: Received::default(),
        };
        intake.drain();
        intake
    }

    /// Whether the budget allows another packet.
    pub(crate) fn has_room(&self) -> bool {
        self.received.frames + self.received.errors < self.budget
    }

    /// Takes a packet, whose place belongs to the caller: [`HEADROOM`] bytes, then the packet.
    pub(crate) fn packet(&mut self, about: About, bytes: &mut [u8]) {
        if about.offload.is_bundle() {
            let buffer = &mut self.pending.bytes;
            buffer.resize(LARGEST, 0);
            buffer[..bytes.len()].copy_from_slice(bytes);
            self.bundle(about, (HEADROOM, bytes.len()));
            return;
        }
        if bytes.len() > HEADROOM + MAX_FRAME {
            self.refuse_long(bytes.len() - HEADROOM);
            return;
        }
        let start = put_back(about.tag, bytes, HEADROOM);
        let packet = &mut bytes[start..];
        let Pending {
            checksums, longest, ..
        } = *self.pending;
        match Cut::new(about.offload, packet, HEADROOM - start, checksums, longest) {
            Ok(mut cut) => {
                self.pending.came.tcp |= about.offload.is_of_tcp_socket();
                if let Some(frame) = cut.next(packet) {
                    self.received.frames += 1;
                    self.sink.frame(frame, waited_ns(self.now_ns, about.at_ns));
                }
            }
            Err(why) => self.refuse(why),
        }
    }

    /// Takes a packet of `len` bytes that `read` reads, with its virtio header. False: it was not whole.
    pub(crate) fn read_beside(
        &mut self,
        about: About,
        len: usize,
        read: impl FnOnce(&mut [u8]) -> io::Result<Option<(Offload, &mut [u8])>>,
    ) -> io::Result<bool> {
        let mut buffer = std::mem::take(&mut self.pending.bytes);
        buffer.resize(LARGEST, 0);
        let offload = match read(&mut buffer) {
            Ok(Some((offload, packet))) if packet.len() == len => Ok(Some(offload)),
            Ok(_) => Ok(None),
            Err(error) => Err(error),
        };
        self.pending.bytes = buffer;
        let Some(offload) = offload? else {
            return Ok(false);
        };
        let about = About { offload, ..about };
        let place = (Offload::LEN, Offload::LEN + len);
        if about.offload.is_bundle() {
            self.bundle(about, place);
            return Ok(true);
        }
        let mut buffer = std::mem::take(&mut self.pending.bytes);
        self.packet(about, &mut buffer[place.0 - HEADROOM..place.1]);
        self.pending.bytes = buffer;
        Ok(true)
    }

    /// Begins with the bundle at this place of the buffer.
    fn bundle(&mut self, about: About, (start, end): (usize, usize)) {
        let start_with_tag = put_back(about.tag, &mut self.pending.bytes[..end], start);
        let inserted = start - start_with_tag;
        let cut = |pending: &Pending| {
            let packet = &pending.bytes[start_with_tag..end];
            let (checksums, longest) = (pending.checksums, pending.longest);
            Cut::new(about.offload, packet, inserted, checksums, longest)
        };
        let mut whole = cut(self.pending);
        if matches!(whole, Err(Malformed::SegmentLong)) && self.pending.has_grown() {
            whole = cut(self.pending);
        }
        match whole {
            Ok(cut) => {
                self.pending.came = self.pending.came.with(about.offload.joins());
                self.pending.place = (start_with_tag, end);
                self.pending.cut = Some(cut);
                self.pending.at_ns = about.at_ns;
                self.drain();
            }
            Err(why) => self.refuse(why),
        }
    }

    fn refuse(&mut self, why: Malformed) {
        self.received.errors += 1;
        if self.pending.is_new(why.name()) {
            let interface = self.pending.link.name();
            tracing::warn!(
                interface,
                reason = why.name(),
                "a bundle of frames is lost: {why}"
            );
        }
    }

    fn refuse_long(&mut self, len: usize) {
        self.received.errors += 1;
        self.pending.warn_of_long_frame(len);
    }

    /// Tells once that a packet is lost because it is longer than [`MAX_PACKET`].
    pub(crate) fn tell_of_long_bundle(&mut self) {
        self.pending.warn_of_long_bundle();
    }

    /// Passes on frames of the bundle as far as the budget allows.
    fn drain(&mut self) {
        let Some(mut cut) = self.pending.cut.take() else {
            return;
        };
        let waited_ns = waited_ns(self.now_ns, self.pending.at_ns);
        let (start, end) = self.pending.place;
        loop {
            if !self.has_room() {
                self.pending.cut = Some(cut);
                return;
            }
            let Some(frame) = cut.next(&mut self.pending.bytes[start..end]) else {
                return;
            };
            self.received.frames += 1;
            self.sink.frame(frame, waited_ns);
        }
    }
}

/// Time that a frame has waited, in nanoseconds; 0 if it is not credible, because the machine's clock was set, or unknown.
fn waited_ns(now_ns: u64, at_ns: Option<u64>) -> u64 {
    match at_ns.and_then(|at_ns| now_ns.checked_sub(at_ns)) {
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
