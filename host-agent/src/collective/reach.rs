//! Whether a rank lives whose frames do not arrive.
//!
//! A switch may drop a job's frames: after its lease, or from a port that none of its ranks is admitted at. To a rank that is the
//! silence of a dead peer. So before a rank calls a peer gone it asks it by ordinary UDP, at a port that no switch takes for
//! aggregation (`docs/protocol.md`, "Ranks ask each other"). The peer's driver thread answers, so a process that is stopped does not.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use crate::frames::Endpoint;

/// A job's port is this one plus its number modulo 256: a host serves several jobs, and no two of a switch are equal in that.
const FIRST_PORT: u16 = wire::UDP_PORT + 1;
/// How long a peer has to answer, and the time between two questions.
const PATIENCE: Duration = Duration::from_millis(500);
const PACE: Duration = Duration::from_millis(100);
/// Datagrams that are read before the driver does something else.
const BURST: usize = 64;

const QUESTION: u8 = 1;
const ANSWER: u8 = 2;
/// "WE", question or answer, 0, the job, the sender's rank.
const LEN: usize = 8;

/// A rank's socket for such questions.
#[derive(Debug)]
pub struct Reach {
    socket: UdpSocket,
    job: u16,
    rank: u16,
    /// By rank: its address, and when it was last heard here.
    peers: Vec<(Ipv4Addr, Option<Instant>)>,
}

impl Reach {
    /// Opens the socket at the rank's address. Fails if the address is not this host's, or the port is taken.
    pub fn open(job: u16, rank: u16, me: Endpoint, peers: &[Endpoint]) -> io::Result<Reach> {
        let socket = UdpSocket::bind(SocketAddrV4::new(me.ip, port(job)))?;
        socket.set_nonblocking(true)?;
        let peers = peers.iter().map(|peer| (peer.ip, None)).collect();
        Ok(Reach {
            socket,
            job,
            rank,
            peers,
        })
    }

    /// What becomes readable when a peer asks.
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The socket's descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Answers the peers that have asked, and notes which were heard. A datagram of anybody else is ignored.
    pub fn answer(&mut self) {
        let mut bytes = [0; LEN + 1];
        for _ in 0..BURST {
            let (len, from) = match self.socket.recv_from(&mut bytes) {
                Ok(came) => came,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // An answer of the system to what was sent before.
                Err(_) => continue,
            };
            let Some((kind, rank)) = self.parse(&bytes[..len]) else {
                continue;
            };
            match self.peers.get_mut(usize::from(rank)) {
                Some((ip, heard)) if from.ip() == *ip => *heard = Some(Instant::now()),
                _ => continue,
            }
            if kind == QUESTION {
                // One that is lost is asked for again.
                let _ = self.socket.send_to(&self.message(ANSWER), from);
            }
        }
    }

    /// Whether a peer lives: it was heard within `lately`, or answers within half a second. All peers are asked, so that each of
    /// them knows that this rank lives, which may be the first to give up.
    pub fn lives(&mut self, rank: u16, lately: Duration) -> bool {
        let begun = Instant::now();
        let mut asked: Option<Instant> = None;
        loop {
            self.answer();
            let heard = self.peers.get(usize::from(rank)).and_then(|peer| peer.1);
            let is_heard = heard.is_some_and(|heard| heard.elapsed() <= lately);
            if asked.is_some() && is_heard {
                return true;
            }
            if begun.elapsed() >= PATIENCE {
                return false;
            }
            if asked.is_none_or(|asked| asked.elapsed() >= PACE) {
                asked = Some(Instant::now());
                self.ask_all();
            }
            if frames::wait_readable([self.readable()], PACE).is_err() {
                return false;
            }
        }
    }

    fn ask_all(&self) {
        let question = self.message(QUESTION);
        for (number, (ip, _)) in (0..).zip(&self.peers) {
            if number != self.rank {
                // What finds a full queue is asked again.
                let to = SocketAddrV4::new(*ip, port(self.job));
                let _ = self.socket.send_to(&question, to);
            }
        }
    }

    fn message(&self, kind: u8) -> [u8; LEN] {
        let [a, b] = wire::UDP_PORT.to_be_bytes();
        let ([c, d], [e, f]) = (self.job.to_be_bytes(), self.rank.to_be_bytes());
        [a, b, kind, 0, c, d, e, f]
    }

    /// Whether a message asks or answers, and whose it is.
    fn parse(&self, bytes: &[u8]) -> Option<(u8, u16)> {
        let &[a, b, kind, 0, c, d, e, f] = bytes else {
            return None;
        };
        let is_ours = [a, b] == wire::UDP_PORT.to_be_bytes() && [c, d] == self.job.to_be_bytes();
        let is_kind = kind == QUESTION || kind == ANSWER;
        (is_ours && is_kind).then_some((kind, u16::from_be_bytes([e, f])))
    }
}

fn port(job: u16) -> u16 {
    FIRST_PORT + (job & 0xff)
}
