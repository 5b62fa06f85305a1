//! Direct UDP contact with other ranks whose aggregation frames do not arrive.
//!
//! A switch may drop a job's frames: after its lease, or from a port where none of the job's ranks is admitted. To a rank,
//! that looks like the silence of a dead peer. So before a rank declares a peer dead, it asks the peer by ordinary UDP, at a
//! port that no switch takes for aggregation (`docs/protocol.md`, "Ranks ask each other"). The peer's driver thread answers,
//! so a stopped process does not.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use crate::frames::Endpoint;

/// Base of the UDP ports for direct contact: a job's port is this one plus the job's number modulo 256, since a host serves
/// several jobs, and no two jobs of a switch are equal modulo 256.
const FIRST_PORT: u16 = wire::UDP_PORT + 1;
/// Maximum wait for the reply of another rank, and interval of questions to it.
const PATIENCE: Duration = Duration::from_millis(500);
const PACE: Duration = Duration::from_millis(100);
/// Maximum number of datagrams that are read before the rank's thread continues.
const BURST: usize = 64;

const QUESTION: u8 = 1;
const ANSWER: u8 = 2;
/// Length of a message in bytes: "WE", kind (question or answer), 0, job, sender's rank.
const LEN: usize = 8;

/// A rank's UDP socket for direct contact with other ranks.
#[derive(Debug)]
pub struct Reach {
    socket: UdpSocket,
    job: u16,
    rank: u16,
    /// Address of each rank, by rank number, and time of its last message (`None` before the first).
    peers: Vec<(Ipv4Addr, Option<Instant>)>,
}

impl Reach {
    /// Opens the UDP socket at the rank's own address. Fails if the address is not local or the port is in use.
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

    /// Descriptor that becomes readable when another rank sends a message.
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Descriptor of the UDP socket.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Answers questions of other ranks, and records which ranks sent messages. Datagrams of other senders are ignored.
    pub fn answer(&mut self) {
        let mut bytes = [0; LEN + 1];
        for _ in 0..BURST {
            let (len, from) = match self.socket.recv_from(&mut bytes) {
                Ok(came) => came,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // An ICMP error about an earlier datagram.
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
                // If the answer is lost, the peer asks again.
                let _ = self.socket.send_to(&self.message(ANSWER), from);
            }
        }
    }

    /// Whether another rank is alive: its last message is at most `lately` old, or it answers within half a second. The
    /// question goes to all ranks, which so learn that this rank, perhaps the first to give up, is alive.
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
                // If the queue is full, the question is repeated later.
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

    /// Kind of a message and rank of its sender; `None` if the message is invalid.
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
