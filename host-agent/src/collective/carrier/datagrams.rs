//! Carrier of a rank's frames as UDP datagrams, to the switch and to other ranks (`docs/protocol.md`, "Frame").

use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, RawFd};

use aggregation::Destination;
use aggregation::rank::{Setup, Transmit};
use wire::{Flags, Kind, MAX_TRANSMISSION, Packet, Repr};

use super::super::CollectiveError;
use super::{Carrier, Takes, io_error};
use crate::frames::{
    Endpoint, Frames, HEADERS_LEN, Headers, LinkFault, asking, mark, open, refused, source, sum,
};

/// Carrier of a rank's frames over UDP datagrams.
pub struct Datagrams<F> {
    frames: F,
    rank: u16,
    me: Endpoint,
    /// Headers of frames that the switch sums for all ranks, and of those that it answers.
    to_all: Headers,
    to_switch: Headers,
    /// Addresses of the job's ranks, by rank number; empty if they are unknown.
    peers: Vec<Endpoint>,
    /// Accepted senders, ascending: the job's ranks, whose addresses are also in the frames that a switch makes of their
    /// frames. If the job's ranks are unknown, every sender is accepted.
    senders: Vec<Ipv4Addr>,
    frame: Vec<u8>,
    /// Identification of the next frame, in its IP header.
    identification: u16,
    question: Option<Question>,
    foreign: u64,
    unsent: u64,
}

impl<F: Frames> Datagrams<F> {
    /// A carrier for the rank with addresses `me`; `peers` are the addresses of all ranks, or empty if they are unknown.
    pub fn new(frames: F, job: u16, rank: u16, me: Endpoint, peers: Vec<Endpoint>) -> Self {
        let mut senders: Vec<Ipv4Addr> = peers.iter().map(|peer| peer.ip).collect();
        senders.sort_unstable();
        Self {
            frames,
            rank,
            me,
            to_all: Headers::new(me, sum(job)),
            to_switch: Headers::new(me, asking(job, me)),
            peers,
            senders,
            frame: Vec::new(),
            identification: 0,
            question: None,
            foreign: 0,
            unsent: 0,
        }
    }

    /// A carrier that accepts only the switch's answers to this rank's frames, before the job's ranks are known.
    pub fn alone(frames: F, job: u16, rank: u16, me: Endpoint) -> Self {
        Self {
            senders: vec![me.ip],
            ..Self::new(frames, job, rank, me, Vec::new())
        }
    }

    /// Also asks the switch whether it takes bundles of frames: by two probes of the job's first chunks, which leave as one bundle.
    /// If the switch takes them, it answers with a bundle.
    #[must_use]
    pub fn asking_for_bundles(self, setup: &Setup) -> Self {
        let probes = [0, 1].map(|offset| {
            let mut header = setup.job.probe(offset, setup.place.child);
            header.transmission = MAX_TRANSMISSION;
            header
        });
        let question = Some(Question {
            probes,
            left: QUESTIONS,
            due_ns: 0,
        });
        Self { question, ..self }
    }

    /// Number of the rank that uses this carrier.
    pub fn rank(&self) -> u16 {
        self.rank
    }
}

/// Number of times that a rank asks whether its switch takes bundles, and the time between two of them.
const QUESTIONS: u32 = 3;
const BETWEEN_QUESTIONS_NS: u64 = 200_000_000;

/// Question whether the switch takes bundles.
struct Question {
    probes: [Repr; 2],
    /// Number of times that the question is still asked.
    left: u32,
    due_ns: u64,
}

impl Question {
    /// Whether a frame answers one of the probes. Probes of the rank itself differ in their number of transmissions.
    fn is_answered_by(&self, header: &Repr) -> bool {
        header.kind == Kind::Sum
            && header.flags.contains(Flags::PROBE)
            && header.transmission == MAX_TRANSMISSION
            && self.probes.iter().any(|probe| probe.chunk == header.chunk)
    }
}

