//! An interface through a packet socket (packet(7)).

use crate::bundle::{Checksums, Joins};
use crate::calls::Calls;
use crate::ecn;
use crate::intake::{Intake, Pending};
use crate::limits;
use crate::pnet::Quiet;
use crate::rx_ring::RxRing;
use crate::socket::{Hears, PacketSocket};
use crate::transmit::Transmit;
use crate::{Frames, Link, LinkFault, Options, Received, Sends, Sink};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

/// An interface; promiscuous while this value exists if all frames are received. The host's own frames are not received.
pub struct PacketFrames {
    name: String,
    socket: PacketSocket,
    source: Source,
    pending: Pending,
    transmit: Transmit,
    /// Whether to send bundles once the other end is known to take them.
    learns: bool,
    /// Number of frames waiting for the link from which on a new frame is marked (ECN).
    mark_at: Option<usize>,
    /// Number of frames marked since the last query.
    marked: u64,
    /// Copy of the frame that is being marked.
    marking: Vec<u8>,
    quiet: Option<Quiet>,
}

/// Where received packets come from.
enum Source {
    Ring(RxRing),
    Calls(Box<Calls>),
}

/// How a packet socket receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receives {
    ByRing,
    ByCalls,
}

impl PacketFrames {
    /// Opens an interface of this network namespace.
    pub(crate) fn open(
        interface: &str,
        options: &Options,
        receives: Receives,
        bundles: Sends,
    ) -> io::Result<Self> {
        let socket = PacketSocket::open(interface)?;
        let link = Arc::new(Link::from_name(interface)?);
        let longest = link.longest_frame()?;
        if options.qdisc_bypass {
            socket.set(libc::PACKET_QDISC_BYPASS, &1)?;
        }
        let source = match receives {
            Receives::ByRing => Source::Ring(RxRing::new(&socket, longest, options.slots)?),
            Receives::ByCalls => Source::Calls(Box::new(Calls::new(&socket)?)),
        };
        socket.bind(options.hears)?;
        // An agent that hears one UDP port verifies single frames itself, and the kernel vouches for those of bundles.
        let checksums = match options.hears {
            Hears::Everything => Checksums::Finish,
            Hears::Udp(_) => Checksums::Omit,
        };
        let limits = limits::longest(link.index());
        let joins = match bundles {
            Sends::Always => Joins::ALL,
            Sends::Never | Sends::OnceKnown => Joins::default(),
        };
        let counts = options.mark_at.is_some() || options.hears != Hears::Everything;
        Ok(Self {
            name: interface.to_owned(),
            socket,
            source,
            pending: Pending::new(Arc::clone(&link), checksums, longest),
            transmit: Transmit::new(link, longest, limits, joins, counts),
            learns: bundles != Sends::Never,
            mark_at: options.mark_at,
            marked: 0,
            marking: Vec::new(),
            quiet: Quiet::of(options.hears),
        })
    }

    fn send_marked(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut marking = std::mem::take(&mut self.marking);
        marking.clear();
        marking.extend_from_slice(frame);
        self.marked += u64::from(ecn::mark(&mut marking));
        let sent = self.transmit.send(&self.socket, &marking);
        self.marking = marking;
        sent
    }
}

impl Frames for PacketFrames {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let ready = match &self.source {
            Source::Ring(ring) => ring.arrived(budget),
            Source::Calls(_) => 1,
        };
        if ready == 0 && !self.pending.has_frames() {
            // Readable without a frame: the interface went down, and may come back.
            self.socket.take_error()?;
            return Ok(Received::default());
        }
        let mut intake = Intake::begin(&mut self.pending, budget, sink);
        match &mut self.source {
            Source::Ring(ring) => {
                for _ in 0..ready {
                    if !intake.has_room() {
                        break;
                    }
                    ring.take(&self.socket, &mut intake)?;
                }
            }
            Source::Calls(calls) => {
                while intake.has_room() && calls.take(&self.socket, &mut intake)? {}
            }
        }
        let received = intake.received;
        if self.learns {
            self.transmit.allow(self.pending.came);
        }
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match self.mark_at {
            Some(frames) if self.waiting() >= frames => self.send_marked(frame),
            _ => self.transmit.send(&self.socket, frame),
        }
    }

    fn room(&mut self, len: usize) -> io::Result<Option<&mut [u8]>> {
        match self.mark_at {
            Some(_) => Ok(None),
            None => self.transmit.room(&self.socket, len).map(Some),
        }
    }

    fn written(&mut self, len: usize) -> io::Result<()> {
        self.transmit.written(&self.socket, len)
    }

    fn flush(&mut self) -> io::Result<usize> {
        self.transmit.transmit(&self.socket)?;
        Ok(self.transmit.take_lost())
    }

    fn has_arrived(&self) -> Option<bool> {
        match &self.source {
            _ if self.pending.has_frames() => Some(true),
            Source::Ring(ring) => Some(ring.has_arrived()),
            Source::Calls(calls) => calls.has_packets().then_some(true),
        }
    }

    fn overflow(&mut self) -> Option<u64> {
        let cut = match &mut self.source {
            Source::Ring(ring) => ring.take_cut(),
            Source::Calls(_) => 0,
        };
        Some(self.socket.overflow() + cut)
    }

    fn marked(&mut self) -> u64 {
        std::mem::take(&mut self.marked)
    }

    fn waiting(&self) -> usize {
        // Frames that the kernel has not been given wait as well, but only if the link is busy: a batch for an idle link is no
        // queue.
        match self.transmit.waiting(&self.socket) {
            0 => 0,
            waiting => waiting + self.transmit.queued_frames(),
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.fd.as_fd())
    }

    fn interface(&self) -> Option<u32> {
        Some(self.pending.link.index())
    }

    fn fault(&self) -> Option<LinkFault> {
        self.pending.link.fault()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let quiet = self.quiet.iter().map(Quiet::descriptor);
        [self.socket.fd.as_raw_fd()]
            .into_iter()
            .chain(quiet)
            .collect()
    }

    fn ask_for_bundles(&mut self, frames: [&[u8]; 2]) -> io::Result<bool> {
        let is_open = self.learns && self.transmit.may_learn_udp();
        if is_open {
            self.transmit.send_together(&self.socket, frames)?;
        }
        Ok(is_open)
    }

    fn name(&self) -> &str {
        &self.name
    }
}
