//! Carrier of a rank's frames as UDP datagrams, to the switch and to other ranks (`docs/protocol.md`, "Frame").

use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, RawFd};

use aggregation::Destination;
use aggregation::rank::Transmit;
use wire::Repr;

use super::super::CollectiveError;
use super::{Carrier, Takes, io_error};
use crate::frames::{
    Endpoint, Frames, HEADERS_LEN, LinkFault, asking, mark, open, refused, source, sum,
    write_headers,
};

/// Carrier of a rank's frames over UDP datagrams.
pub struct Datagrams<F> {
    frames: F,
    job: u16,
    rank: u16,
    me: Endpoint,
    /// Addresses of the job's ranks, by rank number; empty if they are unknown.
    peers: Vec<Endpoint>,
    /// Accepted senders, ascending: the job's ranks, whose addresses are also in the frames that a switch makes of their
    /// frames. If the job's ranks are unknown, every sender is accepted.
    senders: Vec<Ipv4Addr>,
    frame: Vec<u8>,
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
            job,
            rank,
            me,
            peers,
            senders,
            frame: Vec::new(),
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

    /// Number of the rank that uses this carrier.
    pub fn rank(&self) -> u16 {
        self.rank
    }
}

impl<F: Frames> Carrier for Datagrams<F> {
    fn send(&mut self, _now_ns: u64, frame: &Transmit<'_>) -> Result<(), CollectiveError> {
        let to = match frame.to {
            Destination::All => sum(self.job),
            Destination::Worker(to) if to.0 == self.rank => asking(self.job, self.me),
            Destination::Worker(to) => match self.peers.get(usize::from(to.0)) {
                Some(peer) => *peer,
                None => return Ok(()),
            },
            Destination::Server => return Ok(()),
        };
        let len = HEADERS_LEN + frame.header.buffer_len();
        let write = |bytes: &mut [u8]| frame.write_frame(write_headers(bytes, self.me, to));
        if let Some(room) = self.frames.room(len).map_err(io_error)? {
            write(room);
            self.frames.written(len);
            return Ok(());
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
        let is_known = |frame: &[u8]| {
            senders.is_empty() || source(frame).is_some_and(|ip| senders.binary_search(&ip).is_ok())
        };
        let received = self
            .frames
            .receive(most, &mut |frame: &[u8]| match open(frame, me) {
                Some(_) if !is_known(frame) => *foreign += 1,
                Some(bytes) => match Repr::parse_frame(bytes) {
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