impl<F: Frames> Carrier for Datagrams<F> {
    fn handle_timeout(&mut self, now_ns: u64) -> Result<(), CollectiveError> {
        let Some(question) = self.question.as_mut() else {
            return Ok(());
        };
        if question.left == 0 || now_ns < question.due_ns {
            return Ok(());
        }
        question.due_ns = now_ns.saturating_add(BETWEEN_QUESTIONS_NS);
        let [one, other] = [0, 1].map(|at| {
            let header = question.probes[at];
            let mut frame = vec![0; HEADERS_LEN + header.buffer_len()];
            let number = self.identification.wrapping_add(at as u16);
            let bytes = self.to_switch.write(&mut frame, number);
            header.emit(&mut Packet::new_unchecked(bytes));
            frame
        });
        let is_open = self
            .frames
            .ask_for_bundles([&one, &other])
            .map_err(io_error)?;
        self.identification = self.identification.wrapping_add(2);
        question.left = if is_open { question.left - 1 } else { 0 };
        Ok(())
    }

    fn poll_timeout(&self, _now_ns: u64) -> Option<u64> {
        let question = self.question.as_ref()?;
        (question.left > 0).then_some(question.due_ns)
    }

    fn send(&mut self, _now_ns: u64, frame: &Transmit<'_>) -> Result<(), CollectiveError> {
        let to_peer;
        let headers = match frame.to {
            Destination::All => &self.to_all,
            Destination::Worker(to) if to.0 == self.rank => &self.to_switch,
            Destination::Worker(to) => match self.peers.get(usize::from(to.0)) {
                Some(peer) => {
                    to_peer = Headers::new(self.me, *peer);
                    &to_peer
                }
                None => return Ok(()),
            },
            Destination::Server => return Ok(()),
        };
        let len = HEADERS_LEN + frame.header.buffer_len();
        let number = self.identification;
        self.identification = number.wrapping_add(1);
        let write = |bytes: &mut [u8]| frame.write_frame(headers.write(bytes, number));
        if let Some(room) = self.frames.room(len).map_err(io_error)? {
            write(room);
            return self.frames.written(len).map_err(io_error);
        }
        self.frame.resize(len, 0);
        write(&mut self.frame);
        self.frames.send(&self.frame).map_err(io_error)
    }

    fn flush(&mut self) -> Result<(), CollectiveError> {
        self.unsent += self.frames.flush().map_err(io_error)? as u64;
        Ok(())
    }

    fn receive(
        &mut self,
        _now_ns: u64,
        most: usize,
        taker: &mut dyn Takes,
    ) -> Result<usize, CollectiveError> {
        let (me, foreign, peers) = (self.me, &mut self.foreign, &self.peers);
        let senders = &self.senders;
        let question = &self.question;
        let is_known = |frame: &[u8]| {
            senders.is_empty() || source(frame).is_some_and(|ip| senders.binary_search(&ip).is_ok())
        };
        let received = self
            .frames
            .receive(most, &mut |frame: &[u8]| match open(frame, me) {
                Some(_) if !is_known(frame) => *foreign += 1,
                Some(bytes) => match Repr::parse_frame(bytes) {
                    Ok((header, _))
                        if question.as_ref().is_some_and(|q| q.is_answered_by(&header)) => {}
                    Ok((header, payload)) => taker.take(mark(frame), &header, payload),
                    Err(_) => taker.malformed(),
                },
                None => match refused(frame, me) {
                    Some(host) if peers.iter().any(|peer| peer.ip == host) => {
                        taker.unreachable(host)
                    }
                    Some(_) => {}
                    None => *foreign += 1,
                },
            });
        Ok(received.map_err(io_error)?.frames)
    }

    fn readable(&self) -> Vec<BorrowedFd<'_>> {
        self.frames.readable().into_iter().collect()
    }

    fn foreign(&self) -> u64 {
        self.foreign
    }

    fn overflow(&mut self) -> Option<u64> {
        self.frames.overflow()
    }

    fn unsent(&self) -> u64 {
        self.unsent
    }

    fn fault(&self) -> Option<LinkFault> {
        self.frames.fault()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.frames.descriptors()
    }
}
